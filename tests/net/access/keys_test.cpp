// A job belongs to the bearer key of its client, however the client sent the key. Waiting jobs of several
// keys alternate, and a key learns nothing of another key's jobs or prompts.
#include <catch2/catch.hpp>

#include "tests/support/http_client.h"
#include "tests/support/server_fixture.h"
#include "tests/support/ws_client.h"

namespace weir::tests::keys_test {
namespace {

// A server of two keys that runs one job at a time, and that is busy.
struct busy_server {
  busy_server() : f(options()), busy(f.port()) {
    busy.send(busy.request("POST", "/v1/completions", R"({"prompt":"x","max_tokens":1000000,"stream":true})",
                           "Authorization: Bearer first\r\n"));
    f.until([&] { return f.service->stats().engine.decoding == 1; });
  }

  static server_options options() {
    server_options o;
    o.sim = "rate=1000,prefill=100000000";
    o.owner.max_batch = 1;
    o.net.api_keys = {"first", "second"};
    o.shards = 1;  // two shards would report the ends of jobs in no fixed order
    return o;
  }

  void await_queue(std::uint32_t jobs) {
    f.until([&] { return f.service->stats().engine.queued == jobs; });
  }

  // Ends the busy job and waits until `jobs` jobs have ended. Returns the lengths of their prompts, in the
  // order of their ends.
  std::vector<std::uint32_t> order(std::size_t jobs) {
    busy.drop();
    std::vector<std::uint32_t> lengths;
    f.until([&] { return (lengths = ended()).size() >= jobs; });
    return lengths;
  }

  std::vector<std::uint32_t> ended() {
    std::vector<std::uint32_t> lengths;
    for (const auto& j : f.list_jobs())
      if (j.finish_reason == "length") lengths.insert(lengths.begin(), j.prompt_tokens);
    return lengths;
  }

  server_fixture f;
  http_client busy;
};

std::string authorization(std::string_view key) { return fmt::format("Authorization: Bearer {}\r\n", key); }

const std::vector<std::uint32_t> alternating = {2, 5, 3, 4};

}  // namespace

TEST_CASE("keys: waiting jobs of two keys alternate over HTTP") {
  busy_server s;
  std::vector<std::unique_ptr<http_client>> clients;
  const auto ask = [&](std::string_view key, std::size_t prompt) {
    auto& c = *clients.emplace_back(std::make_unique<http_client>(s.f.port()));
    const auto body = fmt::format(R"({{"prompt":"{}","max_tokens":2}})", std::string(prompt, 'x'));
    c.send(c.request("POST", "/v1/completions", body, authorization(key)));
    s.await_queue(static_cast<std::uint32_t>(clients.size()));
  };
  for (const std::size_t prompt : {2, 3, 4}) ask("first", prompt);
  ask("second", 5);
  CHECK(s.order(alternating.size()) == alternating);
}

TEST_CASE("keys: waiting jobs of two keys alternate over WebSocket, however the key was sent") {
  busy_server s;
  ws_client first(s.f.port(), {.authorization = "Bearer first"});
  const auto how = GENERATE(as<std::string>(), "header", "subprotocol", "frame");
  CAPTURE(how);
  ws_options o;
  if (how == "header") o.authorization = "Bearer second";
  if (how == "subprotocol") o.protocols = "weir.v1, bearer.c2Vjb25k";
  ws_client second(s.f.port(), o);
  if (how == "frame") second.send(R"({"type":"session.auth","token":"second"})");
  std::uint32_t sent = 0;
  const auto ask = [&](ws_client& c, std::size_t prompt) {
    c.send(fmt::format(R"({{"type":"response.create","id":"{0}","input":"{0}","max_tokens":2}})",
                       std::string(prompt, 'x')));
    s.await_queue(++sent);
  };
  for (const std::size_t prompt : {2, 3, 4}) ask(first, prompt);
  ask(second, 5);
  CHECK(s.order(alternating.size()) == alternating);
}

namespace {

// A server of two keys, and a job of the first that runs until it is cancelled.
struct two_keys {
  two_keys() : f(options()), first(f.port()), second(f.port()) {
    first.send(first.request("POST", "/v1/completions",
                             R"({"prompt":"x","max_tokens":1000000,"stream":true})", authorization("first")));
    const auto said = first.read_until("\"object\"");
    id = said.substr(said.find("\"id\":\"cmpl-") + 11, 32);
    f.until([&] { return state() == "decoding"; });
  }
  static server_options options() {
    server_options o;
    o.sim = "rate=100,prefill=100000000";
    o.net.api_keys = {"first", "second"};
    return o;
  }
  http_answer as(std::string_view key, std::string_view method, std::string_view target) {
    return second.ask(method, target, {}, authorization(key));
  }
  std::string state() {
    return std::string(as("first", "GET", "/v1/jobs/" + id).json().at("state").as_string());
  }

  server_fixture f;
  http_client first, second;
  std::string id;
};

}  // namespace

TEST_CASE("keys: another key's job is not there, to be listed, looked at or cancelled") {
  two_keys s;
  const auto path = "/v1/jobs/" + s.id;
  REQUIRE(s.as("first", "GET", path).status == 200);
  CHECK(s.as("first", "GET", "/v1/jobs").json().at("jobs").as_array().size() == 1);
  CHECK(s.as("second", "GET", "/v1/jobs").json().at("jobs").as_array().empty());
  const auto none = s.as("second", "GET", "/v1/jobs/" + std::string(32, '0'));
  for (const char* method : {"GET", "DELETE"}) {
    const auto a = s.as("second", method, path);
    CHECK(a.status == 404);
    CHECK(a.body() == none.body());  // the same answer as for a job that never was
  }
  ws_client ws(s.f.port(), {.authorization = "Bearer second"});
  ws.send(R"({"type":"response.cancel","response_id":")" + s.id + "\"}");
  CHECK(ws.read("error").at("code") == "not_found");
  CHECK(s.state() == "decoding");

  ws_client own(s.f.port(), {.authorization = "Bearer first"});
  own.send(R"({"type":"response.cancel","response_id":")" + s.id + "\"}");
  s.f.until([&] { return s.state() == "finished"; });
  CHECK(s.as("second", "GET", path).status == 404);
  CHECK(s.as("second", "DELETE", path).status == 404);
  CHECK(s.as("second", "GET", "/v1/jobs").json().at("jobs").as_array().empty());
  CHECK(s.as("first", "DELETE", path).status == 200);
}

TEST_CASE("keys: what is computed for a key serves that key alone, unless it is to be shared") {
  auto o = two_keys::options();
  o.share_prefixes = GENERATE(false, true);
  server_fixture f(o);
  http_client c(f.port());
  const auto cached = [&](const char* key, const std::string& more = {}) {
    const auto a =
        c.post("/v1/completions", R"({"max_tokens":1,"prompt":")" + std::string(200, 'p') + '"' + more + "}",
               authorization(key));
    REQUIRE(a.status == 200);
    return a.json().at("usage").at("prompt_tokens_details").at("cached_tokens").to_number<int>();
  };
  CHECK(cached("first") == 0);
  CHECK(cached("first") == 192);
  CHECK(cached("second") == (o.share_prefixes ? 192 : 0));
  CHECK(cached("second") == 192);
  CHECK(cached("first", R"(,"cache_salt":"s")") == 0);
  CHECK(cached("second", R"(,"cache_salt":"s")") == (o.share_prefixes ? 192 : 0));
}

}  // namespace weir::tests::keys_test
