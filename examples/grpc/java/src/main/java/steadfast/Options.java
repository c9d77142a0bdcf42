package steadfast;

import java.io.File;

/** The words of the command line. */
final class Options {
  String target = "xds:///counter";
  long calls = Long.MAX_VALUE;
  double seconds = 1e9;
  long deadlineMs = 5000;
  boolean keys = true;
  File tls;
  String authority;

  static Options of(String[] words) {
    Options options = new Options();
    for (int at = 0; at < words.length; at++) {
      switch (words[at]) {
        case "--no-keys" -> options.keys = false;
        case "--calls" -> options.calls = Long.parseLong(words[++at]);
        case "--seconds" -> options.seconds = Double.parseDouble(words[++at]);
        case "--deadline-ms" -> options.deadlineMs = Long.parseLong(words[++at]);
        case "--tls" -> options.tls = new File(words[++at]);
        case "--authority" -> options.authority = words[++at];
        default -> options.target = words[at];
      }
    }
    return options;
  }
}
