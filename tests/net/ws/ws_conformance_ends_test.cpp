// RFC 6455, sections 4.2 and 7, after group 7 of the Autobahn test suite: how a WebSocket begins, and how it
// ends.
#include <set>

#include "tests/support/http_table.h"
#include "tests/support/plain_server.h"
#include "tests/support/ws_table.h"

namespace weir::tests::ws_conformance_ends_test {

using namespace weir::tests::ws_bytes;

namespace {

const std::string one = whole(text, ask("1"));
const std::vector<std::string> fault{"close 1002"};

std::string closed_with(unsigned code) { return fmt::format("close {}", code); }

// ---- the handshake

// Headers of a good handshake. A row leaves one of them out or changes it.
struct handshake {
  std::string line = "GET /v1/stream HTTP/1.1";
  std::string host = "Host: localhost\r\n";
  std::string upgrade = "Upgrade: websocket\r\n";
  std::string connection = "Connection: Upgrade\r\n";
  std::string version = "Sec-WebSocket-Version: 13\r\n";
  std::string key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  std::string rest = {}, behind = {};
};

struct handshake_row {
  const char* name;
  handshake h;
  statuses expected;
};

raw_answer answer_to(const handshake& h, unsigned short port) {
  raw_client c(port);
  c.send(h.line + "\r\n" + h.host + h.upgrade + h.connection + h.version + h.key + h.rest + "\r\n" +
         h.behind);
  const std::string heard = c.read_until("\r\n\r\n");
  INFO("heard: " << heard);
  REQUIRE(heard.starts_with("HTTP/1."));
  raw_answer a;
  a.head = heard.substr(0, heard.find("\r\n\r\n") + 2);
  a.status = static_cast<unsigned>(std::stoul(a.head.substr(9, 3)));
  return a;
}

const statuses opened{101}, refused{400}, no_upgrade{400, 426};

const handshake_row handshakes[] = {
    {"as it should be", {}, opened},
    {"names and words in other case",
     {.upgrade = "uPGRADE: WebSocket\r\n", .connection = "CONNECTION: upgrade\r\n"},
     opened},
    {"a list of connection options", {.connection = "Connection: keep-alive, Upgrade\r\n"}, opened},
    {"a list of protocols to upgrade to", {.upgrade = "Upgrade: h2c, websocket\r\n"}, opened},
    {"its own origin", {.rest = "Origin: http://localhost\r\n"}, opened},
    {"extensions, which are declined",
     {.rest = "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n"},
     opened},
    {"several subprotocols", {.rest = "Sec-WebSocket-Protocol: chat, weir.v1\r\n"}, opened},
    {"subprotocols on two lines",
     {.rest = "Sec-WebSocket-Protocol: chat\r\nSec-WebSocket-Protocol: weir.v1\r\n"},
     opened},
    {"POST", {.line = "POST /v1/stream HTTP/1.1"}, {400, 405, 426}},
    {"HTTP/1.0", {.line = "GET /v1/stream HTTP/1.0"}, {400, 426, 505}},
    {"another path", {.line = "GET /v1/models HTTP/1.1"}, {200, 400, 404}},
    {"no host", {.host = ""}, refused},
    {"two hosts", {.host = "Host: localhost\r\nHost: localhost\r\n"}, refused},
    {"another's host", {.host = "Host: evil.example\r\n"}, {403}},
    {"another's origin", {.rest = "Origin: http://evil.example\r\n"}, {403}},
    {"two origins", {.rest = "Origin: http://localhost\r\nOrigin: http://evil.example\r\n"}, {400, 403}},
    {"no upgrade", {.upgrade = ""}, no_upgrade},
    {"an upgrade to something else", {.upgrade = "Upgrade: h2c\r\n"}, no_upgrade},
    {"an upgrade to something longer", {.upgrade = "Upgrade: websockets\r\n"}, no_upgrade},
    {"no connection option", {.connection = ""}, no_upgrade},
    {"another connection option", {.connection = "Connection: keep-alive\r\n"}, no_upgrade},
    {"no version", {.version = ""}, no_upgrade},
    {"an old version", {.version = "Sec-WebSocket-Version: 8\r\n"}, {426}},
    {"a version to come", {.version = "Sec-WebSocket-Version: 14\r\n"}, {426}},
    {"a version with a zero", {.version = "Sec-WebSocket-Version: 013\r\n"}, no_upgrade},
    {"a list of versions", {.version = "Sec-WebSocket-Version: 13, 8\r\n"}, no_upgrade},
    {"two versions", {.version = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Version: 8\r\n"}, no_upgrade},
    {"no key", {.key = ""}, refused},
    {"an empty key", {.key = "Sec-WebSocket-Key:\r\n"}, refused},
    {"a key of 15 bytes", {.key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAA\r\n"}, refused},
    {"a key of 17 bytes", {.key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAAA=\r\n"}, refused},
    {"a key that is no base64", {.key = "Sec-WebSocket-Key: ????????????????????????\r\n"}, refused},
    {"a long key", {.key = "Sec-WebSocket-Key: " + std::string(4000, 'A') + "\r\n"}, refused},
    {"two keys",
     {.key =
          "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"},
     refused},
    {"other subprotocols", {.rest = "Sec-WebSocket-Protocol: chat, weir.v11\r\n"}, refused},
    {"a body", {.rest = "Content-Length: 5\r\n", .behind = "hello"}, refused},
    {"a body in chunks", {.rest = "Transfer-Encoding: chunked\r\n", .behind = "0\r\n\r\n"}, refused},
    {"two framings of a body", {.rest = "Content-Length: 0\r\nTransfer-Encoding: identity\r\n"}, {400, 501}},
    {"a frame before the answer", {.behind = one}, refused},
};

}  // namespace

TEST_CASE("ws conformance: a handshake is what section 4.2 says, or it is refused") {
  plain_server server;
  for (const auto& r : handshakes) {
    CAPTURE(r.name);
    const auto a = answer_to(r.h, server.port());
    CHECK_THAT(r.expected, Catch::VectorContains(a.status));
    CHECK(field_of(a, "x-request-id").value_or("").size() == 32);
    CHECK_FALSE(field_of(a, "sec-websocket-extensions"));
    if (r.h.version != handshake{}.version && a.status == 426)
      CHECK(field_of(a, "sec-websocket-version") == "13");
    if (a.status != 101) continue;
    CHECK(field_of(a, "sec-websocket-accept") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");  // the RFC's own example
    CHECK(lower(field_of(a, "upgrade").value_or("")) == "websocket");
    CHECK(lower(field_of(a, "connection").value_or("")) == "upgrade");
    const bool asked = r.h.rest.find("weir.v1") != std::string::npos;
    CHECK(field_of(a, "sec-websocket-protocol").value_or("") == (asked ? "weir.v1" : ""));
  }
  server.until_no_sessions();
}

// ---- the end

TEST_CASE("ws conformance 7: a close is answered with its code, and one that must not be sent with 1002") {
  plain_server server;
  const std::set<unsigned> valid = {1000, 1001, 1002, 1003, 1007, 1008, 1009,
                                    1010, 1011, 3000, 3999, 4000, 4999};
  const std::set<unsigned> never = {0, 1, 255, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999};
  for (const unsigned code : valid) {
    check_row({fmt::format("code {}", code), close_frame(code), {closed_with(code)}}, server.port());
    check_row({fmt::format("code {} with a reason", code), close_frame(code, "because"), {closed_with(code)}},
              server.port());
  }
  for (const unsigned code : never) {
    check_row({fmt::format("code {}", code), close_frame(code), fault}, server.port());
    check_row({fmt::format("code {} with a reason", code), close_frame(code, "because"), fault},
              server.port());
  }
  // Registered after the RFC, and beyond the ranges that it names: section 7.4.2 says nothing of 5000 and up.
  for (const unsigned code : {1012, 1013, 1014, 5000, 5001, 9999, 32768, 65535})
    check_row({fmt::format("code {}", code), close_frame(code), {closed_with(code)}, fault}, server.port());
  server.until_no_sessions();
}

TEST_CASE("ws conformance 7: what a close says is read to the letter, and nothing behind it is answered") {
  plain_server server;
  const std::string a = part(text, "{"), close = close_frame(1000), longest(123, 'x');
  const std::string Greek = "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5";
  const std::vector<std::string> normal{"close 1000"}, bad_text{"close 1007"};
  const ws_row rows[] = {
      {"no code", whole(closing), normal, {"close"}},
      {"half a code", whole(closing, "\x03"), fault},
      {"the longest reason", close_frame(1000, longest), normal},
      {"a reason that is too long", close_frame(1000, longest + "x"), fault},
      {"a reason in UTF-8", close_frame(1000, Greek), normal},
      // Beast says 1002 where section 8.1 has 1007: the connection fails either way, and nothing is lost by
      // it.
      {"a reason that is none", close_frame(1000, Greek + "\xed\xa0\x80"), bad_text, fault},
      {"a reason that ends too early", close_frame(1000, "\xce"), bad_text, fault},
      {"a reason of one bad byte", close_frame(1000, "\xff"), bad_text, fault},
      {"behind a message", one + close, {"pong 1", "close 1000"}},
      {"behind a ping", whole(ping, "x") + close, {"PONG x", "close 1000"}},
      {"behind a fragment", a + close, normal},
      {"a message behind it", close + one, normal},
      {"a ping behind it", close + whole(ping, "x"), normal},
      {"a pong behind it", close + whole(pong, "x"), normal},
      {"a fault behind it", close + whole(15), normal},
      {"the rest of a message behind it", a + close + part(more, "}", true), normal},
      {"twice", close + close, normal},
      {"twice, with two codes", close + close_frame(1001), normal},
      {"a very long message behind it", close + whole(text, std::string(200'000, ' ')), normal},
      {"a bad one behind a fault", whole(3) + close, fault},
  };
  for (const auto& r : rows) check_row(r, server.port());
  server.until_no_sessions();
}

TEST_CASE("ws conformance 7: the server ends the connection once both have closed") {
  plain_server server;
  for (const unsigned code : {1000, 1001, 3000}) {  // the client closes
    raw_socket s(server.port());
    s.wire().send(close_frame(code));
    s.wire().read_to_end();
    CHECK(s.words() == std::vector{closed_with(code)});
  }
  const std::pair<std::string, unsigned> faults[] = {{whole(3), 1002}, {whole(text, "\xff"), 1007}};
  for (const auto& [bytes, code] : faults) {  // the server closes, and waits for no answer
    raw_socket s(server.port());
    s.wire().send(bytes);
    s.wire().read_to_end();
    CHECK(s.words() == std::vector{closed_with(code)});
  }
  {  // the server closes, and the client answers
    raw_socket s(server.port());
    s.wire().send(whole(text, std::string(256 * 1024 + 1, ' ')));
    while (s.words().empty()) REQUIRE(s.read_more());
    s.wire().send(close_frame(1009));
    s.wire().read_to_end();
    CHECK(s.words() == std::vector{closed_with(1009)});
  }
  server.until_no_sessions();
}

}  // namespace weir::tests::ws_conformance_ends_test
