package steadfast;

import io.grpc.Attributes;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import java.nio.channels.ClosedChannelException;
import java.util.function.Function;

/**
 * A unary call with a key. A gateway that dies sometimes ends a call of grpc-java with UNKNOWN:
 * channel closed (its issue 10120), which no retry policy covers. Such a call is sent again here,
 * with the same key: so it is executed once all the same.
 */
final class KeyedCall<Q, A> extends ClientCall<Q, A> {
  private static final int ATTEMPTS = 4;

  private final MethodDescriptor<Q, A> method;
  private final CallOptions options;
  private final Channel channel;
  private final Function<Metadata, Runnable> begin;

  private ClientCall<Q, A> attempt;
  private int attempts = 1;
  private Runnable end;
  private Metadata headers;
  private Q message;
  private boolean isHalfClosed;
  private int requested;

  /** {@code begin} puts a key into the headers, and returns what to run at the end. */
  KeyedCall(
      MethodDescriptor<Q, A> method,
      CallOptions options,
      Channel channel,
      Function<Metadata, Runnable> begin) {
    this.method = method;
    this.options = options;
    this.channel = channel;
    this.begin = begin;
    attempt = channel.newCall(method, options);
  }

  @Override
  public synchronized void start(Listener<A> listener, Metadata headers) {
    end = begin.apply(headers);
    this.headers = headers;
    attempt.start(new Heard(listener), copy(headers));
  }

  /** A call may change its headers. */
  private static Metadata copy(Metadata headers) {
    Metadata copy = new Metadata();
    copy.merge(headers);
    return copy;
  }

  /** False: it was sent often enough. */
  private synchronized boolean sendAgain(Listener<A> listener) {
    if (attempts == ATTEMPTS) {
      return false;
    }
    attempts++;
    attempt = channel.newCall(method, options);
    attempt.start(new Heard(listener), copy(headers));
    attempt.request(requested);
    if (message != null) {
      attempt.sendMessage(message);
    }
    if (isHalfClosed) {
      attempt.halfClose();
    }
    return true;
  }

  private final class Heard extends SimpleForwardingClientCallListener<A> {
    private final Listener<A> listener;

    Heard(Listener<A> listener) {
      super(listener);
      this.listener = listener;
    }

    @Override
    public void onClose(Status status, Metadata trailers) {
      boolean isLost =
          status.getCode() == Status.Code.UNKNOWN
              && status.getCause() instanceof ClosedChannelException;
      if (isLost && sendAgain(listener)) {
        return;
      }
      end.run();
      super.onClose(status, trailers);
    }
  }

  @Override
  public synchronized void request(int messages) {
    requested += messages;
    attempt.request(messages);
  }

  @Override
  public synchronized void sendMessage(Q message) {
    this.message = message;
    attempt.sendMessage(message);
  }

  @Override
  public synchronized void halfClose() {
    isHalfClosed = true;
    attempt.halfClose();
  }

  @Override
  public synchronized void cancel(String why, Throwable cause) {
    attempts = ATTEMPTS;
    attempt.cancel(why, cause);
  }

  @Override
  public synchronized Attributes getAttributes() {
    return attempt.getAttributes();
  }
}
