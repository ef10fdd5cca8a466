// Requests for models that no worker has ready, at a running gateway: over HTTP and over WebSockets, as at
// one server (model_demand_test.cpp).
#include <future>

#include "actors/fleet/gateway_side.h"
#include "actors/fleet/worker_side.h"
#include "actors/service_doors.h"
#include "tests/support/http_client.h"
#include "tests/support/model_talk.h"
#include "tests/support/prompt_bus.h"
#include "tests/support/server_fixture.h"
#include "tests/support/ws_talk.h"

namespace weir::tests::fleet_demand_routes_test {
namespace {

namespace fleet = actors::fleet;

constexpr const char* spec = "sim:rate=5000,prefill=100000000";

// A gateway with sockets, and a worker with the model `sim`, which loads others for requests: `slow` takes
// half a second, `large` has room nowhere. `far` is a model that the gateway knows and no worker.
struct demand_gateway {
  explicit demand_gateway(std::string_view keys = {}) : io(2, seen) {
    worker = loaded(worker_options());
    front = loaded(silent());
    work.emplace(bus, *worker, clock, fleet::worker_options{});
    REQUIRE(work->start().has_value());
    std::vector<fleet::far_model> models;
    for (const char* name : {"sim", "slow", "never", "large", "far"}) {
      auto m = fleet::open_far_model({name, spec}, {}, clock.lasting(), front->doors().compiled);
      REQUIRE(m.has_value());
      models.push_back(std::move(*m));
    }
    side.emplace(bus, *front, clock, std::move(models), fleet::gateway_options{});
    REQUIRE(side->start().has_value());
    net::server_options at;
    at.listen = "127.0.0.1:0";
    at.fleet = [this] { return std::make_shared<fleet::fleet_figures>(side->figures()); };
    if (!keys.empty()) at.api_keys = *net::parse_api_keys(keys, "F");
    server = std::make_unique<net::server>(*front, io, at);
    REQUIRE(server->start().has_value());
    server_fixture::until([&] { return front->takes_model("sim") && front->takes_model("slow"); });
  }
  ~demand_gateway() {
    server->stop();
    side.reset();
    work.reset();
  }

  actors::model_state state(std::string_view name) {
    for (auto& m : worker->all_models().models)
      if (m.name == name) return m.state;
    FAIL("no such model");
    return {};
  }

  actors::system_time clock;
  const std::shared_ptr<core::incidents> seen = std::make_shared<core::incidents>([](std::string_view) {});
  prompt_bus bus;
  net::shards io;
  std::unique_ptr<actors::service> worker, front;
  std::optional<fleet::worker_side> work;
  std::optional<fleet::gateway_side> side;
  std::unique_ptr<net::server> server;

