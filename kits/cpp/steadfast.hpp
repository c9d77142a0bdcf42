// Serves a replica in C++17: a class whose methods clients call by name, with arguments in JSON.
// The node of this host starts the program (steadfast run). One header, no dependency, Linux.
//
// All replicas execute the same calls in the same order. A handler's result and effects may depend
// on nothing but the state, the arguments and the Context: no clock, no random numbers of its own,
// no order of a hash table or of addresses. docs/protocol/attach.md tells what goes over the socket.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace steadfast {

// Text that is no JSON, or JSON of another type than is wanted.
struct BadJson : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// How deep arrays and objects are nested at most: in calls, and in states.
constexpr int call_depth = 64, state_depth = 1000;

namespace detail {

// The length of the character of UTF-8 that begins there; 0 if none does.
inline std::size_t character(std::string_view text, std::size_t at) {
  auto byte = [&](std::size_t place) { return static_cast<unsigned char>(text[place]); };
  unsigned char first = byte(at);
  if (first < 0x80) return 1;
  std::size_t more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
  if (first < 0xc2 || first > 0xf4 || at + more >= text.size()) return 0;
  std::uint32_t code = first & (0x3f >> more);
  for (std::size_t i = 1; i <= more; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(at + i) & 0x3f);
  }
  static constexpr std::uint32_t least[] = {0, 0x80, 0x800, 0x10000};
  bool is = code >= least[more] && code <= 0x10ffff && (code < 0xd800 || code >= 0xe000);
  return is ? more + 1 : 0;
}

// Whether a state is being read, and its fields that nobody asked for.
struct Restoring {
  bool now = false;
  std::vector<std::string> dropped;
};
inline Restoring& restoring() {
  static Restoring restoring;
  return restoring;
}

}  // namespace detail

