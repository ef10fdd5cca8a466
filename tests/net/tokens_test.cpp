// Browser tokens at a running server: what one opens, what it is refused, and whose jobs it sees.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <ctime>

#include "net/access/bearer.h"
#include "net/access/handshake.h"
#include "tests/support/http_client.h"
#include "tests/support/server_fixture.h"
#include "tests/support/ws_client.h"

namespace weir::tests::tokens_test {
namespace {

std::string authorization(std::string_view key) { return fmt::format("Authorization: Bearer {}\r\n", key); }

server_options with_keys() {
  server_options o = slow();
  o.net.api_keys = {"first", "second"};
  return o;
}

struct token_server {
  explicit token_server(server_options o = with_keys()) : f(std::move(o)), http(f.port()) {}

  http_answer ask_for(std::string_view body, std::string_view key = "first") {
    return http.post("/v1/stream/tokens", body, authorization(key));
  }
  std::string token(std::string_view body = "{}", std::string_view key = "first") {
    const auto a = ask_for(body, key);
    REQUIRE(a.status == 200);
    return std::string(a.json().at("token").as_string());
  }
  http_answer as(std::string_view bearer, std::string_view method, std::string_view target,
                 std::string_view body = {}, std::string_view more = {}) {
    return http.ask(method, target, body, authorization(bearer) + std::string(more));
  }
  // Options of a socket that is let in by this token.
  static ws_options by(std::string_view token) {
    ws_options o;
    o.protocols = "weir.v1, bearer." + net::encode_base64url(token);
    return o;
  }
  // Ids of the jobs that the token's user sees.
  std::vector<std::string> own_jobs(std::string_view token) {
    std::vector<std::string> ids;
    const auto stats = as(token, "GET", "/v1/stats").json();
    for (const auto& j : stats.at("own_jobs").as_array()) ids.emplace_back(j.at("id").as_string());
    return ids;
  }

  // The state of a job of the first key or of its users.
  std::string state_of(const std::string& id) {
    return std::string(as("first", "GET", "/v1/jobs/" + id).json().at("state").as_string());
  }

