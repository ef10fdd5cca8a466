// Pages of other origins: what CORS says of a request, over every route.
#include "net/access/cors.h"

#include <catch2/catch.hpp>

#include "tests/support/http_client.h"
#include "tests/support/server_fixture.h"

namespace weir::tests::cors_test {

using namespace weir::net;

namespace {

const std::vector<std::string> allowed = {"https://app.example", "https://other.example"};

tests::server_options with_origins() {
  tests::server_options o;
  o.net.allow_origin = allowed;
  o.net.api_keys = {"secret"};
  return o;
}

constexpr const char* from_page = "Origin: https://app.example\r\n";

std::string preflight(std::string_view method) {
  return fmt::format(
      "{}Access-Control-Request-Method: {}\r\nAccess-Control-Request-Headers: authorization\r\n", from_page,
      method);
}

// An answer without a word of CORS.
void check_silent(const http_answer& a) {
  for (const auto& [name, value] : a.headers) {
    CAPTURE(name, value);
    CHECK_FALSE(name.starts_with("Access-Control-"));
  }
}

}  // namespace

TEST_CASE("cors: an origin of the list may read, letter for letter, and every answer varies by it") {
  const auto judge = [](std::string_view origin) {
    return judge_cors({.method = "GET", .target = "/v1/models", .origin = origin}, allowed);
  };
  CHECK(judge("https://app.example").origin == "https://app.example");
  CHECK(judge("https://other.example").origin == "https://other.example");
  for (const char* no : {"", "null", "https://app.example:443", "https://APP.example", "http://app.example",
                         "https://app.example.evil", "https://app.example,https://other.example"}) {
    CAPTURE(no);
    CHECK(judge(no).origin.empty());
    CHECK(judge(no).varies);
  }
  const auto none =
      judge_cors({.method = "GET", .target = "/v1/models", .origin = "https://app.example"}, {});
  CHECK(none.origin.empty());
  CHECK_FALSE(none.varies);
}

TEST_CASE("cors: a preflight is granted for the methods of a path that is open to pages") {
  const struct {
    const char *path, *method, *methods;
  } rows[] = {
      {"/v1/completions", "POST", "POST"},
      {"/v1/chat/completions", "POST", "POST"},
      {"/v1/messages", "POST", "POST"},
      {"/v1/messages/count_tokens", "POST", "POST"},
      {"/v1/models", "GET", "GET, HEAD"},
      {"/v1/models/m", "HEAD", "GET, HEAD"},
      {"/v1/tokenize", "POST", "POST"},
      {"/v1/detokenize", "POST", "POST"},
      {"/v1/jobs", "GET", "GET, HEAD"},
      {"/v1/jobs/x", "DELETE", "GET, HEAD, DELETE"},
      {"/v1/jobs/x/events", "GET", "GET, HEAD"},
      {"/v1/stats", "GET", "GET, HEAD"},
      {"/health", "GET", "GET, HEAD"},
      {"/weir.js", "GET", "GET, HEAD"},
      {"/v1/stream/tokens", "POST", ""},
      {"/v1/stream", "GET", ""},
      {"/metrics", "GET", ""},
      {"/v1/models", "POST", ""},
      {"/nothing", "GET", ""},
  };
  for (const auto& r : rows) {
    CAPTURE(r.path, r.method);
    cors_question q{
        .method = "OPTIONS", .target = r.path, .origin = "https://app.example", .wanted_method = r.method};
    CHECK(judge_cors(q, allowed).methods == r.methods);
    q.origin = "https://evil.example";
    CHECK(judge_cors(q, allowed).methods.empty());
    q.origin = "https://app.example";
    q.method = "GET";  // OPTIONS alone makes a preflight
    CHECK(judge_cors(q, allowed).methods.empty());
  }
}

TEST_CASE("cors: a preflight of a foreign origin is told so, where pages may be allowed at all") {
  const auto foreign = [](const char* method, const char* target, const char* origin,
                          std::span<const std::string> list) {
    return judge_cors({.method = method, .target = target, .origin = origin, .wanted_method = "POST"}, list)
        .foreign;
  };
  CHECK(foreign("OPTIONS", "/v1/completions", "https://evil.example", allowed));
  CHECK(foreign("OPTIONS", "/v1/completions", "https://evil.example", {}));
  CHECK(foreign("OPTIONS", "/v1/completions", "null", allowed));
  CHECK_FALSE(foreign("OPTIONS", "/v1/completions", "https://app.example", allowed));
  CHECK_FALSE(foreign("OPTIONS", "/v1/completions", "", allowed));  // from no page
  CHECK_FALSE(foreign("POST", "/v1/completions", "https://evil.example", allowed));
  CHECK_FALSE(foreign("OPTIONS", "/v1/stream/tokens", "https://evil.example", allowed));
  CHECK_FALSE(foreign("OPTIONS", "/nothing", "https://evil.example", allowed));
  const auto no = foreign_reply("https://evil.example");
  CHECK(no.status == 403);
  CHECK(no.code == "origin_forbidden");
  CHECK(no.problem.find("--allow-origin https://evil.example") != std::string::npos);
}

TEST_CASE("cors: a preflight is answered before a key is asked for, and runs nothing") {
  server_fixture f(with_origins());
  http_client c(f.port());
  const auto a = c.ask("OPTIONS", "/v1/messages", {}, preflight("POST"));
  CHECK(a.status == 204);
  CHECK(a.body().empty());
  CHECK(a.header("Content-Length").empty());
  CHECK(a.header("Access-Control-Allow-Origin") == "https://app.example");
  CHECK(a.header("Access-Control-Allow-Methods") == "POST");
  CHECK(a.header("Access-Control-Allow-Headers") == "Authorization, *");
  CHECK(a.header("Access-Control-Max-Age") == "7200");
  CHECK(a.header("Vary") == "Origin");
  CHECK(a.header("Access-Control-Allow-Credentials").empty());
  CHECK(c.get("/health").status == 200);  // the connection goes on
  CHECK(f.list_jobs().empty());
}

TEST_CASE("cors: a page of an allowed origin reads answers, streams and errors") {
  server_fixture f(with_origins());
  http_client c(f.port());
  const std::string page = from_page, as_key = page + "Authorization: Bearer secret\r\n";
  const auto check = [](const http_answer& a, unsigned status) {
    CHECK(a.status == status);
    CHECK(a.header("Access-Control-Allow-Origin") == "https://app.example");
    CHECK(a.header("Access-Control-Expose-Headers") == "*");
    CHECK(a.header("Vary").find("Origin") != std::string::npos);
    CHECK(a.header("Access-Control-Allow-Credentials").empty());
  };
  check(c.get("/v1/models", as_key), 200);
  check(c.get("/v1/models", page), 401);
  check(c.get("/v1/jobs/00000000000000000000000000000000", as_key), 404);
  check(c.post("/v1/completions", "{", as_key), 400);
  check(c.post("/v1/completions", R"({"prompt":"x","max_tokens":2,"stream":true})", as_key), 200);
  check(c.post("/v1/messages", "{", as_key), 400);
  check(c.get("/health", page), 200);
  const auto script = c.get("/weir.js", page);
  CHECK(script.header("Access-Control-Allow-Origin") == "*");
}

TEST_CASE("cors: everybody else, and the routes that are not for pages, are judged as they always were") {
  server_fixture f(with_origins());
  http_client c(f.port());
  const std::string key = "Authorization: Bearer secret\r\n", evil = "Origin: https://evil.example\r\n";
  const auto read = c.get("/v1/models", key + evil);
  CHECK(read.status == 200);
  CHECK(read.header("Vary") == "Origin");
  check_silent(read);
  check_silent(c.get("/v1/models", key));
  const auto asked =
      c.ask("OPTIONS", "/v1/models", {}, key + evil + "Access-Control-Request-Method: GET\r\n");
  CHECK(asked.status == 403);
  CHECK(asked.json().at("error").at("code") == "origin_forbidden");
  check_silent(asked);
  const auto stranger = c.ask("OPTIONS", "/v1/models", {}, evil + "Access-Control-Request-Method: GET\r\n");
  CHECK(stranger.status == 403);
  CHECK(c.ask("OPTIONS", "/v1/models", {}, evil).status == 401);  // no preflight
  const auto tokens = c.post("/v1/stream/tokens", "{}", key + from_page);
  CHECK(tokens.status == 200);
  CHECK(tokens.header("Vary").empty());
  check_silent(tokens);
  check_silent(c.ask("OPTIONS", "/v1/stream/tokens", {}, key + preflight("POST")));
  const auto host = c.ask("OPTIONS", "/v1/models", {}, preflight("GET") + "Host: evil.example\r\n");
  CHECK(host.status == 403);  // before the preflight is looked at
}

TEST_CASE("cors: without --allow-origin nothing is said of it") {
  server_fixture f;
  http_client c(f.port());
  const auto a = c.get("/v1/models", from_page);
  CHECK(a.status == 200);
  CHECK(a.header("Vary").empty());
  check_silent(a);
  const auto asked = c.ask("OPTIONS", "/v1/models", {}, preflight("GET"));
  CHECK(asked.status == 403);
  CHECK(asked.header("Vary").empty());
  CHECK(asked.json().at("error").at("message").as_string().find("--allow-origin https://app.example") !=
        std::string::npos);
  check_silent(asked);
}

}  // namespace weir::tests::cors_test
