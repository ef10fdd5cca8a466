#include "net/handshake.h"

#include <catch2/catch.hpp>

using namespace weir::net;

TEST_CASE("handshake: on loopback only local names may be the Host") {
  for (const char* host : {"localhost", "LocalHost:8080", "127.0.0.1", "127.0.0.1:1", "127.1.2.3:80", "[::1]",
                           "[::1]:8080", "::1", "box:9"}) {
    CAPTURE(host);
    CHECK(host_allowed(host, "box", {}));
  }
  const std::vector<std::string> origins{"https://chat.example", "chat.other"};
  CHECK(host_allowed("chat.example", "127.0.0.1", origins));
  CHECK(!host_allowed("chat.other", "127.0.0.1", origins));
  for (const char* host : {"", "example.com", "evil.com:8080", "localhost.evil.com", "127.0.0.1.evil.com",
                           "[::2]:8080", "10.0.0.1", ":8080", "["}) {
    CAPTURE(host);
    CHECK(!host_allowed(host, "127.0.0.1", origins));
  }
}

TEST_CASE("handshake: an origin has to be the same host or on the list") {
  const std::vector<std::string> allowed{"https://app.example"};
  const struct {
    const char *origin, *host;
    bool fine;
  } rows[] = {
      {"http://127.0.0.1:8080", "127.0.0.1:8080", true},
      {"https://chat.example", "chat.example", true},
      {"http://Chat.example", "chat.EXAMPLE", true},
      {"http://chat.example", "chat.example:80", true},
      {"https://app.example", "chat.example", true},
      {"http://127.0.0.1:8081", "127.0.0.1:8080", false},
      {"http://evil.example", "chat.example", false},
      {"https://app.example.evil", "chat.example", false},
      {"http://app.example", "chat.example", false},
      {"null", "chat.example", false},
      {"", "chat.example", false},
      {"file://", "chat.example", false},
      {"http://", "", false},
      {"ftp://chat.example", "chat.example", false},
  };
  for (const auto& r : rows) {
    CAPTURE(r.origin, r.host);
    CHECK(origin_allowed(r.origin, r.host, allowed) == r.fine);
  }
}

TEST_CASE("handshake: subprotocols are read with their bearer key") {
  CHECK(!parse_protocols("").weir_v1);
  CHECK(parse_protocols("weir.v1").weir_v1);
  auto both = parse_protocols(" other ,weir.v1, bearer.c2VjcmV0LWtleQ");
  CHECK(both.weir_v1);
  CHECK(both.bearer == "secret-key");
  CHECK(parse_protocols("bearer.").bearer == "");
  CHECK(parse_protocols("bearer.%%").bearer == "");
  CHECK(!parse_protocols("weir.v11,Weir.v1").weir_v1);
}

TEST_CASE("handshake: base64url is decoded exactly") {
  CHECK(decode_base64url("") == "");
  CHECK(decode_base64url("Zg") == "f");
  CHECK(decode_base64url("Zg==") == "f");
  CHECK(decode_base64url("Zm8") == "fo");
  CHECK(decode_base64url("Zm9v") == "foo");
  CHECK(decode_base64url("-_8") == "\xfb\xff");
  CHECK(!decode_base64url("Z"));
  CHECK(!decode_base64url("Zm9v!"));
  CHECK(!decode_base64url("+/8"));
}

TEST_CASE("handshake: a bearer header gives its key, a wrong key is not known") {
  CHECK(bearer_of("Bearer abc") == "abc");
  CHECK(bearer_of("bearer  abc ") == "abc");
  CHECK(!bearer_of("Basic abc"));
  CHECK(!bearer_of(""));
  const std::vector<std::string> keys{"alpha", "beta"};
  CHECK(number_of_key("alpha", keys) == 1);
  CHECK(number_of_key("beta", keys) == 2);
  CHECK(number_of_key("bet", keys) == 0);
  CHECK(number_of_key("betaa", keys) == 0);
  CHECK(number_of_key("", keys) == 0);
  CHECK(number_of_key("", std::vector<std::string>{""}) == 0);
}
