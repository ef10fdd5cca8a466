// GET /metrics: what it serves adds up, in virtual time and through sockets; who may read it, and where.
#include "net/metrics/metrics.h"

#include <map>

#include "net/server.h"
#include "tests/support/http_client.h"
#include "tests/support/prometheus_reader.h"
#include "tests/support/town.h"
#include "tests/support/ws_talk.h"

namespace weir::tests::metrics_test {

using namespace std::chrono_literals;

namespace {

const std::string authorized = "Authorization: Bearer secret\r\n";

label_set of_model(const std::string& name) { return {{"model_name", name}}; }

double ended(const prometheus_reader& m, const std::string& reason, const std::string& model = "sim") {
  return m.value("weir_request_success_total", {{"model_name", model}, {"finished_reason", reason}});
}

server_options with_metrics() {
  server_options o;
  o.net.api_keys = {net::api_key("secret", {.admin = true}), "ordinary"};
  o.net.metrics_listen = "0";
  return o;
}

}  // namespace

TEST_CASE("metrics: after a day in virtual time they add up to what the clients saw") {
  const town::founder found = [](world&, actors::service_options& o) {
    o.models.push_back({"sim", "sim:rate=100,prefill=5000"});
    o.owner.max_batch = 8;
    o.owner.queue = 20;
    o.owner.kv_tokens = 64 * 20;  // so few pages that jobs are preempted
    o.owner.slo = {.ttft = 500ms, .tpot = 20ms};
  };
  town t(17, 250ms, found);
  habits h;
  h.desert_one_in = h.drop_one_in = 0;  // every client hears how its job ended
  for (int i = 0; i < 120; ++i) {
    const auto asked = [i] {
      auto r = actors::request();
      r.input = std::string(10 + i % 7 * 20, static_cast<char>('a' + i % 3));
      r.max_tokens = 20 + i % 5 * 40;
      if (i % 9 == 0) r.deadline = 300ms;
      return r;
    };
    t.expect(i * 60ms, asked, h);
  }
  t.live(60s);
  std::map<std::string, int> endings;
  t.judge(endings);

  const prometheus_reader m(net::metrics_text(*t.state));
  int all = 0;
  for (const char* reason : {"stop", "length", "cancel", "timeout", "repetition", "error"}) {
    CAPTURE(reason);
    CHECK(ended(m, reason) == endings[reason]);
    all += endings[reason];
  }
  CHECK(endings["length"] > 10);
  CHECK(endings["cancel"] > 3);
  CHECK(endings["timeout"] > 3);
  CHECK(all + endings["overloaded"] == 120);
  const double tokens = m.value("weir_generation_tokens_total", of_model("sim"));
  const double begun = m.value("weir_time_to_first_token_seconds_count", of_model("sim"));
  CHECK(begun > 30);
  CHECK(m.value("weir_inter_token_latency_seconds_count", of_model("sim")) == tokens - begun);
  CHECK(m.value("weir_request_queue_time_seconds_sum", of_model("sim")) +
            m.value("weir_request_prefill_time_seconds_sum", of_model("sim")) ==
        Approx(m.value("weir_time_to_first_token_seconds_sum", of_model("sim"))));
  const auto kept = [&](const char* objective, const char* met) {
    return m.value("weir_slo_requests_total",
                   {{"model_name", "sim"}, {"objective", objective}, {"met", met}});
  };
  const double judged = ended(m, "stop") + ended(m, "length") + ended(m, "timeout") + ended(m, "repetition");
  for (const char* objective : {"ttft", "tpot", "both"}) {
    CAPTURE(objective);
    CHECK(kept(objective, "true") > 0);
    CHECK(kept(objective, "false") > 0);
    CHECK(kept(objective, "true") + kept(objective, "false") == judged);
  }
  CHECK(m.value("weir_num_preemptions_total", of_model("sim")) > 0);
  CHECK(m.value("weir_prompt_tokens_cached_total", of_model("sim")) > 0);
  CHECK(m.value("weir_prompt_tokens_cached_total", of_model("sim")) <
        m.value("weir_prompt_tokens_total", of_model("sim")));
  CHECK(m.sum("weir_jobs") == 0);
  CHECK(m.sum("weir_kv_cache_pages") == 20);
  CHECK(m.value("weir_cancel_to_release_seconds_count") > 0);
  CHECK(m.value("weir_cancel_to_release_seconds_count") <= endings["cancel"] + endings["timeout"]);
}

TEST_CASE("metrics: models have a label each, whatever their names, and there may be none yet") {
  world here(6);
  actors::service_options o;
  const std::string odd = "a \"b\" \\ c\nd";
  o.models.push_back({odd, "sim:rate=1000"});
  o.models.push_back({"plain", "sim:rate=1000"});
  o.owner.device = "sim";
  o.owner.models = 2;
  const auto service = here.make_service(std::move(o));
  const auto state = std::make_shared<net::server_state>(*service, net::server_options{});
  auto r = actors::request();
  r.model = odd;
  r.input = "x";
  r.max_tokens = 5;
  const auto job = service->submit(std::move(r), here.get_executor(), [] {});
  REQUIRE(here.run([&] { return job->state() == actors::job_stream::phase::done; }));
  here.run([] { return false; }, 1s);
  const prometheus_reader m(net::metrics_text(*state));
  CHECK(m.value("weir_generation_tokens_total", of_model(odd)) == 5);
  CHECK(m.value("weir_generation_tokens_total", of_model("plain")) == 0);
  CHECK(ended(m, "length", odd) == 1);
  CHECK(ended(m, "length", "plain") == 0);

  actors::system_time clock;
  actors::service never_loaded({}, clock);
  const net::server_state empty(never_loaded, net::server_options{});
  const prometheus_reader none(net::metrics_text(empty));
  CHECK(none.families.size() == m.families.size());
  CHECK(none.families.at("weir_generation_tokens_total").samples.empty());
  CHECK(none.value("weir_ready") == 0);
}

TEST_CASE("metrics: a model with copies has one sample of each family, and each device one") {
  world here(6);
  actors::service_options o;
  o.models.push_back({"m", "sim:rate=1000"});
  o.owner.device = "sim";
  o.devices = {"sim", "sim", "sim"};
  o.copies = 3;
  const auto service = here.make_service(std::move(o));
  const auto state = std::make_shared<net::server_state>(*service, net::server_options{});
  std::vector<std::shared_ptr<actors::job_stream>> jobs;
  for (int i = 0; i < 9; ++i) {
    auto r = actors::request();
    r.input = "x";
    r.max_tokens = 5;
    jobs.push_back(service->submit(std::move(r), here.get_executor(), [] {}));
  }
  REQUIRE(here.run([&] {
    return std::ranges::all_of(jobs,
                               [](const auto& j) { return j->state() == actors::job_stream::phase::done; });
  }));
  here.run([] { return false; }, 1s);
  const prometheus_reader m(net::metrics_text(*state));  // which takes no sample twice
  CHECK(m.value("weir_generation_tokens_total", of_model("m")) == 45);
  CHECK(ended(m, "length", "m") == 9);
  CHECK(m.families.at("weir_device_memory_total_bytes").samples.size() == 1);
}

TEST_CASE("metrics: what clients do over sockets is counted once, and as /v1/stats has it") {
  server_fixture f(slow());
  http_client h(f.port());
  CHECK(h.get("/nothing").status == 404);
  CHECK(h.post("/v1/completions", R"({"prompt":"x","temperature":9})").status == 400);
  CHECK(h.post("/v1/completions", R"({"prompt":"x","max_tokens":5})").status == 200);
  std::string id;
  {
    ws_client c(f.port());
    c.send(create("a", R"("max_tokens":3)"));
    id = c.read("response.done").at("response_id").as_string().c_str();
    c.send(create("b", R"("top_p":7)"));
    c.read("error");
    c.send(create("c", R"("model":"other")"));
    c.read("error");
    c.close();
  }
  {
    ws_client c(f.port());
    c.send(fmt::format(R"({{"type":"response.resume","id":"r","response_id":"{}","after":1}})", id));
    c.read("response.done");
    c.send(R"({"type":"response.resume","id":"s","response_id":"none","after":0})");
    c.read("error");
    c.send(create("d", R"("max_tokens":100000,"on_disconnect":"cancel")"));
    c.read("response.delta");
    c.drop();
  }
  f.until_quiet();
  const auto text = [&] { return h.get("/metrics").body(); };
  server_fixture::until([&] {
    const prometheus_reader m(text());
    return m.sum("weir_sessions_closed_total") == 2 && ended(m, "cancel") == 1;
  });

  const auto answer = h.get("/metrics");
  CHECK(answer.status == 200);
  CHECK(answer.header("Content-Type") == "text/plain; version=0.0.4; charset=utf-8");
  CHECK(answer.header("Cache-Control") == "no-store");
  const prometheus_reader m(answer.body());
  const auto stats = h.get("/v1/stats").json();
  CHECK(ended(m, "length") == 2);
  CHECK(ended(m, "cancel") == 1);
  CHECK(m.sum("weir_request_success_total") == 3);
  CHECK(stats.at("jobs").at("finished") == 3);
  CHECK(m.value("weir_requests_rejected_total", {{"reason", "not_found"}}) == 2);  // one over each protocol
  CHECK(m.value("weir_requests_rejected_total", {{"reason", "invalid_param"}}) == 2);
  CHECK(m.value("weir_requests_rejected_total", {{"reason", "model_not_found"}}) == 1);
  CHECK(m.sum("weir_requests_rejected_total") == 5);
  CHECK(m.value("weir_resumes_total") == 1);
  CHECK(m.value("weir_sessions") == 0);
  CHECK(m.value("weir_sessions_closed_total", {{"code", "1006"}}) == 1);
  CHECK(stats.at("closed").at("1006") == 1);
  CHECK(m.value("weir_generation_tokens_total", of_model("sim")) == stats.at("tokens").as_int64());
  CHECK(m.value("weir_prompt_tokens_total", of_model("sim")) == stats.at("prompt_tokens").as_int64());
  CHECK(m.value("weir_sampled_to_sent_seconds_count") ==
        stats.at("sampled_to_sent_ms").at("count").as_int64());
  CHECK(m.value("weir_cancel_to_release_seconds_count") == 1);
  CHECK(m.value("weir_ready") == 1);
  CHECK(m.value("process_resident_memory_bytes") > 1 << 20);
  const prometheus_reader again(text());
  for (const auto& [name, before] : m.families) {
    if (before.type != "counter") continue;
    CAPTURE(name);
    CHECK(again.sum(name) >= m.sum(name));
  }
}

TEST_CASE("metrics: close codes that clients make up are one line") {
  server_fixture f;
  for (const char* code : {"\x0f\xa1", "\x0f\xa2", "\x0f\xa3"}) {  // 4001, 4002, 4003
    ws_client c(f.port());
    c.read("session.created");
    c.send_raw(std::string("\x88\x82\0\0\0\0", 6) + code);
    c.until_closed();
  }
  http_client h(f.port());
  server_fixture::until([&] { return h.get("/v1/stats").json().at("sessions") == 0; });
  const prometheus_reader m(h.get("/metrics").body());
  CHECK(m.value("weir_sessions_closed_total", {{"code", "other"}}) == 3);
  CHECK(m.sum("weir_sessions_closed_total") == 3);
  CHECK(h.get("/v1/stats").json().at("closed").at("other") == 3);
}

TEST_CASE("metrics: on the main port they need an admin's key where there are keys") {
  server_fixture f(with_metrics());
  http_client c(f.port());
  CHECK(c.get("/metrics").status == 401);
  CHECK(c.get("/metrics", "Authorization: Bearer wrong\r\n").status == 401);
  CHECK(c.get("/metrics", "Authorization: Bearer ordinary\r\n").status == 403);
  CHECK(c.get("/metrics", authorized).status == 200);
  CHECK(c.ask("POST", "/metrics", "{}", authorized).status == 405);
  const auto token = c.post("/v1/stream/tokens", "{}", authorized).json().at("token").as_string();
  const auto refused = c.get("/metrics", fmt::format("Authorization: Bearer {}\r\n", token.c_str()));
  CHECK(refused.status == 403);
  server_fixture open;
  CHECK(http_client(open.port()).get("/metrics").status == 200);
}

TEST_CASE("metrics: the address for metrics serves them and health alone, without a key") {
  server_fixture f(with_metrics());
  REQUIRE(f.server->metrics().has_value());
  CHECK(f.server->metrics()->host == "127.0.0.1");
  const auto port = f.server->metrics()->port;
  CHECK(port != f.port());
  http_client c(port);
  const auto answer = c.get("/metrics");
  CHECK(answer.status == 200);
  CHECK(prometheus_reader(answer.body()).families.contains("weir_sessions"));
  CHECK(c.ask("HEAD", "/metrics", {}, {}).status == 200);
  CHECK(c.get("/metrics?x=1").status == 200);
  CHECK(c.get("/health/live").status == 200);
  CHECK(c.get("/health/ready").status == 200);
  for (const char* other :
       {"/", "/weir.js", "/v1/models", "/v1/stats", "/v1/jobs", "/v1/stream", "/metricsx", "/health/other"}) {
    CAPTURE(other);
    CHECK(c.get(other, authorized).status == 404);
  }
  CHECK(c.post("/v1/completions", R"({"prompt":"x"})", authorized).status == 404);
  CHECK(c.ask("POST", "/metrics", "{}", {}).status == 405);
  CHECK(c.get("/metrics", "Host: evil.example\r\n").status == 403);
  CHECK(c.get("/metrics", "X-Long: " + std::string(9000, 'x') + "\r\n").status == 431);
  const ws_client socket(port);
  CHECK(socket.status() == 404);
  CHECK(f.service->stats().ended == 0);
}

TEST_CASE("metrics: the address for metrics is this machine's unless a host is named") {
  const struct {
    const char *text, *host;
    int port;
    bool to_anyone;
  } good[] = {{"9400", "127.0.0.1", 9400, false},           {"0", "127.0.0.1", 0, false},
              {"127.0.0.1:9400", "127.0.0.1", 9400, false}, {"[::1]:9400", "::1", 9400, false},
              {"0.0.0.0:9400", "0.0.0.0", 9400, true},      {"10.0.0.1:9400", "10.0.0.1", 9400, true}};
  for (const auto& g : good) {
    CAPTURE(g.text);
    const auto a = net::parse_metrics_listen(g.text);
    REQUIRE(a.has_value());
    CHECK(a->host == g.host);
    CHECK(a->port == g.port);
    net::server_options o;
    o.metrics_listen = g.text;
    CHECK(net::metrics_open_to_anyone(o) == g.to_anyone);
  }
  for (const char* bad : {"", ":9400", "host", "65536", "-1", "9400x", "host:"}) {
    CAPTURE(bad);
    const auto a = net::parse_metrics_listen(bad);
    REQUIRE(!a);
    CHECK(a.error().param == "metrics-listen");
    CHECK_THAT(a.error().message, Catch::StartsWith("--metrics-listen"));
  }
  CHECK_FALSE(net::metrics_open_to_anyone({}));
}

TEST_CASE("metrics: an address that is taken ends the start, and a drain comes to its end beside a reader") {
  server_fixture f;
  net::server_options o;
  o.listen = "127.0.0.1:0";
  o.metrics_listen = std::to_string(f.port());
  net::server second(*f.service, f.io, o);
  const auto started = second.start();
  REQUIRE(!started);
  CHECK(started.error().param == "metrics-listen");

  o.metrics_listen = "0";
  net::server third(*f.service, f.io, o);
  REQUIRE(third.start().has_value());
  http_client reader(third.metrics()->port);
  CHECK(reader.get("/metrics").status == 200);
  std::promise<void> idle;
  third.drain([&] { idle.set_value(); });
  idle.get_future().get();
  third.stop();
}

}  // namespace weir::tests::metrics_test
