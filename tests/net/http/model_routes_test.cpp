// The routes that load, unload and swap models, over a socket: every answer, who may, and clients that leave.
#include <filesystem>

#include "tests/support/model_talk.h"
#include "tests/support/server_fixture.h"

namespace weir::tests::model_routes_test {
namespace {

namespace fs = std::filesystem;

const std::string long_job = R"({"prompt":"x","model":"sim","max_tokens":100000,"stream":true})";

// A job of the model `sim` that runs until its client leaves.
struct running_job {
  explicit running_job(server_fixture& f) : c(f.port()) {
    c.send(c.request("POST", "/v1/completions", long_job, {}));
    c.read_until("\n\n");
  }
  void end() { c.drop(); }
  http_client c;
};

// A directory of models that goes with the object.
struct directory {
  directory() {
    std::string made = (fs::temp_directory_path() / "weir-models-XXXXXX").string();
    REQUIRE(::mkdtemp(made.data()));
    path = made;
    fs::create_directories(path / "broken");
  }
  ~directory() { fs::remove_all(path); }
  fs::path path;
};

}  // namespace

TEST_CASE("model routes: a model is loaded, answers, is listed, unloaded, and forgotten") {
  server_fixture f;
  http_client c(f.port());
  const auto made = add_model(c, "second");
  CHECK(made.status == 201);
  CHECK(made.json().at("name") == "second");
  CHECK(made.json().at("state") == "ready");
  for (const char* field : {"source", "device", "bytes", "predicted", "running", "queued", "context",
                            "kv_tokens", "share", "share_asked", "share_got"}) {
    CAPTURE(field);
    CHECK(made.json().as_object().contains(field));
  }
  for (const char* kind : {"weights", "pages", "workspaces", "runtime", "host"})
    CHECK(made.json().at("bytes").at(kind) == 0);  // a sim has none
  CHECK(c.post("/v1/completions", R"({"prompt":"x","model":"second","max_tokens":2})").status == 200);
  CHECK(model_of(c, "second").at("last_used_s").to_number<double>() < 60);
  CHECK(c.get("/v1/models").json().at("data").as_array().size() == 2);

  const auto gone = change_model(c, "second", R"({"action":"unload"})");
  CHECK(gone.status == 200);
  CHECK(gone.json().at("state") == "absent");
  CHECK(c.post("/v1/completions", R"({"prompt":"x","model":"second","max_tokens":2})").status != 200);
  const auto again = change_model(c, "second", R"({"action":"load"})");
  CHECK(again.status == 200);
  CHECK(again.json().at("state") == "ready");
  const std::string metrics = c.get("/metrics").body();
  for (const char* sample : {R"(weir_model_loads_total{model_name="second"} 2)",
                             R"(weir_model_load_failures_total{model_name="second"} 0)",
                             R"(weir_model_state{model_name="second",state="ready"} 1)",
                             R"(weir_model_state{model_name="second",state="absent"} 0)",
                             R"(weir_model_bytes{model_name="second",kind="weights"} 0)"}) {
    CAPTURE(sample);
    CHECK(metrics.find(std::string(sample) + "\n") != metrics.npos);
  }
  CHECK(forget_model(c, "second").status == 200);
  CHECK(state_of(c, "second") == "unknown");
  CHECK(c.get(models_route).json().at("devices").is_array());
}

TEST_CASE("model routes: without wait the answer is 202 at once") {
  server_fixture f;
  http_client c(f.port());
  const auto begun = add_model(c, "second", R"(,"wait":false)");
  CHECK(begun.status == 202);
  CHECK(begun.json().at("name") == "second");
  f.until([&] { return state_of(c, "second") == "ready"; });
  CHECK(change_model(c, "second", R"({"action":"unload","wait":false})").status == 202);
  f.until([&] { return state_of(c, "second") == "absent"; });
}

TEST_CASE("model routes: a share is set with a load and changed later, and lists and metrics have it") {
  server_fixture f;
  http_client c(f.port());
  const auto made = add_model(c, "second", R"(,"share":3,"limits":{"batch":2,"max_tokens":5})");
  CHECK(made.status == 201);
  CHECK(made.json().at("share") == 3);
  CHECK(made.json().at("share_asked") == 0.75);
  CHECK(made.json().at("limits").at("batch") == 2);
  CHECK(model_of(c, "sim").at("share") == 1);
  const auto changed = change_model(c, "second", R"({"share":1.5})");
  CHECK(changed.status == 200);
  CHECK(changed.json().at("share") == 1.5);
  f.until([&] { return model_of(c, "second").at("share_asked") == 0.6; });
  const auto stats = c.get("/v1/stats").json();
  bool listed = false;
  for (const auto& m : stats.at("models").as_array())
    if (m.at("name") == "second") listed = m.at("share") == 1.5 && m.at("share_asked") == 0.6;
  CHECK(listed);
  const std::string metrics = c.get("/metrics").body();
  CHECK(metrics.find("weir_model_share{model_name=\"second\"} 1.5\n") != metrics.npos);
  CHECK(metrics.find("weir_model_share_asked{model_name=\"second\"} 0.6\n") != metrics.npos);
  CHECK(metrics.find("weir_device_time_seconds_total{model_name=\"second\"}") != metrics.npos);
  // The limits hold, and so does the share after another load.
  const auto answer = [&](const char* tokens) {
    return c.post("/v1/completions",
                  std::string(R"({"prompt":"x","model":"second","max_tokens":)") + tokens + "}");
  };
  CHECK(answer("5").status == 200);
  const auto no = answer("6");
  CHECK(no.status == 400);
  CHECK(no.error().at("param") == "max_tokens");
  CHECK(change_model(c, "second", R"({"action":"unload"})").status == 200);
  CHECK(change_model(c, "second", R"({"share":4})").status == 200);  // of its next load
  const auto again = change_model(c, "second", R"({"action":"load"})");
  CHECK(again.json().at("share") == 4);
  CHECK(again.json().at("limits").at("batch") == 2);
  CHECK(change_model(c, "second", R"({"share":2,"wait":false})").status == 202);
}

TEST_CASE("model routes: a model is pinned and let go again, and stays so over loads") {
  server_fixture f;
  http_client c(f.port());
  const auto in_stats = [&](std::string_view name) -> boost::json::value {
    const auto stats = c.get("/v1/stats").json();
    for (const auto& m : stats.at("models").as_array())
      if (m.at("name") == json_text(name)) return m;
    return {};
  };
  CHECK(add_model(c, "second").json().at("pinned") == false);
  const auto pinned = change_model(c, "second", R"({"pinned":true})");
  CHECK(pinned.status == 200);
  CHECK(pinned.json().at("pinned") == true);
  CHECK(pinned.json().at("share") == 1);
  CHECK(in_stats("second").at("pinned") == true);
  CHECK(in_stats("second").at("state") == "ready");
  CHECK(in_stats("second").at("running") == 0);
  CHECK(change_model(c, "second", R"({"action":"unload"})").json().at("pinned") == true);
  CHECK(in_stats("second").at("state") == "absent");
  CHECK(change_model(c, "second", R"({"action":"load"})").json().at("pinned") == true);
  CHECK(change_model(c, "second", R"({"pinned":false,"share":2})").json().at("pinned") == false);
  CHECK(model_of(c, "second").at("share") == 2);
  CHECK(change_model(c, "nobody", R"({"pinned":true})").status == 404);
  CHECK(change_model(c, "second", R"({"pinned":"yes"})").error().at("param") == "pinned");
  CHECK(in_stats("sim").at("pinned") == false);
}

TEST_CASE("model routes: a model comes in the place of another") {
  server_fixture f;
  http_client c(f.port());
  const auto swapped = c.post("/v1/admin/swap", R"({"out":["sim"],"in":{"name":"next","source":"sim"}})");
  CHECK(swapped.status == 200);
  CHECK(swapped.json().at("name") == "next");
  CHECK(state_of(c, "sim") == "absent");
  CHECK(state_of(c, "next") == "ready");
  CHECK(c.post("/v1/completions", R"({"prompt":"x","max_tokens":2})").status == 200);
  const auto none = c.post("/v1/admin/swap", R"({"out":["nobody"],"in":{"name":"x","source":"sim"}})");
  CHECK(none.status == 404);
  CHECK(code_of(none) == "model_not_found");
  CHECK(state_of(c, "next") == "ready");
}

TEST_CASE("model routes: a plan changes nothing") {
  server_fixture f;
  http_client c(f.port());
  const auto plan = c.post("/v1/admin/plan", R"({"name":"second","source":"sim"})");
  CHECK(plan.status == 200);
  CHECK(plan.json().at("fits") == true);
  CHECK(state_of(c, "second") == "unknown");
  CHECK(c.post("/v1/admin/plan", R"({"name":"second","pinned":true})").status == 400);
}

TEST_CASE("model routes: a model that does not fit is refused with the numbers, and nothing of it is left") {
  server_fixture f;
  http_client c(f.port());
  http_answer last;
  for (int i = 0; i < 20 && (last.status == 0 || last.status == 201); ++i)
    last = add_model(c, "m" + std::to_string(i));
  CHECK(last.status == 422);
  CHECK(code_of(last) == "does_not_fit");
  CHECK_THAT(text_of(last.error().at("message")), Catch::Contains("models"));
  CHECK(forget_model(c, "m0").status == 200);
  CHECK(add_model(c, "again").status == 201);
}

TEST_CASE("model routes: refusals have a status, a code and a field") {
  server_fixture f;
  http_client c(f.port());
  const struct {
    const char *method, *target, *body;
    unsigned status;
    const char *code, *param;
  } rows[] = {
      {"POST", models_route, R"({"name":"sim","source":"sim"})", 409, "already_there", nullptr},
      {"POST", models_route, R"({"name":"nothing"})", 404, "model_not_found", "name"},
      {"POST", models_route, R"({"name":"x","source":"/etc"})", 403, "source_forbidden", "source"},
      {"POST", models_route, R"({"name":"x","source":"../x"})", 403, "source_forbidden", "source"},
      {"POST", models_route, R"({"name":"x","source":"sim","draft":"y"})", 400, "not_supported", "draft"},
      {"POST", models_route, R"({"name":"x","source":"sim","colour":"red"})", 400, "invalid_param", "colour"},
      {"POST", models_route, R"({"source":"sim"})", 400, "invalid_param", "name"},
      {"POST", models_route, "{", 400, "invalid_param", nullptr},
      {"POST", "/v1/admin/models/sim", R"({"action":"sleep","level":"host"})", 422, "not_supported", "level"},
      {"POST", "/v1/admin/models/sim", R"({"action":"sleep","level":"deep"})", 400, "invalid_param", "level"},
      {"POST", "/v1/admin/models/sim", R"({"action":"wake"})", 409, "already_there", nullptr},
      {"POST", "/v1/admin/models/nobody", R"({"action":"sleep"})", 404, "model_not_found", nullptr},
      {"POST", "/v1/admin/models/nobody", R"({"action":"wake"})", 404, "model_not_found", nullptr},
      {"POST", "/v1/admin/models/sim", R"({"action":"load"})", 409, "already_there", nullptr},
      {"POST", "/v1/admin/models/nobody", R"({"action":"load"})", 404, "model_not_found", nullptr},
      {"POST", "/v1/admin/models/nobody", R"({"share":2})", 404, "model_not_found", nullptr},
      {"POST", "/v1/admin/models/sim", R"({"share":0})", 400, "invalid_param", "share"},
      {"POST", "/v1/admin/models/sim", R"({"limits":{"batch":1}})", 400, "not_supported", "limits"},
      {"POST", models_route, R"({"name":"x","source":"sim","share":-2})", 400, "invalid_param", "share"},
      {"POST", models_route, R"({"name":"x","source":"sim","limits":{"batch":5000}})", 400, "invalid_param",
       "limits"},
      {"POST", "/v1/admin/models/nobody", R"({"action":"unload"})", 404, "model_not_found", nullptr},
      {"DELETE", "/v1/admin/models/nobody", "", 404, "model_not_found", nullptr},
      {"POST", "/v1/admin/swap", R"({"out":["sim"]})", 400, "invalid_param", "in"},
      {"POST", "/models/load", R"({"model":"nobody"})", 404, "model_not_found", nullptr},
      {"POST", "/models/load", R"({"model":"sim"})", 409, "already_there", nullptr},
      {"POST", "/models/unload", R"({})", 400, "invalid_param", "model"},
      {"PUT", models_route, "", 405, "method_not_allowed", nullptr},
  };
  for (const auto& r : rows) {
    CAPTURE(r.method, r.target, r.body);
    const auto no = c.ask(r.method, r.target, r.body, {});
    CHECK(no.status == r.status);
    CHECK(code_of(no) == r.code);
    if (r.param) CHECK(no.error().at("param") == json_text(r.param));
  }
  CHECK(state_of(c, "sim") == "ready");
  CHECK(c.get(models_route).json().at("models").as_array().size() == 1);
}

TEST_CASE("model routes: an order's body is short") {
  server_fixture f;
  http_client c(f.port());
  const std::string long_body = R"({"name":")" + std::string(70'000, 'n') + "\"}";
  const auto no = c.post(models_route, long_body);
  CHECK(no.status == 413);
  CHECK(code_of(no) == "body_too_large");
  http_client other(f.port());
  CHECK(other.post(models_route, R"({"name":")" + std::string(60'000, 'n') + "\"}").status == 400);
}

