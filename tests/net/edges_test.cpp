// Every error code, close code and status that docs/wire.md promises, and every limit: one row each, and a
// check that no promised code is without a row.
#include <malloc.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "net/access/address_book.h"
#include "tests/support/http_client.h"
#include "tests/support/server_fixture.h"
#include "tests/support/source_dir.h"
#include "tests/support/ws_client.h"

namespace weir::tests::edges_test {

using std::chrono::milliseconds;

namespace {

using change = void (*)(server_options&);
using act = void (*)(ws_client&);

void as_is(server_options&) {}

std::string create(std::string_view id, std::string_view fields = R"("input":"hello")") {
  return fmt::format(R"({{"type":"response.create","id":"{}",{}}})", id, fields);
}
std::string resume(std::string_view id, std::string_view response_id, std::uint64_t after) {
  return fmt::format(R"({{"type":"response.resume","id":"{}","response_id":"{}","after":{}}})", id,
                     response_id, after);
}
constexpr const char* endless = R"("input":"x","max_tokens":100000)";

// ---- what a frame can be answered with

struct refused_frame {
  const char* code;
  const char* param;  // null: none is named
  change with;
  act say;
};

const refused_frame refused_frames[] = {
    {"bad_json", nullptr, as_is, [](ws_client& c) { c.send("{"); }},
    {"bad_json", nullptr, as_is, [](ws_client& c) { c.send(std::string(17, '[') + std::string(17, ']')); }},
    {"bad_json", nullptr, [](server_options& o) { o.net.limits.json_depth = 4; },
     [](ws_client& c) { c.send("[[[[[]]]]]"); }},
    {"bad_message", nullptr, as_is, [](ws_client& c) { c.send("[]"); }},
    {"bad_message", nullptr, as_is, [](ws_client& c) { c.send(R"({"type":7})"); }},
    {"bad_message", nullptr, as_is, [](ws_client& c) { c.send_binary(R"({"type":"ping"})"); }},
    {"unknown_type", nullptr, as_is, [](ws_client& c) { c.send(R"({"type":"response.dance"})"); }},
    {"invalid_param", "id", as_is, [](ws_client& c) { c.send(create("no spaces")); }},
    {"invalid_param", "id", as_is, [](ws_client& c) { c.send(create(std::string(65, 'x'))); }},
    {"invalid_param", "input", as_is, [](ws_client& c) { c.send(create("a", R"("input":7)")); }},
    {"invalid_param", "max_tokens", as_is,
     [](ws_client& c) { c.send(create("a", R"("input":"x","max_tokens":0)")); }},
    {"invalid_param", "temperature", as_is,
     [](ws_client& c) { c.send(create("a", R"("input":"x","temperature":2.1)")); }},
    {"invalid_param", "top_p", as_is,
     [](ws_client& c) { c.send(create("a", R"("input":"x","top_p":1.5)")); }},
    {"invalid_param", "min_p", as_is,
     [](ws_client& c) { c.send(create("a", R"("input":"x","min_p":1.5)")); }},
    {"invalid_param", "top_k", as_is, [](ws_client& c) { c.send(create("a", R"("input":"x","top_k":-2)")); }},
    {"invalid_param", "repetition_penalty", as_is,
     [](ws_client& c) { c.send(create("a", R"("input":"x","repetition_penalty":0)")); }},
    {"invalid_param", "deadline_ms", as_is,
     [](ws_client& c) { c.send(create("a", R"("input":"x","deadline_ms":0)")); }},
    {"invalid_param", "stop", as_is, [](ws_client& c) { c.send(create("a", R"("input":"x","stop":[""])")); }},
    {"invalid_param", "input", as_is, [](ws_client& c) { c.send(create("a", R"("input":[1000])")); }},
    {"duplicate_id", "id", as_is,
     [](ws_client& c) {
       c.send(create("a", endless));
       c.send(create("a", endless));
     }},
    {"too_many_jobs", nullptr, [](server_options& o) { o.net.limits.jobs = 1; },
     [](ws_client& c) {
       c.send(create("a", endless));
       c.send(create("b", endless));
     }},
    {"prompt_too_long", "input", [](server_options& o) { o.sim += ",ctx=64"; },
     [](ws_client& c) { c.send(create("a", fmt::format(R"("input":"{}")", std::string(64, 'x')))); }},
    {"prompt_too_long", "input", [](server_options& o) { o.owner.kv_tokens = 64; },
     [](ws_client& c) { c.send(create("a", fmt::format(R"("input":"{}")", std::string(64, 'x')))); }},
    {"model_not_found", "model", as_is,
     [](ws_client& c) { c.send(create("a", R"("input":"x","model":"y")")); }},
    {"not_found", "id", as_is, [](ws_client& c) { c.send(R"({"type":"response.cancel","id":"never"})"); }},
    {"not_found", "id", as_is,
     [](ws_client& c) { c.send(R"({"type":"response.ack","id":"never","seq":1})"); }},
    {"not_found", "response_id", as_is, [](ws_client& c) { c.send(resume("b", std::string(32, '0'), 0)); }},
    {"not_found", "response_id", as_is, [](ws_client& c) { c.send(resume("b", "no id", 0)); }},
    {"resume_expired", "response_id", [](server_options& o) { o.net.limits.retain_mb = 0; },
     [](ws_client& c) {
       c.send(create("a", R"("input":"x","max_tokens":1)"));
       c.send(resume("b", std::string(c.read("response.done").at("response_id").as_string()), 0));
     }},
    {"invalid_cursor", "after", as_is,
     [](ws_client& c) {
       c.send(create("a", endless));
       c.send(resume("b", std::string(c.read("response.created").at("response_id").as_string()), 1000000000));
     }},
    {"invalid_cursor", "seq", as_is,
     [](ws_client& c) {
       c.send(create("a", endless));
       c.send(R"({"type":"response.ack","id":"a","seq":1000000000})");
     }},
    {"rate_limited", nullptr,
     [](server_options& o) {
       o.net.limits.messages_per_s = 0.1;
       o.net.limits.message_burst = 1;
     },
     [](ws_client& c) {
       for (int i = 0; i < 3; ++i) c.send(R"({"type":"ping"})");
     }},
    {"overloaded", nullptr,
     [](server_options& o) {
       o.owner.max_batch = 1;
       o.owner.queue = 0;
     },
     [](ws_client& c) {
       c.send(create("a", endless));
       c.read("response.created");
       c.send(create("b", endless));
     }},
    {"internal", nullptr, [](server_options& o) { o.sim += ",fault=sampler@1"; },
     [](ws_client& c) { c.send(create("a")); }},
};

// The next error: a frame of its own, or the member `error` of response.done if the job had begun.
boost::json::object error_from(ws_client& c) {
  for (;;) {
    auto frame = c.read();
    if (frame.at("type") == "error") return frame;
    if (frame.contains("error")) return frame.at("error").as_object();
  }
}

// ---- how a socket can end

struct ended_socket {
  std::uint16_t code;
  change with;
  void (*live)(ws_client&, server_fixture&);
};

void only_wait(ws_client&, server_fixture&) {}

const ended_socket ended_sockets[] = {
    {1000, as_is, [](ws_client& c, server_fixture&) { c.close(); }},
    {1001, as_is, [](ws_client&, server_fixture& f) { f.server->drain([] {}); }},
    {1002, as_is,
     [](ws_client& c, server_fixture&) { c.send_raw(std::string("\xff\x85\0\0\0\0hello", 11)); }},
    {1007, as_is, [](ws_client& c, server_fixture&) { c.send("\xff\xfe"); }},
    {1009, [](server_options& o) { o.net.limits.frame_bytes = 2048; },
     [](ws_client& c, server_fixture&) { c.send(std::string(2049, ' ')); }},
    {1013,
     [](server_options& o) {
       o.net.limits.trusted.clear();
       o.net.limits.sockets_per_address = 0;
     },
     only_wait},
    {4401, [](server_options& o) { o.net.api_keys = {"key"}; },
     [](ws_client& c, server_fixture&) { c.send(R"({"type":"session.auth","token":"wrong"})"); }},
    {4408,
     [](server_options& o) {
       o.net.api_keys = {"key"};
       o.net.limits.authenticate = milliseconds(100);
     },
     only_wait},
    {4429,
     [](server_options& o) {
       o.net.limits.messages_per_s = 0.1;
       o.net.limits.message_burst = 1;
       o.net.limits.message_abuse = 3;
     },
     [](ws_client& c, server_fixture&) {
       for (int i = 0; i < 10; ++i) c.send(R"({"type":"ping"})");
     }},
    {4441,
     [](server_options& o) {
       o.net.limits.max_age = milliseconds(100);
       o.net.limits.closing_notice = milliseconds(50);
     },
     only_wait},
};

// ---- what HTTP can be answered with

struct refused_request {
  unsigned status;
  const char* code;
  change with;
  std::string bytes;
};

std::string post(std::string_view path, std::string_view body, std::string_view more = {}) {
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
      "{}\r\n{}\r\n{}",
      path, body.size(), more, body);
}
std::string get(std::string_view path, std::string_view headers = "Host: localhost\r\n") {
  return fmt::format("GET {} HTTP/1.1\r\n{}\r\n", path, headers);
}
std::string upgrade(std::string_view headers) {
  return get("/v1/stream", fmt::format("Host: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                                       "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{}",
                                       headers));
}

const refused_request refused_requests[] = {
    {400, "invalid_param", as_is, post("/v1/completions", "{")},
    {400, "invalid_param", as_is, post("/v1/completions", R"({"prompt":"x","n":0})")},
    {400, "invalid_param", as_is, post("/v1/completions", R"({"prompt":["x",5]})")},
    {400, "invalid_param", as_is, post("/v1/completions", std::string(65, '[') + std::string(65, ']'))},
    {400, "context_length_exceeded", [](server_options& o) { o.sim += ",ctx=2"; },
     post("/v1/completions", R"({"prompt":"hello"})")},
    {400, "bad_request", as_is, "what is this\r\n\r\n"},
    {400, "bad_request", as_is, get("/health/live", "")},
    {400, "bad_request", as_is, get("/health/live", "Host: localhost\r\nHost: localhost\r\n")},
    {400, "bad_subprotocol", as_is,
     upgrade("Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: graphql-ws\r\n")},
    {401, "invalid_api_key", [](server_options& o) { o.net.api_keys = {"key"}; }, get("/v1/models")},
    {403, "host_forbidden", as_is, get("/health/live", "Host: evil.example\r\n")},
    {403, "origin_forbidden", as_is,
     upgrade("Sec-WebSocket-Version: 13\r\nOrigin: https://evil.example\r\n")},
    {404, "not_found", as_is, get("/nothing")},
    {404, "not_found", as_is, get("/v1/jobs/00000000000000000000000000000000")},
    {404, "model_not_found", as_is, post("/v1/completions", R"({"prompt":"x","model":"y"})")},
    {405, "method_not_allowed", as_is, get("/v1/completions")},
    {408, "timeout", [](server_options& o) { o.net.limits.handshake = milliseconds(100); },
     "GET / HTTP/1.1\r\nHo"},
    {408, "timeout", [](server_options& o) { o.net.limits.body_time = milliseconds(100); },
     "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
     "9\r\n\r\n{"},
    {413, "body_too_large", [](server_options& o) { o.net.limits.body_bytes = 1024; },
     post("/v1/completions", std::string(1025, ' '))},
    {415, "unsupported_media_type", as_is,
     "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: "
     "2\r\n\r\n{}"},
    {426, "upgrade_required", as_is, get("/v1/stream")},
    {426, "upgrade_required", as_is, upgrade("Sec-WebSocket-Version: 8\r\n")},
    {429, "overloaded",
     [](server_options& o) {
       o.net.limits.trusted.clear();
       o.net.limits.sockets_per_address = 0;
     },
     get("/health/live")},
    {431, "header_too_large", [](server_options& o) { o.net.limits.header_bytes = 512; },
     get("/health/live", "Host: localhost\r\nX: " + std::string(600, 'x') + "\r\n")},
    {500, "internal", [](server_options& o) { o.sim += ",fault=sampler@1"; },
     post("/v1/completions", R"({"prompt":"x","max_tokens":3})")},
};

// The words after `heading:` in docs/wire.md, up to the first full stop.
std::set<std::string> promised(const std::string& heading, const char* word) {
  std::ifstream in(weir::tests::source_dir() / "docs/wire.md");
  const std::string page{std::istreambuf_iterator<char>(in), {}};
  const auto begin = page.find(heading);
  REQUIRE(begin != page.npos);
  const auto end = page.find("\n\n", begin);
  const auto list = page.substr(begin + heading.size(), page.find(".\n", begin) - begin - heading.size());
  REQUIRE(begin + heading.size() + list.size() < end);
  std::set<std::string> out;
  const std::regex each(word);
  for (std::sregex_iterator i(list.begin(), list.end(), each), last; i != last; ++i) out.insert(i->str());
  return out;
}

}  // namespace

