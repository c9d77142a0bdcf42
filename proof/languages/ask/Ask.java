import com.google.gson.Gson;
import com.google.gson.JsonArray;
import io.grpc.CallOptions;
import io.grpc.ClientInterceptors;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/** Makes the calls that its input names, and tells how each ended: see ask.py. */
public final class Ask {
  private static final MethodDescriptor.Marshaller<byte[]> RAW =
      new MethodDescriptor.Marshaller<>() {
        @Override
        public InputStream stream(byte[] bytes) {
          return new ByteArrayInputStream(bytes);
        }

        @Override
        public byte[] parse(InputStream stream) {
          try {
            return stream.readAllBytes();
          } catch (java.io.IOException error) {
            throw new UncheckedIOException(error);
          }
        }
      };

  private static Metadata.Key<String> text(String name) {
    return Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER);
  }

  private static Map<String, Object> ask(ManagedChannel channel, JsonArray line) {
    Metadata metadata = new Metadata();
    line.get(2).getAsJsonObject().entrySet()
        .forEach(it -> metadata.put(text(it.getKey()), it.getValue().getAsString()));
    MethodDescriptor<byte[], byte[]> method =
        MethodDescriptor.<byte[], byte[]>newBuilder()
            .setType(MethodDescriptor.MethodType.UNARY)
            .setFullMethodName(line.get(0).getAsString().substring(1))
            .setRequestMarshaller(RAW)
            .setResponseMarshaller(RAW)
            .build();
    Map<String, Object> told = new TreeMap<>(Map.of("code", 0, "text", ""));
    try {
      ClientCalls.blockingUnaryCall(
          ClientInterceptors.intercept(
              channel, MetadataUtils.newAttachHeadersInterceptor(metadata)),
          method,
          CallOptions.DEFAULT.withDeadlineAfter(20, TimeUnit.SECONDS),
          line.get(1).getAsString().getBytes(StandardCharsets.UTF_8));
    } catch (StatusRuntimeException error) {
      told.put("code", error.getStatus().getCode().value());
      told.put("text", String.valueOf(error.getStatus().getDescription()));
      Metadata trailers = error.getTrailers();
      if (trailers != null) {
        told.put("executed", trailers.get(text("steadfast-executed")));
        told.put("cut", trailers.get(text("steadfast-cut")));
        byte[] own =
            trailers.get(
                Metadata.Key.of("steadfast-error-bin", Metadata.BINARY_BYTE_MARSHALLER));
        told.put("error", own == null ? null : Base64.getEncoder().encodeToString(own));
      }
    }
    return told;
  }

  public static void main(String[] args) throws Exception {
    ManagedChannel channel = ManagedChannelBuilder.forTarget(args[0]).usePlaintext().build();
    BufferedReader lines =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    Gson gson = new Gson();
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      out.println(gson.toJson(ask(channel, gson.fromJson(line, JsonArray.class))));
    }
    channel.shutdownNow();
  }
}