TEST_CASE("model routes: one order at a time, and the second says when to come again") {
  server_fixture f(slow());
  http_client c(f.port());
  running_job job(f);
  CHECK(change_model(c, "sim", R"({"action":"unload","wait":false})").status == 202);
  CHECK(state_of(c, "sim") == "draining");
  const auto busy = add_model(c, "second");
  CHECK(busy.status == 409);
  CHECK(code_of(busy) == "busy");
  CHECK(std::stoi(busy.header("Retry-After")) >= 1);
  CHECK(code_of(c.post("/models/load", R"({"model":"second"})")) == "model_not_found");
  job.end();
  f.until([&] { return state_of(c, "sim") == "absent"; });
  CHECK(add_model(c, "second").status == 201);
}

TEST_CASE("model routes: a client that leaves does not end its order") {
  server_fixture f(slow());
  http_client c(f.port());
  running_job job(f);
  {
    http_client lost(f.port());
    lost.send(lost.request("POST", std::string(models_route) + "/sim", R"({"action":"unload"})", {}));
    f.until([&] { return state_of(c, "sim") == "draining"; });
  }
  job.end();
  f.until([&] { return state_of(c, "sim") == "absent"; });
  CHECK(c.post("/models/load", R"({"model":"sim"})").json().at("success") == true);
  f.until([&] { return state_of(c, "sim") == "ready"; });
}