TEST_CASE("edges: every way in which a frame is refused has its code, and names the field") {
  for (const auto& row : refused_frames) {
    CAPTURE(row.code, row.param ? row.param : "");
    server_options o;
    row.with(o);
    server_fixture f(o);
    ws_client c(f.port());
    c.read("session.created");
    row.say(c);
    const auto e = error_from(c);
    CHECK(e.at("code") == row.code);
    if (row.param) CHECK(e.at("param") == row.param);
    CHECK_FALSE(e.at("message").as_string().empty());
    while (c.open() && row.code != std::string("rate_limited")) {  // the socket lives on
      c.send(R"({"type":"ping","ts":4711})");
      if (c.read("pong").at("ts") == 4711) break;
    }
  }
}

TEST_CASE("edges: every way in which a socket ends has its close code, and is counted") {
  for (const auto& row : ended_sockets) {
    CAPTURE(row.code);
    server_options o;
    row.with(o);
    server_fixture f(o);
    ws_client c(f.port());
    row.live(c, f);
    CHECK(c.until_closed() == row.code);
    http_client h(f.port());
    // no stats to be had
    if (row.code == 1013 || row.code == 1001 || row.code == 4401 || row.code == 4408) continue;
    server_fixture::until([&] {
      const auto closed = h.get("/v1/stats").json().at("closed").as_object();
      return closed.contains(std::to_string(row.code));
    });
  }
}

