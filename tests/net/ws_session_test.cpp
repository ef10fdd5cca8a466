#include <map>
#include <set>

#include "tests/support/http_client.h"
#include "tests/support/server_fixture.h"
#include "tests/support/ws_client.h"

using namespace weir;
using namespace weir::tests;
using std::chrono::milliseconds;

namespace {

std::string create(std::string_view id, std::string_view fields = {}) {
  return fmt::format(R"({{"type":"response.create","id":"{}","input":"hello"{}{}}})", id,
                     fields.empty() ? "" : ",", fields);
}

// Reads a lane to its end; frames of other lanes are an error.
lane_reader read_lane(ws_client& c) {
  lane_reader l;
  while (!l.done) l.take(c.read());
  return l;
}

// Whatever was said before has been dealt with.
void round_trip(ws_client& c) {
  c.send(R"({"type":"ping","ts":77})");
  CHECK(c.read("pong").at("ts") == 77);
}

// Of every job, once each is known to have ended.
std::multiset<std::string> finish_reasons(server_fixture& f) {
  std::multiset<std::string> reasons;
  f.until([&] {
    reasons.clear();
    for (const auto& j : f.list_jobs()) reasons.insert(j.finish_reason);
    return !reasons.contains("");
  });
  return reasons;
}

// A long job that takes its time: for tests that end it.
server_options slow() {
  server_options o;
  o.sim = "rate=100,prefill=100000000";
  return o;
}

}  // namespace

TEST_CASE("ws: the session introduces itself, and selects its subprotocol alone") {
  server_fixture f;
  ws_client c(f.port(), {.protocols = "other, weir.v1, bearer.c2VjcmV0"});
  REQUIRE(c.open());
  CHECK(c.response[boost::beast::http::field::sec_websocket_protocol] == "weir.v1");
  CHECK(c.response["x-request-id"].size() == 32);
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
  CHECK(plain.response[boost::beast::http::field::sec_websocket_protocol].empty());
}

TEST_CASE("ws: a response is created, flows without gap or repeat, and is done once") {
  server_fixture f;
  ws_client c(f.port());
  c.read("session.created");
  c.send(create("a", R"("max_tokens":200,"seed":7,"timing":true,"return_token_ids":true,"typo":1)"));
  auto created = c.read();
  CHECK(created.at("type") == "response.created");
  CHECK(created.at("id") == "a");
  CHECK(created.at("seq") == 0);
  CHECK(created.at("model") == "sim");
  CHECK(created.at("response_id").as_string().size() == 32);
  CHECK(created.at("ignored") == boost::json::array{"typo"});
  auto lane = read_lane(c);
  CHECK(lane.text == sim_text(7, 200));
  CHECK(lane.seq == 200);
  REQUIRE(lane.ids.size() == 200);
  CHECK(lane.ids[199] == core::sim_token(7, 199));
  CHECK(lane.t > 0);
  CHECK(lane.done->at("response_id") == created.at("response_id"));
  CHECK(lane.done->at("status") == "incomplete");
  CHECK(lane.done->at("finish_reason") == "length");
  CHECK(lane.done->at("usage").at("input_tokens") == 5);
  CHECK(lane.done->at("usage").at("output_tokens") == 200);
  CHECK(lane.done->at("timing").at("ttft_ms").to_number<double>() > 0);
  round_trip(c);
}