// A value. Objects are sorted by name, so that every replica writes the same text.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::map<std::string, Json>;

  Json(std::nullptr_t = nullptr) {}
  Json(const char* text) : value_(std::string(text)) {}
  Json(std::string text) : value_(std::move(text)) {}
  Json(Array array) : value_(std::move(array)) {}
  Json(Object object) : value_(std::move(object)) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  Json(T number) {
    if constexpr (std::is_same_v<T, bool>) value_ = number;
    else if constexpr (std::is_floating_point_v<T>) value_ = static_cast<double>(number);
    else if constexpr (std::is_unsigned_v<T>) value_ = static_cast<std::uint64_t>(number);
    else if (number >= 0) value_ = static_cast<std::uint64_t>(number);
    else value_ = static_cast<std::int64_t>(number);
  }

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }
  Array& array() { return get<Array>("an array"); }
  const Array& array() const { return get<Array>("an array"); }
  Object& object() { return get<Object>("an object"); }
  const Object& object() const { return get<Object>("an object"); }
  const std::string& string() const { return get<std::string>("a text"); }
  bool boolean() const { return get<bool>("true or false"); }
  double number() const {
    if (auto* n = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*n);
    if (auto* n = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*n);
    return get<double>("a number");
  }
  // Whether a whole number is this one: double has not all of them.
  bool is_exactly(double number) const {
    if (auto* n = std::get_if<std::uint64_t>(&value_))
      return number < 18446744073709551616.0 && static_cast<std::uint64_t>(number) == *n;
    if (auto* n = std::get_if<std::int64_t>(&value_)) return static_cast<std::int64_t>(number) == *n;
    return true;
  }
  template <class T>
  T integer() const {
    if (auto* n = std::get_if<std::uint64_t>(&value_); n && *n <= static_cast<std::uint64_t>(std::numeric_limits<T>::max()))
      return static_cast<T>(*n);
    if (auto* n = std::get_if<std::int64_t>(&value_); n && std::is_signed_v<T> && *n >= static_cast<std::int64_t>(std::numeric_limits<T>::min()))
      return static_cast<T>(*n);
    throw BadJson("a whole number that fits is wanted, not " + state_text().substr(0, 40));
  }
  // The member of an object.
  const Json& at(const std::string& name) const {
    auto found = object().find(name);
    if (found == object().end()) throw BadJson("field `" + name + "` is missing, and has no default");
    return found->second;
  }

  // What callers read. Throws std::domain_error for bytes that are no UTF-8, NaN, infinities, and
  // for what is nested too deep.
  std::string text() const {
    Writer writer{false};
    writer.write(*this);
    return std::move(writer.out);
  }
  static Json parse(std::string_view text) { return parse(text, false); }

  // What this kit alone reads: all of the above come back as they were. Only depth is limited.
  std::string state_text() const {
    Writer writer{true};
    writer.write(*this);
    return std::move(writer.out);
  }
  static Json parse_state(std::string_view text) { return parse(text, true); }

 private:
  static Json parse(std::string_view text, bool is_state) {
    Reader reader{text, is_state};
    Json value = reader.value(0);
    reader.blanks();
    if (reader.at != text.size()) throw reader.wrong("something follows the value");
    return value;
  }

  template <class T>
  T& get(const char* wanted) { return const_cast<T&>(std::as_const(*this).template get<T>(wanted)); }
  template <class T>
  const T& get(const char* wanted) const {
    if (auto* value = std::get_if<T>(&value_)) return *value;
    throw BadJson(std::string(wanted) + " is wanted");
  }

  struct Reader {
    std::string_view text;
    bool is_state = false;
    std::size_t at = 0;

    BadJson wrong(const char* why) const { return BadJson(std::string(why) + ", at byte " + std::to_string(at)); }
    void blanks() {
      while (at < text.size() && std::string_view(" \t\r\n").find(text[at]) != std::string_view::npos) ++at;
    }
    bool takes(std::string_view word) {
      blanks();
      bool there = text.substr(at, word.size()) == word;
      if (there) at += word.size();
      return there;
    }

    Json value(int depth) {
      if (takes("null")) return nullptr;
      if (takes("true")) return true;
      if (takes("false")) return false;
      if (is_state && takes("NaN")) return std::numeric_limits<double>::quiet_NaN();
      if (is_state && takes("Infinity")) return std::numeric_limits<double>::infinity();
      if (is_state && takes("-Infinity")) return -std::numeric_limits<double>::infinity();
      if (takes("\"")) return string();
      bool is_within = at < text.size() && (text[at] == '[' || text[at] == '{');
      if (is_within && depth == (is_state ? state_depth : call_depth)) throw wrong("it is nested too deep");
      if (takes("[")) {
        Array array;
        if (takes("]")) return array;
        do array.push_back(value(depth + 1));
        while (takes(","));
        if (!takes("]")) throw wrong("] is missing");
        return array;
      }
      if (takes("{")) {
        Object object;
        if (takes("}")) return object;
        do {
          if (!takes("\"")) throw wrong("a name is missing");
          std::string name = string();
          if (!takes(":")) throw wrong(": is missing");
          if (!object.emplace(std::move(name), value(depth + 1)).second) throw wrong("a name comes twice");
        } while (takes(","));
        if (!takes("}")) throw wrong("} is missing");
        return object;
      }
      return numeral();
    }

    Json numeral() {
      std::size_t end = std::min(text.find_first_not_of("+-.0123456789eE", at), text.size());
      std::string_view word = text.substr(at, end - at);
      std::string_view digits = word.substr(word.substr(0, 1) == "-");
      // from_chars takes some numerals that JSON does not.
      auto digit = [&](std::size_t place) { return place < digits.size() && digits[place] >= '0' && digits[place] <= '9'; };
      std::size_t point = digits.find('.');
      if (!digit(0) || (digits[0] == '0' && digit(1)) || (point != std::string_view::npos && !digit(point + 1)))
        throw wrong("no value");
      auto whole = [&](auto number) -> std::optional<Json> {
        auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), number);
        if (error != std::errc() || stop != word.data() + word.size()) return {};
        at = end;
        return Json(number);
      };
      if (auto number = whole(std::uint64_t{})) return *number;
      if (auto number = whole(std::int64_t{})) return *number;
      // A whole number is not rounded.
      bool is_whole = word.find_first_of(".eE") == std::string_view::npos;
      if (auto number = is_whole ? std::nullopt : whole(double{})) return *number;
      throw wrong("a number is not right, or too large");
    }

    std::string string() {
      std::string out;
      for (; at < text.size(); ++at) {
        unsigned char letter = static_cast<unsigned char>(text[at]);
        if (letter == '"') {
          ++at;
          return out;
        }
        if (letter < 0x20) throw wrong("a control character in a text");
        if (letter == '\\') escape(out);
        else if (letter < 0x80) out += text[at];
        else letters(out);
      }
      throw wrong("a text has no end");
    }

    // Copies a character of several bytes in UTF-8, if it is one.
    void letters(std::string& out) {
      std::size_t length = detail::character(text, at);
      if (length == 0) throw wrong("a text is not UTF-8");
      out.append(text, at, length);
      at += length - 1;
    }

    void escape(std::string& out) {
      static constexpr std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
      char letter = ++at < text.size() ? text[at] : ' ';
      if (auto known = from.find(letter); known != std::string_view::npos) {
        out += to[known];
        return;
      }
      std::uint32_t code = letter == 'u' ? hexadecimal() : 0xdc00;
      if (code >= 0xd800 && code < 0xdc00 && text.substr(at + 1, 2) == "\\u") {
        at += 2;
        std::uint32_t low = hexadecimal();
        code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00) : code;
      }
      if (is_state && code >= 0xdc80 && code < 0xdd00 && letter == 'u') {
        out += static_cast<char>(code & 0xff);  // a byte that is no text: see quote
        return;
      }
      if (code >= 0xd800 && code < 0xe000) throw wrong("an escape stands for nothing");
      if (code < 0x80) out += static_cast<char>(code);
      else if (code < 0x800) bytes(out, 0xc0 | code >> 6, code, 1);
      else if (code < 0x10000) bytes(out, 0xe0 | code >> 12, code, 2);
      else bytes(out, 0xf0 | code >> 18, code, 3);
    }
    static void bytes(std::string& out, std::uint32_t first, std::uint32_t code, int more) {
      out += static_cast<char>(first);
      while (more-- > 0) out += static_cast<char>(0x80 | (code >> 6 * more & 0x3f));
    }
    std::uint32_t hexadecimal() {
      std::uint32_t code = 0;
      const char* begin = text.data() + std::min(at + 1, text.size());
      const char* end = begin + std::min<std::size_t>(4, text.data() + text.size() - begin);
      if (std::from_chars(begin, end, code, 16).ptr != begin + 4) throw wrong("four hexadecimal digits are wanted");
      at += 4;
      return code;
    }
  };

  struct Writer {
    bool is_state;
    std::string out{};
    int depth = 0;

    void quote(const std::string& text) {
      static constexpr char digits[] = "0123456789abcdef";
      out += '"';
      for (std::size_t at = 0; at < text.size();) {
        auto letter = static_cast<unsigned char>(text[at]);
        std::size_t length = detail::character(text, at);
        if (length == 0 && !is_state) throw std::domain_error("a text is not UTF-8, at its byte " + std::to_string(at));
        // Bytes that are no text are written as the halves of surrogate pairs that no text has.
        if (length == 0) ((out += "\\udc") += digits[letter >> 4]) += digits[letter & 15];
        else if (letter == '"' || letter == '\\') (out += '\\') += text[at];
        else if (letter >= 0x20) out.append(text, at, length);
        else ((out += "\\u00") += digits[letter >> 4]) += digits[letter & 15];
        at += std::max<std::size_t>(length, 1);
      }
      out += '"';
    }

    void number(double number) {
      if (!is_state && !std::isfinite(number)) throw std::domain_error("JSON has no NaN and no infinite number");
      if (std::isnan(number)) out += "NaN";
      else if (std::isinf(number)) out += number < 0 ? "-Infinity" : "Infinity";
      else if (number == 0 && std::signbit(number)) out += "-0.0";
      else put(number);
    }
    template <class T>
    void put(T number) {
      char room[32];
      out.append(room, std::to_chars(room, room + sizeof room, number).ptr);
    }

    void deeper() {
      if (++depth > (is_state ? state_depth : call_depth)) throw std::domain_error("it is nested too deep");
    }

    void write(const Json& json) {
      if (json.is_null()) out += "null";
      else if (auto* flag = std::get_if<bool>(&json.value_)) out += *flag ? "true" : "false";
      else if (auto* text = std::get_if<std::string>(&json.value_)) quote(*text);
      else if (auto* natural = std::get_if<std::uint64_t>(&json.value_)) put(*natural);
      else if (auto* whole = std::get_if<std::int64_t>(&json.value_)) put(*whole);
      else if (auto* real = std::get_if<double>(&json.value_)) number(*real);
      else if (auto* array = std::get_if<Array>(&json.value_)) {
        deeper();
        const char* before = "[";
        for (const Json& value : *array) {
          out += std::exchange(before, ",");
          write(value);
        }
        out += array->empty() ? "[]" : "]";
        --depth;
      } else {
        deeper();
        const char* before = "{";
        for (const auto& [name, value] : json.object()) {
          out += std::exchange(before, ",");
          quote(name);
          out += ':';
          write(value);
        }
        out += json.object().empty() ? "{}" : "}";
        --depth;
      }
    }
  };

  std::variant<std::nullptr_t, bool, std::uint64_t, std::int64_t, double, std::string, Array, Object> value_;
};

