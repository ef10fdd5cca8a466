// The other routes: the page, health, models, jobs, text and ids; and who may use them.
#include "tests/support/http_client.h"
#include "tests/support/server_fixture.h"

namespace weir::tests::http_routes_test {

TEST_CASE("http: the page and the client are served as what they are") {
  server_fixture f;
  http_client c(f.port());
  auto page = c.get("/");
  CHECK(page.status == 200);
  CHECK(page.header("Content-Type") == "text/html; charset=utf-8");
  CHECK(page.header("Cache-Control") == "no-cache");
  CHECK(page.body().find("<html") != std::string::npos);
  auto client = c.get("/weir.js?v=1");
  CHECK(client.header("Content-Type") == "text/javascript; charset=utf-8");
  CHECK(client.header("Access-Control-Allow-Origin") == "*");
  auto head = c.ask("HEAD", "/weir.js", {}, {});
  CHECK(head.status == 200);
  CHECK(head.header("Content-Length") == std::to_string(client.body().size()));
  CHECK(c.get("/style.css").header("Content-Type") == "text/css; charset=utf-8");
}

TEST_CASE("http: files of the page may run and reach nothing but what is their server's") {
  server_fixture f;
  http_client c(f.port());
  for (const char* path : {"/", "/weir.js", "/vendor/marked.esm.js"}) {
    CAPTURE(path);
    const auto file = c.get(path);
    CHECK(file.header("Content-Security-Policy") ==
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
          "connect-src 'self'; frame-ancestors 'none'");
    CHECK(file.header("X-Content-Type-Options") == "nosniff");
    CHECK(file.header("Referrer-Policy") == "no-referrer");
  }
}

TEST_CASE("http: files of the page are sent gzipped to those who take gzip") {
  server_fixture f;
  http_client c(f.port());
  const auto plain = c.get("/weir.js");
  CHECK(plain.header("Content-Encoding").empty());
  CHECK(plain.header("Vary") == "Accept-Encoding");
  const auto gzipped = c.get("/weir.js", "Accept-Encoding: gzip, br\r\n");
  CHECK(gzipped.header("Content-Encoding") == "gzip");
  CHECK(gzipped.header("Vary") == "Accept-Encoding");
  CHECK(gzipped.body().starts_with("\x1f\x8b"));
  CHECK(gzipped.body().size() < plain.body().size() / 2);
}

TEST_CASE("http: health, stats and models say what they know") {
  server_fixture f;
  http_client c(f.port());
  CHECK(c.get("/health/live").status == 200);
  CHECK(c.get("/health/ready").status == 200);
  CHECK(c.get("/health").status == 200);
  CHECK(c.get("/health").body() == c.get("/health/ready").body());
  auto stats = c.get("/v1/stats").json();
  for (const char* field : {"jobs", "pages", "memory", "tokens_per_s", "queue", "step_ms",
                            "sampled_to_sent_ms", "cancel_to_release_ms", "predicted_wait_ms", "client_lag",
                            "sessions", "closed", "rss_bytes", "masks"}) {
    CAPTURE(field);
    CHECK(stats.as_object().contains(field));
  }
  CHECK(stats.at("rss_bytes").as_int64() > 1 << 20);
  CHECK(!stats.as_object().contains("loading"));
  CHECK(!stats.as_object().contains("slo"));
  for (const char* part : {"weights", "pages", "host_pages", "workspaces", "runtime", "free", "total"})
    CHECK(stats.at("memory").at(part) == 0);  // a sim has none
  CHECK(stats.at("memory").at("kv_type") == "");
  for (const char* state : {"queued", "prefilling", "decoding", "paused", "finished"})
    CHECK(stats.at("jobs").at(state) == 0);
  auto models = c.get("/v1/models").json();
  CHECK(models.at("object") == "list");
  CHECK(models.at("data").at(0).at("id") == "sim");
  CHECK(models.at("data").at(0).at("object") == "model");
  CHECK(c.get("/v1/models/sim").json() == models.at("data").at(0));
  auto missing = c.get("/v1/models/other");
  CHECK(missing.status == 404);
  CHECK(missing.error().at("code") == "model_not_found");
}

TEST_CASE("http: /v1/stats has the objective, the prompt rows of a step, and who kept it") {
  server_options o;
  o.sim = "step=1000/10/10";
  o.owner.slo = {std::chrono::minutes(10), std::chrono::minutes(1)};  // met on a slow machine, too
  o.owner.max_batch = 8;
  server_fixture f(o);
  http_client c(f.port());
  const auto count = [&](const char* key) {
    return c.get("/v1/stats").json().at("slo").at(key).to_number<std::uint64_t>();
  };
  const auto slo = c.get("/v1/stats").json().at("slo").as_object();
  CHECK(slo.at("ttft_ms").to_number<double>() == 600000);
  CHECK(slo.at("tpot_ms").to_number<double>() == 60000);
  for (const char* key :
       {"prompt_rows", "ttft_met", "ttft_missed", "tpot_met", "tpot_missed", "met", "missed"})
    CHECK(slo.at(key) == 0);
  CHECK(c.post("/v1/completions", R"({"prompt":"hello","max_tokens":1,"n":2})").status == 200);
  server_fixture::until([&] { return count("ttft_met") == 2; });
  CHECK(count("tpot_met") == 2);  // of one token: no gap
  CHECK(count("met") == 2);
  CHECK(count("missed") + count("ttft_missed") + count("tpot_missed") == 0);
  http_client beside(f.port());
  beside.send(c.request("POST", "/v1/completions", R"({"prompt":"x","max_tokens":100000,"stream":true})", {}));
  beside.read_until("\n\n");  // a stream that outlasts the rest of the test, on a slow machine too
  CHECK(c.post("/v1/completions", R"({"prompt":"another one","max_tokens":1})").status == 200);
  server_fixture::until([&] { return count("prompt_rows") > 0; });
}

TEST_CASE("http: DELETE ends a job, answers with its last state, and again") {
  server_fixture f(slow());
  http_client c(f.port()), other(f.port());
  c.send(c.request("POST", "/v1/completions", R"({"prompt":"x","max_tokens":100000,"stream":true})", {}));
  const auto first = c.read_until("\"object\"");
  const auto jobs = other.get("/v1/jobs").json().at("jobs").as_array();
  REQUIRE(jobs.size() == 1);
  const std::string id(jobs[0].at("id").as_string());
  CHECK(first.find("\"id\":\"cmpl-" + id + "\"") != std::string::npos);
  f.until([&] { return other.get("/v1/jobs/" + id).json().at("state") == "decoding"; });
  auto gone = other.ask("DELETE", "/v1/jobs/" + id, {}, {});
  CHECK(gone.status == 200);
  CHECK(gone.json().at("state") == "finished");
  CHECK(gone.json().at("finish_reason") == "cancel");
  CHECK(other.ask("DELETE", "/v1/jobs/" + id, {}, {}).status == 200);
  CHECK(other.get("/v1/jobs/" + id).json().at("state") == "finished");
  CHECK(c.read_until("[DONE]").find("\"finish_reason\":\"cancel\"") != std::string::npos);
  f.until_quiet();
}

TEST_CASE("http: tokenize and detokenize are each other's inverse") {
  server_fixture f;
  http_client c(f.port());
  auto t = c.post("/v1/tokenize", R"({"text":"hi","add_special":false})").json();
  CHECK(t.at("ids") == boost::json::array{104, 105});
  CHECK(t.at("pieces").as_array().size() == 2);
  CHECK(c.post("/v1/detokenize", R"({"ids":[500]})").json().at("text") == "w500 ");
}

TEST_CASE("http: with keys every /v1 route needs one, the page and health do not") {
  server_options o;
  o.net.api_keys = {"secret", "other"};
  server_fixture f(o);
  http_client c(f.port());
  CHECK(c.get("/").status == 200);
  CHECK(c.get("/health/ready").status == 200);
  CHECK(c.get("/v1/models").status == 401);
  CHECK(c.get("/v1/models").error().at("type") == "authentication_error");
  CHECK(c.get("/v1/models", "Authorization: Bearer wrong\r\n").status == 401);
  CHECK(c.get("/v1/models", "Authorization: Bearer other\r\n").status == 200);
  CHECK(c.get("/v1/models", "x-api-key: other\r\n").status == 200);
  CHECK(c.get("/v1/models", "X-Api-Key: wrong\r\n").error().at("message") == "this key is not known");
  CHECK(c.get("/v1/models", "x-api-key: other\r\nAuthorization: Bearer other\r\n").status == 200);
}

TEST_CASE("http: two keys in one request are refused, even where both are known") {
  server_options o;
  o.net.api_keys = {"secret", "other"};
  server_fixture f(o);
  http_client c(f.port());
  for (const char* keys :
       {"x-api-key: other\r\nAuthorization: Bearer secret\r\n", "x-api-key: other\r\nx-api-key: other\r\n"}) {
    CAPTURE(keys);
    const auto a = c.get("/v1/models", keys);
    CHECK(a.status == 400);
    CHECK(a.error().at("code") == "bad_request");
  }
}

}  // namespace weir::tests::http_routes_test
