// How sessions end, and what becomes of their jobs: clients that go, and a server that does.
#include "tests/support/http_client.h"
#include "tests/support/ws_talk.h"

namespace weir::tests::ws_endings_test {

using std::chrono::milliseconds;

TEST_CASE("ws: with on_disconnect cancel a dropped socket takes its job along") {
  server_fixture f(slow());
  std::optional<ws_client> c(std::in_place, f.port());
  c->send(create("a", R"("max_tokens":100000,"on_disconnect":"cancel")"));
  c->read("response.delta");
  c->drop();
  f.until_quiet();
}

TEST_CASE("ws: without it the job runs on for its grace, then it is cancelled") {
  auto o = slow();
  o.net.limits.detach_grace = milliseconds(1500);
  server_fixture f(o);
  ws_client c(f.port());
  c.send(create("short", R"("max_tokens":30,"seed":1)"));
  c.send(create("long", R"("max_tokens":100000)"));
  c.read("response.delta");
  c.drop();
  f.until([&] { return f.service->stats().engine.finished == 1; });  // the short one reached its end
  CHECK(f.service->stats().engine.decoding == 1);
  f.until_quiet();
  CHECK(finish_reasons(f) == std::multiset<std::string>{"cancel", "length"});
}

TEST_CASE("ws: an old session is told, and closed at its time") {
  server_options o;
  o.net.limits.max_age = milliseconds(1500);
  o.net.limits.closing_notice = milliseconds(1000);
  server_fixture f(o);
  ws_client c(f.port());
  auto closing = c.read("session.closing");
  CHECK(closing.at("reason") == "max_age");
  CHECK(closing.at("deadline_ms") == 1000);
  CHECK(c.until_closed() == 4441);
}

TEST_CASE("ws: draining lets what runs finish, refuses what is new, and closes with 1001") {
  auto o = slow();
  server_fixture f(o);
  ws_client busy(f.port()), idle(f.port());
  busy.read("session.created");
  idle.read("session.created");
  busy.send(create("a", R"("max_tokens":50,"seed":3)"));
  busy.read("response.created");
  std::promise<void> over;
  f.server->drain([&] { over.set_value(); });
  CHECK(idle.read("session.closing").at("reason") == "shutdown");
  CHECK(idle.until_closed() == 1001);
  lane_reader lane;
  bool told = false, refused = false;
  while (!lane.done) {
    auto frame = busy.read();
    if (frame.at("type") == "session.closing") {
      told = true;
      busy.send(create("b"));
    } else if (frame.at("type") == "error") {
      refused = frame.at("code") == "overloaded" && frame.at("id") == "b";
    } else {
      lane.take(frame);
    }
  }
  CHECK(told);
  CHECK(refused);
  CHECK(lane.text == sim_text(3, 50));
  CHECK(busy.until_closed() == 1001);
  CHECK(ws_client(f.port()).status() == 503);
  over.get_future().get();
}

TEST_CASE("ws: stopping hangs up on everybody and ends their jobs") {
  server_fixture f(slow());
  ws_client c(f.port());
  c.send(create("a", R"("max_tokens":100000)"));
  c.read("response.delta");
  f.server->stop();
  f.until_quiet();
  c.until_closed();
  CHECK(c.error());
}

TEST_CASE("ws: a client that drops in the middle of anything leaves nothing behind") {
  server_fixture f(slow());
  for (int i = 0; i < 60; ++i) {
    ws_client c(f.port());
    for (int k = 0; k <= i % 4; ++k)
      c.send(create("l" + std::to_string(k), R"("max_tokens":100000,"on_disconnect":"cancel")"));
    if (i % 3 == 0) c.read("response.delta");
    if (i % 3 == 1) c.read("response.created");
    if (i % 2)
      c.drop();
    else
      c.close();
  }
  f.until_quiet();
}

TEST_CASE("ws: a client that breaks the protocol while the server closes leaves no session behind") {
  server_options o;
  o.net.api_keys = {"key"};
  o.net.limits.handshake = std::chrono::milliseconds(500);
  server_fixture f(o);
  const auto masked = [](char first, std::string_view payload) {
    return std::string{first, static_cast<char>(0x80 | payload.size())} + std::string(4, '\0') +
           std::string(payload);
  };
  const std::string wrong_key = masked('\x81', R"({"type":"session.auth","token":"wrong"})");
  const std::string faults[] = {masked('\x83', ""), masked('\x89', "x") + masked('\xf9', ""),
                                std::string("\x81\x01x"), std::string("\x8a\xff\x7f\0\0\0\0\0\0\0mask", 14)};
  for (const auto& fault : faults) {
    ws_client c(f.port());
    c.send_raw(wrong_key + fault);
    CHECK(c.until_closed() == 4401);
  }
  f.until([&] {
    return http_client(f.port()).get("/v1/stats", "Authorization: Bearer key\r\n").json().at("sessions") == 0;
  });
}

}  // namespace weir::tests::ws_endings_test
