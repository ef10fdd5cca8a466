#include "tests/support/http_client.h"
#include "tests/support/server_fixture.h"

using namespace weir;
using namespace weir::tests;

namespace {

// The payloads of `data:` lines in a stream's body.
std::vector<std::string> events_of(std::string_view body) {
  std::vector<std::string> out;
  while (!body.empty()) {
    const auto end = body.find("\n\n");
    REQUIRE(end != body.npos);
    REQUIRE(body.starts_with("data: "));
    out.emplace_back(body.substr(6, end - 6));
    body.remove_prefix(end + 2);
  }
  return out;
}

std::string wait_for(http_client& c, std::string_view text) {
  std::string seen;
  while (seen.find(text) == seen.npos) {
    auto more = c.read_some();
    REQUIRE(!more.empty());
    seen += more;
  }
  return seen;
}

}  // namespace

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

TEST_CASE("http: health, stats and models say what they know") {
  server_fixture f;
  http_client c(f.port());
  CHECK(c.get("/health/live").status == 200);
  CHECK(c.get("/health/ready").status == 200);
  auto stats = c.get("/v1/stats").json();
  for (const char* field :
       {"jobs", "pages", "memory", "tokens_per_s", "queue", "step_ms", "sampled_to_sent_ms", "cancel_to_release_ms", "predicted_wait_ms", "client_lag", "sessions",
        "closed", "rss_bytes"}) {
    CAPTURE(field);
    CHECK(stats.as_object().contains(field));
  }
  CHECK(stats.at("rss_bytes").as_int64() > 1 << 20);
  for (const char* part : {"weights", "pages", "host_pages", "workspaces", "runtime", "free", "total"})
    CHECK(stats.at("memory").at(part) == 0);  // a sim has none
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

TEST_CASE("http: every answer has a request id, and every refusal OpenAI's shape") {
  server_fixture f;
  const struct {
    const char *method, *target, *body, *more;
    unsigned status;
  } rows[] = {
      {"GET", "/nothing", "", "", 404},
      {"GET", "/metrics", "", "", 404},
      {"GET", "/v1/jobs/xyz", "", "", 404},
      {"DELETE", "/v1/jobs/00000000000000000000000000000000", "", "", 404},
      {"GET", "/v1/completions", "", "", 405},
      {"PUT", "/v1/jobs/x", "", "", 405},
      {"GET", "/v1/stream", "", "", 426},
      {"POST", "/v1/completions", "{}", "Content-Type: text/plain\r\n", 415},
      {"POST", "/v1/completions", "", "", 400},
      {"POST", "/v1/completions", "{\"prompt\":5}", "", 400},
      {"POST", "/v1/completions", "{\"prompt\":\"x\",\"temperature\":9}", "", 400},
      {"POST", "/v1/completions", "{\"prompt\":\"x\",\"model\":\"other\"}", "", 404},
      {"POST", "/v1/completions", "{\"prompt\":[1000000]}", "", 400},
      {"POST", "/v1/chat/completions", "{\"messages\":[]}", "", 400},
      {"POST", "/v1/tokenize", "{}", "", 400},
      {"POST", "/v1/detokenize", "{\"ids\":[1000000]}", "", 400},
      {"GET", "/v1/stats", "", "Host: evil.example\r\n", 403},
  };
  http_client c(f.port());
  for (const auto& r : rows) {
    CAPTURE(r.method, r.target, r.body);
    auto a = c.ask(r.method, r.target, r.body, r.more);
    CHECK(a.status == r.status);
    CHECK(a.header("x-request-id").size() == 32);
    CHECK(a.header("Content-Type") == "application/json");
    auto e = a.error().as_object();
    for (const char* field : {"message", "type", "param", "code"}) CHECK(e.contains(field));
  }
  CHECK(c.get("/v1/completions").header("Allow") == "POST");
  CHECK_THAT(c.get("/metrics").body(), Catch::Contains("not supported yet"));
  CHECK(c.post("/v1/completions", R"({"prompt":"x","top_p":0})").error().at("param") == "top_p");
}

TEST_CASE("http: what a prompt shares with earlier ones is not computed again, within its salt") {
  server_fixture f;
  http_client c(f.port());
  const std::string prompt(200, 'p');
  const auto cached = [&](const std::string& more) {
    const auto a = c.post("/v1/completions", R"({"max_tokens":2,"prompt":")" + prompt + '"' + more + "}");
    REQUIRE(a.status == 200);
    return a.json().at("usage").at("prompt_tokens_details").at("cached_tokens").to_number<int>();
  };
  CHECK(cached("") == 0);
  CHECK(cached("") == 192);
  CHECK(cached(R"(,"cache_salt":"mine")") == 0);
  CHECK(cached(R"(,"cache_salt":"mine")") == 192);
  server_fixture::until([&] { return c.get("/v1/stats").json().at("jobs").at("finished") == 4; });
  const auto stats = c.get("/v1/stats").json();
  CHECK(stats.at("pages").at("cached") == 6);
  CHECK(stats.at("pages").at("used") == 0);
  CHECK(stats.at("prefix").at("hits") == 2);
  CHECK(stats.at("prefix").at("tokens") == 384);
}

TEST_CASE("http: n choices are n answers to one prompt, computed once, streamed or not") {
  server_fixture f;
  http_client c(f.port());
  const std::string prompt(200, 'p');
  const std::string body = R"({"max_tokens":5,"n":3,"prompt":")" + prompt + '"';
  const auto whole = c.post("/v1/completions", body + "}").json();
  REQUIRE(whole.at("choices").as_array().size() == 3);
  std::vector<std::string> texts;
  for (int i = 0; i < 3; ++i) {
    CHECK(whole.at("choices").at(i).at("index") == i);
    texts.emplace_back(whole.at("choices").at(i).at("text").as_string());
    CHECK(texts.back().size() == 5 * 5);
  }
  CHECK(texts[0] != texts[1]);  // without a seed each has its own
  CHECK(whole.at("usage").at("prompt_tokens") == 200);
  CHECK(whole.at("usage").at("completion_tokens") == 15);
  server_fixture::until([&] { return c.get("/v1/stats").json().at("jobs").at("finished") == 3; });
  CHECK(c.get("/v1/stats").json().at("prefix").at("hits") == 2);  // all but the first that came

  const auto stream = c.post("/v1/completions", body + R"(,"seed":7,"stream":true,"stream_options":{"include_usage":true}})");
  std::vector<std::string> streamed(3);
  int usages = 0;
  std::istringstream lines(stream.body());
  std::vector<int> finished(3, 0);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("data: {")) continue;
    const auto o = boost::json::parse(line.substr(6)).as_object();
    usages += o.at("usage").is_object();
    for (const auto& choice : o.at("choices").as_array()) {
      const auto i = choice.at("index").to_number<std::size_t>();
      streamed.at(i) += choice.at("text").as_string();
      finished.at(i) += choice.at("finish_reason").is_string();
    }
  }
  for (int i = 0; i < 3; ++i) {
    CHECK(boost::json::value(streamed[i]) == json_text(sim_text(7, 5)));
    CHECK(finished[i] == 1);
  }
  CHECK(usages == 1);
  CHECK(stream.body().ends_with("data: [DONE]\n\n"));
}