// How a C++ type is named in a contract, read and written. Specialize it for types of your own:
//     template <> struct steadfast::Form<Order> { name, read, write };
template <class T, class = void>
struct Form;

template <>
struct Form<Json> {
  static std::string name() { return "json"; }
  static Json read(const Json& json) { return json; }
  static Json write(Json json) { return json; }
};
template <>
struct Form<bool> {
  static std::string name() { return "bool"; }
  static bool read(const Json& json) { return json.boolean(); }
  static Json write(bool value) { return value; }
};
template <>
struct Form<std::string> {
  static std::string name() { return "String"; }
  static std::string read(const Json& json) { return json.string(); }
  static Json write(std::string value) { return value; }
};
template <class T>
struct Form<T, std::enable_if_t<std::is_integral_v<T>>> {
  static std::string name() { return (std::is_signed_v<T> ? "i" : "u") + std::to_string(8 * sizeof(T)); }
  static T read(const Json& json) { return json.integer<T>(); }
  static Json write(T value) { return value; }
};
template <class T>
struct Form<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  static std::string name() { return sizeof(T) == 4 ? "f32" : "f64"; }
  static T read(const Json& json) {
    double number = json.number();
    if (!json.is_exactly(number)) throw BadJson("a number would be rounded");
    if (std::isfinite(number) && !std::isfinite(static_cast<T>(number))) throw BadJson("a number is too large");
    return static_cast<T>(number);
  }
  static Json write(T value) { return value; }
};
template <class T>
struct Form<std::vector<T>> {
  static std::string name() { return "Vec<" + Form<T>::name() + ">"; }
  static std::vector<T> read(const Json& json) {
    std::vector<T> values;
    for (const Json& value : json.array()) values.push_back(Form<T>::read(value));
    return values;
  }
  static Json write(const std::vector<T>& values) {
    Json::Array array;
    for (const T& value : values) array.push_back(Form<T>::write(value));
    return array;
  }
};
template <class T>
struct Form<std::optional<T>> {
  static std::string name() { return "Option<" + Form<T>::name() + ">"; }
  static std::optional<T> read(const Json& json) {
    return json.is_null() ? std::optional<T>() : Form<T>::read(json);
  }
  static Json write(const std::optional<T>& value) { return value ? Form<T>::write(*value) : Json(); }
};
template <class T>
struct Form<std::map<std::string, T>> {
  static std::string name() { return "Map<String, " + Form<T>::name() + ">"; }
  static std::map<std::string, T> read(const Json& json) {
    std::map<std::string, T> values;
    for (const auto& [name, value] : json.object()) values.emplace(name, Form<T>::read(value));
    return values;
  }
  static Json write(const std::map<std::string, T>& values) {
    Json::Object object;
    for (const auto& [name, value] : values) object.emplace(name, Form<T>::write(value));
    return object;
  }
};

// Reads an object's fields into variables. Each may have former names and a default. A field of a
// state that nobody asked for is told to the node when this ends:
//     steadfast::Fields fields(state);
//     fields.read(balance_, {"balance", "amount"});    // formerly amount
//     fields.read(credit_, {"credit"}, 7);             // 7 in states of versions without it
class Fields {
 public:
  explicit Fields(const Json& object, std::string name = "state") : left_(object.object()), name_(std::move(name)) {}
  ~Fields() {
    if (!detail::restoring().now) return;
    auto& dropped = detail::restoring().dropped;
    for (const auto& [field, value] : left_)
      if (std::string full = name_ + "." + field; std::find(dropped.begin(), dropped.end(), full) == dropped.end())
        dropped.push_back(full);
  }
  Fields(const Fields&) = delete;
  Fields& operator=(const Fields&) = delete;

  template <class T>
  void read(T& into, std::initializer_list<const char*> names) {
    if (!found(into, names)) throw BadJson("field `" + std::string(*names.begin()) + "` is missing, and has no default");
  }
  template <class T, class D>
  void read(T& into, std::initializer_list<const char*> names, const D& otherwise) {
    if (!found(into, names)) into = otherwise;
  }