TEST_CASE("model routes: jobs that outlast the drain end, and their clients are told") {
  server_fixture f(slow());
  http_client c(f.port());
  running_job job(f);
  const auto gone = change_model(c, "sim", R"({"action":"unload","drain_s":0.05})");
  CHECK(gone.status == 200);
  CHECK(job.c.read_until("\"error\"").find("\"error\"") != std::string::npos);
}

TEST_CASE("model routes: the lists have every model with its state, under the names of three servers") {
  server_fixture f;
  http_client c(f.port());
  CHECK(add_model(c, "second").status == 201);
  CHECK(change_model(c, "second", R"({"action":"unload"})").status == 200);
  const auto list = c.get("/v1/models").json();
  CHECK(c.get("/models").json() == list);
  CHECK(list.at("object") == "list");
  const auto& data = list.at("data").as_array();
  REQUIRE(data.size() == 2);
  const auto& ready = data[0];
  CHECK(ready.at("id") == "sim");
  CHECK(ready.at("object") == "model");
  CHECK(ready.at("created").as_int64() > 0);
  CHECK(ready.at("status").at("value") == "loaded");
  CHECK(ready.at("context_length").as_int64() > 0);
  CHECK(ready.at("max_model_len") == ready.at("context_length"));
  CHECK(ready.at("meta").at("n_ctx") == ready.at("context_length"));
  CHECK(data[1].at("id") == "second");
  CHECK(data[1].at("status").at("value") == "unloaded");
  CHECK(c.get("/v1/models/second").json().at("status").at("value") == "unloaded");
  CHECK(c.get("/v1/models/third").status == 404);
}