TEST_CASE("http: a completion is the job's text, with ids if asked, and its usage") {
  server_fixture f;
  http_client c(f.port());
  auto a =
      c.post("/v1/completions", R"({"prompt":"hello","max_tokens":50,"seed":7,"return_token_ids":true})");
  REQUIRE(a.status == 200);
  auto o = a.json();
  CHECK(o.at("object") == "text_completion");
  CHECK(o.at("model") == "sim");
  CHECK(o.at("id").as_string().size() == 32);
  CHECK(o.at("choices").at(0).at("text") == json_text(sim_text(7, 50)));
  CHECK(o.at("choices").at(0).at("finish_reason") == "length");
  CHECK(o.at("choices").at(0).at("token_ids").as_array().size() == 50);
  CHECK(o.at("usage").at("prompt_tokens") == 5);
  CHECK(o.at("usage").at("completion_tokens") == 50);
  CHECK(o.at("usage").at("prompt_tokens_details").at("cached_tokens") == 0);
  auto ids = c.post("/v1/completions", R"({"prompt":[104,105],"max_tokens":3,"seed":7})").json();
  CHECK(ids.at("choices").at(0).at("text") == json_text(sim_text(7, 3)));
  CHECK(ids.at("usage").at("prompt_tokens") == 2);
  auto chat = c.post("/v1/chat/completions",
                     R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":4,"seed":2})");
  CHECK(chat.json().at("object") == "chat.completion");
  CHECK(chat.json().at("choices").at(0).at("message").at("content") == json_text(sim_text(2, 4)));
}

