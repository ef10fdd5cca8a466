// What clients make the process hold, route by route: each test holds what it can without reading, and
// compares resident memory above that of the idle server with the account of clients' memory. When the
// clients have gone, the account is what it was.
#include <malloc.h>

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>
#include <deque>
#include <string>
#include <vector>

#include "net/metrics/resident.h"
#include "tests/support/data.h"
#include "tests/support/http_client.h"
#include "tests/support/raw_client.h"
#include "tests/support/server_fixture.h"
#include "tests/support/toy_directory.h"
#include "tests/support/ws_client.h"

namespace weir::tests::resident_test {

namespace {

constexpr std::uint64_t mib = 1 << 20;
constexpr int least_receive_buffer = 1;

std::string post(std::string_view target, std::string_view body, std::size_t announced = 0) {
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
      "{}\r\n\r\n{}",
      target, announced ? announced : body.size(), body);
}

std::string repeated(std::string_view item, std::size_t count) {
  std::string out(item);
  for (std::size_t i = 1; i < count; ++i) out.append(",").append(item);
  return out;
}

// A server whose allocator has what its threads need once, and the clients that it holds memory for.
class held {
 public:
  explicit held(server_options o = {}) : f(changed(std::move(o))) {
    http_client(f.port()).post("/v1/tokenize", R"({"text":"warm"})");
    http_client(f.port()).post("/v1/completions", R"({"prompt":"x","max_tokens":2,"n":64,"logprobs":20})");
    f.until_quiet();
    f.until([&] { return used() == 0; });
    ::malloc_trim(0);
    before_ = ended();
    idle_ = net::resident_bytes();
  }

  std::uint64_t used() const { return f.service->memory()->used(); }

  // Sends this request over `count` connections, which do not read.
  void send(std::string_view request, int count) {
    for (int i = 0; i < count; ++i) clients_.emplace_back(f.port(), least_receive_buffer).send(request);
  }
  // Waits until so many more jobs have ended, and no text is worked on.
  void until_made(std::size_t jobs) {
    f.until([&] { return ended() >= before_ + jobs && f.service->stats().text.tasks == 0; });
  }
  // Compares once the account is `least`; then the clients go, those of the caller by `leave`.
  void compare(
      std::uint64_t least, const std::function<void()>& leave = [] {}) {
    f.until([&] { return used() >= least; });
    ::malloc_trim(0);
    const auto account = used(), now = net::resident_bytes(), above = now - std::min(now, idle_);
    INFO("resident " << above / mib << " MiB, account " << account / mib << " MiB");
    CHECK(above <= account + account / 10 + 32 * mib);
    clients_.clear();
    leave();
    f.until([&] { return used() == 0; });
  }

  server_fixture f;

 private:
  static server_options changed(server_options o) {
    o.sim = "rate=1000000,prefill=100000000";
    static_cast<core::queue_settings&>(o.owner) = core::queue_of(10'000);
    o.net.limits.retain = std::chrono::milliseconds(0);
    o.net.limits.detach_grace = std::chrono::milliseconds(0);
    return o;
  }
  std::size_t ended() {
    const auto all = f.list_jobs();
    return static_cast<std::size_t>(std::ranges::count(all, "finished", &actors::job_view::state));
  }
  std::uint64_t idle_ = 0;
  std::size_t before_ = 0;  // jobs that had ended before
  std::deque<raw_client> clients_;
};

constexpr std::string_view said = R"({"messages":[{"role":"user","content":"hi"}],)";

}  // namespace

TEST_CASE("resident: answers of /v1/tokenize that are not read are in the account") {
  held h;
  h.send(post("/v1/tokenize", R"({"text":")" + std::string(2'000'000, 'x') + "\"}"), 20);
  h.compare(20 * 8'000'000);
}

