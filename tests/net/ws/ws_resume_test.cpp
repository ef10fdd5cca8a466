// Streams that survive their socket: resume on any shard, followers beside each other, windows, pauses.
#include <algorithm>
#include <boost/json/serialize.hpp>

#include "tests/support/http_client.h"
#include "tests/support/toy_directory.h"
#include "tests/support/ws_talk.h"

namespace weir::tests::ws_resume_test {

using std::chrono::milliseconds;

namespace {

std::string resume(std::string_view id, std::string_view response_id, std::uint64_t after,
                   std::string_view fields = {}) {
  return fmt::format(R"({{"type":"response.resume","id":"{}","response_id":"{}","after":{}{}{}}})", id,
                     response_id, after, fields.empty() ? "" : ",", fields);
}

std::string ack(std::string_view id, std::uint64_t seq) {
  return fmt::format(R"({{"type":"response.ack","id":"{}","seq":{}}})", id, seq);
}

// Creates lane "a" and returns its response_id.
std::string begin(ws_client& c, std::string_view fields) {
  c.read("session.created");
  c.send(create("a", fields));
  return std::string(c.read("response.created").at("response_id").as_string());
}

// Resumes on a new lane "b" of a fresh client, and reads response.resumed.
boost::json::object resume_on(ws_client& c, std::string_view response_id, const lane_reader& seen,
                              std::string_view fields = {}) {
  c.read("session.created");
  c.send(resume("b", response_id, seen.seq, fields));
  return c.read();
}

std::string code_of(const boost::json::object& frame) {
  REQUIRE(frame.at("type") == "error");
  return std::string(frame.at("code").as_string());
}

}  // namespace

TEST_CASE("resume: dropped again and again, on every shard, the text goes on without gap or repeat") {
  auto o = slow();
  o.sim = "rate=400,prefill=100000000";
  o.shards = 3;
  server_fixture f(o);
  auto c = std::make_unique<ws_client>(f.port());
  const auto id = begin(*c, R"("max_tokens":400,"seed":9,"return_token_ids":true,"window":35)");
  lane_reader lane;
  int drops = 0;
  while (!lane.done) {
    const auto until = lane.seq + 35;  // the window: however late this client is, no connection gives more
    while (!lane.done && lane.seq < until) lane.take(c->read());
    if (lane.done) break;
    c->drop();
    ++drops;
    c = std::make_unique<ws_client>(f.port());
    const auto resumed = resume_on(*c, id, lane);
    CHECK(resumed.at("type") == "response.resumed");
    CHECK(resumed.at("response_id").as_string() == id);
    CHECK(resumed.at("after") == lane.seq);
    CHECK(resumed.at("seq").to_number<std::uint64_t>() >= lane.seq);
    if (resumed.at("seq") != 400) CHECK(resumed.at("status") == "in_progress");
  }
  CHECK(drops == 11);
  CHECK(lane.text == sim_text(9, 400));
  CHECK(lane.ids.size() == 400);
  CHECK(lane.done->at("usage").at("output_tokens") == 400);
}

// A model of random bytes: most characters take several tokens.
TEST_CASE("resume: cuts inside of characters and of a stop string change nothing") {
  const tests::temporary_dir dir;
  tests::write_toy_directory(dir.path());
  server_options o;
  o.model_dir = dir.path().string();
  server_fixture f(o);
  const auto fields = [](const std::string& stop) {
    return R"("max_tokens":300,"temperature":1,"seed":3,"ignore_eos":true)" +
           (stop.empty() ? stop : R"(,"stop":)" + boost::json::serialize(boost::json::value(stop)));
  };
  const auto at_once = [&](const std::string& stop) {
    ws_client c(f.port());
    begin(c, fields(stop));
    return read_lane(c).text;
  };
  const auto in_cuts = [&](const std::string& stop) {
    auto c = std::make_unique<ws_client>(f.port());
    const auto id = begin(*c, R"("window":3,)" + fields(stop));
    lane_reader lane;
    for (int cuts = 0;; ++cuts) {
      lane.take(c->read());
      if (lane.done) return std::pair(lane.text, cuts);
      c->drop();
      c = std::make_unique<ws_client>(f.port());
      CHECK(resume_on(*c, id, lane).at("type") == "response.resumed");
    }
  };

  const std::string whole = at_once({});
  CHECK(std::ranges::count_if(whole, [](char b) { return (b & 0xC0) == 0x80; }) > 50);
  const auto [text, cuts] = in_cuts({});
  CHECK(text == whole);
  CHECK(cuts > 50);

  // a letter of one byte and one of two
  const auto width = [](char b) { return (b & 0x80) == 0 ? 1 : (b & 0xE0) == 0xC0 ? 2 : 0; };
  std::size_t at = whole.size() / 3;
  while (width(whole.at(at)) != 1 || width(whole.at(at + 1)) != 2) ++at;
  const std::string stop = whole.substr(at, 3);
  const std::string before = whole.substr(0, whole.find(stop));
  CHECK(at_once(stop) == before);
  CHECK(in_cuts(stop).first == before);
}

TEST_CASE("resume: an ended job gives what was missed in pieces of 64 KiB, and its end, again and again") {
  server_options o;
  o.sim = "rate=1000000,prefill=100000000";
  server_fixture f(o);
  ws_client first(f.port());
  const auto id = begin(first, R"("max_tokens":40000,"seed":3,"metadata":{"n":1})");
  const auto whole = read_lane(first);
  CHECK(whole.done->at("metadata").at("n") == 1);
  for (const std::uint64_t after : {0, 17, 39999, 40000}) {
    CAPTURE(after);
    ws_client c(f.port());
    lane_reader lane;
    lane.seq = after;
    const auto resumed = resume_on(c, id, lane);
    CHECK(resumed.at("status") == "incomplete");
    CHECK(resumed.at("seq") == 40000);
    CHECK(resumed.at("metadata").at("n") == 1);
    std::size_t frames = 0;
    while (!lane.done) {
      const auto frame = c.read();
      if (frame.contains("delta")) CHECK(frame.at("delta").as_string().size() <= 65536);
      frames += frame.contains("delta");
      lane.take(frame);
    }
    CHECK(lane.text == whole.text.substr(5 * after));
    CHECK(frames >= (200000 - 5 * after) / 65536);
    CHECK(lane.done->at("response_id").as_string() == id);
    round_trip(c);
  }
}

TEST_CASE("resume: two followers each get the whole text, and a cancel of one ends both") {
  server_fixture f(slow());
  ws_client one(f.port()), two(f.port()), three(f.port());
  const auto id = begin(one, R"("max_tokens":100000,"seed":4)");
  lane_reader a, b, c;
  CHECK(resume_on(two, id, b).at("type") == "response.resumed");
  CHECK(resume_on(three, id, c, R"("timing":true)").at("type") == "response.resumed");
  while (b.seq < 20) b.take(two.read());
  while (c.t == 0) c.take(three.read());
  two.send(R"({"type":"response.cancel","id":"b"})");
  while (!b.done) b.take(two.read());
  while (!a.done) a.take(one.read());
  while (!c.done) c.take(three.read());
  CHECK(a.text == b.text);
  CHECK(a.text == c.text);
  CHECK(sim_text(4, 100000).starts_with(a.text));
  for (const auto& l : {a, b, c}) CHECK(l.done->at("finish_reason") == "cancel");
}

TEST_CASE("resume: on_disconnect counts from the last follower's leaving") {
  for (const bool cancel : {true, false}) {
    CAPTURE(cancel);
    auto o = slow();
    o.net.limits.detach_grace = milliseconds(0);
    server_fixture f(o);
    ws_client one(f.port()), two(f.port());
    const auto id = begin(one, fmt::format(R"("max_tokens":100000,"seed":4,"on_disconnect":"{}")",
                                           cancel ? "cancel" : "continue"));
    lane_reader b;
    CHECK(resume_on(two, id, b).at("type") == "response.resumed");
    one.drop();
    const auto until = b.seq + 60;  // for longer than a tick
    while (b.seq < until) b.take(two.read());
    CHECK_FALSE(b.done);
    two.drop();
    f.until_quiet();
    CHECK(finish_reasons(f) == std::multiset<std::string>{"cancel"});
    ws_client late(f.port());
    lane_reader none;
    CHECK(code_of(resume_on(late, id, none)) == "resume_expired");
  }
}

TEST_CASE("resume: a job has sixteen followers, and one more is too many until one has left") {
  server_fixture f(slow());
  ws_client one(f.port());
  const auto id = begin(one, R"("max_tokens":100000)");
  ws_client many(f.port());
  many.read("session.created");
  for (int i = 0; i < 16; ++i) many.send(resume(fmt::format("f{}", i), id, 0));
  boost::json::object refused;
  for (int resumed = 0; resumed < 15 || refused.empty();) {
    auto frame = many.read();
    if (frame.at("type") == "error") refused = frame;
    resumed += frame.at("type") == "response.resumed";
  }
  CHECK(code_of(refused) == "too_many_jobs");
  one.drop();
  for (int tries = 0;; ++tries) {  // the server hears of it when it reads
    const auto lane = fmt::format("again{}", tries);
    many.send(resume(lane, id, 0));
    auto frame = many.read();
    while (frame.at("id").as_string() != lane) frame = many.read();
    if (frame.at("type") == "response.resumed") break;
    REQUIRE(tries < 50);
  }
}

TEST_CASE("resume: an id may have the prefix of an answer, and frames have it bare") {
  server_fixture f(slow());
  ws_client mine(f.port());
  const auto id = begin(mine, R"("max_tokens":100000)");
  lane_reader none;
  ws_client other(f.port());
  const auto resumed = resume_on(other, "resp_" + id, none);
  CHECK(resumed.at("type") == "response.resumed");
  CHECK(resumed.at("response_id") == json_text(id));
  other.send(fmt::format(R"({{"type":"response.cancel","response_id":"msg_{}"}})", id));
  CHECK(other.read("response.done").at("status") == "cancelled");
  CHECK(mine.read("response.done").at("response_id") == json_text(id));
}

TEST_CASE("resume: another key's job is not found, and neither is one that was made over HTTP") {
  server_options o = slow();
  o.net.api_keys = {"one", "two"};
  server_fixture f(o);
  ws_client mine(f.port(), {.authorization = "Bearer one"});
  const auto id = begin(mine, R"("max_tokens":100000)");
  lane_reader none;
  ws_client other(f.port(), {.authorization = "Bearer two"});
  CHECK(code_of(resume_on(other, id, none)) == "not_found");
  other.send(fmt::format(R"({{"type":"response.cancel","response_id":"{}"}})", id));
  CHECK(code_of(other.read()) == "not_found");
  http_client h(f.port());
  CHECK(h.get("/v1/jobs/" + id, "Authorization: Bearer two\r\n").status == 404);
  ws_client same(f.port(), {.authorization = "Bearer one"});
  CHECK(resume_on(same, id, none).at("type") == "response.resumed");
}

TEST_CASE("resume: ended jobs leave after their time, the oldest first where memory is short") {
  server_options o;
  o.net.limits.retain_mb = 1;
  server_fixture f(o);
  ws_client c(f.port());
  c.read("session.created");
  std::vector<std::string> ids;
  for (int i = 0; i < 12; ++i) {  // 4,000 tokens: 64 KiB of positions and 20 KB of text
    c.send(create(fmt::format("l{}", i), R"("max_tokens":4000)"));
    ids.push_back(std::string(c.read("response.done").at("response_id").as_string()));
  }
  const auto kept = [&](std::size_t i) {
    const auto lane = fmt::format("r{}", i);
    c.send(resume(lane, ids[i], 4000));
    auto frame = c.read();
    if (frame.at("type") == "error") return code_of(frame) == "resume_expired" ? 0 : -1;
    c.read("response.done");
    return 1;
  };
  CHECK(kept(0) == 0);
  CHECK(kept(11) == 1);
  int here = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) here += kept(i);
  CHECK(here > 3);
  CHECK(here < 12);
}