TEST_CASE("model routes: /props says what is known, and loads nothing") {
  server_fixture f;
  http_client c(f.port());
  CHECK(add_model(c, "second").status == 201);
  CHECK(change_model(c, "second", R"({"action":"unload"})").status == 200);
  const auto ready = c.get("/props?model=sim").json();
  CHECK(ready.at("model") == "sim");
  CHECK(ready.at("status").at("value") == "loaded");
  CHECK(ready.at("n_ctx").as_int64() > 0);
  CHECK(ready.at("default_generation_settings").at("n_ctx") == ready.at("n_ctx"));
  CHECK(ready.at("modalities").at("vision") == false);
  CHECK_FALSE(ready.as_object().contains("role"));
  CHECK_THAT(std::string(ready.at("chat_template").as_string()), Catch::Contains("<|im_start|>"));
  const auto unloaded = c.get("/props?x=1&model=sec%6Fnd").json();
  CHECK(unloaded.at("status").at("value") == "unloaded");
  CHECK_FALSE(unloaded.as_object().contains("chat_template"));
  CHECK(state_of(c, "second") == "absent");
  CHECK(c.get("/props?model=third").status == 404);
  const auto all = c.get("/props").json();  // one model is ready
  CHECK(all.at("role") == "router");
  CHECK(all.at("model") == "sim");
  CHECK(c.post("/models/load", R"({"model":"second"})").status == 200);
  f.until([&] { return state_of(c, "second") == "ready"; });
  CHECK(c.get("/props").json().at("n_ctx") == 0);  // two are
}

