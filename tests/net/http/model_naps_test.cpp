// Models that sleep, at a running server: an admin's routes, what lists and metrics say of them, and requests
// that wake them, over HTTP and over WebSockets.
#include <future>

#include "tests/support/http_client.h"
#include "tests/support/model_talk.h"
#include "tests/support/server_fixture.h"
#include "tests/support/ws_talk.h"

namespace weir::tests::model_naps_test {
namespace {

// A server with the models `sim` and `big`, whose wake takes half a second, and host memory for their sleep.
struct nap_server {
  explicit nap_server(bool on_demand = true) : io(2, seen) {
    actors::service_options s;
    s.seen = seen;
    s.demand.on = on_demand;
    s.sleep_bytes = std::uint64_t{2000} << 20;
    s.models.push_back({"sim", "sim:rate=5000,prefill=100000000"});
    s.models.push_back({"big", "sim:rate=5000,prefill=100000000,mb=1000,sleep=10/500"});
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
    server = std::make_unique<net::server>(*service, io, at);
    REQUIRE(server->start().has_value());
  }
  ~nap_server() { server->stop(); }

  actors::system_time clock;
  const std::shared_ptr<core::incidents> seen = std::make_shared<core::incidents>([](std::string_view) {});
  net::shards io;
  std::unique_ptr<actors::service> service;
  std::unique_ptr<net::server> server;
};

void put_to_sleep(http_client& c, const std::string& level) {
  const auto done = change_model(c, "big", R"({"action":"sleep","level":")" + level + R"("})");
  REQUIRE(done.status == 200);
  REQUIRE(done.json().at("state") == "asleep");
  REQUIRE(done.json().at("level") == json_text(level));
}

std::string job_of(std::string_view model, std::string_view more = {}) {
  return fmt::format(R"({{"model":"{}","prompt":"x","max_tokens":3{}}})", model, more);
}

}  // namespace

TEST_CASE("model naps: an admin lets a model sleep and wakes it, and lists and metrics say how it stands") {
  nap_server s;
  http_client c(s.server->port());
  put_to_sleep(c, "host");
  const auto all = c.get(models_route).json();
  CHECK(all.at("sleep").at("taken") == (1000 << 20));
  CHECK(all.at("sleep").at("total") == (2000 << 20));
  CHECK(model_of(c, "big").at("bytes").at("weights") == 0);
  CHECK(model_of(c, "big").at("bytes").at("asleep") == (1000 << 20));
  const auto listed = c.get("/v1/models/big").json();
  CHECK(listed.at("state") == "asleep");
  CHECK(listed.at("status").at("value") == "sleeping");
  CHECK(c.get("/v1/models/sim").json().at("state") == "ready");
  CHECK(c.get("/props?model=big").json().at("status").at("value") == "sleeping");
  bool in_stats = false;
  const auto stats = c.get("/v1/stats").json();
  for (const auto& m : stats.at("models").as_array())
    if (m.at("name") == "big") in_stats = m.at("state") == "asleep" && m.at("sleeps") == 1;
  CHECK(in_stats);
  std::string metrics = c.get("/metrics").body();
  const auto has = [&](const std::string& line) {
    CAPTURE(line);
    CHECK(metrics.find(line + "\n") != metrics.npos);
  };
  has(R"(weir_model_state{model_name="big",state="asleep"} 1)");
  has(R"(weir_model_state{model_name="big",state="ready"} 0)");
  has(R"(weir_model_bytes{model_name="big",kind="asleep"} 1048576000)");
  has(R"(weir_model_sleeps_total{model_name="big"} 1)");
  has(R"(weir_model_wakes_total{model_name="big"} 0)");
  has(R"(weir_model_pages_given_total{model_name="big"} 0)");
  has(R"(weir_sleep_host_bytes{state="taken"} 1048576000)");
  has(R"(weir_sleep_host_bytes{state="free"} 1048576000)");

  const auto awake = change_model(c, "big", R"({"action":"wake"})");
  CHECK(awake.status == 200);
  CHECK(awake.json().at("state") == "ready");
  CHECK(awake.json().at("wakes") == 1);
  CHECK(awake.json().at("last_wake_s").to_number<double>() >= 0.5);
  CHECK_FALSE(awake.json().as_object().contains("level"));
  metrics = c.get("/metrics").body();
  has(R"(weir_model_wakes_total{model_name="big"} 1)");
  has(R"(weir_model_sleep_failures_total{model_name="big"} 0)");
  has(R"(weir_model_pages_given_total{model_name="big"} 0)");
  has(R"(weir_sleep_host_bytes{state="taken"} 1048576000)");  // for its next sleep
  CHECK(c.post("/v1/completions", job_of("big")).status == 200);
}

TEST_CASE("model naps: the lines of a device add up to what its models take, and to its total") {
  nap_server s;
  http_client c(s.server->port());
  const auto of = [](const boost::json::value& at, std::string_view key) {
    return at.at(key).to_number<std::uint64_t>();
  };
  const auto weights = [&](const char* route) {
    const auto all = c.get(route).json();
    const auto& d = all.at("devices").at(0);
    const auto& pages = d.at("pages");
    const auto lines = of(d, "weights") + of(d, "workspaces") + of(d, "runtime") + of(d, "staging") +
                       of(pages, "used") + of(pages, "cached") + of(pages, "free");
    CHECK(lines == of(d, "models"));
    CHECK(lines + of(d, "outside") + of(d, "context") + of(d, "reserve") + of(d, "free") == of(d, "total"));
    CHECK(of(d, "total") == std::uint64_t{8192} << 20);
    return of(d, "weights");
  };
  for (const char* route : {models_route, "/v1/stats"}) {
    CHECK(weights(route) == 1000 << 20);
    put_to_sleep(c, "host");
    CHECK(weights(route) == 0);
    CHECK(change_model(c, "big", R"({"action":"wake"})").status == 200);
  }
}

TEST_CASE("model naps: a sleep and a wake may be begun without a wait for their end") {
  nap_server s;
  http_client c(s.server->port());
  CHECK(change_model(c, "big", R"({"action":"sleep","level":"disk","wait":false})").status == 202);
  server_fixture::until([&] { return state_of(c, "big") == "asleep"; });
  CHECK(change_model(c, "big", R"({"action":"wake","wait":false})").status == 202);
  server_fixture::until([&] { return state_of(c, "big") == "ready"; });
}

TEST_CASE("model naps: refusals have a status, a code and a field") {
  nap_server s;
  http_client c(s.server->port());
  CHECK(change_model(c, "big", R"({"action":"wake"})").status == 409);
  CHECK(change_model(c, "nobody", R"({"action":"sleep"})").status == 404);
  CHECK(change_model(c, "big", R"({"action":"sleep","level":"deep"})").status == 400);
  put_to_sleep(c, "host");
  const auto twice = change_model(c, "big", R"({"action":"sleep","level":"host"})");
  CHECK(twice.status == 409);
  CHECK(code_of(twice) == "already_there");
  CHECK(change_model(c, "big", R"({"action":"load"})").status == 409);
}

TEST_CASE("model naps: llama.cpp's clients see it sleep, and their load wakes it") {
  nap_server s;
  http_client c(s.server->port()), eye(s.server->port());
  eye.send("GET /models/sse HTTP/1.1\r\nHost: localhost\r\n\r\n");
  eye.read_until(R"("model":"big","value":"loaded")");
  put_to_sleep(c, "host");
  eye.read_until(R"("model":"big","value":"sleeping")");
  CHECK(c.post("/models/load", R"({"model":"big"})").json().at("success") == true);
  eye.read_until(R"("model":"big","value":"loaded")");
  CHECK(model_of(c, "big").at("wakes") == 1);
}

TEST_CASE("model naps: health, metrics, lists and work on texts wake nothing") {
  for (const std::string level : {"host", "disk"}) {
    nap_server s;
    http_client c(s.server->port());
    put_to_sleep(c, level);
    for (const char* target : {"/health/live", "/health/ready", "/metrics", "/v1/stats", "/props",
                               "/props?model=big", "/v1/models", "/models", "/v1/admin/models"}) {
      CAPTURE(target);
      CHECK(c.get(target).status == 200);
    }
    const auto ids = c.post("/v1/tokenize", R"({"model":"big","text":"hello"})");
    CHECK(ids.status == 200);
    CHECK(c.post("/v1/detokenize", R"({"model":"big","ids":[1,2]})").status == 200);
    const auto count = c.post("/v1/messages/count_tokens",
                              R"({"model":"big","messages":[{"role":"user","content":"hello"}]})");
    CHECK(count.status == 200);
    CHECK(c.post("/v1/completions", job_of("big", R"(,"load":"refuse")")).status == 503);
    CHECK(c.post("/v1/completions", job_of("big", R"(,"logit_bias":{"5000":1})")).status == 400);
    CHECK(state_of(c, "big") == "asleep");
    CHECK(model_of(c, "big").at("wakes") == 0);
  }
}

TEST_CASE("model naps: a completion wakes its model, and a stream has a comment meanwhile") {
  for (const std::string level : {"host", "disk"}) {
    nap_server s;
    http_client c(s.server->port()), admin(s.server->port());
    put_to_sleep(admin, level);
    CHECK(c.post("/v1/completions", job_of("big")).status == 200);
    CHECK(model_of(admin, "big").at("wakes") == 1);
    put_to_sleep(admin, "host");
    c.send(c.request("POST", "/v1/completions", job_of("big", R"(,"stream":true)"), {}));
    const auto heard = c.read_until(": loading\n\n");
    CHECK(heard.find("data:") == heard.npos);
    CHECK(c.read_until("data: [DONE]\n\n").find("data: {") != std::string::npos);
  }
}

TEST_CASE("model naps: a socket hears at once that the model wakes, then that it is there") {
  nap_server s;
  http_client admin(s.server->port());
  put_to_sleep(admin, "host");
  ws_client c(s.server->port());
  c.read("session.created");
  c.send(create("a", R"("model":"big","max_tokens":3)"));
  const auto created = c.read();
  CHECK(created.at("type") == "response.created");
  CHECK(created.at("loading") == true);
  CHECK(created.at("model") == "big");
  CHECK(c.read().at("type") == "response.loaded");
  c.read("response.done");
}

TEST_CASE("model naps: where requests load no models, one for a model that sleeps is refused by name") {
  nap_server s(false);
  http_client c(s.server->port());
  put_to_sleep(c, "host");
  const auto no = c.post("/v1/completions", job_of("big"));
  CHECK(no.status == 503);
  CHECK(text_of(no.error().at("message")) == "big sleeps");
  CHECK(state_of(c, "big") == "asleep");
}

}  // namespace weir::tests::model_naps_test
