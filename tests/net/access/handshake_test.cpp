#include "net/access/handshake.h"

#include <catch2/catch.hpp>

namespace weir::tests::handshake_test {

using namespace weir::net;

TEST_CASE("handshake: on loopback only local names may be the Host") {
  for (const char* host : {"localhost", "LocalHost:8080", "127.0.0.1", "127.0.0.1:1", "127.1.2.3:80", "[::1]",
                           "[::1]:8080", "::1", "[::ffff:127.0.0.1]:8080", "[0:0::1]", "box:9", "BOX"}) {
    CAPTURE(host);
    CHECK(host_allowed(host, "box", {}));
  }
  const std::vector<std::string> origins{"https://chat.example", "chat.other"};
  CHECK(host_allowed("chat.example", "127.0.0.1", origins));
  CHECK(!host_allowed("chat.other", "127.0.0.1", origins));
  for (const char* host : {"",
                           "example.com",
                           "evil.com:8080",
                           "localhost.evil.com",
                           "127.0.0.1.evil.com",
                           "[::2]:8080",
                           "10.0.0.1",
                           ":8080",
                           "[",
                           "localhost:evil.com",
                           "localhost:80:evil.com",
                           "localhost:",
                           "localhost:65536",
                           "localhost:8o",
                           "127.0.0.1:evil.com",
                           "[::1]evil.com",
                           "[::1]:evil.com",
                           "[::1",
                           "127.evil.com",
                           "127.1.2.3.4",
                           "127.1",
                           "127.0.0.256",
                           "2130706433",
                           "[127.0.0.1.evil.com]",
                           "[::ffff:10.0.0.1]"}) {
    CAPTURE(host);
    CHECK(!host_allowed(host, "127.0.0.1", origins));
  }
}

TEST_CASE(
    "handshake: a server on another loopback address is reached by that address, however it is spelled") {
  CHECK(host_allowed("[0::0:1]:80", "::1", {}));
  CHECK(host_allowed("192.0.2.1:80", "192.0.2.1", {}));
  CHECK(host_allowed("[::ffff:192.0.2.1]", "192.0.2.1", {}));
  CHECK_FALSE(host_allowed("192.0.2.2", "192.0.2.1", {}));
  CHECK_FALSE(host_allowed("192.0.2.1.evil.com", "192.0.2.1", {}));
}

TEST_CASE("handshake: the refusal of a host names the option that allows it") {
  using Catch::Matchers::Contains;
  CHECK_THAT(host_refusal("weir.example:8443"),
             Contains("'weir.example:8443'") && Contains("--allow-origin https://weir.example:8443"));
  CHECK_THAT(host_refusal("a b\r\nc"), Contains("--allow-origin https://NAME") && !Contains("\n"));
  CHECK_THAT(host_refusal(""), Contains("--allow-origin https://NAME"));
}

TEST_CASE("handshake: a WebSocket's key is base64 of 16 bytes") {
  CHECK(is_websocket_key("dGhlIHNhbXBsZSBub25jZQ=="));
  CHECK(is_websocket_key("+/+/+/+/+/+/+/+/+/+/+w=="));
  for (const char* key :
       {"", "dGhlIHNhbXBsZSBub25jZQ", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25jZQ===",
        "dGhlIHNhbXBsZSBub25jZXM=", "dGhlIHNhbXBsZSBub25j",
        "dGhlIHNhbXBsZSBub25j-_==", "====================dZ==", "dGhlIHNhbXBsZSBub25jZ Q=="}) {
    CAPTURE(key);
    CHECK_FALSE(is_websocket_key(key));
  }
}

TEST_CASE("handshake: a page from a file is let in as null, by either of its names") {
  const std::vector<std::string> allowed{"null"};
  CHECK(origin_allowed("null", "127.0.0.1:8080", allowed));
  CHECK(origin_allowed("file://", "127.0.0.1:8080", allowed));
  CHECK_FALSE(origin_allowed("file://evil", "127.0.0.1:8080", allowed));
  CHECK_FALSE(origin_allowed("null", "127.0.0.1:8080", {}));
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
      {"file://", "127.0.0.1:8080", false},
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

TEST_CASE("handshake: base64url is encoded without padding") {
  const struct {
    std::string bytes, text;
  } rows[] = {{"", ""}, {"f", "Zg"}, {"fo", "Zm8"}, {"foo", "Zm9v"}, {"foob", "Zm9vYg"}, {"\xfb\xff", "-_8"}};
  for (const auto& r : rows) {
    CHECK(encode_base64url(r.bytes) == r.text);
    CHECK(decode_base64url(r.text) == r.bytes);
  }
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

TEST_CASE("handshake: a bearer header gives its key") {
  CHECK(bearer_of("Bearer abc") == "abc");
  CHECK(bearer_of("bearer  abc ") == "abc");
  CHECK(!bearer_of("Basic abc"));
  CHECK(!bearer_of(""));
}

}  // namespace weir::tests::handshake_test