  server_fixture f;
  http_client http;
};

// A frame that begins a job, which runs until it is cancelled.
std::string create(std::string_view id, std::string_view more = {}) {
  return fmt::format(R"({{"type":"response.create","id":"{}","input":"x","max_tokens":100000{}}})", id, more);
}

std::string cancel(std::string_view response_id) {
  return fmt::format(R"({{"type":"response.cancel","response_id":"{}"}})", response_id);
}

// Begins a job and returns its response_id.
std::string begin_job(ws_client& c) {
  c.send(create("a"));
  return std::string(c.read("response.created").at("response_id").as_string());
}

}  // namespace

TEST_CASE("tokens: a key gets a token that lets a page in, however the token is sent") {
  token_server s;
  const auto before = std::time(nullptr);
  const auto answer = s.ask_for(R"({"ttl_s":60})");
  REQUIRE(answer.status == 200);
  CHECK(answer.header("Cache-Control") == "no-store");
  const auto expires = answer.json().at("expires_at").as_int64();
  CHECK(expires >= before + 59);
  CHECK(expires <= std::time(nullptr) + 61);  // time() may lag behind the clock of the token
  const std::string token(answer.json().at("token").as_string());
  ws_options o = token_server::by(token);
  const auto how = GENERATE(as<std::string>(), "subprotocol", "header", "frame");
  CAPTURE(how);
  if (how != "subprotocol") o.protocols = "weir.v1";
  if (how == "header") o.authorization = "Bearer " + token;
  ws_client c(s.f.port(), o);
  if (how == "frame") c.send(fmt::format(R"({{"type":"session.auth","token":"{}"}})", token));
  CHECK(c.read().at("type") == "session.created");
  CHECK(!begin_job(c).empty());
}

TEST_CASE("tokens: the route is refused to a stranger, and is not there where no key is needed") {
  token_server s;
  CHECK(s.http.post("/v1/stream/tokens", "{}").status == 401);
  CHECK(s.http.get("/v1/stream/tokens", authorization("first")).status == 405);
  const auto odd = s.ask_for(R"({"ttl_s":86401})");
  CHECK(odd.status == 400);
  CHECK(odd.error().at("param") == "ttl_s");
  server_fixture open;
  http_client c(open.port());
  CHECK(c.post("/v1/stream/tokens", "{}").status == 404);
  CHECK(c.post("/v1/stream/tokens", "{}", "Content-Type: text/plain\r\n").status == 404);
}

TEST_CASE("tokens: a token opens models and stats, and nothing else over HTTP") {
  token_server s;
  const auto token = s.token();
  CHECK(s.as(token, "GET", "/v1/models").status == 200);
  CHECK(s.as(token, "GET", "/v1/models/sim").status == 200);
  CHECK(s.as(token, "GET", "/v1/stats").json().as_object().contains("own_jobs"));
  CHECK_FALSE(s.as(token, "GET", "/v1/stats").json().as_object().contains("keys"));
  const struct {
    const char *method, *target, *body;
  } rows[] = {
      {"POST", "/v1/stream/tokens", "{}"},
      {"POST", "/v1/completions", R"({"prompt":"x"})"},
      {"POST", "/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}]})"},
      {"POST", "/v1/tokenize", R"({"text":"x"})"},
      {"POST", "/v1/detokenize", R"({"ids":[1]})"},
      {"GET", "/v1/jobs", ""},
      {"GET", "/v1/jobs/00000000000000000000000000000000", ""},
      {"DELETE", "/v1/jobs/00000000000000000000000000000000", ""},
      {"GET", "/v1/nothing", ""},
  };
  for (const auto& r : rows) {
    CAPTURE(r.method, r.target);
    const auto a = s.as(token, r.method, r.target, r.body);
    CHECK(a.status == 403);
    CHECK(a.error().at("code") == "token_forbidden");
  }
}

TEST_CASE("tokens: forged, truncated and altered tokens are keys that nobody knows") {
  token_server s;
  token_server other;  // with the same keys, and a secret of its own
  const auto token = s.token();
  const auto cut = token.substr(0, token.size() - 1);
  auto altered = token;
  altered[20] = altered[20] == 'A' ? 'B' : 'A';
  for (const auto& bad :
       {other.token(), cut, altered, token + "A", token + "=", std::string("weir_token_")}) {
    const auto a = s.as(bad, "GET", "/v1/models");
    CHECK(a.status == 401);
    CHECK(a.error().at("code") == "invalid_api_key");
    CHECK(a.body().find(bad) == std::string::npos);
    CHECK(ws_client(s.f.port(), token_server::by(bad)).until_closed() == 4401);
    ws_client c(s.f.port());
    c.send(fmt::format(R"({{"type":"session.auth","token":"{}"}})", bad));
    CHECK(c.until_closed() == 4401);
  }
}

TEST_CASE("tokens: a secret of a file makes tokens outlive the server, but not their key") {
  auto o = with_keys();
  o.net.token_secret = std::string(32, 's');
  token_server before(o);
  const auto first = before.token("{}", "first"), second = before.token("{}", "second");
  o.net.api_keys = {"second", "third"};
  token_server after(o);
  CHECK(after.as(second, "GET", "/v1/models").status == 200);
  CHECK(after.as(first, "GET", "/v1/models").status == 401);
}

TEST_CASE("tokens: an expired token starts nothing, and its open socket lives on") {
  token_server s;
  const auto token = s.token(R"({"ttl_s":1,"sub":"u"})");
  ws_client c(s.f.port(), token_server::by(token));
  REQUIRE(c.read().at("type") == "session.created");
  s.f.until([&] { return s.as(token, "GET", "/v1/models").status == 401; });
  CHECK(s.as(token, "GET", "/v1/stats").error().at("code") == "token_expired");
  CHECK(ws_client(s.f.port(), token_server::by(token)).until_closed() == 4401);

  c.send(create("a"));
  const auto refused = c.read("error");
  CHECK(refused.at("code") == "token_expired");
  CHECK(refused.at("id") == "a");
  c.send(R"({"type":"ping","ts":1})");
  CHECK(c.read("pong").at("ts") == 1);
  c.send(fmt::format(R"({{"type":"session.auth","token":"{}"}})", s.token(R"({"sub":"u"})")));
  CHECK(!begin_job(c).empty());
}

TEST_CASE("tokens: a token for an origin is refused to pages of another, and to whoever names none") {
  auto o = with_keys();
  o.net.allow_origin = {"https://app.example", "https://other.example"};
  token_server s(o);
  const auto token = s.token(R"({"origin":"https://app.example"})");
  const auto connect = [&](const std::string& origin) {
    ws_options w = token_server::by(token);
    w.origin = origin;
    return ws_client(s.f.port(), w).status();
  };
  CHECK(connect("https://app.example") == 101);
  CHECK(connect("https://other.example") == 403);
  CHECK(connect("") == 403);
  // A token gives an origin no right that the server does not give it.
  const auto elsewhere = s.token(R"({"origin":"https://elsewhere.example"})");
  ws_options w = token_server::by(elsewhere);
  w.origin = "https://elsewhere.example";
  CHECK(ws_client(s.f.port(), w).status() == 403);

  ws_options later;
  later.origin = "https://other.example";
  ws_client c(s.f.port(), later);
  c.send(fmt::format(R"({{"type":"session.auth","token":"{}"}})", token));
  CHECK(c.until_closed() == 4403);

  CHECK(s.as(token, "GET", "/v1/models").status == 200);  // a page of the same origin names none here
  CHECK(s.as(token, "GET", "/v1/models", {}, "Origin: https://app.example\r\n").status == 200);
  const auto a = s.as(token, "GET", "/v1/models", {}, "Origin: https://other.example\r\n");
  CHECK(a.status == 403);
  CHECK(a.error().at("code") == "origin_forbidden");
}

TEST_CASE("tokens: a token for a model shows and takes that model alone") {
  auto o = with_keys();
  o.net.token_secret = std::string(32, 's');
  token_server s(o);
  ws_client c(s.f.port(), token_server::by(s.token(R"({"model":"sim"})")));
  CHECK(c.read("session.created").at("models") == boost::json::array{"sim"});
  CHECK(!begin_job(c).empty());
  c.send(create("b", R"(,"model":"other")"));
  CHECK(c.until_closed() == 4403);

  // a token of a model that was served once
  net::token_claims claims;
  claims.model = "other";
  claims.expires_ms = net::unix_ms() + 60'000;
  const net::known_bearers keys(o.net.api_keys, o.net.token_secret);
  const auto other = keys.issue(net::identity_of(net::hash_of_key("first")), claims);
  CHECK(s.as(other, "GET", "/v1/models").json().at("data").as_array().empty());
  CHECK(s.as(other, "GET", "/v1/models/sim").status == 404);
  ws_client d(s.f.port(), token_server::by(other));
  CHECK(d.read("session.created").at("models").as_array().empty());
  d.send(create("a"));  // the default is the token's model, which is not served
  CHECK(d.read("error").at("code") == "model_not_found");
}

TEST_CASE("tokens: a token for a model that is not served is not given") {
  token_server s;
  const auto a = s.ask_for(R"({"model":"other"})");
  CHECK(a.status == 404);
  CHECK(a.error().at("code") == "model_not_found");
  CHECK(a.error().at("param") == "model");
}

TEST_CASE("tokens: max_jobs counts the jobs of a sub over all its sockets, detached ones too") {
  token_server s;
  const auto body = R"({"max_jobs":2,"sub":"u"})";
  auto one = std::make_unique<ws_client>(s.f.port(), token_server::by(s.token(body)));
  ws_client two(s.f.port(), token_server::by(s.token(body)));
  CHECK(two.read("session.created").at("limits").at("max_jobs") == 2);
  const auto detached = begin_job(*one);
  one->drop();
  const auto own = begin_job(two);
  two.send(create("b"));
  const auto refused = two.read("error");
  CHECK(refused.at("code") == "too_many_jobs");
  CHECK(refused.at("id") == "b");
  ws_client elsewhere(s.f.port(), token_server::by(s.token(R"({"max_jobs":2,"sub":"v"})")));
  CHECK(!begin_job(elsewhere).empty());

  two.send(cancel(own));
  CHECK(two.read("response.done").at("status") == "cancelled");
  two.send(create("b"));  // a client that reads the end of a job has its place again
  CHECK(two.read("response.created").at("id") == "b");
  two.send(cancel(detached));
  s.f.until([&] { return s.state_of(detached) == "finished"; });
  two.send(create("c"));
  CHECK(two.read("response.created").at("id") == "c");
}

TEST_CASE("tokens: another sub's job is not there, and a renewed token has the jobs of its sub") {
  token_server s;
  const auto token = s.token(R"({"sub":"u"})");
  ws_client c(s.f.port(), token_server::by(token));
  const auto id = begin_job(c);
  const auto renewed = s.token(R"({"sub":"u","ttl_s":120})");
  s.f.until([&] { return s.own_jobs(token) == std::vector{id}; });
  CHECK(s.own_jobs(renewed) == std::vector{id});

  const auto same_sub_of_another_key = s.token(R"({"sub":"u"})", "second");
  for (const auto& other : {s.token(R"({"sub":"v"})"), s.token(), s.token(), same_sub_of_another_key}) {
    CHECK(s.own_jobs(other).empty());
    ws_client w(s.f.port(), token_server::by(other));
    w.send(cancel(id));
    CHECK(w.read("error").at("code") == "not_found");
  }
  // The key itself has the jobs of its users; another key does not.
  s.f.until([&] { return s.state_of(id) == "decoding"; });
  CHECK(s.as("second", "GET", "/v1/jobs/" + id).status == 404);

  ws_client again(s.f.port(), token_server::by(renewed));
  again.send(cancel(id));
  CHECK(c.read("response.done").at("status") == "cancelled");
}

TEST_CASE("tokens: a token sees no job of its key") {
  token_server s;
  ws_options o;
  o.authorization = "Bearer first";
  ws_client c(s.f.port(), o);
  const auto id = begin_job(c);
  const auto token = s.token();
  CHECK(s.own_jobs(token).empty());
  ws_client w(s.f.port(), token_server::by(token));
  w.send(cancel(id));
  CHECK(w.read("error").at("code") == "not_found");
  CHECK(s.as("first", "GET", "/v1/jobs").json().at("jobs").as_array().size() == 1);
}

TEST_CASE("tokens: what is computed for a sub serves that sub alone, also where keys share") {
  auto o = with_keys();
  o.sim = "rate=5000,prefill=100000000";
  o.share_prefixes = GENERATE(false, true);
  token_server s(o);
  const auto cached = [&](const ws_options& how) {
    ws_client c(s.f.port(), how);
    c.send(R"({"type":"response.create","id":"a","max_tokens":1,"input":")" + std::string(200, 'p') + "\"}");
    return c.read("response.done").at("usage").at("cached_tokens").to_number<int>();
  };
  const auto u = [&] { return token_server::by(s.token(R"({"sub":"u"})")); };
  ws_options key;
  key.authorization = "Bearer first";
  CHECK(cached(key) == 0);
  CHECK(cached(u()) == 0);
  CHECK(cached(u()) == 192);
  CHECK(cached(token_server::by(s.token(R"({"sub":"v"})"))) == 0);
  CHECK(cached(token_server::by(s.token())) == 0);
  CHECK(cached(token_server::by(s.token(R"({"sub":"u"})", "second"))) == 0);
  CHECK(cached(key) == 192);
}

TEST_CASE("tokens: jobs of a token wait in the line of its key") {
  auto o = with_keys();
  o.sim = "rate=1000,prefill=100000000";
  o.owner.max_batch = 1;
  o.shards = 1;
  token_server s(o);
  ws_client busy(s.f.port(), token_server::by(s.token()));
  const auto running = begin_job(busy);
  s.f.until([&] { return s.f.service->stats().engine.decoding == 1; });
  ws_client page(s.f.port(), token_server::by(s.token()));
  ws_options by_key, by_other;
  by_key.authorization = "Bearer first";
  by_other.authorization = "Bearer second";
  ws_client first(s.f.port(), by_key), second(s.f.port(), by_other);
  std::uint32_t sent = 0;
  const auto ask = [&](ws_client& c, std::size_t prompt) {
    c.send(fmt::format(R"({{"type":"response.create","id":"{0}","input":"{0}","max_tokens":2}})",
                       std::string(prompt, 'x')));
    ++sent;
    s.f.until([&] { return s.f.service->stats().engine.queued == sent; });
  };
  ask(first, 2);
  ask(page, 3);
  ask(page, 4);
  ask(second, 5);
  busy.send(cancel(running));
  std::vector<std::uint32_t> order;
  s.f.until([&] {
    order.clear();
    for (const auto& j : s.f.list_jobs())
      if (j.finish_reason == "length") order.insert(order.begin(), j.prompt_tokens);
    return order.size() == sent;
  });
  CHECK(order == std::vector<std::uint32_t>{2, 5, 3, 4});
}

}  // namespace weir::tests::tokens_test
