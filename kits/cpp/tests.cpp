// Tests of the JSON in steadfast.hpp; and, started by a node, a replica with arguments, results
// and errors of many forms, by which `steadfast conform` tries the kit.
#include "steadfast.hpp"

#include <fstream>
#include <future>
#include <iterator>

using steadfast::Form;
using steadfast::Json;

class Store {
 public:
  using Labels = std::map<std::string, std::optional<double>>;

  bool put(std::string name, Labels labels) {
    return items_.insert_or_assign(std::move(name), std::move(labels)).second;
  }
  void note(std::string text, std::vector<bool> flags, std::int8_t level) {
    if (level < 0) throw steadfast::Error{"the level is negative"};
    last_ = steadfast::context().now ^ steadfast::context().seed;
    if (!flags.empty()) notes_.push_back(std::move(text));
  }
  std::uint64_t last() const { return last_; }
  std::optional<Labels> find(const std::string& name) const {
    if (name.empty()) throw steadfast::Error{Json::Array{"no name"}};
    auto found = items_.find(name);
    return found == items_.end() ? std::nullopt : std::optional(found->second);
  }

  Json snapshot() const {
    return Json::Object{{"items", Form<Items>::write(items_)}, {"last", last_}, {"notes", Form<Notes>::write(notes_)}};
  }
  void restore(const Json& state) {
    steadfast::Fields fields(state);
    fields.read(items_, {"items"});
    fields.read(last_, {"last"});
    fields.read(notes_, {"notes"});
  }

 private:
  using Items = std::map<std::string, Labels>;
  using Notes = std::vector<std::string>;
  Items items_;
  Notes notes_;
  std::uint64_t last_ = 0;
};

// The example of the README.
struct Account {
  std::string owner;
  std::uint64_t balance = 0, credit = 0;
};
template <>
struct steadfast::Form<Account> {
  static std::string name() { return "Account"; }
  static Account read(const Json& json) {
    Account account;
    Fields fields(json, "Account");
    fields.read(account.owner, {"owner"});
    fields.read(account.balance, {"balance", "amount"});  // renamed: states with amount are read
    fields.read(account.credit, {"credit"}, 0);           // added: it needs a default
    return account;
  }
  static Json write(const Account& account) {
    return Json::Object{{"owner", account.owner}, {"balance", account.balance}, {"credit", account.credit}};
  }
};

static int failures = 0;

static void expect(bool holds, const std::string& what) {
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "FAILED: %s\n", what.c_str());
}

static void json_is_read_and_written() {
  for (const char* text : {"null", "true", "[]", "{}", "0", "-1", "18446744073709551615", "-9223372036854775808", "0.25",
                           R"(["a\"\\",{"b":[1,2.5]}])", "\"\xc3\xbc\xe6\x9d\xb1\xf0\x9f\x98\x80\"", R"("\u0001")"})
    expect(Json::parse(text).text() == text, text);
  expect(Json::parse(R"( [ 1 , "\u00fc\ud83d\ude00\n" ] )").text() == "[1,\"\xc3\xbc\xf0\x9f\x98\x80\\u000a\"]", "blanks, escapes");
  expect(Json::parse(R"({"b":1,"a":2})").text() == R"({"a":2,"b":1})", "names are sorted");
}

static void wrong_json_is_refused() {
  for (std::string text : {"", "nul", "[", "[1", "[1,]", "{\"a\"}", "{\"a\":1,\"a\":2}", "{1:2}", "01", "-", "+1", "1.", "1e", "1e999",
                           "inf", "nan", "0x1", "\"", "\"\\", "\"\\u12", "\"\\u12g4\"", "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\udc00\"",
                           "\"\xff\"", "\"\xc3", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf5\x80\x80\x80\"", "\"\n\"", "1 2", "'a'", "18446744073709551616",
                           "[NaN]", "[-Infinity]", "\"\\udc83\"", "\"\\ud83d\\ud83d\""}) {
    try {
      expect(false, text + " is " + Json::parse(text).text());
    } catch (const steadfast::BadJson&) {
    }
  }
  try {
    Json::parse(std::string(1 << 20, '['));
    expect(false, "deep nesting");
  } catch (const steadfast::BadJson&) {
  }
}