TEST_CASE("window: a lane holds what is not acknowledged, and one frame has what an ack lets through") {
  server_fixture f;
  ws_client c(f.port());
  begin(c, R"("max_tokens":300,"seed":5,"window":64)");
  lane_reader lane;
  while (lane.seq < 64) lane.take(c.read());
  CHECK(lane.seq == 64);
  f.until([&] { return f.service->stats().engine.finished == 1; });  // generation does not wait
  round_trip(c);                                                     // nothing else came
  c.send(ack("a", 64));
  lane.take(c.read());
  CHECK(lane.seq == 128);
  c.send(ack("a", 10));  // less than before: no effect
  round_trip(c);
  c.send(ack("a", 129));
  CHECK(code_of(c.read()) == "invalid_cursor");
  while (!lane.done) {
    c.send(ack("a", lane.seq));
    lane.take(c.read());
  }
  CHECK(lane.text == sim_text(5, 300));
  c.send(ack("a", 300));  // over: ignored
  round_trip(c);
}

TEST_CASE("window: a cancel empties it") {
  server_fixture f(slow());
  ws_client c(f.port());
  begin(c, R"("max_tokens":100000,"seed":5,"window":4)");
  lane_reader lane;
  while (lane.seq < 4) lane.take(c.read());
  f.until([&] { return f.list_jobs().front().output_tokens > 10; });
  c.send(R"({"type":"response.cancel","id":"a"})");
  while (!lane.done) lane.take(c.read());
  CHECK(lane.seq > 4);
  CHECK(lane.text == sim_text(5, static_cast<std::uint32_t>(lane.seq)));
}

