// What a gateway shows of its fleet: /metrics and /v1/stats.
#include "net/metrics/fleet_metrics.h"

#include "actors/fleet/gateway_side.h"
#include "tests/support/http_client.h"
#include "tests/support/model_talk.h"
#include "tests/support/prometheus_reader.h"

namespace weir::tests::fleet_metrics_test {

using namespace std::chrono_literals;

namespace {

std::shared_ptr<actors::fleet::fleet_figures> a_fleet() {
  auto now = std::make_shared<actors::fleet::fleet_figures>();
  const auto worker = [&](const char* name, core::fleet::worker_state state, bool suspected) -> auto& {
    auto& w = now->workers.emplace_back();
    w.board.worker = name;
    w.board.state = state;
    w.suspected = suspected;
    w.age = 1500ms;
    return w.board;
  };
  using enum core::fleet::worker_state;
  auto& a = worker("a", ready, false);
  a.broken = 11;
  a.untold = 12;
  for (const std::uint64_t engine : {1, 2}) {
    auto& m = a.models.emplace_back();
    m.name = "chat";
    m.device = "cuda:0";
    m.engine = engine;
    m.jobs = static_cast<std::uint32_t>(10 * engine);
    m.batch = 64;
    m.rate = 500.5;
  }
  worker("b", draining, false).models.emplace_back().name = "hidden";
  worker("c", ready, true);
  now->counts = {.frames = 1,
                 .asked_again = 2,
                 .void_news = 3,
                 .broken = 4,
                 .moved = 5,
                 .hops = 6,
                 .dead = 7,
                 .lists = 12,
                 .orders = 13,
                 .loads = 14,
                 .loads_refused = 15,
                 .known = 9,
                 .found = 10,
                 .jobs = 8,
                 .waiting = 16,
                 .between_classes = 17,
                 .fetched = 18,
                 .fetch_failures = 19};
  return now;
}

}  // namespace

TEST_CASE("a gateway's metrics: workers by state, engines, and what became of jobs and frames") {
  std::string text;
  net::prometheus_text out(text);
  net::append_fleet(out, *a_fleet());
  const prometheus_reader m(text);
  CHECK(m.value("weir_fleet_workers", {{"state", "ready"}}) == 1);
  CHECK(m.value("weir_fleet_workers", {{"state", "draining"}}) == 1);
  CHECK(m.value("weir_fleet_workers", {{"state", "leaving"}}) == 0);
  CHECK(m.value("weir_fleet_workers", {{"state", "suspected"}}) == 1);
  CHECK(m.value("weir_fleet_worker_silent_seconds", {{"worker", "c"}}) == 1.5);
  const label_set second = {{"worker", "a"}, {"model_name", "chat"}, {"engine", "2"}};
  CHECK(m.value("weir_fleet_engine_jobs", second) == 20);
  CHECK(m.value("weir_fleet_engine_batch", second) == 64);
  CHECK(m.value("weir_fleet_engine_tokens_per_second", second) == 500.5);
  CHECK(m.value("weir_fleet_worker_frames_broken_total", {{"worker", "a"}}) == 11);
  CHECK(m.value("weir_fleet_worker_untold_total", {{"worker", "a"}}) == 12);
  CHECK(m.value("weir_fleet_worker_untold_total", {{"worker", "b"}}) == 0);
  const std::pair<const char*, double> totals[] = {{"weir_fleet_jobs", 8},
                                                   {"weir_fleet_jobs_moved_total", 5},
                                                   {"weir_fleet_refused_after_pick_total", 6},
                                                   {"weir_fleet_workers_dead_total", 7},
                                                   {"weir_fleet_lists_total", 12},
                                                   {"weir_fleet_orders_total", 13},
                                                   {"weir_fleet_loads_total", 14},
                                                   {"weir_fleet_loads_refused_total", 15},
                                                   {"weir_fleet_waiting", 16},
                                                   {"weir_fleet_moves_between_classes_total", 17},
                                                   {"weir_fleet_models_fetched_total", 18},
                                                   {"weir_fleet_fetch_failures_total", 19},
                                                   {"weir_fleet_frames_total", 1},
                                                   {"weir_fleet_frames_again_total", 2},
                                                   {"weir_fleet_frames_void_total", 3},
                                                   {"weir_fleet_frames_broken_total", 4}};
  for (const auto& [name, value] : totals) CHECK(m.value(name, {}) == value);
}

TEST_CASE("a gateway's statistics: its workers, and of their models those that a key may use") {
  server_options o;
  o.net.api_keys = *net::parse_api_keys("root admin\nfew models=chat,sim\n", "F");
  o.net.fleet = a_fleet;
  server_fixture f(o);
  http_client c(f.port());
  const auto fleet = c.get("/v1/stats", bearer_line("few")).json().at("fleet");
  CHECK(fleet.at("jobs") == 8);
  CHECK(fleet.at("moved") == 5);
  const auto& workers = fleet.at("workers").as_array();
  REQUIRE(workers.size() == 3);
  CHECK(workers[0].at("worker") == "a");
  CHECK(workers[0].at("state") == "ready");
  CHECK(workers[0].at("silent_ms") == 1500);
  REQUIRE(workers[0].at("models").as_array().size() == 2);
  const auto& engine = workers[0].at("models").at(1);
  CHECK(engine.at("name") == "chat");
  CHECK(engine.at("device") == "cuda:0");
  CHECK(engine.at("jobs") == 20);
  CHECK(engine.at("batch") == 64);
  CHECK(workers[1].at("models").as_array().empty());
  CHECK(workers[2].at("state") == "suspected");
  CHECK(c.get("/v1/stats", bearer_line("root"))
            .json()
            .at("fleet")
            .at("workers")
            .at(1)
            .at("models")
            .as_array()
            .size() == 1);
}

TEST_CASE("a server that is no gateway shows no fleet") {
  server_fixture f;
  http_client c(f.port());
  CHECK_FALSE(c.get("/v1/stats").json().as_object().contains("fleet"));
  CHECK(c.get("/metrics").body().find("weir_fleet_") == std::string::npos);
}

}  // namespace weir::tests::fleet_metrics_test
