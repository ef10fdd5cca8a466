// What a socket's lanes show: created, cancelled, refused, many at once, and read too slowly.
#include <map>

#include "tests/support/http_client.h"
#include "tests/support/ws_talk.h"

namespace weir::tests::ws_lanes_test {

using std::chrono::milliseconds;

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
  o.sim = "rate=30,prefill=100000000";  // none is over before the last is asked for, on a busy machine too
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
       {R"("temperature":3)", R"("top_p":1.5)", R"("max_tokens":0)", R"("window":0)", R"("top_k":"x")"}) {
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
  server_fixture::until(
      [&] { return stats().at("client_lag").at("late") == 0 && stats().at("client_lag").at("bytes") == 0; });
}

}  // namespace weir::tests::ws_lanes_test
