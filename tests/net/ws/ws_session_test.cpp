// A session as such: how it begins, who may have one, and what it answers to frames that say nothing good.
#include "tests/support/ws_talk.h"

namespace weir::tests::ws_session_test {

using std::chrono::milliseconds;

TEST_CASE("ws: the session introduces itself, and selects its subprotocol alone") {
  server_fixture f;
  ws_client c(f.port(), {.protocols = "other, weir.v1, bearer.c2VjcmV0"});
  REQUIRE(c.open());
  CHECK(c.header("Sec-WebSocket-Protocol") == "weir.v1");
  CHECK(c.header("x-request-id").size() == 32);
  auto hello = c.read();
  CHECK(hello.at("type") == "session.created");
  CHECK(hello.at("session_id").as_string().size() == 32);
  CHECK(hello.at("server").is_string());
  CHECK(hello.at("models") == boost::json::array{"sim"});
  for (const char* limit :
       {"max_jobs", "max_frame", "max_tokens", "detach_grace_ms", "retain_ms", "max_age_ms"}) {
    CHECK(hello.at("limits").at(limit).is_number());
  }
  CHECK(hello.at("limits").at("max_jobs") == 32);
  ws_client plain(f.port(), {.protocols = ""});
  CHECK(plain.open());
  CHECK(plain.header("Sec-WebSocket-Protocol").empty());
}

TEST_CASE("ws: bad frames are answered, and the socket lives on") {
  server_fixture f;
  ws_client c(f.port());
  c.read("session.created");
  const std::pair<const char*, const char*> rows[] = {{"{", "bad_json"},
                                                      {"[]", "bad_message"},
                                                      {"{}", "bad_message"},
                                                      {R"({"type":"nonsense"})", "unknown_type"},
                                                      {R"({"type":"response.resume"})", "invalid_param"}};
  for (const auto& [frame, code] : rows) {
    c.send(frame);
    CHECK(c.read().at("code") == code);
  }
  c.send_binary("{}");
  CHECK(c.read().at("code") == "bad_message");
  round_trip(c);
}

TEST_CASE("ws: a long message is acted on before those behind it") {
  server_fixture f;
  ws_client c(f.port());
  c.read("session.created");
  c.send(R"({"type":"nonsense","a":")" + std::string(100'000, 'x') + "\"}");
  c.send(R"({"type":"ping","ts":7})");
  CHECK(c.read().at("code") == "unknown_type");
  CHECK(c.read().at("type") == "pong");
  c.send(create("a", "\"max_tokens\":3,\"stop\":\"" + std::string(20'000, 'x') + "\""));
  CHECK(c.read().at("param") == "stop");
  round_trip(c);
}

TEST_CASE("ws: frames that are too large, not text, or not WebSocket end the session with the right code") {
  server_fixture f;
  {
    ws_client c(f.port());
    c.send(create("a", "\"metadata\":{\"x\":\"" + std::string(300 * 1024, 'x') + "\"}"));
    CHECK(c.until_closed() == 1009);
  }
  {
    ws_client c(f.port());
    c.send("\xff\xfe");
    CHECK(c.until_closed() == 1007);
  }
  {
    ws_client c(f.port());
    c.send_raw(std::string("\xff\x85\0\0\0\0hello", 11));  // reserved bits and an unknown opcode
    CHECK(c.until_closed() == 1002);
  }
}

TEST_CASE("ws: too many messages are refused, then the socket is closed, and a cancel is never refused") {
  auto o = slow();
  o.net.limits.message_burst = 5;
  o.net.limits.message_abuse = 20;
  o.net.limits.messages_per_s = 0.1;
  server_fixture f(o);
  ws_client c(f.port());
  c.read("session.created");
  c.send(create("a", R"("max_tokens":100000)"));
  for (int i = 0; i < 4; ++i) round_trip(c);
  c.send(create("b"));
  ws_client::object e = c.read("error");
  CHECK(e.at("code") == "rate_limited");
  CHECK(e.at("id") == "b");
  CHECK(e.at("retry_after_ms").as_int64() > 0);
  c.send(R"({"type":"response.cancel","id":"a"})");
  CHECK(c.read("response.done").at("status") == "cancelled");
  for (int i = 0; i < 30; ++i) c.send(R"({"type":"pong"})");  // these are free
  c.send(R"({"type":"ping"})");
  CHECK(c.read("error").at("code") == "rate_limited");
  for (int i = 0; i < 30; ++i) c.send(R"({"type":"ping"})");
  CHECK(c.until_closed() == 4429);
}

TEST_CASE("ws: only pages of the same host, or of an origin on the list, may connect") {
  server_options o;
  o.net.allow_origin = {"https://app.example"};
  server_fixture f(o);
  const auto status = [&](ws_options w) { return ws_client(f.port(), std::move(w)).status(); };
  CHECK(status({}) == 101);
  CHECK(status({.origin = f.origin()}) == 101);
  CHECK(status({.origin = "https://app.example"}) == 101);
  CHECK(status({.origin = "https://evil.example"}) == 403);
  CHECK(status({.origin = "null"}) == 403);
  CHECK(status({.host = "evil.example"}) == 403);
  CHECK(status({.protocols = "graphql-ws"}) == 400);
}

TEST_CASE("ws: with keys a session needs one, by any of the three ways") {
  server_options o;
  o.net.api_keys = {"secret"};
  o.net.limits.authenticate = milliseconds(1200);
  server_fixture f(o);
  {
    ws_client c(f.port(), {.protocols = "weir.v1, bearer.c2VjcmV0"});
    CHECK(c.header("Sec-WebSocket-Protocol") == "weir.v1");
    CHECK(c.read().at("type") == "session.created");
  }
  CHECK(ws_client(f.port(), {.authorization = "Bearer secret"}).read().at("type") == "session.created");
  CHECK(ws_client(f.port(), {.authorization = "Bearer wrong"}).until_closed() == 4401);
  CHECK(ws_client(f.port(), {.protocols = "weir.v1, bearer.d3Jvbmc"}).until_closed() == 4401);
  {
    ws_client c(f.port());
    c.send(R"({"type":"session.auth","token":"secret"})");
    CHECK(c.read().at("type") == "session.created");
    round_trip(c);
  }
  {
    ws_client c(f.port());
    c.send(R"({"type":"session.auth","token":"wrong"})");
    CHECK(c.until_closed() == 4401);
  }
  {
    ws_client c(f.port());
    c.send(create("a"));
    CHECK(c.until_closed() == 4401);
  }
  CHECK(ws_client(f.port()).until_closed() == 4408);
}

}  // namespace weir::tests::ws_session_test
