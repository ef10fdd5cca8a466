// Requests for models that are not ready, at a running server: over HTTP and over WebSockets.
#include <future>

#include "tests/support/http_client.h"
#include "tests/support/model_talk.h"
#include "tests/support/server_fixture.h"
#include "tests/support/ws_talk.h"

namespace weir::tests::model_demand_test {
namespace {

// A server with the model `sim`, and others that requests load: `slow` takes half a second, `large` has room
// nowhere.
struct demand_server {
  explicit demand_server(std::string_view keys = {}) : io(2, seen) {
    actors::service_options s;
    s.seen = seen;
    s.demand.on = true;
    s.models.push_back({"sim", "sim:rate=5000,prefill=100000000"});
    s.known_models.push_back({"slow", "sim:rate=5000,prefill=100000000,load=500"});
    s.known_models.push_back({"never", "sim:rate=5000,prefill=100000000,load=600000"});
    s.known_models.push_back({"large", "sim:rate=5000,prefill=100000000,mb=9000"});
    s.owner.device = "sim";
    actors::planned_device device;
    device.name = "sim";
    device.total = std::uint64_t{8192} << 20;
    s.measured.push_back(device);
    service = std::make_unique<actors::service>(std::move(s), clock);
    std::promise<core::result<>> loaded;
    service->load({}, io.at(0), [&](core::result<> r) { loaded.set_value(std::move(r)); });
    REQUIRE(loaded.get_future().get().has_value());
    net::server_options at;
    at.listen = "127.0.0.1:0";
    if (!keys.empty()) at.api_keys = *net::parse_api_keys(keys, "F");
    server = std::make_unique<net::server>(*service, io, at);
    REQUIRE(server->start().has_value());
  }
  ~demand_server() { server->stop(); }

  actors::model_state state(std::string_view name) {
    for (auto& m : service->all_models().models)
      if (m.name == name) return m.state;
    FAIL("no such model");
    return {};
  }

  actors::system_time clock;
  const std::shared_ptr<core::incidents> seen = std::make_shared<core::incidents>([](std::string_view) {});
  net::shards io;
  std::unique_ptr<actors::service> service;
  std::unique_ptr<net::server> server;
};

std::string job_of(std::string_view model, std::string_view more = {}) {
  return fmt::format(R"({{"model":"{}","prompt":"x","max_tokens":3{}}})", model, more);
}

std::string create_for(std::string_view lane, std::string_view model, std::string_view more = {}) {
  return create(std::string(lane), fmt::format(R"("model":"{}","max_tokens":3{})", model, more));
}

}  // namespace

TEST_CASE("models on demand: a completion waits for its model, and the model is there for the next") {
  demand_server s;
  http_client c(s.server->port());
  CHECK(c.post("/v1/completions", job_of("slow")).status == 200);
  CHECK(s.state("slow") == actors::model_state::ready);
  CHECK(c.post("/v1/completions", job_of("slow", R"(,"load":"refuse")")).status == 200);
}

TEST_CASE("models on demand: a chat waits for its model") {
  demand_server s;
  http_client c(s.server->port());
  const auto a = c.post("/v1/chat/completions",
                        R"({"model":"slow","messages":[{"role":"user","content":"x"}],"max_tokens":3})");
  CHECK(a.status == 200);
  CHECK(s.state("slow") == actors::model_state::ready);
}

TEST_CASE("models on demand: a streamed answer has its headers and a comment while the model loads") {
  const bool chat = GENERATE(false, true);
  demand_server s;
  http_client c(s.server->port());
  const std::string target = chat ? "/v1/chat/completions" : "/v1/completions";
  const std::string body =
      chat ? R"({"model":"slow","messages":[{"role":"user","content":"x"}],"max_tokens":3,"stream":true})"
           : job_of("slow", R"(,"stream":true)");
  c.send(c.request("POST", target, body, {}));
  const auto heard = c.read_until(": loading\n\n");
  CHECK(heard.find("text/event-stream") != heard.npos);
  CHECK(heard.find("data:") == heard.npos);
  CHECK(c.read_until("data: [DONE]\n\n").find("data: {") != std::string::npos);
}

TEST_CASE("models on demand: a request that does not wait is refused by name, and loads nothing") {
  demand_server s;
  http_client c(s.server->port());
  const auto no = c.post("/v1/completions", job_of("slow", R"(,"load":"refuse")"));
  CHECK(no.status == 503);
  CHECK(code_of(no) == "model_loading");
  CHECK(std::stoi(no.header("Retry-After")) >= 1);
  CHECK(c.post("/v1/completions", job_of("slow", R"(,"load":"perhaps")")).status == 400);
  CHECK(c.post("/v1/completions", job_of("slow", R"(,"keep_alive":"5x")")).status == 400);
  const auto large = c.post("/v1/completions", job_of("large"));
  CHECK(large.status == 503);
  CHECK(code_of(large) == "does_not_fit");
  CHECK(c.post("/v1/completions", job_of("unknown")).status == 404);
  CHECK(s.state("slow") == actors::model_state::absent);
}

TEST_CASE("models on demand: health, metrics and lists load nothing") {
  demand_server s;
  http_client c(s.server->port());
  for (const char* target : {"/health/live", "/health/ready", "/metrics", "/v1/stats", "/props", "/v1/models",
                             "/v1/admin/models"}) {
    CAPTURE(target);
    CHECK(c.get(target).status == 200);
  }
  CHECK(s.state("slow") == actors::model_state::absent);
}

TEST_CASE("models on demand: a socket hears at once that the model loads, then that it is there") {
  demand_server s;
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
  c.send(create_for("b", "never", R"(,"load":"refuse")"));
  const auto no = c.read("error");
  CHECK(no.at("code") == "model_loading");
  CHECK(no.at("retry_after_ms").to_number<int>() >= 1000);
}

TEST_CASE("models on demand: a key loads only its models, and waits for one at a time") {
  demand_server s("root admin\nfew models=sim\nwide\n");
  http_client c(s.server->port());
  const auto no = c.post("/v1/completions", job_of("slow"), bearer_line("few"));
  CHECK(no.status == 403);
  CHECK(s.state("slow") == actors::model_state::absent);
  ws_options by;
  by.authorization = "Bearer wide";
  ws_client waits(s.server->port(), by);
  waits.read("session.created");
  waits.send(create_for("a", "never"));
  CHECK(waits.read("response.created").at("loading") == true);
  const auto second = c.post("/v1/completions", job_of("slow"), bearer_line("wide"));
  CHECK(second.status == 429);
  CHECK(code_of(second) == "other_model_loading");
  CHECK(std::stoi(second.header("Retry-After")) >= 1);
  // Its one waiter leaves: the load is undone, and the model can be asked for again.
  waits.send(R"({"type":"response.cancel","id":"a"})");
  waits.read("response.done");
  server_fixture::until([&] { return s.state("never") == actors::model_state::absent; });
}

}  // namespace weir::tests::model_demand_test
