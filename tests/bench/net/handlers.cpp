// The CPU time of each handler on an I/O thread, over the routes and over what one client can do to the
// others: long bodies, long answers, readers that lag, backlogs, long lists. The server has one I/O thread
// and the simulated device. A row is what one attack cost; handlers of less than 20 us count, too.
//
//   bench_net_handlers [PART]        attacks whose name has PART; all without it
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "actors/service.h"
#include "net/server.h"
#include "tests/bench/net/attacker.h"
#include "tests/bench/net/timed_loop.h"

namespace {

using namespace weir;
using bench::attacker;
using std::chrono::milliseconds;

constexpr std::size_t body_bytes = 2'000'000;

std::string repeated(std::string_view item, std::size_t count, std::string_view between = ",") {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += between;
    out += item;
  }
  return out;
}

struct served {
  bench::timed_loop loop;
  net::shards io{loop.executor()};
  actors::system_time clock;
  std::unique_ptr<actors::service> service;
  std::unique_ptr<net::server> server;

  served() {
    actors::service_options s;
    s.models.push_back({"sim", "sim:rate=1000000,prefill=100000000,ctx=1000000"});
    s.owner.device = "sim";
    static_cast<core::queue_settings&>(s.owner) = core::queue_of(20'000);
    s.owner.max_batch = 64;
    service = std::make_unique<actors::service>(std::move(s), clock);
    std::promise<bool> loaded;
    service->load({}, io.at(0), [&](core::result<> r) { loaded.set_value(r.has_value()); });
    net::server_options o;
    o.listen = "127.0.0.1:0";
    server = std::make_unique<net::server>(*service, io, o);
    if (!loaded.get_future().get() || !server->start()) bench::give_up("the server");
  }
  ~served() {
    server->stop();
    std::this_thread::sleep_for(milliseconds(500));
  }
  unsigned short port() const { return server->port(); }

  void post(std::string_view target, std::string_view body) const {
    attacker a(port());
    a.post(target, body);
    a.read_to_end();
  }
  void get(std::string_view target) const {
    attacker a(port());
    a.get(target);
    a.read_to_end();
  }
  void until_idle() const {
    for (bool idle = false; !idle;) {
      std::this_thread::sleep_for(milliseconds(50));
      const auto s = service->stats();
      idle = s.engine.queued + s.engine.prefilling + s.engine.decoding + s.engine.paused == 0 &&
             s.text.tasks == 0;
    }
  }
};

struct attack {
  std::string name;
  std::function<void(const served&)> run;
};

// ---- bodies

std::string with_text(std::string_view before, std::string_view text, std::string_view after) {
  return std::string(before).append(text).append(after);
}

attack posts(std::string name, std::string target, std::string body) {
  return {std::move(name), [target = std::move(target), body = std::move(body)](const served& s) {
            for (int i = 0; i < 5; ++i) s.post(target, body);
          }};
}

std::string numbers(std::size_t n) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) out += fmt::format("{}{}", i ? "," : "", i % 250);
  return out;
}

std::string biases(std::size_t n) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) out += fmt::format("{}\"{}\":1", i ? "," : "", i);
  return out;
}

