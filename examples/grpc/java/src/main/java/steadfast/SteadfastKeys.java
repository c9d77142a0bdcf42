package steadfast;

import static io.grpc.Metadata.ASCII_STRING_MARSHALLER;

import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import java.security.SecureRandom;
import java.util.TreeSet;

/**
 * Gives each unary call of one channel a key, by which it is executed exactly once: a retry has the key
 * of its first attempt, whichever gateway it comes to. docs/gateway.md has the rules of a key.
 */
public final class SteadfastKeys implements ClientInterceptor {
  private static final int WINDOW = 64; // calls under way in a session
  private static final Metadata.Key<String> SESSION = name("steadfast-session");
  private static final Metadata.Key<String> CALL = name("steadfast-call");
  private static final Metadata.Key<String> UNANSWERED = name("steadfast-unanswered");

  private Session current = new Session();

  private static Metadata.Key<String> name(String name) {
    return Metadata.Key.of(name, ASCII_STRING_MARSHALLER);
  }

  /** One for a channel; a further one where more than 64 calls are under way. */
  private static final class Session {
    final String name;
    final TreeSet<Long> open = new TreeSet<>();
    long next = 1;

    Session() {
      long drawn;
      do {
        drawn = new SecureRandom().nextLong();
      } while (drawn == 0);
      name = Long.toHexString(drawn);
    }

    long oldest() {
      return open.isEmpty() ? next : open.first();
    }
  }

  private synchronized Runnable begin(Metadata headers) {
    if (current.next - current.oldest() >= WINDOW) {
      current = new Session();
    }
    Session session = current;
    long number = session.next++;
    session.open.add(number);
    headers.put(SESSION, session.name);
    headers.put(CALL, Long.toString(number));
    headers.put(UNANSWERED, Long.toString(session.oldest()));
    return () -> {
      synchronized (this) {
        session.open.remove(number);
      }
    };
  }

  @Override
  public <Q, A> ClientCall<Q, A> interceptCall(
      MethodDescriptor<Q, A> method, CallOptions options, Channel next) {
    return method.getType() == MethodDescriptor.MethodType.UNARY
        ? new KeyedCall<>(method, options, next, this::begin)
        : next.newCall(method, options);
  }
}