TEST_CASE("resident: answers of /v1/detokenize that are not read are in the account") {
  held h;
  h.send(post("/v1/detokenize", R"({"ids":[)" + repeated("104", 250'000) + "]}"), 40);
  h.compare(40 * 1'250'000);
}

TEST_CASE("resident: whole answers with logprobs that are not read are in the account") {
  held h;
  const std::string shape = R"("max_tokens":400,"n":16,)";
  h.send(post("/v1/completions", R"({"prompt":"x",)" + shape + R"("logprobs":20})"), 20);
  h.send(post("/v1/chat/completions", std::string(said) + shape + R"("logprobs":true,"top_logprobs":20})"),
         20);
  h.until_made(640);
  h.compare(640 * 400 * 21 * sizeof(core::token_logprob));
}

TEST_CASE("resident: streams with logprobs whose readers lag are in the account") {
  held h;
  const std::string shape = R"("stream":true,"max_tokens":400,"n":16,)";
  h.send(post("/v1/completions", R"({"prompt":"x",)" + shape + R"("logprobs":20})"), 20);
  h.send(post("/v1/chat/completions", std::string(said) + shape + R"("logprobs":true,"top_logprobs":20})"),
         20);
  h.until_made(640);
  h.compare(640 * 400 * 21 * sizeof(core::token_logprob));
}

TEST_CASE("resident: long answers of /v1/messages that are not read are in the account") {
  held h;
  h.send(post("/v1/messages", std::string(said) + R"("max_tokens":60000})"), 20);
  h.send(post("/v1/messages", std::string(said) + R"("max_tokens":60000,"stream":true})"), 20);
  h.until_made(40);
  h.compare(40 * 60'000 * 16);
}

TEST_CASE("resident: logprobs of prompts that are not read are in the account") {
  const temporary_dir dir;
  write_toy_directory(dir.path());
  server_options o;
  o.model_dir = dir.path().string();
  o.owner.kv_tokens = 1 << 16;
  held h(std::move(o));
  constexpr std::size_t requests = 8, prompts = 16, tokens = 200;
  const std::string prompt = "[" + repeated("104", tokens) + "]";
  const std::string body =
      R"({"prompt":[)" + repeated(prompt, prompts) + R"(],"prompt_logprobs":20,"max_tokens":1})";
  const auto read = http_client(h.f.port()).post("/v1/completions", body);
  INFO(read.body().substr(0, 300));
  REQUIRE(read.status == 200);
  h.send(post("/v1/completions", body), requests);
  h.until_made((1 + requests) * prompts);
  h.compare(requests * prompts * (tokens - 1) * sizeof(core::scored_token));
}

TEST_CASE("resident: bodies that are half sent are in the account") {
  held h;
  constexpr std::size_t bytes = 2'000'000;
  h.send(post("/v1/chat/completions", std::string(said) + std::string(bytes - 200, ' '), bytes), 60);
  h.compare(60 * bytes);
}

TEST_CASE("resident: requests of many short values that wait are in the account") {
  held h;
  const std::string many = repeated(R"({"role":"user","content":"a"})", 40'000);
  h.send(post("/v1/chat/completions", R"({"messages":[)" + many + R"(],"max_tokens":1})"), 40);
  h.compare(40 * mib);
}

TEST_CASE("resident: what WebSockets are behind by, and logs that are followed again, are in the account") {
  held h;
  std::deque<ws_client> clients;
  std::vector<std::string> jobs;
  constexpr int sockets = 12, lanes = 8;
  ws_options stalled;
  stalled.receive_buffer = least_receive_buffer;
  for (int i = 0; i < sockets; ++i) {
    auto& c = clients.emplace_back(h.f.port(), stalled);
    for (int k = 0; k < lanes; ++k)
      c.send(fmt::format(R"({{"type":"response.create","id":"{}","input":"x","max_tokens":2000,)"
                         R"("logprobs":true,"top_logprobs":20,"window":1}})",
                         k));
  }
  h.until_made(sockets * lanes);
  for (const auto& j : h.f.list_jobs()) jobs.push_back(j.id.text());  // the latest first
  for (int i = 0; i < sockets; ++i) {
    auto& c = clients.emplace_back(h.f.port(), stalled);
    for (int k = 0; k < lanes; ++k)
      c.send(fmt::format(R"({{"type":"response.resume","id":"{}","response_id":"{}","after":0}})", k,
                         jobs[static_cast<std::size_t>(i * lanes + k)]));
  }
  h.compare(sockets * lanes * 2000 * 21 * sizeof(core::token_logprob), [&] { clients.clear(); });
}

}  // namespace weir::tests::resident_test
