// Whose job it is: the bearer key that let a client in decides whose turn it is, whichever way it came.
#include "tests/support/http_client.h"
#include "tests/support/server_fixture.h"
#include "tests/support/ws_client.h"

using namespace weir;
using namespace weir::tests;

namespace {

// A server of two keys that runs one job at a time, and that is busy.
struct busy_server {
  busy_server() : f(options()), busy(f.port()) {
    busy.send(busy.request("POST", "/v1/completions", R"({"prompt":"x","max_tokens":1000000,"stream":true})",
                           "Authorization: Bearer first\r\n"));
    f.until([&] { return f.service->stats().jobs.decoding == 1; });
  }

  static server_options options() {
    server_options o;
    o.sim = "rate=1000,prefill=100000000";
    o.owner.max_batch = 1;
    o.net.api_keys = {"first", "second"};
    o.shards = 1;  // two would tell the ends of their jobs in an order of their own
    return o;
  }

  void await_queue(std::uint32_t jobs) {
    f.until([&] { return f.service->stats().queue == jobs; });
  }

  // How long the prompts were of the jobs that ended, in order, once the server is no longer busy and `jobs` have.
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

const std::vector<std::uint32_t> taking_turns = {2, 5, 3, 4};

}  // namespace

TEST_CASE("keys: waiting jobs of two keys take turns over HTTP") {
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
  CHECK(s.order(taking_turns.size()) == taking_turns);
}

TEST_CASE("keys: waiting jobs of two keys take turns over WebSocket, however the key was said") {
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
  CHECK(s.order(taking_turns.size()) == taking_turns);
}
