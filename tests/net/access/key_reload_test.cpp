// Keys that come and go while a server runs: who is removed is out, and nobody else notices.
#include <algorithm>
#include <map>
#include <set>

#include "tests/support/http_client.h"
#include "tests/support/ws_talk.h"

namespace weir::tests::key_reload_test {
namespace {

std::string authorization(std::string_view key) { return fmt::format("Authorization: Bearer {}\r\n", key); }

ws_options by(std::string_view key) {
  ws_options o;
  o.authorization = fmt::format("Bearer {}", key);
  return o;
}

std::vector<net::api_key> keys_of(std::string_view file) { return *net::parse_api_keys(file, "F"); }

server_options with_keys(std::string_view file, server_options o = slow()) {
  o.net.api_keys = keys_of(file);
  return o;
}

std::size_t unfinished(server_fixture& f) {
  const auto jobs = f.list_jobs();
  return static_cast<std::size_t>(
      std::ranges::count_if(jobs, [](const auto& j) { return j.state != "finished"; }));
}

}  // namespace

TEST_CASE("keys: while keys come and go under load, every token of all others arrives once and in order") {
  server_options fast;
  fast.sim = "rate=500,prefill=100000000";
  fast.net.limits.backlog_bytes = std::size_t{64} << 20;  // a slow reader is no fault in this test
  server_fixture f(with_keys("first\nsecond name=s\n", fast));
  constexpr std::uint32_t tokens = 1500;
  constexpr int lanes = 4;
  std::vector<std::unique_ptr<ws_client>> second;
  for (int i = 0; i < 4; ++i) {
    auto& c = *second.emplace_back(std::make_unique<ws_client>(f.port(), by("second")));
    c.read("session.created");
    for (int l = 0; l < lanes; ++l)
      c.send(create(fmt::format("{}", l), fmt::format(R"("max_tokens":{},"seed":{})", tokens, 10 * i + l)));
  }
  http_client http(f.port());
  http.send(http.request("POST", "/v1/completions",
                         fmt::format(R"({{"prompt":"x","max_tokens":{},"seed":99,"stream":true}})", tokens),
                         authorization("second")));
  unsigned out = 0;
  for (int round = 0; round < 20; ++round) {
    f.server->set_keys(keys_of("second name=s\nfirst\n"));  // third-N goes, first comes back
    ws_client first(f.port(), by("first"));
    first.read("session.created");
    first.send(create("a", R"("max_tokens":100000)"));
    first.read("response.delta");
    const auto changed = fmt::format("third-{}\nsecond name=s{} jobs={}\n", round, round, 100 + round);
    const auto d = f.server->set_keys(keys_of(changed));
    CHECK(d.removed == 1);
    out += first.until_closed() == 4401;
  }
  CHECK(out == 20);
  for (int i = 0; i < 4; ++i) {
    std::map<std::string, lane_reader> read;
    for (int over = 0; over < lanes;) {
      const auto frame = second[static_cast<std::size_t>(i)]->read();
      auto& lane = read[std::string(frame.at("id").as_string())];
      lane.take(frame);
      over += lane.done.has_value();
    }
    for (int l = 0; l < lanes; ++l) {
      const auto& lane = read.at(fmt::format("{}", l));
      CHECK(lane.seq == tokens);
      CHECK(lane.text == sim_text(static_cast<std::uint64_t>(10 * i + l), tokens));
    }
    round_trip(*second[static_cast<std::size_t>(i)]);  // its socket is as good as before
  }
  std::string streamed;
  const auto events = http.read_until("[DONE]");
  for (std::size_t at = events.find(R"("text":")"); at != events.npos;
       at = events.find(R"("text":")", at + 1))
    streamed += events.substr(at + 8, events.find('"', at + 8) - at - 8);
  CHECK(streamed == sim_text(99, tokens));
}

TEST_CASE("keys: a removed key's sockets end with 4401, and so do those of its browser tokens") {
  server_fixture f(with_keys("first\nsecond\n"));
  http_client http(f.port());
  const auto issued = http.post("/v1/stream/tokens", "{}", authorization("first"));
  REQUIRE(issued.status == 200);
  const std::string token(issued.json().at("token").as_string());
  ws_client key(f.port(), by("first")), page(f.port(), by(token)), other(f.port(), by("second"));
  ws_client said(f.port()), both(f.port(), by("second")), nobody(f.port());
  said.send(R"({"type":"session.auth","token":"first"})");
  both.send(R"({"type":"session.auth","token":"first"})");
  both.send(R"({"type":"session.auth","token":"second"})");  // the socket may have jobs of the first key
  for (ws_client* c : {&key, &page, &other, &said, &both}) c->read("session.created");
  round_trip(both);
  f.server->set_keys(keys_of("second"));
  for (ws_client* c : {&key, &page, &said, &both}) CHECK(c->until_closed() == 4401);
  round_trip(other);
  nobody.send(R"({"type":"session.auth","token":"second"})");
  CHECK(nobody.read().at("type") == "session.created");

  for (const auto& gone : {std::string("first"), token}) {
    CHECK(http.get("/v1/models", authorization(gone)).status == 401);
    CHECK(ws_client(f.port(), by(gone)).until_closed() == 4401);
  }
  CHECK(http.get("/v1/models", authorization("second")).status == 200);
}

TEST_CASE("keys: a removed key's jobs over WebSocket follow on_disconnect, though the client ends nothing") {
  auto o = with_keys("first\nsecond\n");
  o.net.limits.handshake = std::chrono::hours(1);  // the time that the client has to close its socket
  o.net.limits.detach_grace = std::chrono::milliseconds(1500);
  server_fixture f(o);
  ws_client c(f.port(), by("first")), other(f.port(), by("second"));
  c.send(create("cancel", R"("max_tokens":100000,"on_disconnect":"cancel")"));
  c.send(create("short", R"("max_tokens":60)"));
  c.send(create("long", R"("max_tokens":100000)"));
  other.send(create("others", R"("max_tokens":100000)"));
  f.until([&] { return f.service->stats().engine.decoding == 4; });
  f.server->set_keys(keys_of("second"));  // c reads nothing, so it answers no close
  f.until([&] { return unfinished(f) == 1; });
  std::multiset<std::string> reasons;
  for (const auto& j : f.list_jobs()) reasons.insert(j.finish_reason);
  CHECK(reasons == std::multiset<std::string>{"", "cancel", "cancel", "length"});
  CHECK(other.read("response.delta").at("id") == "others");
}

TEST_CASE("keys: a removed key's HTTP answers end, streamed or awaited, and their jobs are cancelled") {
  server_fixture f(with_keys("first\nsecond\n"));
  http_client streamed(f.port()), awaited(f.port()), idle(f.port()), other(f.port());
  const auto body = [](const char* more) {
    return fmt::format(R"({{"prompt":"x","max_tokens":100000{}}})", more);
  };
  CHECK(idle.get("/v1/models", authorization("first")).status == 200);
  streamed.send(
      streamed.request("POST", "/v1/completions", body(R"(,"stream":true)"), authorization("first")));
  awaited.send(awaited.request("POST", "/v1/completions", body(R"(,"n":2)"), authorization("first")));
  other.send(other.request("POST", "/v1/completions", body(R"(,"stream":true)"), authorization("second")));
  streamed.read_until("data: ");
  f.until([&] { return f.service->stats().engine.decoding == 4; });
  f.server->set_keys(keys_of("second"));
  f.until([&] { return unfinished(f) == 1; });
  std::string rest;
  for (auto more = streamed.read_some(); !more.empty(); more = streamed.read_some()) rest += more;
  CHECK(rest.find("[DONE]") == rest.npos);
  CHECK(awaited.ended());
  CHECK(idle.get("/v1/models", authorization("first")).status == 401);  // the connection stays open
  CHECK(idle.get("/v1/models", authorization("second")).status == 200);
  other.read_until("data: ");
}

TEST_CASE("keys: another line of a key counts at once, also for who is connected") {
  server_fixture f(with_keys("first\nsecond\n"));
  ws_client c(f.port(), by("first"));
  http_client http(f.port());
  CHECK(c.read("session.created").at("limits").at("max_jobs") == 32);
  c.send(create("a", R"("max_tokens":100000)"));
  c.read("response.created");
  f.server->set_keys(keys_of("first jobs=1 admin\nsecond models=other\n"));
  c.send(create("b", R"("max_tokens":1)"));
  const auto no = c.read("error");
  CHECK(no.at("code") == "rate_limited");
  CHECK(no.at("id") == "b");
  CHECK(no.at("retry_after_ms") == 1000);
  CHECK(http.get("/v1/stats", authorization("first")).json().as_object().contains("keys"));
  CHECK(http.get("/v1/models", authorization("second")).json().at("data").as_array().empty());
}

}  // namespace weir::tests::key_reload_test