 private:
  actors::service_options silent() const {
    actors::service_options s;
    s.seen = seen;
    s.owner.device = "sim";
    return s;
  }
  actors::service_options worker_options() const {
    auto s = silent();
    s.demand.on = true;
    s.models.push_back({"sim", spec});
    for (const auto& [name, more] :
         {std::pair("slow", ",load=500"), std::pair("never", ",load=600000"), std::pair("large", ",mb=9000")})
      s.known_models.push_back({name, std::string(spec) + more});
    actors::planned_device device;
    device.name = "sim";
    device.total = std::uint64_t{8192} << 20;
    s.measured.push_back(device);
    return s;
  }
  std::unique_ptr<actors::service> loaded(actors::service_options o) {
    auto s = std::make_unique<actors::service>(std::move(o), clock);
    std::promise<core::result<>> done;
    s->load({}, io.at(0), [&](core::result<> r) { done.set_value(std::move(r)); });
    REQUIRE(done.get_future().get().has_value());
    return s;
  }
};

std::string job_of(std::string_view model, std::string_view more = {}) {
  return fmt::format(R"({{"model":"{}","prompt":"x","max_tokens":3{}}})", model, more);
}

std::string create_for(std::string_view lane, std::string_view model) {
  return create(std::string(lane), fmt::format(R"("model":"{}","max_tokens":3)", model));
}

}  // namespace

TEST_CASE("fleet demand: a completion at a gateway waits for its model, and the next one finds it") {
  demand_gateway s;
  http_client c(s.server->port());
  CHECK(c.post("/v1/completions", job_of("slow")).status == 200);
  CHECK(s.state("slow") == actors::model_state::ready);
  CHECK(c.post("/v1/completions", job_of("slow", R"(,"load":"refuse")")).status == 200);
  const auto listed = c.get("/v1/models").json().at("data").as_array();
  CHECK(listed.size() == 5);
}

TEST_CASE(
    "fleet demand: a streamed answer of a gateway has its headers and a comment while the model loads") {
  demand_gateway s;
  http_client c(s.server->port());
  c.send(c.request("POST", "/v1/completions", job_of("slow", R"(,"stream":true)"), {}));
  const auto heard = c.read_until(": loading\n\n");
  CHECK(heard.find("text/event-stream") != heard.npos);
  CHECK(heard.find("data:") == heard.npos);
  CHECK(c.read_until("data: [DONE]\n\n").find("data: {") != std::string::npos);
}

TEST_CASE("fleet demand: a gateway refuses by the names of one server") {
  demand_gateway s;
  http_client c(s.server->port());
  const auto no = c.post("/v1/completions", job_of("slow", R"(,"load":"refuse")"));
  CHECK(no.status == 503);
  CHECK(code_of(no) == "model_loading");
  CHECK(std::stoi(no.header("Retry-After")) >= 1);
  const auto large = c.post("/v1/completions", job_of("large"));
  CHECK(large.status == 503);
  CHECK(code_of(large) == "does_not_fit");
  CHECK(c.post("/v1/completions", job_of("far")).status == 503);
  CHECK(c.post("/v1/completions", job_of("unknown")).status == 404);
  CHECK(s.state("slow") == actors::model_state::absent);
}

TEST_CASE("fleet demand: health, metrics, lists and counts at a gateway load nothing") {
  demand_gateway s;
  http_client c(s.server->port());
  for (const char* target : {"/health/live", "/health/ready", "/metrics", "/v1/stats", "/props", "/v1/models",
                             "/v1/models/slow"}) {
    CAPTURE(target);
    CHECK(c.get(target).status == 200);
  }
  CHECK(c.post("/v1/tokenize", R"({"model":"slow","text":"x"})").status == 200);
  CHECK(c.get("/metrics").body().find("weir_fleet_loads_total 0") != std::string::npos);
  CHECK(s.state("slow") == actors::model_state::absent);
}

TEST_CASE("fleet demand: a socket of a gateway hears at once that the model loads, then that it is there") {
  demand_gateway s;
  ws_client c(s.server->port());
  c.read("session.created");
  c.send(create_for("a", "slow"));
  const auto created = c.read();
  CHECK(created.at("type") == "response.created");
  CHECK(created.at("loading") == true);
  CHECK(created.at("queue_position") == 0);
  CHECK(created.at("model") == "slow");
  CHECK(c.read().at("type") == "response.loaded");
  c.read("response.done");
}

TEST_CASE("fleet demand: a key has a gateway load only its models, and waits for one at a time") {
  demand_gateway s("root admin\nfew models=sim\nwide\n");
  http_client c(s.server->port());
  const auto no = c.post("/v1/completions", job_of("slow"), bearer_line("few"));
  CHECK(no.status == 403);
  CHECK(s.work->counts().wishes == 0);
  ws_options by;
  by.authorization = "Bearer wide";
  ws_client waits(s.server->port(), by);
  waits.read("session.created");
  waits.send(create_for("a", "never"));
  CHECK(waits.read("response.created").at("loading") == true);
  const auto second = c.post("/v1/completions", job_of("slow"), bearer_line("wide"));
  CHECK(second.status == 429);
  CHECK(code_of(second) == "other_model_loading");
  server_fixture::until([&] { return s.state("never") == actors::model_state::loading; });
  waits.send(R"({"type":"response.cancel","id":"a"})");
  waits.read("response.done");
  server_fixture::until([&] { return s.state("never") == actors::model_state::absent; });
}

}  // namespace weir::tests::fleet_demand_routes_test