TEST_CASE("http: a streamed completion's pieces join to the same text, then usage, then [DONE]") {
  server_fixture f;
  http_client c(f.port());
  auto a = c.post("/v1/completions", R"({"prompt":"hello","max_tokens":50,"seed":7,"stream":true,
      "stream_options":{"include_usage":true},"return_token_ids":true})");
  REQUIRE(a.status == 200);
  CHECK(a.header("Content-Type") == "text/event-stream");
  CHECK(a.header("Cache-Control") == "no-cache");
  CHECK(a.header("X-Accel-Buffering") == "no");
  auto events = events_of(a.body());
  REQUIRE(events.size() >= 3);
  CHECK(events.back() == "[DONE]");
  events.pop_back();
  auto usage = boost::json::parse(events.back());
  CHECK(usage.at("choices").as_array().empty());
  CHECK(usage.at("usage").at("completion_tokens") == 50);
  events.pop_back();
  std::string text, reason;
  std::size_t ids = 0;
  for (const auto& e : events) {
    CHECK(reason.empty());
    auto choice = boost::json::parse(e).at("choices").at(0).as_object();
    text += std::string_view(choice.at("text").as_string());
    if (choice.contains("token_ids")) ids += choice.at("token_ids").as_array().size();
    if (choice.at("finish_reason").is_string()) reason = choice.at("finish_reason").as_string();
  }
  CHECK(text == sim_text(7, 50));
  CHECK(ids == 50);
  CHECK(reason == "length");
  CHECK(c.get("/health/live").status == 200);  // the connection goes on

  auto chat =
      c.post("/v1/chat/completions",
             R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":4,"seed":2,"stream":true})");
  std::string said;
  for (const auto& e : events_of(chat.body())) {
    if (e == "[DONE]") continue;
    said += std::string_view(boost::json::parse(e).at("choices").at(0).at("delta").at("content").as_string());
  }
  CHECK(said == sim_text(2, 4));
}

TEST_CASE("http: a refused stream is a status, not an event") {
  server_fixture f;
  http_client c(f.port());
  auto a = c.post("/v1/completions", R"({"prompt":"x","stream":true,"temperature":9})");
  CHECK(a.status == 400);
  CHECK(a.error().at("param") == "temperature");
}

TEST_CASE("http: HTTP/1.0 gets its stream without chunks, until the connection ends") {
  server_fixture f;
  http_client c(f.port());
  const std::string body = R"({"prompt":"x","max_tokens":5,"seed":1,"stream":true})";
  c.send(
      fmt::format("POST /v1/completions HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                  "Content-Length: {}\r\n\r\n{}",
                  body.size(), body));
  auto a = c.read();
  CHECK(a.status == 200);
  CHECK(events_of(a.body()).back() == "[DONE]");
}

TEST_CASE("http: a client that goes away takes its job along") {
  const bool stream = GENERATE(true, false);
  CAPTURE(stream);
  server_fixture f(slow());
  http_client c(f.port());
  c.send(c.request("POST", "/v1/completions",
                   fmt::format(R"({{"prompt":"x","max_tokens":100000,"stream":{}}})", stream), {}));
  if (stream) wait_for(c, "w");
  f.until([&] { return f.service->stats().jobs.decoding == 1; });
  c.drop();
  f.until_quiet();
  http_client other(f.port());
  auto jobs = other.get("/v1/jobs").json().at("jobs").as_array();
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0].at("state") == "finished");
  CHECK(jobs[0].at("finish_reason") == "cancel");
}