 private:
  template <class T>
  bool found(T& into, std::initializer_list<const char*> names) {
    bool is = false;
    for (const char* name : names) {
      auto field = left_.find(name);
      if (field == left_.end()) continue;
      const std::string words = "field `" + std::string(*names.begin()) + "`";
      if (is) throw BadJson(words + " comes twice: as " + name + " and by another name");
      try {
        into = Form<T>::read(field->second);
      } catch (const BadJson& error) {
        throw BadJson(words + ": " + error.what());
      }
      left_.erase(field);
      is = true;
    }
    return is;
  }

  Json::Object left_;
  std::string name_;
};

// An error of the service: the caller gets the value. Any other exception is a failed handler.
struct Error {
  Json value;
};

// What a handler may know beside the state and its arguments, the same at every replica.
struct Context {
  std::uint64_t now;     // ordered time, in nanoseconds since 1970
  std::uint64_t seed;    // for random numbers
  std::uint64_t client;  // the caller
  std::uint64_t number;  // which of the caller's calls
};

// That of the call under way.
inline Context& context() {
  static Context context{};
  return context;
}

namespace detail {

// FNV-1a in 64 bits.
inline std::uint64_t hash_of(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

}  // namespace detail

// How a method is known: FNV-1a of its name in 64 bits, its halves folded into 32.
inline std::uint32_t method_id(std::string_view name) {
  std::uint64_t hash = detail::hash_of(name);
  return static_cast<std::uint32_t>(hash ^ hash >> 32);
}

namespace detail {

enum Kind : std::uint8_t {
  hello = 1, welcome, execute, snapshot, restore, reset,
  answer, state, failed, restored, farewell, first_optional = 128, notice = 128,
  compare, digest, view, merge
};
// The extension of a Hello: the service merges histories that have parted.
constexpr char hello_merges = 1;
enum Notice : char { fault = 1, well, dropped };
enum Refusal : std::uint8_t { no_such_method = 3, bad_arguments, panicked, too_large = 7, not_read_only = 10 };
constexpr std::size_t max_body = 1 << 20, max_frame = max_body + 4096, piece = 256 << 10;
constexpr std::uint64_t max_state = std::uint64_t{2} << 30;
// A state of more bytes is not tried beside the calls.
constexpr std::size_t tried_state = 1 << 20;
constexpr const char* describe = "steadfast.describe";

struct Outcome {
  std::uint8_t outcome, refusal, flags;
  std::string body;
};

// The beginning of a text that ends between characters; what is no text within becomes "?".
inline std::string cut(std::string text, std::size_t most) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = character(text, at);
    if (length == 0) text[at] = '?';
    at += std::max<std::size_t>(length, 1);
  }
  if (text.size() > most) {
    while (most > 0 && (text[most] & 0xc0) == 0x80) --most;
    text.resize(most);
  }
  return text;
}

inline Outcome refuse(Refusal refusal, std::string reason, std::uint8_t flags = 0) {
  return {3, refusal, flags, cut(std::move(reason), 512)};
}

template <class T>
T number_at(std::string_view bytes, std::size_t at) {
  T number{};
  for (std::size_t i = 0; i < sizeof(T); ++i) number |= T{static_cast<unsigned char>(bytes[at + i])} << 8 * i;
  return number;
}

template <class T>
std::string bytes_of(T number) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes += static_cast<char>(number >> 8 * i & 0xff);
  return bytes;
}

// Names this build of the program: its size, and its beginning, which has the sizes of its parts.
// Another one may write the same state otherwise, so their digests are not compared. 0: it cannot be
// told.
inline std::uint64_t form() {
  static const std::uint64_t form = [] {
    std::string head(4096, '\0');
    int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (file < 0) return std::uint64_t{0};
    auto size = ::lseek(file, 0, SEEK_END), length = static_cast<off_t>(::pread(file, head.data(), head.size(), 0));
    ::close(file);
    if (size < 0 || length <= 0) return std::uint64_t{0};
    return hash_of(bytes_of<std::uint64_t>(size) + head.substr(0, length));
  }();
  return form;
}

// A digest of a state: of how often it has each byte, since a set or a map may have no order.
inline std::uint64_t digest_of(std::string_view state) {
  std::uint64_t counts[256] = {};
  for (unsigned char byte : state) ++counts[byte];
  std::string bytes;
  for (std::uint64_t count : counts) bytes += bytes_of(count);
  return hash_of(bytes);
}

// The closer: a process that shares this one's memory. Linux frees a dead process's memory before it
// closes its sockets, and the node would see the death of one with a gibibyte some 100 ms late. So it
// is the closer that frees it, after that. The kernel wakes it by a robust futex of a thread that
// lives as long as the process: docs/decisions/0080-closer.md.
class Closer {
 public:
  // Once for the process. Without a thread or the kernel's leave the death is noticed later.
  static void begin() {
    static const bool begun = [] {
      try {
        std::thread(hold).detach();
      } catch (const std::system_error& error) {
        tell_none(error.what());
        return false;
      }
      return true;
    }();
    static_cast<void>(begun);
  }

 private:
  // What the kernel reads at the thread's end (struct robust_list_head), with one entry.
  struct RobustList {
    void *list, *pending_offset, *pending, *entry;
    std::atomic<std::uint32_t> word;
    pid_t owner;
  };
  static constexpr std::uint32_t waiters = 0x80000000, owner_died = 0x40000000;
  static constexpr std::size_t stack_size = 64 << 10;

  static void tell_none(const std::string& reason) {
    const char* effect = "the node learns of this program's death later, by 60 to 230 ms for each GiB";
    std::fprintf(stderr, "there is no closer: %s; %s\n", reason.c_str(), effect);
  }

