// What a line of the file of keys gives its holder at a running server, over HTTP and WebSocket.
#include "tests/support/http_client.h"
#include "tests/support/ws_talk.h"

namespace weir::tests::key_rights_test {
namespace {

std::string authorization(std::string_view key) { return fmt::format("Authorization: Bearer {}\r\n", key); }

ws_options by(std::string_view key) {
  ws_options o;
  o.authorization = fmt::format("Bearer {}", key);
  return o;
}

struct rights_server {
  explicit rights_server(std::string_view file) : f(options(file)), http(f.port()) {}
  static server_options options(std::string_view file) {
    server_options o = slow();
    o.net.api_keys = *net::parse_api_keys(file, "F");
    return o;
  }
  http_answer as(std::string_view key, std::string_view method, std::string_view target,
                 std::string_view body = {}) {
    return http.ask(method, target, body, authorization(key));
  }
  // Begins a job that runs until it is cancelled, and returns its id.
  std::string begin(ws_client& c) {
    c.send(create("a", R"("max_tokens":100000)"));
    return std::string(c.read("response.created").at("response_id").as_string());
  }

  server_fixture f;
  http_client http;
};

}  // namespace

TEST_CASE("keys: an admin lists, sees and cancels the jobs of all keys, and nobody else does") {
  rights_server s("root admin\nfirst\nsecond\n");
  ws_client first(s.f.port(), by("first")), root(s.f.port(), by("root")), second(s.f.port(), by("second"));
  const auto id = s.begin(first);
  CHECK(s.as("root", "GET", "/v1/jobs").json().at("jobs").as_array().size() == 1);
  CHECK(s.as("root", "GET", "/v1/jobs/" + id).status == 200);
  CHECK(s.as("second", "GET", "/v1/jobs/" + id).status == 404);
  second.send(R"({"type":"response.cancel","response_id":")" + id + "\"}");
  CHECK(second.read("error").at("code") == "not_found");
  // Only a job's own key may read the job's tokens; not even an admin may.
  root.send(R"({"type":"response.resume","id":"r","response_id":")" + id + R"(","after":0})");
  CHECK(root.read("error").at("code") == "not_found");
  SECTION("over HTTP") { CHECK(s.as("root", "DELETE", "/v1/jobs/" + id).json().at("state") == "finished"); }
  SECTION("over WebSocket") { root.send(R"({"type":"response.cancel","response_id":")" + id + "\"}"); }
  CHECK(first.read("response.done").at("status") == "cancelled");
  // A browser token has no admin rights, even if its key has.
  const auto token = s.as("root", "POST", "/v1/stream/tokens", "{}").json().at("token");
  CHECK_FALSE(s.as(std::string(token.as_string()), "GET", "/v1/stats").json().as_object().contains("keys"));
}

TEST_CASE("keys: statistics show a key totals and its own jobs, and an admin what each name has used") {
  rights_server s("root admin name=root\nfirst name=web\nsecond name=web\nthird\n");
  ws_client first(s.f.port(), by("first"));
  const auto id = s.begin(first);
  const auto answer = s.as("second", "POST", "/v1/completions", R"({"prompt":"hello","max_tokens":20})");
  REQUIRE(answer.status == 200);
  CHECK(s.as("third", "POST", "/v1/completions", R"({"prompt":"hi","max_tokens":3})").status == 200);

  const auto own = s.as("first", "GET", "/v1/stats").json().as_object();
  CHECK(own.contains("pages"));
  CHECK_FALSE(own.contains("keys"));
  REQUIRE(own.at("own_jobs").as_array().size() == 1);
  CHECK(own.at("own_jobs").as_array()[0].at("id") == json_text(id));
  CHECK(s.as("root", "GET", "/v1/stats").json().as_object().contains("own_jobs") == false);

  const auto keys = s.as("root", "GET", "/v1/stats").json().at("keys").as_object();
  CHECK(keys.size() == 3);
  CHECK(keys.at("web").at("jobs") == 2);
  CHECK(keys.at("web").at("unfinished") == 1);
  CHECK(keys.at("web").at("prompt_tokens") == 10);
  CHECK(keys.at("web").at("output_tokens").to_number<int>() >= 20);
  CHECK(keys.at("root").at("jobs") == 0);
  CHECK(keys.at("(unnamed)").at("output_tokens") == 3);

  server_fixture open;  // without keys there is nobody to keep anything from, and nothing to count by
  http_client c(open.port());
  const auto all = c.get("/v1/stats").json().as_object();
  CHECK_FALSE(all.contains("keys"));
  CHECK_FALSE(all.contains("own_jobs"));
}

