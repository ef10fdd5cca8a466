// What --allow-origin takes, and what it says of the rest.
#include "net/access/origin.h"

#include <catch2/catch.hpp>

namespace weir::tests::origin_test {

using namespace weir::net;
using Catch::Matchers::Contains;

TEST_CASE("origin: an origin is kept as a browser sends it") {
  const struct {
    const char *given, *sent;
  } rows[] = {
      {"https://app.example", "https://app.example"},
      {"HTTPS://App.Example", "https://app.example"},
      {"http://app.example:80", "http://app.example"},
      {"https://app.example:443", "https://app.example"},
      {"http://app.example:443", "http://app.example:443"},
      {"http://127.0.0.1:8150", "http://127.0.0.1:8150"},
      {"http://LocalHost:3000", "http://localhost:3000"},
      {"http://[::1]:8080", "http://[::1]:8080"},
      {"http://[::1]:80", "http://[::1]"},
      {"http://[::1]", "http://[::1]"},
      {"http://my_host", "http://my_host"},
      {"chrome-extension://abcdefghijklmnop", "chrome-extension://abcdefghijklmnop"},
      {"tauri://localhost", "tauri://localhost"},
      {"null", "null"},  // of pages from files
      {"file://", "null"},
  };
  for (const auto& r : rows) {
    CAPTURE(r.given);
    const auto origin = parse_origin(r.given);
    REQUIRE(origin.has_value());
    CHECK(*origin == r.sent);
  }
}

TEST_CASE("origin: what no browser sends is refused, and the message says what is wrong") {
  const struct {
    const char *given, *why;
  } rows[] = {
      {"*", "name each origin"},
      {"https://*.app.example", "name each origin"},
      {"http://localhost:*", "name each origin"},
      {"https://app.example/", "no path"},
      {"https://app.example/chat", "no path"},
      {"https://app.example:8443/chat", "no path"},
      {"https://app.example?x", "no path"},
      {"https://a.example,https://b.example", "once for each origin"},
      {"https://a.example https://b.example", "once for each origin"},
      {"https://a.example:1,https://b.example:2", "once for each origin"},
      {"app.example", "the scheme is missing"},
      {"localhost:3000", "the scheme is missing"},
      {"//app.example", "the scheme is missing"},
      {"", "the scheme is missing"},
      {"NULL", "the scheme is missing"},
      {"://app.example", "SCHEME://HOST"},
      {"https://", "SCHEME://HOST"},
      {"https://me@app.example", "no user"},
      {"http://[::1", "SCHEME://HOST"},
      {"http://[::g]", "SCHEME://HOST"},
      {"https://m\xc3\xbcnchen.example", "SCHEME://HOST"},  // a browser sends its xn-- form
      {"https://app.example:", "the port"},
      {"https://app.example:0", "the port"},
      {"https://app.example:080", "the port"},
      {"https://app.example:65536", "the port"},
      {"https://app.example:8o", "the port"},
  };
  for (const auto& r : rows) {
    CAPTURE(r.given);
    const auto origin = parse_origin(r.given);
    REQUIRE_FALSE(origin.has_value());
    CHECK(origin.error().param == "allow-origin");
    CHECK_THAT(origin.error().message, Contains("--allow-origin ") && Contains(r.why));
  }
}

TEST_CASE("origin: of a list each is judged, and control characters are not repeated raw") {
  CHECK(*parse_origins({"HTTP://a.example", "null"}) == std::vector<std::string>{"http://a.example", "null"});
  const auto no = parse_origins({"https://a.example", "https://b\x1b[2J"});
  REQUIRE_FALSE(no.has_value());
  CHECK_THAT(no.error().message, Contains("https://b\\x1b[2j") || Contains("https://b\\x1b[2J"));
}

}  // namespace weir::tests::origin_test