  // Returns only if there is no closer.
  static void hold() {
    auto fails = [](const char* call) { tell_none(std::string(call) + ": " + std::strerror(errno)); };
    static RobustList robust;
    robust.list = &robust.entry;
    robust.entry = &robust;
    robust.pending_offset = reinterpret_cast<void*>(sizeof(void*));
    robust.owner = ::getpid();
    robust.word = static_cast<std::uint32_t>(::syscall(SYS_gettid)) | waiters;
    void* stack = ::mmap(nullptr, stack_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack == MAP_FAILED) return fails("mmap");
    // An empty range: is there such a call?
    if (::syscall(close_range_call, ~0U, ~0U, 0) != 0) return fails("close_range");
    if (::syscall(SYS_set_robust_list, &robust, 3 * sizeof(void*)) != 0) return fails("set_robust_list");
    for (;;) {
      // No handler of this process may run in the closer.
      std::uint64_t all = ~std::uint64_t{0}, before = 0;
      ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
      int closer = ::clone(close_at_death, static_cast<char*>(stack) + stack_size, CLONE_VM | CLONE_FILES, &robust);
      int error = errno;
      ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
      if (closer <= 0) {
        errno = error;
        return fails("clone");
      }
      // One that is stopped would keep the memory of a dead process. One that ended is replaced.
      for (int status = 0; ::waitpid(closer, &status, WUNTRACED | __WALL) == closer || errno == EINTR;) {
        if (!WIFSTOPPED(status)) break;
        ::kill(closer, SIGKILL);
      }
      ::sleep(1);
    }
  }

  // The closer's life: system calls alone, for it shares the thread-local memory of the thread above.
  static int close_at_death(void* argument) {
    RobustList& robust = *static_cast<RobustList*>(argument);
    // Its descriptors would hold the sockets open: it gets an empty table of its own.
    ::syscall(close_range_call, 0U, ~0U, 2 /* CLOSE_RANGE_UNSHARE */);
    ::syscall(SYS_setsid);
    ::syscall(SYS_prctl, PR_SET_NAME, "steadfast close");
    for (std::uint32_t word; !((word = robust.word) & owner_died);)
      ::syscall(SYS_futex, &robust.word, 0 /* FUTEX_WAIT */, word, nullptr, nullptr, 0);
    // The memory is to be this process's to free: the other threads' end comes first.
    pollfd owner{static_cast<int>(::syscall(pidfd_open_call, robust.owner, 0)), POLLIN, 0};
    timespec patience{2, 0};
    if (owner.fd >= 0) ::syscall(SYS_ppoll, &owner, 1, &patience, nullptr, 0);
    return 0;
  }

  // The same on all processors; older headers lack them.
  static constexpr long pidfd_open_call = 434, close_range_call = 436;
};

// The connection to the node. Answers wait until no further command is here.
class Link {
 public:
  explicit Link(bool merges) {
    const char *path = std::getenv("STEADFAST_ATTACH"), *group = std::getenv("STEADFAST_GROUP");
    const char *token = std::getenv("STEADFAST_TOKEN"), *begins = std::getenv("STEADFAST_BEGINS");
    sockaddr_un address{AF_UNIX, {}};
    bool shows_token = token && std::strlen(token) == 64 && std::strspn(token, "0123456789abcdefABCDEF") == 64;
    if (!path || !group || !shows_token || std::strlen(path) >= sizeof address.sun_path)
      throw std::runtime_error("a node starts this program: steadfast run --group NAME -- PROGRAM");
    Closer::begin();
    std::strcpy(address.sun_path, path);
    socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket_ < 0 || ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error(std::string("the node cannot be reached: ") + std::strerror(errno));
    // Without the file all unanswered calls are blamed if this program dies: it serves anyway.
    if (begins) begins_ = ::open(begins, O_WRONLY | O_CLOEXEC);
    begin(0);
    // The group's length says where the extension begins.
    auto length = static_cast<std::uint16_t>(merges ? std::strlen(group) : 0);
    std::string body = "SFAT" + std::string("\1\0", 2) + bytes_of(length) + bytes_of<std::uint32_t>(::getpid());
    for (int i = 0; i < 64; i += 2)
      body += static_cast<char>(std::stoi(std::string(token + i, 2), nullptr, 16));
    body += group;
    if (merges) body += hello_merges;
    send(hello, body);
    std::uint8_t kind = 0;
    if (!receive(kind, body) || kind != welcome || body.size() < 8 || body[0] != 1)
      throw std::runtime_error("the node does not let this program in: " + body);
  }
  ~Link() {
    if (begins_ >= 0) ::close(begins_);
    if (socket_ >= 0) ::close(socket_);
  }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // A number that cannot be written is no number: the node then blames all unanswered calls.
  void begin(std::uint64_t number) {
    std::string bytes = bytes_of(number);
    if (begins_ >= 0 && ::pwrite(begins_, bytes.data(), 8, 0) != 8 && ::ftruncate(begins_, 0) != 0) {
      ::close(begins_);
      begins_ = -1;
    }
  }

  void send(Kind kind, std::string_view body) {
    out_ += bytes_of(static_cast<std::uint32_t>(body.size()));
    out_ += static_cast<char>(kind);
    out_.append(3, '\0');
    out_ += body;
    if (out_.size() > (64 << 10)) flush();
  }

  // A node that is gone reads nothing: the next receive sees the end.
  void flush() {
    for (std::size_t sent = 0; sent < out_.size();) {
      ssize_t put = ::send(socket_, out_.data() + sent, out_.size() - sent, MSG_NOSIGNAL);
      if (put < 0 && errno != EINTR) break;
      sent += static_cast<std::size_t>(std::max<ssize_t>(put, 0));
    }
    out_.clear();
  }