TEST_CASE("http: DELETE ends a job, answers with its last state, and again") {
  server_fixture f(slow());
  http_client c(f.port()), other(f.port());
  c.send(c.request("POST", "/v1/completions", R"({"prompt":"x","max_tokens":100000,"stream":true})", {}));
  const auto first = wait_for(c, "\n\n");
  const auto jobs = other.get("/v1/jobs").json().at("jobs").as_array();
  REQUIRE(jobs.size() == 1);
  const std::string id(jobs[0].at("id").as_string());
  CHECK(first.find("\"id\":\"" + id + "\"") != std::string::npos);
  f.until([&] { return other.get("/v1/jobs/" + id).json().at("state") == "decoding"; });
  auto gone = other.ask("DELETE", "/v1/jobs/" + id, {}, {});
  CHECK(gone.status == 200);
  CHECK(gone.json().at("state") == "finished");
  CHECK(gone.json().at("finish_reason") == "cancel");
  CHECK(other.ask("DELETE", "/v1/jobs/" + id, {}, {}).status == 200);
  CHECK(other.get("/v1/jobs/" + id).json().at("state") == "finished");
  CHECK(wait_for(c, "[DONE]").find("\"finish_reason\":\"cancel\"") != std::string::npos);
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

TEST_CASE("http: a body that is too large is refused readably, declared or chunked") {
  server_fixture f;
  const std::string big(3 << 20, 'x');
  {
    http_client c(f.port());
    auto a = c.post("/v1/completions", big);
    CHECK(a.status == 413);
    CHECK(a.error().at("code").is_string());
    CHECK(c.ended());
  }
  {
    http_client c(f.port());
    c.send(
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 3; ++i) c.send("100000\r\n" + big.substr(0, 1 << 20) + "\r\n");
    CHECK(c.read().status == 413);
  }
}

TEST_CASE("http: headers that are too long, and bytes that are no request, are refused readably") {
  server_fixture f;
  http_client longer(f.port());
  auto a = longer.get("/", "X-Long: " + std::string(9000, 'x') + "\r\n");
  CHECK(a.status == 431);
  CHECK(a.header("x-request-id").size() == 32);
  http_client noise(f.port());
  noise.send("\x16\x03\x01 this is not HTTP\r\n\r\n");
  CHECK(noise.read().status == 400);
}

TEST_CASE("http: chunked bodies, Expect, pipelined requests and Connection: close work") {
  server_fixture f;
  http_client c(f.port());
  c.send(
      "POST /v1/tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json; charset=utf-8\r\n"
      "Transfer-Encoding: chunked\r\n\r\n8\r\n{\"text\":\r\n5\r\n\"hi\"}\r\n0\r\n\r\n");
  CHECK(c.read().status == 200);
  c.send(
      "POST /v1/tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: "
      "100-continue\r\n"
      "Content-Length: 13\r\n\r\n");
  CHECK(wait_for(c, "\r\n\r\n").starts_with("HTTP/1.1 100"));
  c.send("{\"text\":\"hi\"}");
  CHECK(c.read().status == 200);
  c.send(c.request("GET", "/health/live", {}, {}) +
         c.request("GET", "/v1/models", {}, "Connection: close\r\n"));
  CHECK(c.read().json().at("status") == "live");
  auto last = c.read();
  CHECK(last.json().at("object") == "list");
  CHECK(last.header("Connection") == "close");
  CHECK(c.ended());
}

TEST_CASE("http: a client that says nothing is not waited for") {
  server_options o;
  o.net.limits.handshake = std::chrono::milliseconds(200);
  server_fixture f(o);
  http_client silent(f.port()), slow(f.port());
  slow.send("GET / HT");
  CHECK(silent.ended());
  CHECK(slow.read().status == 408);
  CHECK(slow.ended());
}

TEST_CASE("http: a full queue is 429 with Retry-After") {
  auto o = slow();
  o.owner.max_batch = 1;
  o.owner.queue = 0;
  server_fixture f(o);
  http_client busy(f.port()), c(f.port());
  busy.send(
      busy.request("POST", "/v1/completions", R"({"prompt":"x","max_tokens":100000,"stream":true})", {}));
  wait_for(busy, "w");
  auto a = c.post("/v1/completions", R"({"prompt":"x","stream":true})");
  CHECK(a.status == 429);
  CHECK(a.header("Retry-After") == "1");
  CHECK(a.error().at("type") == "rate_limit_error");
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
}

TEST_CASE("http: draining refuses new jobs with 503 and lets a stream finish") {
  server_fixture f(slow());
  http_client c(f.port());
  c.send(
      c.request("POST", "/v1/completions", R"({"prompt":"x","max_tokens":40,"seed":1,"stream":true})", {}));
  const auto first = wait_for(c, "w");
  std::promise<void> over;
  f.server->drain([&] { over.set_value(); });
  {
    http_client late(f.port());
    f.until([&] { return http_client(f.port()).get("/health/ready").status == 503; });
    auto refused = late.post("/v1/completions", R"({"prompt":"x"})");
    CHECK(refused.status == 503);
    CHECK(refused.header("Retry-After") == "1");
    CHECK(http_client(f.port()).get("/health/live").status == 200);
  }
  CHECK(wait_for(c, "[DONE]").find("\"length\"") != std::string::npos);
  over.get_future().get();
}

TEST_CASE("http: an event reader that stops loses its connection, and its job is cancelled") {
  server_options o;
  o.sim = "rate=50000,prefill=100000000";
  o.net.limits.write_time = std::chrono::milliseconds(300);
  server_fixture f(o);
  http_client stuck(f.port());
  stuck.send(
      stuck.request("POST", "/v1/completions", R"({"prompt":"x","max_tokens":130000,"stream":true})", {}));
  http_client other(f.port());
  f.until([&] {
    auto jobs = other.get("/v1/jobs").json().at("jobs").as_array();
    return jobs.size() == 1 && jobs[0].at("state") == "finished";
  });
  CHECK(other.get("/v1/jobs").json().at("jobs").at(0).at("finish_reason") == "cancel");
}
