// Whole runs against a scripted server on a loopback socket: what is counted, never how long it took.
#include "net/load/run.h"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <fstream>

#include "tests/net/load/runs.h"

namespace weir::tests::run_test {

using namespace weir::load;

namespace {

std::string temporary(const std::string& text) {
  char name[] = "/tmp/weir_load_test_XXXXXX";
  const int fd = mkstemp(name);
  REQUIRE(fd >= 0);
  close(fd);
  std::ofstream(name) << text;
  return name;
}

}  // namespace

TEST_CASE("a clean run over WebSocket: every answer completes, nothing is found, one connection a stream") {
  std::atomic<int> asked = 0;
  scripted_server s([&](const std::string& said, bool&) -> std::string {
    if (!creates(said)) return {};
    ++asked;
    return answer(id_of(said), {1, 2, 3, 4});
  });
  auto o = closed(s.url("ws"), 8);
  o.conditions = {"gaps==0", "repeats==0", "errors==0", "added_jitter_p99<10s"};
  const auto r = run_at(o);
  const auto n = [&](figure f) { return r.all.number(f); };
  CHECK(n(figure::completed) >= 8);
  CHECK(n(figure::completed) + n(figure::cut) == n(figure::requests));
  CHECK(n(figure::completed) <= asked);  // the last ones may have been cut before the server read them
  CHECK(n(figure::output_tokens) >= 4 * n(figure::completed));
  CHECK(n(figure::input_tokens) == 2 * n(figure::completed));
  CHECK(n(figure::errors) == 0);
  CHECK(n(figure::gaps) == 0);
  CHECK(s.connections <= 8 + 3);            // 8 streams, and the connections that ask for statistics
  CHECK(n(figure::server_rss_bytes) == 0);  // the server has no statistics
  CHECK(r.sampled_times);
  for (const auto& j : r.judged) CHECK(j.holds);
}

TEST_CASE("faults on the wire are counted one for one") {
  std::atomic<int> lost = 0, twice = 0;
  int i = 0;
  scripted_server s([&](const std::string& said, bool&) -> std::string {
    if (!creates(said)) return {};
    switch (i++ % 3) {
      case 0: ++lost; return answer(id_of(said), {1, 2, 4});
      case 1: ++twice; return answer(id_of(said), {1, 2, 2, 3});
      default: return answer(id_of(said), {1, 2, 3});
    }
  });
  auto o = closed(s.url("ws"), 1);
  o.conditions = {"gaps==0"};
  const auto r = run_at(o);
  const auto n = [&](figure f) { return r.all.number(f); };
  REQUIRE(n(figure::completed) >= 3);
  CHECK(std::abs(n(figure::gaps) - lost) <= 1);  // the last answer may have been cut
  CHECK(std::abs(n(figure::repeats) - twice) <= 1);
  CHECK(r.all.found().contains("lost token"));
  CHECK(r.all.found().contains("repeated token"));
  CHECK(!r.judged[0].holds);
  CHECK(!r.good());
}

TEST_CASE("an open loop sends every request of its trace, on as many connections as it takes") {
  std::atomic<int> asked = 0;
  scripted_server s([&](const std::string& said, bool&) -> std::string {
    if (!creates(said)) return {};
    ++asked;
    const auto m = boost::json::parse(said).as_object();
    CHECK(m.at("max_tokens").to_number<int>() == 5);
    return answer(id_of(said), {1, 2, 3, 4, 5});
  });
  std::string text = "t,in,out\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("{},{},5\n", i / 10 * 0.02, 3 + i);
  auto o = closed(s.url("ws"), 0);
  o.trace = temporary(text);
  o.duration = 20;  // it ends with its trace
  const auto r = run_at(o);
  CHECK(asked == 40);
  CHECK(r.all.number(figure::completed) == 40);
  CHECK(r.all.number(figure::output_tokens) == 200);
  CHECK(r.all.of(figure::sched_lag_ms).count() == 40);
  std::remove(o.trace.c_str());
}

TEST_CASE("cancels at random tokens end as the server says") {
  scripted_server s([&](const std::string& said, bool&) -> std::string {
    if (cancels(said)) return done(id_of(said), 3, "cancelled");
    return delta(id_of(said), 1) + delta(id_of(said), 2) + delta(id_of(said), 3);
  });
  auto o = closed(s.url("ws"), 4);
  o.cancel = "100%";
  o.max_tokens = "1-3";
  const auto r = run_at(o);
  CHECK(r.all.number(figure::cancelled) >= 4);
  CHECK(r.all.number(figure::cancelled) + r.all.number(figure::cut) == r.all.number(figure::requests));
  CHECK(r.all.of(figure::cancel_to_done_ms).count() == r.all.number(figure::cancelled));
  CHECK(r.all.number(figure::gaps) == 0);
}

TEST_CASE("a disconnect storm drops connections and opens new ones") {
  scripted_server s([&](const std::string& said, bool&) { return delta(id_of(said), 1); });  // and never ends
  auto o = closed(s.url("ws"), 20);
  o.disconnect = "100%/s";
  o.duration = 1;
  const auto r = run_at(o);
  CHECK(r.all.number(figure::dropped) >= 1);
  CHECK(r.all.number(figure::dropped) + r.all.number(figure::cut) == r.all.number(figure::requests));
  CHECK(r.all.number(figure::errors) == 0);
  CHECK(s.connections > 20);
}

TEST_CASE("a server that falls silent fails the stream by name, before an answer and in its middle") {
  for (const bool begins : {false, true}) {
    scripted_server s([&](const std::string& said, bool&) {
      return creates(said) && begins ? delta(id_of(said), 1) : std::string();
    });
    auto o = closed(s.url("ws"), 1);
    o.timeout = 0.1;
    o.duration = 5;
    auto p = resolve(o);
    REQUIRE(p.has_value());
    auto where = load::place::find(p->run.how.to, false);
    REQUIRE(where.has_value());
    std::atomic<std::uint64_t> failed{0};
    const auto r = load::run(
        p->run, **where, [&](const load::progress& now) { failed = now.errors; }, [&] { return failed > 0; });
    CHECK(r.all.number(figure::errors) > 0);
    CHECK(r.all.error_texts().contains("the server sent nothing for 0.1 s"));
  }
}

TEST_CASE("refusals, failures and hang-ups are errors by what was said") {
  int i = 0;
  scripted_server s([&](const std::string& said, bool& hang_up) -> std::string {
    if (!creates(said)) return {};
    switch (i++ % 3) {
      case 0:
        return server_frame(fmt::format(
            R"({{"type":"error","id":"{}","code":"overloaded","message":"later"}})", id_of(said)));
      case 1: hang_up = true; return delta(id_of(said), 1);
      default: return server_frame("\x11\x58", 8);
    }
  });
  auto o = closed(s.url("ws"), 1);
  o.duration = 1.5;
  const auto r = run_at(o);
  CHECK(r.all.number(figure::refused) >= 1);
  CHECK(r.all.number(figure::failed) >= 1);
  CHECK(r.all.error_texts().contains("overloaded: later"));
  CHECK(r.all.error_texts().contains("the connection was lost"));
  CHECK(r.all.error_texts().contains("closed by the server with 4440"));
}

TEST_CASE("readers that stop are kept apart, and the run ends all the same") {
  scripted_server s([&](const std::string& said, bool&) {
    return creates(said) ? answer(id_of(said), {1, 2}) : std::string();
  });
  auto o = closed(s.url("ws"), 4);
  o.slow_readers = "50%";
  const auto r = run_at(o);
  CHECK(r.all.number(figure::slow_readers) == 2);
  CHECK(r.all.number(figure::completed) >= 2);
  CHECK(r.all.number(figure::errors) == 0);
}

TEST_CASE("OpenAI's streams: one connection, answer after answer, with usage") {
  scripted_server s([&](const std::string&, bool&) {
    const std::string body =
        "data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":null}]}\n\ndata: "
        "{\"choices\":[{\"text\":\"b\",\"finish_reason\":\"length\"}]}\n\n"
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n";
    return fmt::format("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n",
                       body.size(), body);
  });
  auto o = closed(s.url("http"), 3);
  o.distinct = 2;
  const auto r = run_at(o);
  CHECK(r.all.number(figure::completed) >= 3);
  // three tokens in two events
  CHECK(r.all.number(figure::tokens_differ) == r.all.number(figure::completed));
  CHECK(r.all.number(figure::text_mismatches) == 0);
  CHECK(r.all.number(figure::texts_compared) > 0);
  CHECK(s.connections <= 3 + 3);
  CHECK(!r.sampled_times);
  CHECK(!r.all.value("added_jitter_ms", "p99"));
}

