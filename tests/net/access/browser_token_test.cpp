#include "net/access/browser_token.h"

#include <catch2/catch.hpp>

#include "net/access/handshake.h"

namespace weir::tests::browser_token_test {

using namespace weir::net;

namespace {

constexpr std::string_view secret = "0123456789abcdef0123456789abcdef";
constexpr std::int64_t until = 1'700'000'060'000;

token_claims some_claims() { return {0x0102030405060708, until, 3, "rill", "https://app.example", "user 7"}; }

// The claims of a text, or none: what a test compares where it does not ask for the fault.
std::optional<token_claims> opened(std::string_view text, std::int64_t now = until - 1) {
  auto got = open_token(text, secret, now);
  if (!got) return std::nullopt;
  return *got;
}

token_fault fault_of(std::string_view text, std::string_view with = secret) {
  const auto got = open_token(text, with, until - 1);
  REQUIRE(got.has_error());
  return got.error();
}

// A body that has every claim of this many bytes.
std::string body_of(std::string_view field, std::size_t bytes) {
  return R"({")" + std::string(field) + R"(":")" + std::string(bytes, 'x') + "\"}";
}

}  // namespace

TEST_CASE("browser_token: what was sealed is opened, every claim as it was") {
  CHECK(opened(seal_token(some_claims(), secret)) == some_claims());
  token_claims least;
  least.expires_ms = until;
  CHECK(opened(seal_token(least, secret)) == least);
  const std::string longest(longest_claim, '\xff');
  const token_claims most{~std::uint64_t{0}, INT64_MAX, ~std::uint32_t{0}, longest, longest, longest};
  CHECK(opened(seal_token(most, secret)) == most);
  CHECK(seal_token(most, secret).size() <= 1200);
}

TEST_CASE("browser_token: the text of a token is fixed, so a token outlives the server that made it") {
  // Computed by Python's hmac and base64.
  CHECK(seal_token(some_claims(), secret) ==
        "weir_token_AQIDBAUGBwgAAAGLz-ZSYAAAAAMABHJpbGwAE2h0dHBzOi8vYXBw"
        "LmV4YW1wbGUABnVzZXIgNy7GTgmuew4J1vp4EO1btwbhuryMb187EiGDU76uQ2tX");
  CHECK(alias_of_key(7, secret) == 0xc174611d40a2b0a2);
  CHECK(user_of_sub(7, "user 7", secret) == 0x1abd8cfa07257897);
}

TEST_CASE("browser_token: an expired token says so, from its last millisecond on") {
  const auto text = seal_token(some_claims(), secret);
  CHECK(opened(text, until - 1).has_value());
  for (const auto now : {until, until + 1, std::int64_t{INT64_MAX}}) {
    const auto got = open_token(text, secret, now);
    REQUIRE(got.has_error());
    CHECK(got.error() == token_fault::expired);
  }
}

TEST_CASE("browser_token: no altered, truncated or lengthened text is a token") {
  const auto text = seal_token(some_claims(), secret);
  for (std::size_t i = 0; i < text.size(); ++i) {
    CAPTURE(i);
    CHECK(!opened(text.substr(0, i)));
    for (const char other : {'A', 'B', '_', '='}) {
      auto altered = text;
      altered[i] = other;
      if (altered != text) CHECK(!opened(altered));
    }
  }
  for (const char* more : {"A", "=", "==", "AAAA", ".", " "}) CHECK(!opened(text + more));
}

TEST_CASE("browser_token: every change of the bytes, and another secret, is a forgery") {
  const std::string_view prefix = "weir_token_";
  const auto text = seal_token(some_claims(), secret);
  const auto bytes = decode_base64url(text.substr(prefix.size())).value();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    auto changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    CHECK(fault_of(std::string(prefix) + encode_base64url(changed)) == token_fault::forged);
  }
  CHECK(fault_of(text, "another secret of the same length") == token_fault::forged);
  CHECK(fault_of(text, "") == token_fault::forged);
}

TEST_CASE("browser_token: what is no token at all is malformed") {
  const std::string no_signature = "weir_token_" + encode_base64url(std::string(31, 'x'));
  for (const std::string& text :
       {std::string(), std::string("weir_token_"), std::string("a key"), std::string("weir_token_!"),
        no_signature, std::string(100'000, 'A'), "weir_token_" + std::string(100'000, 'A')})
    CHECK(fault_of(text) == token_fault::malformed);
}

TEST_CASE("browser_token: users differ by key and by sub, and keys have aliases of their own") {
  CHECK(user_of_sub(1, "a", secret) == user_of_sub(1, "a", secret));
  CHECK(user_of_sub(1, "a", secret) != user_of_sub(2, "a", secret));
  CHECK(user_of_sub(1, "a", secret) != user_of_sub(1, "b", secret));
  CHECK(user_of_sub(1, "a", secret) != user_of_sub(1, "a", "another"));
  CHECK(alias_of_key(1, secret) != alias_of_key(2, secret));
  CHECK(alias_of_key(1, secret) != 1);
}

TEST_CASE("browser_token: a request is read field by field, and null is as if left out") {
  const auto all = parse_token_request(
      R"({"ttl_s":86400,"max_jobs":2,"model":"m","origin":"https://a.b:8443","sub":"u"})");
  REQUIRE(all.has_value());
  CHECK(all->ttl == std::chrono::seconds(86'400));
  CHECK(all->claims == token_claims{0, 0, 2, "m", "https://a.b:8443", "u"});
  for (const char* body : {"{}", R"({"ttl_s":null,"max_jobs":null,"model":null,"origin":null,"sub":null})"}) {
    const auto none = parse_token_request(body);
    REQUIRE(none.has_value());
    CHECK(none->ttl == std::chrono::seconds(60));
    CHECK(none->claims == token_claims{});
  }
  for (const char* field : {"model", "sub"})
    CHECK(parse_token_request(body_of(field, longest_claim)).has_value());
}

TEST_CASE("browser_token: a request that is out of range is refused by the field's name") {
  const struct {
    std::string body, param;
  } rows[] = {
      {R"({"ttl_s":0})", "ttl_s"},
      {R"({"ttl_s":86401})", "ttl_s"},
      {R"({"ttl_s":-1})", "ttl_s"},
      {R"({"ttl_s":1.5})", "ttl_s"},
      {R"({"ttl_s":"60"})", "ttl_s"},
      {R"({"max_jobs":0})", "max_jobs"},
      {R"({"max_jobs":65537})", "max_jobs"},
      {R"({"model":""})", "model"},
      {body_of("model", longest_claim + 1), "model"},
      {R"({"sub":""})", "sub"},
      {R"({"sub":7})", "sub"},
      {body_of("sub", longest_claim + 1), "sub"},
      {R"({"origin":"app.example"})", "origin"},
      {R"({"origin":"https://app.example/"})", "origin"},
      {R"({"origin":"://app.example"})", "origin"},
      {R"({"origin":"https://"})", "origin"},
      {body_of("origin", longest_claim + 1), "origin"},
      {R"({"admin":true})", "admin"},
      {R"({"sub":"a","sub":"b"})", "sub"},
  };
  for (const auto& r : rows) {
    CAPTURE(r.body);
    const auto got = parse_token_request(r.body);
    REQUIRE(got.has_error());
    CHECK(got.error().code == core::errc::invalid_param);
    CHECK(got.error().param == r.param);
  }
  for (const char* body : {"", "[]", "7", "{"}) CHECK(parse_token_request(body).has_error());
}

}  // namespace weir::tests::browser_token_test