TEST_CASE("window: a cancel empties it also when the job has ended: then the end tells how it ended") {
  server_options o;
  o.sim = "rate=1000000,prefill=100000000";
  o.shards = 2;
  server_fixture f(o);
  ws_client first(f.port());
  const auto id = begin(first, R"("max_tokens":15000,"seed":5,"window":4)");  // several pieces of 64 KiB
  lane_reader lane;
  while (lane.seq < 4) lane.take(first.read());
  f.until([&] { return f.service->stats().engine.finished == 1; });
  round_trip(first);
  const auto empties = [](ws_client& c, lane_reader& of, std::string_view name) {
    c.send(fmt::format(R"({{"type":"response.cancel","id":"{}"}})", name));
    while (!of.done) of.take(c.read());
    CHECK(of.text == sim_text(5, 15000));
    CHECK(of.done->at("status") == "incomplete");
    CHECK(of.done->at("finish_reason") == "length");
    CHECK(of.done->at("seq") == 15000);
  };
  for (int connection = 0; connection < 4; ++connection) {  // the job's shard, and the other one
    CAPTURE(connection);
    ws_client c(f.port());
    lane_reader resumed = lane;
    resume_on(c, id, lane, R"("window":3)");
    while (resumed.seq < 7) resumed.take(c.read());
    round_trip(c);
    empties(c, resumed, "b");
    round_trip(first);  // what one client gives up, the window of another still holds
  }
  empties(first, lane, "a");
}