TEST_CASE(
    "model routes: without keys a page, a proxy and a foreign host are refused, and --no-admin closes all") {
  server_fixture f;
  http_client c(f.port());
  for (const char* line : {"Origin: https://evil.example\r\n", "X-Forwarded-For: 127.0.0.1\r\n",
                           "Via: 1.1 p\r\n", "Forwarded: for=1.1.1.1\r\n"}) {
    CAPTURE(line);
    const auto no = c.get(models_route, line);
    CHECK(no.status == 403);
    CHECK(code_of(no) == "admin_forbidden");
    CHECK(c.post("/models/unload", R"({"model":"sim"})", line).status == 403);
    CHECK(c.get("/v1/models", line).status == 200);
  }
  CHECK(c.get(models_route, "Origin: " + f.origin() + "\r\n").status == 200);
  CHECK(state_of(c, "sim") == "ready");

  server_options o;
  o.net.no_admin = true;
  server_fixture closed(o);
  http_client d(closed.port());
  CHECK(d.get(models_route).status == 404);
  CHECK(d.ask("PUT", models_route, {}, {}).status == 404);
  CHECK(d.post("/models/load", R"({"model":"sim"})").status == 404);
  CHECK(d.get("/models").status == 200);
  CHECK(d.get("/props").status == 200);
}

TEST_CASE("model routes: with keys an admin's alone changes models, and others see their models alone") {
  server_options o;
  o.net.api_keys = *net::parse_api_keys("root admin\nuser\nother models=else,second\n", "F");
  server_fixture f(o);
  http_client c(f.port());
  const auto as = [&](const char* key, const char* method, const std::string& target,
                      const std::string& body = {}) { return c.ask(method, target, body, bearer_line(key)); };
  const std::string second = R"({"name":"second","source":"sim"})";
  CHECK(c.get(models_route).status == 401);
  CHECK(as("nobody", "POST", models_route, second).status == 401);
  for (const char* key : {"user", "other"}) {
    CHECK(code_of(as(key, "GET", models_route)) == "key_forbidden");
    CHECK(as(key, "POST", models_route, second).status == 403);
    CHECK(as(key, "POST", "/models/unload", R"({"model":"sim"})").status == 403);
  }
  CHECK(as("root", "POST", models_route, second).status == 201);
  CHECK(as("root", "GET", models_route).json().at("models").as_array().size() == 2);
  CHECK(as("user", "GET", "/models").json().at("data").as_array().size() == 2);
  const auto own = as("other", "GET", "/models").json().at("data").as_array();
  REQUIRE(own.size() == 1);
  CHECK(own[0].at("id") == "second");
  CHECK(as("other", "GET", "/props?model=sim").status == 404);
  CHECK(as("other", "GET", "/props").json().at("model") == "second");
  // a path is for the key of an admin, and an order from far away too
  const auto path = c.ask("POST", models_route, R"({"name":"x","source":"/no/such/model"})",
                          bearer_line("root") + "X-Forwarded-For: 192.0.2.1\r\n");
  CHECK(path.status == 422);
  CHECK(code_of(path) == "bad_file");
  const auto token =
      text_of(as("root", "POST", "/v1/stream/tokens", R"({"model":"second"})").json().at("token"));
  CHECK(code_of(c.get(models_route, bearer_line(token))) == "token_forbidden");
  CHECK(c.post(models_route, second, bearer_line(token)).status == 403);
  CHECK(c.get("/models", bearer_line(token)).json().at("data").as_array().size() == 1);
  CHECK(c.get("/props?model=sim", bearer_line(token)).status == 404);
}

TEST_CASE("model routes: the models of --models-dir are loaded by name, and a broken one says why") {
  const directory d;
  server_options o;
  o.net.models_dir = d.path.string();
  server_fixture f(o);
  http_client c(f.port());
  const auto missing = c.post(models_route, R"({"name":"x","source":"missing"})");
  CHECK(missing.status == 422);
  CHECK(code_of(missing) == "bad_file");
  CHECK(missing.error().at("param") == "source");
  for (const char* path : {"../broken", "/etc/passwd", ".", "a/b/c"}) {
    CAPTURE(path);
    const auto no = c.post(models_route, fmt::format(R"({{"name":"x","source":"{}"}})", path));
    CHECK(no.status == 403);
    CHECK(code_of(no) == "source_forbidden");
  }
}

}  // namespace weir::tests::model_routes_test
