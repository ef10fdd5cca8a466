// The line that a log has of each request: what it says, and what has none.
#include "net/request_record.h"

#include <catch2/catch.hpp>

#include <mutex>

#include "tests/support/http_client.h"
#include "tests/support/server_fixture.h"
#include "tests/support/ws_talk.h"

namespace weir::tests::request_record_test {

using net::request_record;

namespace {

// A server, and the records of its requests.
struct recorded {
  explicit recorded(std::vector<net::api_key> keys = {}) : server(options(*this, std::move(keys))) {}

  static server_options options(recorded& me, std::vector<net::api_key> keys) {
    server_options o;
    o.net.api_keys = std::move(keys);
    o.net.on_request = [&me](const request_record& r) {
      const std::lock_guard hold(me.lock);
      me.all.push_back(r);
    };
    return o;
  }
  std::vector<request_record> records(std::size_t count) {
    const auto now = [this] {
      const std::lock_guard hold(lock);
      return all;
    };
    server_fixture::until([&] { return now().size() >= count; });
    return now();
  }

  std::mutex lock;
  std::vector<request_record> all;
  server_fixture server;
};

net::api_key named(const char* key, const char* name) {
  net::key_rights rights;
  rights.name = name;
  return {key, rights};
}

}  // namespace

TEST_CASE("record: a request over HTTP has one, with its answer's id and its key's name") {
  recorded r({named("secret", "alice"), "other"});
  http_client c(r.server.port());
  const auto as = [](const char* key) { return fmt::format("Authorization: Bearer {}\r\n", key); };
  const auto answer = c.post("/v1/completions", R"({"prompt":"hidden words","max_tokens":5})", as("secret"));
  REQUIRE(answer.status == 200);
  const auto one = r.records(1).front();
  CHECK("cmpl-" + one.id == answer.json().at("id").as_string());
  CHECK(one.request_id == answer.header("x-request-id"));
  CHECK(one.key == "alice");
  CHECK(one.route == "/v1/completions");
  CHECK(one.model == "sim");
  CHECK(one.choices == 1);
  CHECK(one.input_tokens ==
        static_cast<std::uint64_t>(answer.json().at("usage").at("prompt_tokens").as_int64()));
  CHECK(one.output_tokens == 5);
  CHECK(one.reason == "length");
  CHECK(one.code.empty());
  CHECK(one.total_ms >= one.first_ms);
  for (const std::string& line : {net::as_text(one), net::as_json_members(one)})
    CHECK(line.find("hidden") == std::string::npos);
  c.post("/v1/messages", R"({"messages":[{"role":"user","content":"x"}],"max_tokens":1})", as("other"));
  CHECK(r.records(2).back().key == "(unnamed)");
  CHECK(r.records(2).back().route == "/v1/messages");
}

TEST_CASE("record: many choices are one, with all of their tokens") {
  recorded r;
  http_client c(r.server.port());
  REQUIRE(
      c.post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"x"}],"max_tokens":4,"n":3})")
          .status == 200);
  REQUIRE(c.post("/v1/completions", R"({"prompt":["a","b"],"max_tokens":2})").status == 200);
  const auto all = r.records(2);
  REQUIRE(all.size() == 2);
  CHECK(all[0].choices == 3);
  CHECK(all[0].output_tokens == 12);
  CHECK(all[0].reason == "length");
  CHECK(all[0].route == "/v1/chat/completions");
  CHECK(all[1].choices == 2);
  CHECK(all[1].key.empty());
}

TEST_CASE("record: each response of a WebSocket has one, cancelled ones too") {
  recorded r;
  ws_client c(r.server.port());
  c.read("session.created");
  c.send(create("a", R"("max_tokens":3)"));
  c.send(create("b", R"("max_tokens":100000,"on_disconnect":"cancel")"));
  server_fixture::until([&] { return r.records(1).size() == 1; });
  c.send(R"({"type":"response.cancel","id":"b"})");
  const auto all = r.records(2);
  CHECK(all[0].route == "weir.v1");
  CHECK(all[0].reason == "length");
  CHECK(all[1].reason == "cancel");
  CHECK(all[0].request_id == all[1].request_id);  // of the handshake
}

TEST_CASE("record: a request that the service refuses has one with the error's code") {
  recorded r;
  http_client c(r.server.port());
  REQUIRE(c.post("/v1/completions", R"({"prompt":"x","temperature":99})").status == 400);
  REQUIRE(c.post("/v1/completions", R"({"prompt":"x","model":"\u001b[2Jevil"})").status == 404);
  const auto all = r.records(2);
  for (const auto& one : all) {
    CHECK(one.reason == "refused");
    CHECK(one.output_tokens == 0);
    CHECK(one.model.empty());  // as the client wrote it, a name is in no log
  }
  CHECK(all[0].code == "invalid_param");
  CHECK(all[1].code == "model_not_found");
}

TEST_CASE("record: what makes no job has none, whoever asks") {
  recorded r({named("secret", "alice")});
  http_client c(r.server.port());
  const std::string key = "Authorization: Bearer secret\r\n";
  for (const char* path : {"/health", "/health/live", "/health/ready", "/weir.js"}) c.get(path);
  for (const char* path : {"/metrics", "/v1/models", "/v1/stats", "/v1/jobs", "/nothing"}) c.get(path, key);
  c.post("/v1/completions", R"({"prompt":"x"})");                                       // no key
  c.post("/v1/completions", R"({"prompt":"x"})", "Authorization: Bearer guessed\r\n");  // a wrong one
  c.post("/v1/completions", "{", key);
  c.post("/v1/tokenize", R"({"text":"x"})", key);
  c.post("/v1/completions", R"({"prompt":"x","max_tokens":1})", key);
  const auto all = r.records(1);
  CHECK(all.size() == 1);
  CHECK(all.front().output_tokens == 1);
}

TEST_CASE("record: times have units and few digits, in text and in JSON") {
  request_record r;
  r.id = "0123";
  r.request_id = "abcd";
  r.key = "alice";
  r.route = "/v1/completions";
  r.model = "m\"x";
  r.choices = 2;
  r.input_tokens = 20;
  r.output_tokens = 50;
  r.queue_ms = 0.36251;
  r.first_ms = 12.0499;
  r.total_ms = 310.4;
  r.reason = "stop+length";
  CHECK(net::as_text(r) ==
        "id=0123 request_id=abcd key=alice route=/v1/completions model=m\"x choices=2 in=20 out=50 cached=0 "
        "queue=0.36ms first=12.0ms total=310ms reason=stop+length");
  CHECK(boost::json::parse("{" + net::as_json_members(r) + "}") ==
        boost::json::parse(R"({"id":"0123","request_id":"abcd","key":"alice","route":"/v1/completions",
          "model":"m\"x","choices":2,"input_tokens":20,"output_tokens":50,"cached_tokens":0,"queue_ms":0.363,
          "first_ms":12.05,"total_ms":310.4,"reason":"stop+length"})"));
  r = {};
  r.id = "0123";
  r.total_ms = 12500;
  r.reason = "refused";
  r.code = "overloaded";
  CHECK(net::as_text(r) == "id=0123 in=0 out=0 cached=0 total=12.5s reason=refused code=overloaded");
}

}  // namespace weir::tests::request_record_test