TEST_CASE("what was not measured breaks a condition, and a run that was interrupted says so") {
  scripted_server s([&](const std::string&, bool&) { return std::string(); });
  auto o = closed(s.url("ws"), 1);
  o.duration = 60;
  o.conditions = {"added_jitter_p99<5ms"};
  auto p = resolve(o);
  REQUIRE(p.has_value());
  auto at = place::find(p->run.how.to, false);
  report r = run(p->run, **at, {}, [] { return true; });
  r.judge(p->conditions);
  CHECK(r.interrupted);
  CHECK(!r.judged[0].holds);
  CHECK(!r.judged[0].value);
}

TEST_CASE("a server that is not there is an error a stream, not an end of the program") {
  typed_options o = closed("ws://127.0.0.1:9", 2);
  const auto r = run_at(o);
  CHECK(r.all.number(figure::failed) >= 2);
  CHECK(r.all.number(figure::completed) == 0);
  CHECK_THAT(failure_of(r), Catch::StartsWith("ws://127.0.0.1:9: nothing completed") &&
                                Catch::Contains(r.all.error_texts().begin()->first));
}

TEST_CASE("a run measured nothing where no request went well, and says why") {
  stream_record one;
  const auto why = [&](ending how, int tokens) {
    one.how = how;
    one.error = how == ending::refused ? "overloaded: later" : "";
    one.frames.clear();
    for (int i = 0; i < tokens; ++i) one.take(one.ended = 1000 * i, 1);
    report r;
    r.all.add(one);
    return failure_of(r);
  };
  CHECK(why(ending::completed, 3).empty());
  CHECK(why(ending::completed, 0).empty());
  CHECK(why(ending::cancelled, 1).empty());
  CHECK(why(ending::cut, 3).empty());  // answers that are longer than the run
  CHECK_THAT(why(ending::cut, 0), Catch::Contains("1 were cut"));
  CHECK_THAT(why(ending::failed, 3), Catch::Contains("1 failed"));
  CHECK_THAT(why(ending::refused, 0), Catch::Contains("1 times: overloaded: later"));
  CHECK_THAT(failure_of({}), Catch::Contains("no request ended"));
}