TEST_CASE("on_lag pause: the job is paused while every follower lags, and goes on with the same tokens") {
  server_fixture f(slow());
  ws_client c(f.port());
  const auto id = begin(c, R"("max_tokens":200,"seed":6,"window":16,"on_lag":"pause")");
  lane_reader lane;
  while (lane.seq < 16) lane.take(c.read());
  f.until([&] { return f.list_jobs().front().state == "paused"; });
  const auto stats = f.service->stats().engine;
  CHECK(stats.paused == 1);
  const auto at_rest = f.list_jobs().front().output_tokens;
  CHECK(at_rest < 100);
  SECTION("an ack lets it go on") {
    while (!lane.done) {
      c.send(ack("a", lane.seq));
      lane.take(c.read());
    }
    CHECK(lane.text == sim_text(6, 200));
  }
  SECTION("a second follower with a larger window does") {
    ws_client two(f.port());
    lane_reader b;
    two.read("session.created");
    two.send(R"({"type":"response.create","id":"x","input":"hello","max_tokens":1})");
    two.read("response.done");
    two.send(resume("b", id, 0, R"("window":1000000)"));
    CHECK(two.read().at("type") == "response.resumed");
    while (!b.done) b.take(two.read());
    CHECK(b.text == sim_text(6, 200));
    CHECK(lane.seq == 16);
  }
  SECTION("the leaving of its only follower does") {
    c.drop();
    f.until([&] { return f.service->stats().engine.finished == 1; });
    ws_client two(f.port());
    CHECK(resume_on(two, id, lane).at("status") == "incomplete");
    while (!lane.done) {
      const auto frame = two.read();
      lane.take(frame);
      if (frame.contains("delta")) two.send(ack("b", lane.seq));
    }
    CHECK(lane.text == sim_text(6, 200));
  }
}

TEST_CASE("on_lag pause: stalled readers keep nobody out, and more of them than may be are refused by name") {
  auto o = slow();
  o.owner.max_batch = 2;
  o.owner.queue = 2;
  server_fixture f(std::move(o));
  ws_client c(f.port());
  c.read("session.created");
  const auto create = [&](const std::string& lane) {
    c.send(R"({"type":"response.create","id":")" + lane +
           R"(","input":"hello","max_tokens":200,"window":1,"on_lag":"pause"})");
  };
  for (const char* lane : {"a", "b", "c", "d"}) create(lane);
  f.until([&] { return f.service->stats().engine.paused == 4; });
  create("e");
  const auto no = c.read("error");
  CHECK(no.at("id") == "e");
  CHECK(no.at("code") == "overloaded");
  CHECK(no.at("message") ==
        "this key has 4 unfinished jobs of sim with on_lag \"pause\", and may have no more");
  CHECK(f.service->stats().predicted_wait_ms == 0);
  ws_client other(f.port());
  begin(other, R"("max_tokens":3)");
  CHECK(other.read("response.done").at("status") == "incomplete");
  CHECK(f.service->stats().engine.paused == 4);
}

TEST_CASE("pace even: the text is the same, and the end sends what is left") {
  server_options o;
  o.sim = "rate=200,prefill=100000000,burst=5";
  server_fixture f(o);
  ws_client c(f.port());
  begin(c, R"("max_tokens":60,"seed":8,"pace":"even","pad":true)");
  lane_reader lane;
  while (!lane.done) {
    const auto frame = c.read();
    if (frame.contains("delta")) CHECK(c.last.size() % 64 == 0);
    lane.take(frame);
  }
  CHECK(lane.text == sim_text(8, 60));
}

}  // namespace weir::tests::ws_resume_test