// A schema of some 1 MB whose enum has short strings.
std::string long_schema() {
  std::string out = R"({"enum":[)";
  for (int i = 0; i < 90'000; ++i) out += fmt::format("{}\"e{}\"", i ? "," : "", i);
  return out + "]}";
}

void add_bodies(std::vector<attack>& to) {
  const std::string text(body_bytes, 'x'), escapes = repeated(R"(\n\")", body_bytes / 4, "");
  const std::string one = R"({"role":"user","content":"hi"})";
  const std::string part = R"({"type":"text","text":"hi"})";
  const std::string chat = "/v1/chat/completions", completions = "/v1/completions", messages = "/v1/messages";
  const std::string few = R"(,"max_tokens":2})";
  const auto add = [&](auto... a) { to.push_back(posts(a...)); };
  add("completions, text of 2 MB", completions, with_text(R"({"prompt":")", text, "\"" + few));
  add("completions, 1 MB of escapes", completions, with_text(R"({"prompt":")", escapes, "\"" + few));
  add("completions, 250,000 ids", completions, with_text(R"({"prompt":[)", numbers(250'000), "]" + few));
  add("completions, 250 prompts of 900 ids", completions,
      with_text(R"({"prompt":[)", repeated("[" + numbers(900) + "]", 250), "]" + few));
  add("completions, 250,000 stop ids", completions,
      with_text(R"({"prompt":"x","stop_token_ids":[)", numbers(250'000), "]" + few));
  add("completions, 100,000 biases", completions,
      with_text(R"({"prompt":"x","logit_bias":{)", biases(100'000), "}" + few));
  add("completions, unknown fields", completions,
      with_text(R"({"prompt":"x","none":[)", repeated("{}", 250'000), "]" + few));
  add("completions, a key twice", completions,
      with_text(R"({"prompt":"x","none":[)", repeated(R"({"a":1})", 80'000), R"(],"prompt":"y"})"));
  add("completions, no JSON at the end", completions, with_text(R"({"prompt":[)", numbers(250'000), "]"));
  add("chat, 10,000 messages", chat, with_text(R"({"messages":[)", repeated(one, 10'000), "]" + few));
  add("chat, 50,000 messages", chat, with_text(R"({"messages":[)", repeated(one, 50'000), "]" + few));
  add("chat, text of 2 MB", chat,
      with_text(R"({"messages":[{"role":"user","content":")", text, "\"}]" + few));
  add("chat, 60,000 parts", chat,
      with_text(R"({"messages":[{"role":"user","content":[)", repeated(part, 60'000), "]}]" + few));
  add("chat, variables of 250,000 values", chat,
      with_text(R"({"messages":[)" + one + R"(],"chat_template_kwargs":{"a":[)", numbers(240'000),
                "]}" + few));
  add("chat, 60 levels deep", chat,
      with_text(R"({"messages":[)" + one + R"(],"chat_template_kwargs":{"a":[)",
                repeated(std::string(55, '[') + std::string(55, ']'), 4000), "]}" + few));
  add("chat, a schema of 1 MB", chat,
      with_text(R"({"messages":[)" + one +
                    R"(],"response_format":{"type":"json_schema","json_schema":)"
                    R"({"name":"a","schema":)",
                long_schema(), "}}" + few));
  add("completions, 100,000 stop strings", completions,
      with_text(R"({"prompt":"x","stop":[)", repeated(R"("a string of 16")", 100'000), "]" + few));
  add("messages, 50,000 messages", messages, with_text(R"({"messages":[)", repeated(one, 50'000), "]" + few));
  add("messages, 50,000 blocks", messages,
      with_text(R"({"messages":[{"role":"user","content":[)", repeated(part, 50'000), "]}]" + few));
  add("count_tokens, 50,000 messages", messages + "/count_tokens",
      with_text(R"({"messages":[)", repeated(one, 50'000), "]}"));
  add("tokenize, text of 2 MB", "/v1/tokenize", with_text(R"({"text":")", text, "\"}"));
  add("detokenize, 250,000 ids", "/v1/detokenize", with_text(R"({"ids":[)", numbers(250'000), "]}"));
  to.push_back({"completions, 100,000 chunks of a byte", [](const served& s) {
                  attacker a(s.port());
                  a.send(
                      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                      "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n");
                  a.send(repeated("1\r\n \r\n", 100'000, "") + "0\r\n\r\n");
                  a.read_to_end();
                }});
  add("tokens, unknown fields", "/v1/stream/tokens", with_text(R"({"a":[)", repeated("{}", 250'000), "]}"));
}

// ---- answers

// Reads nothing for a while, then all.
attack lags(std::string name, std::string target, std::string body) {
  return {std::move(name), [target = std::move(target), body = std::move(body)](const served& s) {
            attacker a(s.port(), 32 * 1024);
            a.post(target, body);
            std::this_thread::sleep_for(milliseconds(1500));
            a.read_to_end();
          }};
}

void add_answers(std::vector<attack>& to) {
  const std::string completions = "/v1/completions", chat = "/v1/chat/completions";
  const std::string many = R"("max_tokens":400,"n":64,)";
  const std::string said = R"({"messages":[{"role":"user","content":"hi"}],)";
  const auto add = [&](auto... a) { to.push_back(lags(a...)); };
  add("completions, n 64 with 20 logprobs", completions, R"({"prompt":"x",)" + many + R"("logprobs":20})");
  add("chat, n 64 with 20 logprobs", chat, said + many + R"("logprobs":true,"top_logprobs":20})");
  add("completions, n 64, events with 20 logprobs", completions,
      R"({"prompt":"x",)" + many + R"("stream":true,"logprobs":20})");
  add("chat, n 64, events with 20 logprobs", chat,
      said + many + R"("stream":true,"logprobs":true,"top_logprobs":20})");
  add("completions, n 64, events", completions, R"({"prompt":"x",)" + many + R"("stream":true})");
  add("completions, 256 choices with 20 logprobs", completions,
      R"({"prompt":["a","b","c","d"],"max_tokens":100,"n":64,"logprobs":20})");
  add("completions, 100,000 tokens with ids", completions,
      R"({"prompt":"x","max_tokens":100000,"return_token_ids":true})");
  add("completions, 100,000 tokens, events with ids", completions,
      R"({"prompt":"x","max_tokens":100000,"return_token_ids":true,"stream":true})");
  add("completions, echo of 1 MB, 64 events", completions,
      with_text(R"({"prompt":")", std::string(500'000, 'x'),
                R"(","echo":true,"n":64,"max_tokens":1,"stream":true})"));
  add("completions, prompt logprobs", completions,
      with_text(R"({"prompt":")", std::string(20'000, 'x'), R"(","prompt_logprobs":20,"max_tokens":1})"));
  add("messages, 200,000 tokens", "/v1/messages",
      R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":200000})");
  add("messages, 200,000 tokens, events", "/v1/messages",
      R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":200000,"stream":true})");
}

// ---- WebSockets

std::string response_of(std::string_view heard) {
  constexpr std::string_view key = R"("response_id":")";
  const auto at = heard.find(key);
  return at == heard.npos ? std::string() : std::string(heard.substr(at + key.size(), 37));
}

// 32 lanes follow an ended job of 60,000 tokens from its beginning.
void resume_much(const served& s, std::string_view wishes) {
  attacker first(s.port());
  first.open_stream();
  first.say(fmt::format(R"({{"type":"response.create","id":"a","input":"x","max_tokens":20000{}}})", wishes));
  const std::string heard = first.read_until("response.done");
  const auto id = response_of(heard);
  attacker again(s.port(), 32 * 1024);
  again.open_stream();
  for (int i = 0; i < 16; ++i)
    again.say(fmt::format(R"({{"type":"response.resume","id":"r{}","response_id":"{}","after":0}})", i,
                          id.substr(0, id.find('"'))));
  std::this_thread::sleep_for(milliseconds(500));
  for (int done = 0; done < 16;) {
    const auto more = again.read_until("response.done");
    if (more.empty()) break;
    for (auto at = more.find("response.done"); at != more.npos; at = more.find("response.done", at + 1))
      ++done;
  }
}

void say_much(const served& s, std::string_view frame) {
  attacker a(s.port());
  a.open_stream();
  for (int i = 0; i < 5; ++i) a.say(frame);
  a.say(R"({"type":"ping","ts":77})");
  a.read_until(R"("ts":77)");
}

// Begins 32 jobs on each of some sockets, and reads later.
void lag_behind_lanes(const served& s, std::string_view wishes) {
  attacker a(s.port(), 32 * 1024);
  a.open_stream();
  for (int i = 0; i < 32; ++i)
    a.say(
        fmt::format(R"({{"type":"response.create","id":"l{}","input":"x","max_tokens":4000{}}})", i, wishes));
  std::this_thread::sleep_for(milliseconds(1500));
  a.say(R"({"type":"ping","ts":77})");
  for (int done = 0; done < 32;) {
    const auto more = a.read_until("response.done");
    if (more.empty()) break;
    for (auto at = more.find("response.done"); at != more.npos; at = more.find("response.done", at + 1))
      ++done;
  }
}

void add_streams(std::vector<attack>& to) {
  to.push_back({"WebSocket, 16 lanes resume 20,000 tokens", [](const served& s) { resume_much(s, ""); }});
  to.push_back({"WebSocket, 16 lanes resume 20,000 with ids",
                [](const served& s) { resume_much(s, R"(,"return_token_ids":true)"); }});
  to.push_back({"WebSocket, 16 lanes resume with 20 logprobs",
                [](const served& s) { resume_much(s, R"(,"logprobs":true,"top_logprobs":20)"); }});
  to.push_back({"WebSocket, 32 lanes lag", [](const served& s) { lag_behind_lanes(s, ""); }});
  to.push_back({"WebSocket, 32 lanes lag, ids and timing", [](const served& s) {
                  lag_behind_lanes(s, R"(,"return_token_ids":true,"timing":true,"pad":true)");
                }});
  to.push_back({"WebSocket, 32 lanes lag, 20 logprobs",
                [](const served& s) { lag_behind_lanes(s, R"(,"logprobs":true,"top_logprobs":20)"); }});
  to.push_back({"WebSocket, 8,000 pings at once", [](const served& s) {
                  attacker a(s.port());
                  a.open_stream();
                  const std::string ping{static_cast<char>(0x89), static_cast<char>(0x80), 0, 0, 0, 0};
                  a.send(repeated(ping, 8'000, ""));
                  a.say(R"({"type":"ping","ts":77})");
                  a.read_until(R"("ts":77)");
                }});
  constexpr std::size_t frame_bytes = 255 * 1024;
  to.push_back({"WebSocket, messages of 255 KB", [](const served& s) {
                  say_much(s, with_text(R"({"type":"response.create","max_tokens":1,"id":"a","input":")",
                                        std::string(frame_bytes, 'x'), "\"}"));
                }});
  to.push_back({"WebSocket, 120,000 ids in a message", [](const served& s) {
                  say_much(s, with_text(R"({"type":"response.create","max_tokens":1,"id":"a","input":[)",
                                        repeated("1", 120'000), "]}"));
                }});
  to.push_back({"WebSocket, 80,000 objects in a message", [](const served& s) {
                  say_much(s, with_text(R"({"type":"response.create","max_tokens":1,"id":"a","none":[)",
                                        repeated("{}", 80'000), "]}"));
                }});
  to.push_back({"WebSocket, a schema of 1 MB", [](const served& s) {
                  say_much(s, with_text(R"({"type":"response.create","max_tokens":1,"id":"a","input":"x",)"
                                        R"("json_schema":)",
                                        long_schema(), "}"));
                }});
}

// ---- lists

void add_lists(std::vector<attack>& to) {
  // 8,000 jobs that wait, of 32 requests that do not read
  to.push_back({"lists beside 8,000 jobs", [](const served& s) {
                  std::vector<attacker> crowd;
                  for (int i = 0; i < 32; ++i)
                    crowd.emplace_back(s.port()).post(
                        "/v1/completions",
                        R"({"prompt":["a","b","c","d"],"n":64,"max_tokens":100000,"stream":true})");
                  std::this_thread::sleep_for(milliseconds(1000));
                  for (int i = 0; i < 20; ++i)
                    for (const char* target : {"/v1/jobs", "/v1/stats", "/metrics", "/v1/models"})
                      s.get(target);
                }});
  to.push_back({"gets", [](const served& s) {
                  for (int i = 0; i < 50; ++i)
                    for (const char* target : {"/v1/jobs", "/v1/stats", "/metrics", "/v1/models", "/",
                                               "/weir.js", "/health", "/v1/jobs/none"})
                      s.get(target);
                }});
}

void print_row(const std::string& name, const bench::handler_times& t) {
  std::printf("%-48s %8zu %9.3f %9.3f %9.3f %6zu\n", name.c_str(), t.count(), t.quantile_ms(0.5),
              t.quantile_ms(0.999), t.quantile_ms(1), t.over_ms(1));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<attack> all;
  add_lists(all);
  add_bodies(all);
  add_answers(all);
  add_streams(all);
  served s;
  std::vector<std::uint32_t> every;
  std::printf("%-48s %8s %9s %9s %9s %6s\n", "", "handlers", "p50, ms", "p99.9", "longest", "> 1 ms");
  for (const attack& a : all) {
    if (argc > 1 && a.name.find(argv[1]) == a.name.npos) continue;
    s.loop.take();
    a.run(s);
    s.until_idle();
    const auto times = s.loop.take();
    print_row(a.name, times);
    every.insert(every.end(), times.all().begin(), times.all().end());
  }
  print_row("all", bench::handler_times(std::move(every)));
}