TEST_CASE("the JSON report has its version, every figure, and the verdict") {
  scripted_server s([&](const std::string& said, bool&) {
    return creates(said) ? answer(id_of(said), {1, 2, 4}) : std::string();
  });
  const auto o = as_json(run_at(closed(s.url("ws"), 2)));
  CHECK(o.at("weir_load") == 1);
  CHECK(o.at("protocol") == "weir.v1");
  for (const auto& e : figure_table) {
    CAPTURE(e.name);
    CHECK(o.at("figures").as_object().contains(boost::json::string_view(e.name.data(), e.name.size())));
  }
  CHECK(o.at("found").as_object().contains("lost token"));
  CHECK(o.at("findings").at(0).at("name") == "lost token");
  CHECK(o.at("options").at("streams") == 2);
  CHECK(o.at("seconds").is_array());
}

TEST_CASE("a harness that is late is the bottleneck, whatever else held") {
  report r;
  CHECK(bottleneck_of(r.all).empty());
  r.all.of(figure::loop_lag_ms).add(6, 10);
  CHECK_THAT(bottleneck_of(r.all), Catch::Contains("loop_lag_ms"));
  r.bottleneck = bottleneck_of(r.all);
  CHECK(!r.good());
  pool busy({});
  busy.number(figure::client_cpu) = 0.95;
  CHECK_THAT(bottleneck_of(busy), Catch::Contains("95 %"));
  pool late({});
  late.of(figure::sched_lag_ms).add(7);
  CHECK_THAT(bottleneck_of(late), Catch::Contains("sched_lag_ms"));
}