TEST_CASE("ws: 32 lanes on one socket each show their own text, and a 33rd is refused") {
  auto o = slow();
  o.sim = "rate=500,prefill=100000000";
  server_fixture f(o);
  ws_client c(f.port());
  c.read("session.created");
  for (int i = 0; i < 32; ++i)
    c.send(create("lane" + std::to_string(i), fmt::format(R"("max_tokens":60,"seed":{})", i)));
  c.send(create("lane3"));
  c.send(create("more"));
  std::map<std::string, lane_reader> lanes;
  int done = 0, duplicate = 0, too_many = 0;
  while (done < 32) {
    auto frame = c.read();
    const std::string id(frame.at("id").as_string());
    if (frame.at("type") == "error") {
      duplicate += frame.at("code") == "duplicate_id" && id == "lane3";
      too_many += frame.at("code") == "too_many_jobs" && id == "more";
      continue;
    }
    lanes[id].take(frame);
    done += frame.at("type") == "response.done";
  }
  CHECK(duplicate == 1);
  CHECK(too_many == 1);
  for (int i = 0; i < 32; ++i)
    CHECK(lanes["lane" + std::to_string(i)].text == sim_text(static_cast<unsigned>(i), 60));
  c.send(create("lane3", R"("max_tokens":2,"seed":1)"));  // over: the id is free
  c.read("response.created");
  CHECK(read_lane(c).text == sim_text(1, 2));
}

TEST_CASE("ws: cancel ends a lane with done, and again it is ignored, and an unknown one is not found") {
  server_fixture f(slow());
  ws_client c(f.port());
  c.read("session.created");
  c.send(create("a", R"("max_tokens":100000)"));
  lane_reader lane;
  while (lane.seq < 3) lane.take(c.read());
  c.send(R"({"type":"response.cancel","id":"a"})");
  while (!lane.done) lane.take(c.read());
  CHECK(lane.done->at("status") == "cancelled");
  CHECK(lane.done->at("finish_reason") == "cancel");
  const std::string response_id(lane.done->at("response_id").as_string());
  f.until_quiet();
  c.send(R"({"type":"response.cancel","id":"a"})");
  c.send(fmt::format(R"({{"type":"response.cancel","response_id":"{}"}})", response_id));
  c.send(R"({"type":"ping","ts":1})");
  CHECK(c.read().at("type") == "pong");
  for (const char* unknown :
       {R"("id":"b")", R"("response_id":"b")", R"("response_id":"00000000000000000000000000000000")"}) {
    c.send(fmt::format(R"({{"type":"response.cancel",{}}})", unknown));
    auto e = c.read();
    CHECK(e.at("code") == "not_found");
    CHECK(e.at("fatal") == false);
  }
}

TEST_CASE("ws: a response can be cancelled by its id from another socket") {
  server_fixture f(slow());
  ws_client one(f.port()), two(f.port());
  one.read("session.created");
  one.send(create("a", R"("max_tokens":100000)"));
  auto created = one.read("response.created");
  two.send(fmt::format(R"({{"type":"response.cancel","response_id":"{}"}})",
                       std::string(created.at("response_id").as_string())));
  CHECK(one.read("response.done").at("status") == "cancelled");
}

TEST_CASE("ws: a job cancelled as soon as it was asked for still gets its done") {
  server_fixture f(slow());
  ws_client c(f.port());
  c.read("session.created");
  for (int i = 0; i < 10; ++i) {
    c.send(create("a", R"("max_tokens":100000)"));
    c.send(R"({"type":"response.cancel","id":"a"})");
    CHECK(c.read("response.done").at("status") == "cancelled");
  }
  f.until_quiet();
}

TEST_CASE("ws: what is out of range is one error with the lane's id, and the id is free again") {
  server_fixture f;
  ws_client c(f.port());
  c.read("session.created");
  for (const char* bad :
       {R"("temperature":3)", R"("top_p":0)", R"("max_tokens":0)", R"("window":5)", R"("top_k":"x")"}) {
    CAPTURE(bad);
    c.send(create("a", bad));
    auto e = c.read();
    CHECK(e.at("type") == "error");
    CHECK(e.at("id") == "a");
    CHECK(e.at("code") == "invalid_param");
    CHECK(std::string_view(bad).find(std::string_view(e.at("param").as_string())) == 1);
  }
  c.send(create("a", R"("model":"other")"));
  CHECK(c.read().at("code") == "model_not_found");
  c.send(create("a", R"("max_tokens":2,"seed":1)"));
  c.read("response.created");
  CHECK(read_lane(c).text == sim_text(1, 2));
}

