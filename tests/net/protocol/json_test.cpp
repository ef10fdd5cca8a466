#include "net/protocol/json.h"

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>
#include <limits>

namespace weir::tests::json_test {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  net::append_json_string(out, text);
  return out;
}

std::string nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

}  // namespace

TEST_CASE("json: every byte that JSON forbids in a string is escaped, and nothing else") {
  CHECK(escaped("") == "\"\"");
  CHECK(escaped("plain") == "\"plain\"");
  CHECK(escaped("a\"b\\c") == R"("a\"b\\c")");
  CHECK(escaped("\n\r\t") == R"("\n\r\t")");
  CHECK(escaped(std::string_view("\0\x1f\x7f", 3)) == "\"\\u0000\\u001f\x7f\"");
  CHECK(escaped("é 中 🙂") == "\"é 中 🙂\"");
}

TEST_CASE("json: bytes of unknown origin become something that may stand in JSON") {
  CHECK(net::legible("a/b\xff\x01\x7f\xc3\xa9") == "a/b?????");
  CHECK(net::legible(std::string(64, 'x')) == std::string(64, 'x'));
  CHECK(net::legible(std::string(1000000, '\xff')) == std::string(61, '?') + "…");
}

TEST_CASE("json: a name that is long is cut to 64 bytes, between two characters") {
  CHECK(net::shortened(std::string(64, 'x')) == std::string(64, 'x'));
  CHECK(net::shortened(std::string(65, 'x')) == std::string(61, 'x') + "…");
  std::string wide = "x";
  while (wide.size() < 200) wide += "é";
  CHECK(net::shortened(wide) == wide.substr(0, 61) + "…");
  CHECK(net::shortened("x" + wide) == "x" + wide.substr(0, 59) + "…");
}

TEST_CASE("json: escaping any string gives JSON that reads back as the same string") {
  for (int seed = 0; seed < 200; ++seed) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += static_cast<char>((seed * 7 + i * 31) % 128);
    CHECK(std::string_view(boost::json::parse(escaped(text)).as_string()) == text);
  }
}

TEST_CASE("json: escaping into a string that has grown allocates nothing") {
  std::string out;
  out.reserve(1000);
  const char* before = out.data();
  for (int i = 0; i < 100; ++i) {
    out.clear();
    net::append_json_string(out, "some \"text\"\n");
    net::append_number(out, std::int64_t{123456789});
  }
  CHECK(out.data() == before);
}

TEST_CASE("json: depth 16 is read, depth 17 is refused by saying so") {
  CHECK(net::read_json(nested(16), {16}).has_value());
  auto deep = net::read_json(nested(17), {16});
  REQUIRE(!deep);
  CHECK(deep.error().message.find("deeper than 16") != std::string::npos);
}

TEST_CASE("json: text that is not JSON is an error") {
  for (const char* bad :
       {"", " ", "{", "{\"a\":}", "nul", "1 2", "\"\x80\"", "\"\\ud800\"", "{\"a\":1,}", "'a'"}) {
    CAPTURE(bad);
    CHECK(!net::read_json(bad, {16}));
  }
}

TEST_CASE("json: objects have their commas, alone, in a list and within another") {
  std::string out = "[";
  const auto one = [&] {
    net::append_object(out, [&] {
      net::append_object(out, "in", [&] {
        net::append_key(out, "n");
        net::append_number(out, std::int64_t{1});
      });
      net::append_object(out, "none", [] {});
      net::append_key(out, "last");
      net::append_number(out, std::int64_t{2});
    });
  };
  one();
  one();
  CHECK(out + "]" == R"([{"in":{"n":1},"none":{},"last":2},{"in":{"n":1},"none":{},"last":2}])");
  out.clear();
  one();
  CHECK(out == R"({"in":{"n":1},"none":{},"last":2})");
}

TEST_CASE("json: numbers are written so that they read back") {
  std::string out;
  net::append_number(out, std::numeric_limits<std::int64_t>::min());
  CHECK(out == "-9223372036854775808");
  out.clear();
  net::append_number(out, 12.3456);
  CHECK(out == "12.346");
  out.clear();
  net::append_number(out, std::numeric_limits<double>::infinity());
  CHECK(out == "null");
}

TEST_CASE("json: readers are strict and name the field") {
  auto value = [](const char* text) { return boost::json::parse(text); };
  CHECK(*net::read_integer("n", value("5")) == 5);
  CHECK(*net::read_integer("n", value("5.0")) == 5);
  for (const char* bad : {"\"5\"", "5.5", "true", "[5]", "1e30", "18446744073709551615"}) {
    CAPTURE(bad);
    auto r = net::read_integer("n", value(bad));
    REQUIRE(!r);
    CHECK(r.error().param == "n");
    CHECK(r.error().code == core::errc::invalid_param);
  }
  CHECK(*net::read_number("x", value("1")) == 1.0);
  CHECK(!net::read_number("x", value("\"1\"")));
  CHECK(!net::read_bool("b", value("1")));
  CHECK(!net::read_string("s", value("1")));
  auto items = net::read_integers("ids", value("[1,\"2\"]"));
  REQUIRE(!items);
  CHECK(items.error().param == "ids");
  CHECK(items.error().message.find("ids[1]") != std::string::npos);
}

}  // namespace weir::tests::json_test
