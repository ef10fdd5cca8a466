// What reading foreign JSON may cost, and what of it is refused on the way.
#include "core/read_json.h"

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace weir::tests::read_json_test {

using namespace weir::core;
namespace json = boost::json;

namespace {

// Counts what is taken from it, and the most that was taken at once.
class counted_memory final : public json::memory_resource {
 public:
  std::size_t now = 0, most = 0;

 private:
  void* do_allocate(std::size_t n, std::size_t align) override {
    now += n;
    most = std::max(most, now);
    if (align > alignof(std::max_align_t)) throw std::bad_alloc();
    return std::malloc(n);
  }
  void do_deallocate(void* p, std::size_t n, std::size_t) override {
    now -= n;
    std::free(p);  // Boost gives keys back with another alignment than it took them with
  }
  bool do_is_equal(const json::memory_resource& o) const noexcept override { return this == &o; }
};

// `head`, as many of `item` as fit 2 MiB, `tail`.
std::string filled(std::string head, std::string_view item, std::string_view tail) {
  while (head.size() + item.size() + tail.size() < std::size_t{2} << 20) head += item;
  return head.append(tail);
}

std::string many_keys(std::size_t count) {
  std::string text = "{";
  for (std::size_t i = 0; i < count; ++i) text += '"' + std::to_string(i) + "\":0,";
  text.back() = '}';
  return text;
}

}  // namespace

TEST_CASE("read_json: the same value as the library's own parser") {
  for (const char* text : {"5", "-0", "1.5e-7", "18446744073709551615", "\"a\\u00e9\\n\\\"\"", "[]", "{}",
                           " [1, [2], {\"a\": null}] ", R"({"a":{"a":[true,false]},"b\n":"x","":""})"}) {
    CAPTURE(text);
    const auto v = read_json(text, {});
    REQUIRE(v.has_value());
    CHECK(*v == json::parse(text));
  }
  for (const char* text :
       {"", "{", "[1,]", "1 2", "{\"a\" 1}", "nul", "\"\x80\"", "01", "NaN", "Infinity", "1e400", "-1e999"}) {
    CAPTURE(text);
    CHECK(read_json(text, {}).has_error());
  }
}

TEST_CASE("read_json: however a text of 2 MiB is made, it takes no more memory than is said") {
  const struct { const char *head, *item, *tail;
  } rows[] = {
      {"[", "0,", "0]"},
      {"[", "[],", "0]"},
      {"[", "{},", "0]"},
      {"[", "[0],", "0]"},
      {"[", "\"\",", "0]"},
      {"[", "{\"\":0},", "0]"},
      {"[", "[[[]]],", "0]"},
      {"[", "{\"a\":{\"\":{}}},", "0]"},
      {"\"", "x", "\""},
      {"\"", "\\n", "\""},
      {"[", "\"xxxxxxxxxxxxxxxxxxxxxxxx\",", "0]"},
      {"{\"", "k", "\":0}"},
      {"{\"", "\\n", "\":0}"},
      {"[", "{\"kkkkkkkkkkkkkkkkkkkk\":0},", "0]"},
  };
  for (const auto& r : rows) {
    const std::size_t values = GENERATE(std::size_t{1} << 12, std::size_t{1} << 18);
    const auto text = filled(r.head, r.item, r.tail);
    counted_memory memory;
    {
      const auto v = read_json(text, {16, values}, nullptr, &memory);
      CAPTURE(r.item, values, memory.most, v.has_value());
      CHECK(memory.most <= 96 * values + 3 * text.size());
    }
    CHECK(memory.now == 0);
  }
  CHECK(read_json(filled("[", "0,", "0]"), {16, std::size_t{1} << 18}).has_error());
}

TEST_CASE("read_json: a key that is there twice is found among a hundred thousand others, and only there") {
  CHECK(read_json(many_keys(100000), {}).has_value());
  auto text = many_keys(100000);
  text.insert(text.size() - 1, ",\"77777\":1");
  const auto e = read_json(text, {});
  REQUIRE(e.has_error());
  CHECK(e.error().param == "77777");
  CHECK(read_json(R"({"a":{"b":1},"a":1})", {}).has_error());
  CHECK(read_json(R"([{"":1,"":1}])", {}).has_error());
  CHECK(read_json(R"({"a":{"b":1,"c":{"b":1}},"b":[{"x\u0061":1,"xa":2}]})", {}).error().param == "xa");
  CHECK(read_json(R"([{"a":1},{"a":1},{"b":{"a":1},"a":{"a":1}}])", {}).has_value());
}

TEST_CASE("read_json: a number of the outermost object is told as it was written") {
  const auto written = [](const char* text) {
    written_number n{"ts", {}};
    REQUIRE(read_json(text, {}, &n).has_value());
    return n.text;
  };
  CHECK(written(R"({"ts":1.50})") == "1.50");
  CHECK(written(R"({"a":1,"ts":-0,"b":2})") == "-0");
  CHECK(written(R"({"a":{"ts":3},"b":[4]})") == "");
  CHECK(written(R"({"ts":[3]})") == "");
  CHECK(written(R"({"ts":"3","b":4})") == "");
  CHECK(written("7") == "");
}

}  // namespace weir::tests::read_json_test