TEST_CASE("edges: every way in which a request is refused has its status and code") {
  for (const auto& row : refused_requests) {
    CAPTURE(row.status, row.code, row.bytes.substr(0, 200));
    server_options o;
    row.with(o);
    server_fixture f(o);
    http_client c(f.port());
    c.send(row.bytes);
    const auto a = c.read();
    CHECK(a.status == row.status);
    CHECK(a.header("x-request-id").size() == 32);
    REQUIRE(a.body().starts_with("{"));
    CHECK(a.error().at("code") == row.code);
    CHECK_FALSE(a.error().at("message").as_string().empty());
    if (row.status == 401) CHECK(a.header("WWW-Authenticate") == "Bearer");
    if (row.status == 429) CHECK_FALSE(a.header("Retry-After").empty());
    if (row.status == 405) CHECK(a.header("Allow") == "POST");
  }
}

TEST_CASE("edges: no code that the wire page promises is without a row") {
  std::set<std::string> codes, closes;
  for (const auto& row : refused_frames) codes.insert(row.code);
  codes.insert("token_expired");  // takes a second: tokens_test.cpp
  // What is told of models that are not ready: model_demand_test.cpp and ws_protocol_test.cpp.
  codes.insert({"model_loading", "model_line_full", "other_model_loading", "does_not_fit"});
  CHECK(codes == promised("Error codes:", "[a-z_]+"));
  for (const auto& row : ended_sockets) closes.insert(std::to_string(row.code));
  closes.insert("4403");  // what a token forbids: tokens_test.cpp
  closes.insert("1011");  // a fault of ours, which no client can cause
  closes.insert("4440");  // the reader that stops has a test of its own
  CHECK(closes == promised("Close codes:", "[14][0-9]{3}"));
}

