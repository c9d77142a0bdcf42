package steadfast;

import com.google.gson.Gson;
import io.grpc.CallOptions;
import io.grpc.ChannelCredentials;
import io.grpc.ClientCall;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.StatusRuntimeException;
import io.grpc.TlsChannelCredentials;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.SocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import sun.misc.Signal;

/**
 * Adds 1 to the group `counter` in a loop, over stock gRPC.
 *
 * <pre>Client TARGET [--calls N | --seconds S] [--no-keys] [--tls DIR --authority NAME]</pre>
 *
 * TARGET is xds:///counter, HOST:PORT or unix:PATH. It calls until N calls, S seconds or SIGTERM,
 * and prints one line of JSON. Failures, and calls of more than 5 ms, are told on the error stream.
 */
public final class Client {
  private static final Gson GSON = new Gson();
  private static final MethodDescriptor<long[], Long> ADD =
      MethodDescriptor.<long[], Long>newBuilder()
          .setType(MethodDescriptor.MethodType.UNARY)
          .setFullMethodName("counter/add")
          .setRequestMarshaller(new Json<>(long[].class))
          .setResponseMarshaller(new Json<>(Long.class))
          .build();

  private static volatile boolean stopped;

  /** Messages as JSON. */
  private record Json<T>(Class<T> type) implements MethodDescriptor.Marshaller<T> {
    @Override
    public InputStream stream(T value) {
      return new ByteArrayInputStream(GSON.toJson(value).getBytes(StandardCharsets.UTF_8));
    }

    @Override
    public T parse(InputStream stream) {
      return GSON.fromJson(new InputStreamReader(stream, StandardCharsets.UTF_8), type);
    }
  }

  public static void main(String[] args) throws Exception {
    Options options = Options.of(args);
    // A shutdown hook would run beside the last call, and not after it.
    Signal.handle(new Signal("TERM"), signal -> stopped = true);
    ManagedChannel channel = open(options);
    System.out.println(GSON.toJson(callInLoop(channel, options)));
    channel.shutdownNow();
  }

  private static ManagedChannel open(Options options) throws IOException {
    ChannelCredentials credentials = InsecureChannelCredentials.create();
    if (options.tls != null) {
      credentials =
          TlsChannelCredentials.newBuilder()
              .trustManager(new File(options.tls, "authority.pem"))
              .keyManager(find(options.tls, ".pem"), find(options.tls, ".key"))
              .build();
    }
    ManagedChannelBuilder<?> builder = Grpc.newChannelBuilder(options.target, credentials);
    if (options.target.startsWith("unix:")) {
      // HTTP/2 has no name for a path: gateways refuse the one that gRPC makes of it.
      builder.overrideAuthority("localhost");
    } else if (options.authority != null) {
      builder.overrideAuthority(options.authority);
    }
    Metadata json = new Metadata();
    json.put(Metadata.Key.of("steadfast-encoding", Metadata.ASCII_STRING_MARSHALLER), "json");
    builder.intercept(MetadataUtils.newAttachHeadersInterceptor(json));
    if (options.keys) {
      builder.intercept(new SteadfastKeys());
    }
    return builder.build();
  }

  private static File find(File folder, String suffix) {
    return folder.listFiles(
        (__, name) -> name.startsWith("client-") && name.endsWith(suffix))[0];
  }

  private static Map<String, Object> callInLoop(ManagedChannel channel, Options options) {
    List<Double> waits = new ArrayList<>();
    Map<String, Integer> codes = new TreeMap<>();
    SocketAddress gateway = null;
    long until = System.nanoTime() + (long) (options.seconds * 1e9);
    while (waits.size() < options.calls && System.nanoTime() < until && !stopped) {
      long start = System.currentTimeMillis();
      long began = System.nanoTime();
      // The first call waits until classes are loaded and the channel is connected.
      long deadlineMs = waits.isEmpty() ? 20_000 : options.deadlineMs;
      CallOptions within =
          CallOptions.DEFAULT
              .withWaitForReady()
              .withDeadlineAfter(deadlineMs, TimeUnit.MILLISECONDS);
      ClientCall<long[], Long> call = channel.newCall(ADD, within);
      try {
        ClientCalls.blockingUnaryCall(call, new long[] {1});
        SocketAddress at = call.getAttributes().get(Grpc.TRANSPORT_ATTR_REMOTE_ADDR);
        if (!at.equals(gateway)) {
          gateway = at;
          System.err.printf("peer %d %s%n", System.currentTimeMillis(), gateway);
        }
      } catch (StatusRuntimeException error) {
        codes.merge(error.getStatus().getCode().name(), 1, Integer::sum);
        System.err.printf("failed %s%n", error.getMessage());
      }
      double wait = (System.nanoTime() - began) / 1e6;
      waits.add(wait);
      if (wait > 5) {
        System.err.printf("slow %d %.1f%n", start, wait);
      }
    }
    Collections.sort(waits);
    double median = waits.isEmpty() ? 0 : waits.get(waits.size() / 2);
    double longest = waits.isEmpty() ? 0 : waits.get(waits.size() - 1);
    return Map.of(
        "calls", waits.size(),
        "failed", codes.values().stream().mapToInt(Integer::intValue).sum(),
        "codes", codes,
        "p50_us", Math.round(median * 1000),
        "longest_ms", longest);
  }
}