TEST_CASE("ws: bad frames are answered, and the socket lives on") {
  server_fixture f;
  ws_client c(f.port());
  c.read("session.created");
  const std::pair<const char*, const char*> rows[] = {{"{", "bad_json"},
                                                      {"[]", "bad_message"},
                                                      {"{}", "bad_message"},
                                                      {R"({"type":"nonsense"})", "unknown_type"},
                                                      {R"({"type":"response.resume"})", "unknown_type"}};
  for (const auto& [frame, code] : rows) {
    c.send(frame);
    CHECK(c.read().at("code") == code);
  }
  c.send_binary("{}");
  CHECK(c.read().at("code") == "bad_message");
  round_trip(c);
}

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
  f.until([&] { return f.service->stats().jobs.finished == 1; });  // the short one reached its end
  CHECK(f.service->stats().jobs.decoding == 1);
  f.until_quiet();
  CHECK(finish_reasons(f) == std::multiset<std::string>{"cancel", "length"});
}

TEST_CASE("ws: a reader that stops is cut off by its write or its backlog, and moves no other stream") {
  const bool by_backlog = GENERATE(false, true);
  CAPTURE(by_backlog);
  server_options o;
  o.sim = "rate=50000,prefill=100000000";
  o.net.limits.write_time = milliseconds(by_backlog ? 600000 : 500);
  o.net.limits.backlog_bytes = by_backlog ? 64 * 1024 : 1 << 30;
  server_fixture f(o);
  ws_client stuck(f.port(), {.receive_buffer = 4096});
  ws_client other(f.port());
  stuck.send(create("a", R"("max_tokens":130000,"on_disconnect":"cancel")"));
  other.read("session.created");
  other.send(create("b", R"("max_tokens":3000,"seed":4)"));
  other.read("response.created");
  CHECK(read_lane(other).text == sim_text(4, 3000));
  f.until_quiet();
  CHECK(finish_reasons(f) == std::multiset<std::string>{"cancel", "length"});
  stuck.until_closed();
  CHECK(stuck.error());
}

TEST_CASE("ws: how long frames took to leave, and who is behind, can be read") {
  server_options o;
  o.sim = "rate=50000,prefill=100000000";
  o.net.limits.write_time = milliseconds(600000);
  o.net.limits.backlog_bytes = 1 << 30;
  server_fixture f(o);
  const auto stats = [&] { return http_client(f.port()).get("/v1/stats").json(); };
  CHECK(stats().at("sampled_to_sent_ms").at("count") == 0);
  ws_client quick(f.port());
  quick.send(create("a", R"("max_tokens":50)"));
  quick.read("response.created");
  read_lane(quick);
  const auto sent = stats().at("sampled_to_sent_ms");
  CHECK(sent.at("count").as_int64() >= 1);
  CHECK(sent.at("count").as_int64() <= 50);
  CHECK(sent.at("p50").as_double() <= sent.at("p99").as_double());
  CHECK(sent.at("p99").as_double() <= sent.at("max").as_double());
  CHECK(stats().at("client_lag").at("late") == 0);
  {
    ws_client stuck(f.port(), {.receive_buffer = 4096});
    stuck.send(create("b", R"("max_tokens":130000,"on_disconnect":"cancel")"));
    server_fixture::until([&] { return stats().at("client_lag").at("late") == 1; });
    server_fixture::until([&] { return stats().at("client_lag").at("bytes").as_int64() > 100000; });
  }
  server_fixture::until([&] { return stats().at("client_lag").at("late") == 0 && stats().at("client_lag").at("bytes") == 0; });
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
  const auto status = [&](ws_options w) { return ws_client(f.port(), std::move(w)).response.result_int(); };
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
    CHECK(c.response[boost::beast::http::field::sec_websocket_protocol] == "weir.v1");
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
  CHECK(ws_client(f.port()).response.result_int() == 503);
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