TEST_CASE("edges: requests that look odd and are not are answered") {
  server_fixture f;
  const std::string odd[] = {get("http://localhost/health/live"), get("/health/live?x=1#y"),
                             post("/v1/completions", R"({"prompt":["one"],"max_tokens":1})"),
                             post("/v1/completions", R"({"prompt":[[1,2]],"max_tokens":1})"),
                             post("/v1/completions", R"({"prompt":"x","max_tokens":1,"n":1})")};
  for (const auto& bytes : odd) {
    CAPTURE(bytes);
    http_client c(f.port());
    c.send(bytes);
    CHECK(c.read().status == 200);
  }
}

TEST_CASE("edges: addresses are counted while their sockets live, and trusted ones are not") {
  auto book = std::make_shared<net::address_book>(2, std::vector<std::string>{"10.0.0.1"});
  {
    std::vector<net::address_book::entry> open;
    for (int i = 0; i < 70; ++i) {
      open.push_back(book->enter("192.0.2.7"));
      CHECK(open.back().crowded() == (i >= 2));
      CHECK(open.back().hopeless() == (i >= 66));
      CHECK_FALSE(book->enter("10.0.0.1").crowded());
    }
    CHECK_FALSE(book->enter("192.0.2.8").crowded());
    CHECK(book->addresses() == 1);
  }
  CHECK(book->addresses() == 0);
}