  // False at the end of the connection.
  bool receive(std::uint8_t& kind, std::string& body) {
    if (!fill(8)) {
      if (in_.size() > used_) throw std::runtime_error("the connection ended within a frame");
      return false;
    }
    auto length = number_at<std::uint32_t>(in_, used_);
    kind = static_cast<std::uint8_t>(in_[used_ + 4]);
    if (length > max_frame || (in_[used_ + 5] | in_[used_ + 6] | in_[used_ + 7]) != 0)
      throw std::runtime_error("the node's frame is malformed");
    if (!fill(8 + length)) throw std::runtime_error("the connection ended within a frame");
    body.assign(in_, used_ + 8, length);
    used_ += 8 + length;
    return true;
  }

 private:
  // Reads until so many unused bytes are here.
  bool fill(std::size_t length) {
    while (in_.size() - used_ < length) {
      flush();
      in_.erase(0, std::exchange(used_, 0));
      std::size_t old = in_.size();
      in_.resize(old + (64 << 10));
      ssize_t got = ::recv(socket_, &in_[old], 64 << 10, 0);
      in_.resize(old + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
      if (got == 0 || (got < 0 && errno != EINTR)) return false;
    }
    return true;
  }

  int socket_ = -1, begins_ = -1;
  std::string in_, out_;
  std::size_t used_ = 0;
};

// When a state is tried: after calls 1, 2, 4, 8 and so on, then once a minute at most, and in at
// most a thousandth of the time. That differs between replicas: so it only tells.
class Schedule {
  using Clock = std::chrono::steady_clock;

 public:
  std::size_t size = 0;  // of the last state
  void changed() { ++calls_; }
  bool is_due() const {
    return calls_ != tried_ && size <= tried_state && (calls_ >= next_ || Clock::now() >= due_);
  }
  void begins() { began_ = Clock::now(); }
  void ends(bool is_well) {
    auto now = Clock::now();
    Clock::duration pause = std::chrono::seconds(is_well ? 60 : 1);
    due_ = now + std::max(pause, (is_well ? 1000 : 100) * (now - began_));
    for (tried_ = calls_; next_ <= calls_;) next_ *= 2;
  }

 private:
  std::uint64_t calls_ = 0, next_ = 1, tried_ = 0;
  Clock::time_point began_{}, due_{};
};

}  // namespace detail

// A group's view: the nodes of its replicas.
struct View {
  std::uint64_t number = 0;            // one more than the last view's
  std::vector<std::uint32_t> members;  // whose replicas have the state, in order of rank: the first is the primary's
  std::vector<std::uint32_t> joining;  // whose replicas are being given the state
};

namespace detail {

template <class S, class = void>
struct Views : std::false_type {};
template <class S>
struct Views<S, std::void_t<decltype(std::declval<S&>().view(std::declval<const View&>()))>> : std::true_type {};

template <class S, class = void>
struct Merges : std::false_type {};
template <class S>
struct Merges<S, std::void_t<decltype(std::declval<S&>().merge(std::declval<const S&>()))>> : std::true_type {};

inline View view_of(const std::string& body) {
  auto count = [&](std::size_t at) { return std::size_t{static_cast<unsigned char>(body[at])}; };
  if (body.size() < 16 || body.size() != 16 + 4 * (count(8) + count(9)))
    throw std::runtime_error("the node's view is malformed");
  View view{number_at<std::uint64_t>(body, 0), {}, {}};
  for (std::size_t i = 0; i < count(8) + count(9); ++i)
    (i < count(8) ? view.members : view.joining).push_back(number_at<std::uint32_t>(body, 16 + 4 * i));
  return view;
}

}  // namespace detail

// A service of the class S, which has the members
//     Json snapshot() const;         the whole state
//     void restore(const Json&);     takes a state on; throws if it cannot be read
// and may have
//     void view(const View&);        the group has this view from here on, among the calls. A replica may miss views
//                                    between which there is no call: the state may depend on the newest alone
//     void merge(const S& other);    takes in the state of the other side of a partition. Both have what was called
//                                    before they parted, and may have one call more: what both have counts once. If
//                                    it throws, the state is as before, and the other side's calls are discarded
// It is tried before it is needed: at the start, after the first calls, and now and then.
template <class S>
class Service {
 public:
  // `make` gives the initial state: at the start, and whenever the replica begins anew.
  explicit Service(std::string name, std::string docs = "", std::function<S()> make = [] { return S{}; })
      : make_(std::move(make)), state_(std::make_unique<S>(make_())),
        contract_(Json::Object{{"service", name}, {"encodings", Json::Array{"json"}}, {"methods", Json::Array{}}}) {
    if (!docs.empty()) contract_.object()["docs"] = docs;
  }

  // A method that may change the state.
  template <class R, class... A>
  Service& method(const char* name, std::vector<std::string> names, R (S::*function)(A...), const char* docs = "") {
    return add<std::decay_t<R>, std::decay_t<A>...>(name, std::move(names), function, docs, false);
  }
  // A const method reads: any replica may execute it, without an order.
  template <class R, class... A>
  Service& method(const char* name, std::vector<std::string> names, R (S::*function)(A...) const, const char* docs = "") {
    return add<std::decay_t<R>, std::decay_t<A>...>(name, std::move(names), function, docs, true);
  }

  // Serves until the node needs the replica no more. The result is the program's exit status.
  int serve() {
    try {
      try {
        read_back();
      } catch (const std::exception& error) {
        throw std::runtime_error(std::string("the initial state cannot be kept: ") + error.what());
      }
      detail::Link node(detail::Merges<S>::value);
      std::uint8_t kind = 0;
      std::string body;
      while (node.receive(kind, body) && kind != detail::farewell) handle(node, kind, body);
      if (kind == detail::farewell && !body.empty()) throw std::runtime_error("the node says: " + body);
      return 0;
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      return 1;
    }
  }

