// A replica in C++: a number that is added to.
#include "../steadfast.hpp"

using steadfast::Json;

class Counter {
 public:
  std::uint64_t add(std::uint64_t n) {
    if (sum_ + n < n) throw steadfast::Error{Json::Object{{"Overflow", sum_}}};
    return sum_ += n;
  }
  std::uint64_t get() const { return sum_; }

  Json snapshot() const { return sum_; }
  void restore(const Json& state) { sum_ = state.integer<std::uint64_t>(); }

 private:
  std::uint64_t sum_ = 0;
};

int main() {
  return steadfast::Service<Counter>("Counter", "A number that is added to.")
      .method("add", {"n"}, &Counter::add, "Adds n and returns the sum.")
      .method("get", {}, &Counter::get, "The sum.")
      .serve();
}