TEST_CASE("edges: a peer that answers no ping is let go, with its job") {
  server_options o;
  o.sim = "rate=1000000,prefill=100000000";
  o.net.limits.silent = milliseconds(400);
  server_fixture f(o);
  ws_client c(f.port());
  c.send(create("a", R"("input":"x","max_tokens":1,"on_disconnect":"cancel")"));
  std::this_thread::sleep_for(milliseconds(50));  // the client reads no more, so it answers no ping
  http_client h(f.port());
  server_fixture::until([&] { return h.get("/v1/stats").json().at("sessions") == 0; });
  f.until_quiet();
}

TEST_CASE("edges: a thousand sockets opened and dropped leave nothing behind") {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  server_options o;
  o.net.limits.handshake = milliseconds(500);
  server_fixture f(o);
  const auto sessions_now = [&] { return http_client(f.port()).get("/v1/stats").json().at("sessions"); };
  const auto crowd = [&] {
    std::vector<std::unique_ptr<ws_client>> sessions;
    std::vector<std::unique_ptr<http_client>> half_open;
    for (int i = 0; i < 500; ++i) {
      sessions.push_back(std::make_unique<ws_client>(f.port()));
      if (i % 2)
        sessions.back()->send(create("a", R"("input":"x","max_tokens":100000,"on_disconnect":"cancel")"));
      half_open.push_back(std::make_unique<http_client>(f.port()));
      if (i % 3) half_open.back()->send("GET / HTTP/1.1\r\n");
    }
    for (auto& s : sessions) s->drop();
    half_open.clear();
    server_fixture::until([&] { return sessions_now() == 0; });
    f.until_quiet();
    CHECK(sessions_now() == 0);
  };
  crowd();
  crowd();
  // What the allocator keeps for later differs from run to run, so that only memory in use is compared. A
  // leak of one socket's state each would be tens of megabytes. Sanitizers have allocators of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  crowd();  // the prefix cache keeps what ended jobs computed, until its pages are all taken
  const auto in_use = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  const auto after_first = in_use();
  crowd();
  crowd();
  CHECK(in_use() < after_first + (4u << 20));
#endif
}

}  // namespace weir::tests::edges_test