 private:
  using Values = std::vector<Json>;
  struct Method {
    std::vector<std::string> names;
    bool reads;
    // Reads the arguments, and gives what executes the call.
    std::function<std::function<Json()>(S&, const Values&)> prepare;
  };

  template <class R, class... A, class F>
  Service& add(const char* name, std::vector<std::string> names, F function, const char* docs, bool reads) {
    if (names.size() != sizeof...(A)) throw std::logic_error(std::string(name) + ": each argument needs a name");
    auto prepare = [function](S& state, const Values& values) {
      auto arguments = read_all<A...>(values, std::index_sequence_for<A...>{});
      return std::function<Json()>([&state, function, arguments]() mutable -> Json {
        auto call = [&](auto&... each) -> R { return (state.*function)(std::move(each)...); };
        if constexpr (std::is_void_v<R>) {
          std::apply(call, arguments);
          return nullptr;
        } else {
          return Form<R>::write(std::apply(call, arguments));
        }
      });
    };
    Json::Array told;
    const std::vector<std::string> types{Form<A>::name()...};
    for (std::size_t i = 0; i < types.size(); ++i)
      told.push_back(Json::Object{{"name", names[i]}, {"type", types[i]}});
    std::string result = "()";
    if constexpr (!std::is_void_v<R>) result = Form<R>::name();
    // Any handler may throw an Error, of any type.
    Json::Object method{{"name", name}, {"reads", reads}, {"arguments", told}, {"result", result}, {"error", "json"}};
    if (*docs) method["docs"] = docs;
    contract_.object()["methods"].array().push_back(method);
    if (!methods_.emplace(method_id(name), Method{std::move(names), reads, prepare}).second)
      throw std::logic_error(std::string(name) + ": choose another name, its number is taken");
    return *this;
  }

  template <class... A, std::size_t... I>
  static std::tuple<A...> read_all(const Values& values, std::index_sequence<I...>) {
    return std::tuple<A...>{Form<A>::read(values[I])...};
  }

  // The arguments in order, from an array or from an object by their names.
  static Values in_order(const Method& method, Json given) {
    Values values;
    if (given.is_array()) {
      values = given.array();
    } else if (given.is_object()) {
      for (const auto& name : method.names) {
        auto found = given.object().find(name);
        values.push_back(found == given.object().end() ? Json() : found->second);
        if (found != given.object().end()) given.object().erase(found);
      }
      if (!given.object().empty()) throw BadJson("no argument is named " + given.object().begin()->first);
    } else {
      throw BadJson("give an array in order, or an object by names");
    }
    if (values.size() != method.names.size())
      throw BadJson(std::to_string(method.names.size()) + " arguments, not " + std::to_string(values.size()));
    return values;
  }

  detail::Outcome execute(std::string_view body) {
    using detail::number_at;
    using detail::refuse;
    context() = {number_at<std::uint64_t>(body, 8), number_at<std::uint64_t>(body, 16),
                 number_at<std::uint64_t>(body, 24), number_at<std::uint64_t>(body, 32)};
    auto id = number_at<std::uint32_t>(body, 40);
    int flags = body[44];
    if (!(flags & 1)) return refuse(detail::bad_arguments, "this service takes JSON");
    if (id == method_id(detail::describe)) return {1, 0, 0, contract_.text()};
    auto method = methods_.find(id);
    if (method == methods_.end())
      return refuse(detail::no_such_method, "no such method: `steadfast describe` lists those of this service");
    if (flags & 2 && !method->second.reads)
      return refuse(detail::not_read_only, "this method may change the state: do not call it as a read");
    std::function<Json()> call;
    try {
      Json given = Json::parse(body.substr(48));
      call = method->second.prepare(*state_, in_order(method->second, std::move(given)));
    } catch (const BadJson& error) {
      return refuse(detail::bad_arguments, error.what());
    }
    detail::Outcome outcome{1, 0, 0, {}};
    try {
      try {
        outcome.body = call().text();
      } catch (const Error& error) {
        outcome = {2, 0, 0, error.value.text()};
      }
    } catch (const std::exception& error) {
      return refuse(detail::panicked, error.what(), 1);
    } catch (...) {
      return refuse(detail::panicked, "the handler threw", 1);
    }
    if (outcome.body.size() > detail::max_body) return refuse(detail::too_large, "the result is larger than 1 MiB");
    return outcome;
  }

  void handle(detail::Link& node, std::uint8_t kind, const std::string& body) {
    if (kind == detail::reset) {
      state_ = std::make_unique<S>(make_());
      return;
    }
    if (kind == detail::compare && body.size() == 8) tell_digest(node, body);
    if (kind == detail::view) take_view(detail::view_of(body));
    bool merges = kind == detail::merge;
    if (kind >= detail::first_optional && !merges) return;
    std::size_t least = kind == detail::execute ? 48 : kind == detail::snapshot ? 8 : 16;
    if (kind < detail::execute || (kind > detail::restore && !merges) || body.size() < least)
      throw std::runtime_error("the node's frame of kind " + std::to_string(kind) + " is malformed");
    std::string number = body.substr(0, 8);
    node.begin(detail::number_at<std::uint64_t>(body, 0));
    if (kind == detail::execute) {
      answer(node, number, execute(body));
    } else if (kind == detail::snapshot) {
      give_state(node, number);
    } else if (take_piece(detail::number_at<std::uint64_t>(body, 8), std::string_view(body).substr(16))) {
      std::string state = std::exchange(arriving_, {});
      if (merges) answer(node, number, merge(node, state));
      else take_state(node, number, state);
    }
  }

  void answer(detail::Link& node, const std::string& number, const detail::Outcome& done) {
    const char head[] = {static_cast<char>(done.outcome), static_cast<char>(done.refusal), static_cast<char>(done.flags), 0};
    node.send(detail::answer, number + std::string(head, 4) + done.body);
    schedule_.changed();
    if (schedule_.is_due()) try_state(node);
  }