static void numbers_fit_or_are_refused() {
  expect(Json(-128).integer<std::int8_t>() == -128, "the least");
  expect(Form<double>::read(Json::parse("3")) == 3.0, "a whole number is a number");
  for (const char* text : {"-129", "128", "1.5", "\"1\"", "18446744073709551616"}) {
    try {
      Json::parse(text).integer<std::int8_t>();
      expect(false, text);
    } catch (const steadfast::BadJson&) {
    }
  }
}

// The words of what is thrown, or nothing.
template <class F>
static std::string thrown(F function) {
  try {
    function();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

static Json nested(int depth) {
  Json json = 1;
  while (depth-- > 0) json = Json::Array{json};
  return json;
}

static void what_callers_cannot_read_is_not_written() {
  for (const Json& json : {Json("cut \xc3"), Json(Json::Object{{"\xff", 1}}), Json(0.0 / 0.0), Json(1.0 / 0.0), nested(65)})
    expect(thrown([&] { json.text(); }) != "", json.state_text());
  expect(Json::parse(nested(64).text()).text() == nested(64).text(), "64 deep");
  expect(thrown([] { Json::parse(nested(65).state_text()); }) != "", "65 deep");
  for (const char* text : {"9007199254740993", "18446744073709551615", "-9223372036854775807"})
    expect(thrown([&] { Form<double>::read(Json::parse(text)); }) != "", text);
  for (const char* text : {"9007199254740992", "18446744073709549568", "-9223372036854775808"})
    expect(thrown([&] { Form<double>::read(Json::parse(text)); }) == "", text);
  expect(thrown([] { Form<float>::read(Json::parse("1e300")); }) != "", "1e300 as a float");
}

static void states_come_back_as_they_were() {
  const std::string odd = "\xff\xc3 \xed\xa0\xbd\xed\xb8\x80 \xf0\x9f\x98\x80\"\\\n\xe6\x9d";
  const double inf = std::numeric_limits<double>::infinity();
  Json state = Json::Object{{odd, Json::Array{odd, -inf, inf, -0.0, 1e300, 0.1, true, nullptr}}, {"deep", nested(900)}};
  Json again = Json::parse_state(state.state_text());
  expect(again.state_text() == state.state_text(), state.state_text().substr(0, 200));
  const Json::Array& values = again.at(odd).array();
  expect(values[0].string() == odd && values[1].number() == -inf && values[4].number() == 1e300, "values");
  expect(std::signbit(values[3].number()), "-0.0");
  expect(std::isnan(Json::parse_state(Json(0.0 / 0.0).state_text()).number()), "NaN");
  expect(thrown([] { nested(1001).state_text(); }) != "", "1001 deep");
}

static void fields_are_added_removed_and_renamed() {
  std::uint64_t balance = 0, credit = 0;
  auto read = [&](const char* text) {
    steadfast::Fields fields(Json::parse_state(text), "account");
    fields.read(balance, {"balance", "amount"});
    fields.read(credit, {"credit"}, 7);
  };
  steadfast::detail::restoring().now = true;
  expect(thrown([&] { read(R"({"amount": 5, "note": "x"})"); }) == "" && balance == 5 && credit == 7, "read");
  auto& dropped = steadfast::detail::restoring().dropped;
  expect(dropped == std::vector<std::string>{"account.note"}, "dropped");
  expect(thrown([&] { read(R"({"credit": 5})"); }) == "field `balance` is missing, and has no default", "missing");
  expect(thrown([&] { read(R"({"balance": -5})"); }).find("field `balance`: a whole number") == 0, "another type");
  expect(thrown([&] { read(R"({"balance": 1, "amount": 2})"); }).find("field `balance` comes twice") == 0, "twice");
  steadfast::detail::restoring() = {};
}

static std::string file(const std::string& name) {
  const std::string here = __FILE__;
  std::ifstream in(here.substr(0, here.rfind('/') + 1) + name);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

static void the_readme_shows_a_next_version() {
  Account account = Form<Account>::read(Json::parse_state(R"({"amount": 5, "owner": "Ada"})"));
  expect(account.owner == "Ada" && account.balance == 5 && account.credit == 0, "the README's account");
  std::string code = file("README.md");
  code.erase(0, code.find("## How the state changes"));
  code.erase(0, code.find("```cpp\n") + 7);
  code.resize(code.find("```"));
  expect(file("tests.cpp").find(code) != std::string::npos, "the README has another example:\n" + code);
}

struct Crew {
  void view(const steadfast::View& view) { nodes = view.members; }
  Json snapshot() const { return nullptr; }
  void restore(const Json&) {}
  std::vector<std::uint32_t> nodes;
};

void views_are_for_who_wants_them() {
  using steadfast::detail::Views;
  expect(Views<Crew>::value && !Views<Store>::value, "a class with view() is told of views, another is not");
  std::string body("\x09\0\0\0\0\0\0\0\x02\x01\0\0\0\0\0\0\x03\0\0\0\x01\0\0\0\x02\0\0\0", 28);
  auto view = steadfast::detail::view_of(body);
  expect(view.number == 9 && view.members == std::vector<std::uint32_t>{3, 1}, "members by rank");
  expect(view.joining == std::vector<std::uint32_t>{2}, "who joins");
  try {
    steadfast::detail::view_of(body.substr(0, 24));
    expect(false, "a view that lacks a node was taken");
  } catch (const std::runtime_error&) {
  }
}

struct Guests {
  void merge(const Guests& other) {
    for (const auto& [number, name] : other.names) {
      if (names.emplace(number, name).first->second != name) throw steadfast::Error{"there are two guests " + number};
      if (name == "Eve") throw std::runtime_error("Eve is no guest");
      if (name == "nobody") throw 5;
      if (name == "deep") depth = 1001;
    }
  }
  Json snapshot() const { return Json::Object{{"depth", nested(depth)}, {"names", Form<Names>::write(names)}}; }
  void restore(const Json& state) { names = Form<Names>::read(state.at("names")); }

  using Names = std::map<std::string, std::string>;
  Names names;
  int depth = 0;
};

// A node for one program, which runs in this process.
class Node {
 public:
  explicit Node(std::function<int()> serve, const std::string& length, const std::string& extension) {
    char folder[] = "/tmp/steadfast-XXXXXX";
    sockaddr_un address{AF_UNIX, {}};
    std::string path = std::string(::mkdtemp(folder)) + "/node";
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    expect(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && ::listen(listener, 1) == 0, path);
    ::setenv("STEADFAST_ATTACH", path.c_str(), 1);
    ::setenv("STEADFAST_GROUP", "group", 1);
    ::setenv("STEADFAST_TOKEN", std::string(64, 'a').c_str(), 1);
    program_ = std::async(std::launch::async, serve);
    socket_ = ::accept(listener, nullptr, nullptr);
    ::close(listener);
    ::unlink(path.c_str());
    ::rmdir(folder);
    auto pid = steadfast::detail::bytes_of<std::uint32_t>(::getpid());
    std::string versions("SFAT\1\0", 6), token(32, '\xaa');
    expect(receive() == std::pair(1, versions + length + pid + token + "group" + extension), "Hello");
    send(steadfast::detail::welcome, std::string("\1\1\0\0\7\0\0\0trial", 13));
  }
  ~Node() {
    ::close(socket_);
    expect(program_.get() == 0, "a program ends with its node");
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  void send(int kind, const std::string& body) {
    using steadfast::detail::bytes_of;
    std::string frame = bytes_of<std::uint32_t>(body.size()) + bytes_of<std::uint32_t>(kind) + body;
    expect(::send(socket_, frame.data(), frame.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(frame.size()), "a frame is sent");
  }
  // A frame's kind and its body.
  std::pair<int, std::string> receive() {
    std::string head = read(8);
    return {head[4] & 0xff, read(steadfast::detail::number_at<std::uint32_t>(head, 0))};
  }

 private:
  std::string read(std::size_t length) {
    std::string bytes(length, '\0');
    bool whole = length == 0 || ::recv(socket_, bytes.data(), length, MSG_WAITALL) == static_cast<ssize_t>(length);
    expect(whole, "a frame is whole");
    return bytes;
  }

  int socket_;
  std::future<int> program_;
};

static void states_are_merged_or_are_as_before() {
  namespace detail = steadfast::detail;
  Node node([] { return steadfast::Service<Guests>("Guests").serve(); }, std::string("\5\0", 2), "\1");
  const std::string number(8, '\1');
  auto merged = [&](const std::string& state) {
    auto head = number + detail::bytes_of<std::uint64_t>(state.size());
    if (!state.empty()) node.send(detail::merge, head + state.substr(0, 4));
    node.send(detail::merge, head + state.substr(std::min<std::size_t>(4, state.size())));
    auto [kind, body] = node.receive();
    expect(kind == detail::answer && body.substr(0, 8) == number, "an answer");
    return body.substr(8);
  };
  auto state = [&] {
    node.send(detail::snapshot, number);
    return node.receive().second.substr(16);
  };
  const std::string done("\1\0\0\0", 4), both = R"({"depth":1,"names":{"0":"Ada","1":"Bob"}})";
  expect(merged(R"({"names":{"0":"Ada"}})") == done && merged(R"({"names":{"0":"Ada","1":"Bob"}})") == done, "merged");
  expect(state() == both, "the union: " + state());
  for (auto [other, said] : {std::pair(R"({"names":{"2":"Cid","0":"Bob"}})", "there are two guests 0"),
                             std::pair(R"({"names":{"2":"Eve"}})", "Eve is no guest"), std::pair(R"({"names":{"2":"nobody"}})", "is no std::"),
                             std::pair(R"({"names":{"2":"deep"}})", "nested too deep"), std::pair(R"({"names":[]})", "cannot be read: "),
                             std::pair("", "cannot be read: ")}) {
    std::string answer = merged(other);
    expect(answer.substr(0, 2) == "\3\5" && answer.find(said) != std::string::npos, answer.substr(4));
    expect(state() == both, state());
  }
}

static void a_class_without_merge_refuses() {
  namespace detail = steadfast::detail;
  expect(detail::Merges<Guests>::value && !detail::Merges<Store>::value, "who merges");
  Node node([] { return steadfast::Service<Store>("Store").serve(); }, std::string(2, '\0'), "");
  std::string call(48, '\0');
  call.replace(40, 5, detail::bytes_of(steadfast::method_id("steadfast.merge")) + '\1');
  call += "[]";
  node.send(detail::execute, call);
  node.send(detail::merge, std::string(16, '\0'));
  for (int answers = 0; answers < 2; ++answers) {
    auto [kind, body] = node.receive();
    expect(kind == detail::answer && body.substr(8, 2) == "\3\3", "no such method");
  }
}

int main() {
  if (std::getenv("STEADFAST_ATTACH"))
    return steadfast::Service<Store>("Store")
        .method("put", {"name", "labels"}, &Store::put)
        .method("note", {"text", "flags", "level"}, &Store::note)
        .method("last", {}, &Store::last)
        .method("find", {"name"}, &Store::find)
        .serve();
  json_is_read_and_written();
  wrong_json_is_refused();
  numbers_fit_or_are_refused();
  what_callers_cannot_read_is_not_written();
  states_come_back_as_they_were();
  fields_are_added_removed_and_renamed();
  the_readme_shows_a_next_version();
  views_are_for_who_wants_them();
  states_are_merged_or_are_as_before();
  a_class_without_merge_refuses();
  return failures == 0 ? 0 : 1;
}