TEST_CASE("keys: another model is forbidden over HTTP, not there in lists and on the socket") {
  rights_server s("sim models=sim\nother models=other,third\n");
  CHECK(s.as("sim", "GET", "/v1/models").json().at("data").as_array().size() == 1);
  CHECK(s.as("sim", "POST", "/v1/completions", R"({"prompt":"x","max_tokens":1})").status == 200);
  CHECK(s.as("other", "GET", "/v1/models").json().at("data").as_array().empty());
  CHECK(s.as("other", "GET", "/v1/models/sim").status == 404);
  const struct {
    const char *target, *body;
  } rows[] = {
      {"/v1/completions", R"({"prompt":"x","model":"sim"})"},
      {"/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}],"model":"sim"})"},
      {"/v1/tokenize", R"({"text":"x","model":"sim"})"},
      {"/v1/detokenize", R"({"ids":[1],"model":"sim"})"},
      {"/v1/stream/tokens", R"({"model":"sim"})"},
  };
  for (const auto& r : rows) {
    CAPTURE(r.target);
    const auto no = s.as("other", "POST", r.target, r.body);
    CHECK(no.status == 403);
    CHECK(no.error().at("code") == "model_forbidden");
    CHECK(no.error().at("type") == "permission_error");
    CHECK(no.error().at("param") == "model");
  }
  CHECK(s.as("other", "POST", "/v1/completions", R"({"prompt":"x"})").status == 404);  // no model is named

  ws_client c(s.f.port(), by("other"));
  CHECK(c.read("session.created").at("models").as_array().empty());
  c.send(create("a", R"("model":"sim")"));
  const auto no = c.read("error");
  CHECK(no.at("code") == "model_not_found");
  CHECK(no.at("param") == "model");
  round_trip(c);  // a job's error closes no socket
  const auto token = s.as("other", "POST", "/v1/stream/tokens", "{}").json().at("token");
  ws_client page(s.f.port(), by(std::string(token.as_string())));
  page.send(create("a", R"("model":"sim")"));
  CHECK(page.read("error").at("code") == "model_not_found");
}

TEST_CASE("keys: limits are refused with 429 and told in headers, on streams too") {
  rights_server s("k jobs=2 tokens_per_min=6000\nfree\n");
  http_client streamed(s.f.port());
  streamed.send(streamed.request("POST", "/v1/completions",
                                 R"({"prompt":"x","max_tokens":100000,"stream":true})", authorization("k")));
  const auto head = streamed.read_until("\r\n\r\n");
  CHECK(head.find("x-ratelimit-remaining-requests: 1\r\n") != head.npos);
  CHECK(head.find("x-ratelimit-limit-tokens: 6000\r\n") != head.npos);
  const auto fine = s.as("k", "POST", "/v1/completions", R"({"prompt":"x","max_tokens":1})");
  CHECK(fine.status == 200);
  CHECK(fine.header("x-ratelimit-limit-requests") == "2");
  CHECK(fine.header("x-ratelimit-remaining-requests") == "1");  // its own job has ended
  CHECK(fine.header("x-ratelimit-reset-requests") == "1s");

  ws_client c(s.f.port(), by("k"));
  CHECK(c.read("session.created").at("limits").at("max_jobs") == 2);
  s.begin(c);
  const auto no = s.as("k", "POST", "/v1/completions", R"({"prompt":"x"})");
  CHECK(no.status == 429);
  CHECK(no.error().at("code") == "rate_limited");
  CHECK(no.error().at("type") == "rate_limit_error");
  CHECK(no.header("Retry-After") == "1");
  CHECK(no.header("retry-after-ms") == "1000");
  CHECK(no.header("x-ratelimit-remaining-requests") == "0");
  const auto many = s.as("k", "POST", "/v1/completions", R"({"prompt":"x","n":3})");
  CHECK(many.status == 400);
  CHECK(many.error().at("param") == "n");

  const auto other = s.as("free", "POST", "/v1/completions", R"({"prompt":"x","max_tokens":1})");
  CHECK(other.status == 200);
  CHECK(other.header("x-ratelimit-limit-requests").empty());
  const auto stranger = s.as("nobody", "GET", "/v1/models");  // on the same connection
  CHECK(stranger.status == 401);
  CHECK(stranger.header("x-ratelimit-limit-requests").empty());
}

TEST_CASE("keys: texts that are tokenised or counted use up a key's limits") {
  for (const auto& [path, body] :
       {std::pair{"/v1/tokenize", R"({"text":"T"})"}, std::pair{"/v1/detokenize", R"({"ids":[T]})"},
        std::pair{"/v1/messages/count_tokens", R"({"messages":[{"role":"user","content":"T"}]})"}}) {
    INFO(path);
    rights_server s("k tokens_per_min=100\nfree\n");
    std::string large = body;
    const bool ids = large.find("ids") != large.npos;
    std::string text = ids ? "1" : "x";
    for (int i = 1; i < 300; ++i) text += ids ? ",1" : "x";
    large.replace(large.find('T'), 1, text);
    CHECK(s.as("k", "POST", path, large).status == 200);
    const auto no = s.as("k", "POST", path, large);
    CHECK(no.status == 429);
    const bool anthropic = std::string_view(path).starts_with("/v1/messages");
    CHECK(no.error().at(anthropic ? "type" : "code") == (anthropic ? "rate_limit_error" : "rate_limited"));
    CHECK(std::stoi(std::string(no.header("retry-after-ms"))) > 60'000);
    CHECK(s.as("k", "POST", "/v1/completions", R"({"prompt":"x","max_tokens":1})").status == 429);
    CHECK(s.as("free", "POST", path, large).status == 200);
  }
}

TEST_CASE("keys: a key's priority is the highest that its requests may name") {
  rights_server s("k priority=-1\n");
  const auto no = s.as("k", "POST", "/v1/completions", R"({"prompt":"x","priority":0})");
  CHECK(no.status == 400);
  CHECK(no.error().at("param") == "priority");
  ws_client c(s.f.port(), by("k"));
  c.send(create("a", R"("priority":0)"));
  CHECK(c.read("error").at("param") == "priority");
  const auto id = s.begin(c);
  s.f.until([&] { return s.as("k", "GET", "/v1/jobs/" + id).json().at("state") == "decoding"; });
  CHECK(s.as("k", "GET", "/v1/jobs/" + id).json().at("priority") == -1);
}

}  // namespace weir::tests::key_rights_test