  // Merges the state of another history. The outcome is the same at every replica.
  detail::Outcome merge([[maybe_unused]] detail::Link& node, [[maybe_unused]] const std::string& given) {
    if constexpr (detail::Merges<S>::value) {
      std::string before;
      std::unique_ptr<S> other;
      auto done = guarded("the states to merge cannot be read: ", [&] {
        before = state_->snapshot().state_text();
        other = read_given(node, given);
      });
      if (done.outcome != 1) return done;
      done = guarded("the states cannot be merged: ", [&] {
        state_->merge(*other);
        state_->snapshot().state_text();  // it has to be given to other replicas
      });
      if (done.outcome == 1) return done;
      auto undone = guarded("", [&] { state_ = read_state(before); });
      if (undone.outcome != 1) fails(node, undone.body);
      return done;
    } else {
      return detail::refuse(detail::no_such_method, "this service merges no states");
    }
  }

  template <class F>
  static detail::Outcome guarded(std::string words, F run) {
    try {
      run();
      return {1, 0, 0, {}};
    } catch (const Error& error) {
      const Json& value = error.value;
      return detail::refuse(detail::panicked, words + (value.is_string() ? value.string() : "an error"));
    } catch (const BadJson& error) {
      return detail::refuse(detail::panicked, words + error.what());
    } catch (const std::exception& error) {
      return detail::refuse(detail::panicked, words + error.what(), 1);
    } catch (...) {
      return detail::refuse(detail::panicked, words + "what was thrown is no std::exception", 1);
    }
  }

  // Nobody waits for an answer. It fails alike at every replica.
  void take_view(const View& view) {
    if constexpr (detail::Views<S>::value) {
      try {
        state_->view(view);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "the state failed at view %llu: %s\n", static_cast<unsigned long long>(view.number), error.what());
      }
      schedule_.changed();
    }
  }

  void give_state(detail::Link& node, const std::string& number) {
    std::string state;
    try {
      state = state_->snapshot().state_text();
    } catch (const std::exception& error) {
      node.send(detail::failed, number + detail::cut(error.what(), 512));
      return fails(node, error.what());
    }
    schedule_.size = state.size();
    if (state.size() > detail::max_state) return node.send(detail::failed, number + "the state is larger than 2 GiB");
    for (std::size_t from = 0; from < state.size(); from += detail::piece)
      node.send(detail::state, number + detail::bytes_of<std::uint64_t>(state.size()) + state.substr(from, detail::piece));
  }

  // Of a small state, for a comparison of the replicas. No node waits for it.
  void tell_digest(detail::Link& node, const std::string& number) {
    if (schedule_.size > detail::tried_state || detail::form() == 0) return;
    std::string state;
    try {
      state = state_->snapshot().state_text();
    } catch (const std::exception&) {
      return;  // the trial of the state tells it
    }
    if (state.size() > detail::tried_state) return;
    node.send(detail::digest, number + detail::bytes_of(detail::form()) + detail::bytes_of(detail::digest_of(state)));
  }

  // It says whether the state is whole now.
  bool take_piece(std::uint64_t total, std::string_view part) {
    arriving_ += part;
    if (arriving_.size() > total || total > detail::max_state) throw std::runtime_error("the node's state is malformed");
    return arriving_.size() == total;
  }

  // An unreadable state leaves the old one as it is.
  void take_state(detail::Link& node, const std::string& number, const std::string& state) {
    try {
      state_ = read_given(node, state);
    } catch (const std::exception& error) {
      return node.send(detail::failed, number + detail::cut(std::string("cannot read the state: ") + error.what(), 512));
    }
    node.send(detail::restored, number);
    schedule_.changed();
  }

  // Another replica's state. The node is told which of its fields are dropped.
  std::unique_ptr<S> read_given(detail::Link& node, const std::string& state) {
    auto& restoring = detail::restoring();
    restoring.dropped.clear();
    auto given = read_state(state);
    std::string names;
    for (const auto& name : restoring.dropped) names += (names.empty() ? "`" : ", `") + name + "`";
    if (!names.empty()) tell(node, detail::dropped, names);
    return given;
  }

  std::unique_ptr<S> read_state(const std::string& text) {
    struct Now {
      Now() { detail::restoring().now = true; }
      ~Now() { detail::restoring().now = false; }
    } now;
    auto fresh = std::make_unique<S>(make_());
    fresh->restore(Json::parse_state(text));
    return fresh;
  }

  // Writes the state, reads it back and writes it again.
  void read_back() {
    std::string state = state_->snapshot().state_text();
    schedule_.size = state.size();
    if (state.size() > detail::tried_state) return;
    if (read_state(state)->snapshot().state_text() != state)
      throw std::runtime_error("restore() does not give back what snapshot() wrote");
  }

  void try_state(detail::Link& node) {
    node.flush();  // no caller waits for it
    schedule_.begins();
    try {
      read_back();
      if (!fault_.empty()) tell(node, detail::well, "");
      fault_.clear();
    } catch (const std::exception& error) {
      fails(node, error.what());
    }
    schedule_.ends(fault_.empty());
  }

  // Each reason is told once.
  void fails(detail::Link& node, std::string reason) {
    if (reason == fault_) return;
    fault_ = std::move(reason);
    tell(node, detail::fault, fault_);
  }

  static void tell(detail::Link& node, detail::Notice code, const std::string& text) {
    node.send(detail::notice, std::string(1, code) + std::string(7, '\0') + detail::cut(text, 512));
  }

  std::function<S()> make_;
  std::unique_ptr<S> state_;
  Json contract_;
  std::map<std::uint32_t, Method> methods_;
  std::string arriving_, fault_;
  detail::Schedule schedule_;
};

}  // namespace steadfast