TEST_CASE("options that contradict each other, or name nothing, are refused by name") {
  const auto param = [](auto change) {
    typed_options o;
    o.url = "ws://h";
    change(o);
    const auto p = resolve(o);
    REQUIRE(!p);
    return p.error().param;
  };
  CHECK(param([](auto& o) { o.url = "h"; }) == "url");
  CHECK(param([](auto& o) { o.streams = 1, o.rate = 1; }) == "rate");
  CHECK(param([](auto& o) { o.prompts = "/nowhere"; }) == "prompts");
  CHECK(param([](auto& o) { o.trace = "/nowhere"; }) == "trace");
  CHECK(param([](auto& o) { o.protocol = "x"; }) == "protocol");
  CHECK(param([](auto& o) { o.extra = "[]"; }) == "extra");
  CHECK(param([](auto& o) { o.slow_readers = "120%"; }) == "slow-readers");
  CHECK(param([](auto& o) { o.disconnect = "1%/m"; }) == "disconnect");
  CHECK(param([](auto& o) { o.disconnect = "101%/s"; }) == "disconnect");
  CHECK(param([](auto& o) { o.on_lag = "pause"; }) == "on-lag");
  CHECK(param([](auto& o) { o.on_lag = "x", o.window = 8; }) == "on-lag");
  CHECK(param([](auto& o) { o.pace = "x"; }) == "pace");
  for (const std::string how : {"disconnect", "follow", "pace", "window"}) {
    CAPTURE(how);
    const auto give = [&](auto& o) {
      if (how == "disconnect") o.disconnect = "5%/s";
      if (how == "follow") o.follow = 1;
      if (how == "pace") o.pace = "even";
      if (how == "window") o.window = 8;
    };
    CHECK(param([&](auto& o) { give(o), o.protocol = "openai"; }) == how);
    CHECK(param([&](auto& o) { give(o), o.url = "http://h"; }) == how);
    CHECK(param([&](auto& o) { give(o), o.vs = "http://h"; }) == how);
  }
  CHECK(param([](auto& o) { o.cancel = "x"; }) == "cancel");
  CHECK(param([](auto& o) { o.api_key = "a\r\nb"; }) == "api-key");
  CHECK(param([](auto& o) { o.max_tokens = "0"; }) == "max-tokens");
  CHECK(param([](auto& o) { o.arrivals = "x"; }) == "arrivals");
  CHECK(param([](auto& o) { o.conditions = {"x<1"}; }) == "assert");
  CHECK(param([](auto& o) { o.slo = "x"; }) == "slo");
  CHECK(param([](auto& o) { o.vs = "x"; }) == "vs");
  const auto lengths = temporary("num_prefill_tokens,num_decode_tokens\n1,2\n");
  CHECK(param([&](auto& o) { o.trace = lengths; }) == "trace");
  std::remove(lengths.c_str());
}

TEST_CASE("what is asked depends on the seed and the number alone") {
  question_options q;
  q.prompt_tokens = {5, 50};
  q.max_tokens = {1, 100};
  q.seed = 4;
  const questions a(q), b(q);
  for (std::uint64_t i : {0u, 7u, 1000u}) {
    CHECK(a.ask(i).prompt == b.ask(i).prompt);
    CHECK(a.ask(i).max_tokens == b.ask(i).max_tokens);
    CHECK(!a.prompt_of(i));
  }
  CHECK(a.ask(1).prompt != a.ask(2).prompt);
  q.distinct = 3;
  const questions c(q);
  CHECK(c.ask(1).prompt == c.ask(4).prompt);
  CHECK(c.ask(1).prompt != c.ask(2).prompt);
  CHECK(c.prompt_of(4) == 1u);
}

}  // namespace weir::tests::run_test
