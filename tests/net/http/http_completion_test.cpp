// Completions over HTTP: whole, as events, several at once, and what becomes of one whose client goes.
#include <fmt/format.h>

#include <boost/json/parse.hpp>

#include "tests/support/http_client.h"
#include "tests/support/raw_client.h"
#include "tests/support/server_fixture.h"
#include "tests/support/sse.h"
#include "tests/support/ws_client.h"

namespace weir::tests::http_completion_test {
namespace {

// The text of each choice of a stream.
std::vector<std::string> streamed_texts(std::string_view body, std::size_t choices) {
  std::vector<std::string> texts(choices);
  for (const auto& e : event_data(body)) {
    if (e == "[DONE]") continue;
    const auto event = boost::json::parse(e);
    for (const auto& c : event.at("choices").as_array())
      texts.at(c.at("index").to_number<std::size_t>()) += c.at("text").as_string();
  }
  return texts;
}

}  // namespace

TEST_CASE("http: what a prompt shares with earlier ones is not computed again, within its salt") {
  server_fixture f;
  http_client c(f.port());
  const std::string prompt(200, 'p');
  const auto cached = [&](const std::string& more) {
    const auto a = c.post("/v1/completions", R"({"max_tokens":2,"prompt":")" + prompt + '"' + more + "}");
    REQUIRE(a.status == 200);
    return a.json().at("usage").at("prompt_tokens_details").at("cached_tokens").to_number<int>();
  };
  CHECK(cached("") == 0);
  CHECK(cached("") == 192);
  CHECK(cached(R"(,"cache_salt":"mine")") == 0);
  CHECK(cached(R"(,"cache_salt":"mine")") == 192);
  server_fixture::until([&] { return c.get("/v1/stats").json().at("prefix").at("hits") == 2; });
  server_fixture::until([&] { return c.get("/v1/stats").json().at("jobs").at("finished") == 4; });
  const auto stats = c.get("/v1/stats").json();
  CHECK(stats.at("pages").at("cached") == 6);
  CHECK(stats.at("pages").at("used") == 0);
  CHECK(stats.at("prefix").at("tokens") == 384);
}

TEST_CASE("http: n choices are n answers to one prompt, computed once, streamed or not") {
  server_fixture f;
  http_client c(f.port());
  const std::string prompt(200, 'p');
  const std::string body = R"({"max_tokens":5,"n":3,"prompt":")" + prompt + '"';
  const auto whole = c.post("/v1/completions", body + "}").json();
  REQUIRE(whole.at("choices").as_array().size() == 3);
  std::vector<std::string> texts;
  for (int i = 0; i < 3; ++i) {
    CHECK(whole.at("choices").at(i).at("index") == i);
    texts.emplace_back(whole.at("choices").at(i).at("text").as_string());
    CHECK(texts.back().size() == 5 * 5);
  }
  CHECK(texts[0] != texts[1]);  // without a seed each has its own
  CHECK(whole.at("usage").at("prompt_tokens") == 200);
  CHECK(whole.at("usage").at("completion_tokens") == 15);
  server_fixture::until([&] { return c.get("/v1/stats").json().at("jobs").at("finished") == 3; });
  const auto hits = [&] { return c.get("/v1/stats").json().at("prefix").at("hits").to_number<int>(); };
  server_fixture::until([&] { return hits() >= 2; });  // the owner publishes between steps
  CHECK(hits() == 2);                                  // every choice but the first

  const auto stream =
      c.post("/v1/completions", body + R"(,"seed":7,"stream":true,"stream_options":{"include_usage":true}})");
  std::vector<std::string> streamed(3);
  int usages = 0;
  std::istringstream lines(stream.body());
  std::vector<int> finished(3, 0);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("data: {")) continue;
    const auto o = boost::json::parse(line.substr(6)).as_object();
    usages += o.at("usage").is_object();
    for (const auto& choice : o.at("choices").as_array()) {
      const auto i = choice.at("index").to_number<std::size_t>();
      streamed.at(i) += choice.at("text").as_string();
      finished.at(i) += choice.at("finish_reason").is_string();
    }
  }
  for (int i = 0; i < 3; ++i) {
    CHECK(boost::json::value(streamed[i]) == json_text(sim_text(7, 5)));
    CHECK(finished[i] == 1);
  }
  CHECK(usages == 1);
  CHECK(stream.body().ends_with("data: [DONE]\n\n"));
}

TEST_CASE("http: choices that do not all have room are refused together, before one of them runs") {
  server_options o = slow();
  o.owner.max_batch = 2;
  o.owner.queue = 1;
  server_fixture f(o);
  http_client busy(f.port()), c(f.port());
  busy.send(
      busy.request("POST", "/v1/completions", R"({"prompt":"x","max_tokens":1000000,"stream":true})", {}));
  f.until([&] { return f.service->stats().engine.decoding == 1; });
  const auto no = c.post("/v1/completions", R"({"prompt":"x","max_tokens":1,"n":3})");
  CHECK(no.status == 429);
  CHECK(no.error().at("message") == "sim has 1 jobs running or waiting, and no room for 3 more");
  CHECK(f.service->stats().engine.finished == 0);
  CHECK(c.post("/v1/completions", R"({"prompt":"x","max_tokens":1,"n":2})").status == 200);
  const auto never = c.post("/v1/completions", R"({"prompt":"x","max_tokens":1,"n":4})");
  CHECK(never.status == 400);
  CHECK(never.error().at("param") == "n");
}

TEST_CASE("http: a completion is the job's text, with ids if asked, and its usage") {
  server_fixture f;
  http_client c(f.port());
  auto a =
      c.post("/v1/completions", R"({"prompt":"hello","max_tokens":50,"seed":7,"return_token_ids":true})");
  REQUIRE(a.status == 200);
  auto o = a.json();
  CHECK(o.at("object") == "text_completion");
  CHECK(o.at("model") == "sim");
  CHECK(o.at("id").as_string().starts_with("cmpl-"));
  CHECK(o.at("system_fingerprint").as_string().starts_with("fp_"));
  CHECK(o.at("choices").at(0).at("text") == json_text(sim_text(7, 50)));
  CHECK(o.at("choices").at(0).at("finish_reason") == "length");
  CHECK(o.at("choices").at(0).at("token_ids").as_array().size() == 50);
  CHECK(o.at("usage").at("prompt_tokens") == 5);
  CHECK(o.at("usage").at("completion_tokens") == 50);
  CHECK(o.at("usage").at("prompt_tokens_details").at("cached_tokens") == 0);
  auto ids = c.post("/v1/completions", R"({"prompt":[104,105],"max_tokens":3,"seed":7})").json();
  CHECK(ids.at("choices").at(0).at("text") == json_text(sim_text(7, 3)));
  CHECK(ids.at("usage").at("prompt_tokens") == 2);
  auto chat = c.post("/v1/chat/completions",
                     R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":4,"seed":2})");
  CHECK(chat.json().at("object") == "chat.completion");
  CHECK(chat.json().at("id").as_string().starts_with("chatcmpl-"));
  CHECK(chat.json().at("system_fingerprint") == o.at("system_fingerprint"));
  CHECK(chat.json().at("choices").at(0).at("message").at("refusal").is_null());
  CHECK(chat.json().at("choices").at(0).at("message").at("content") == json_text(sim_text(2, 4)));
}

TEST_CASE("http: a streamed completion's pieces join to the same text, then usage, then [DONE]") {
  server_fixture f;
  http_client c(f.port());
  auto a = c.post("/v1/completions", R"({"prompt":"hello","max_tokens":50,"seed":7,"stream":true,
      "stream_options":{"include_usage":true},"return_token_ids":true})");
  REQUIRE(a.status == 200);
  CHECK(a.header("Content-Type") == "text/event-stream");
  CHECK(a.header("Cache-Control") == "no-store");
  CHECK(a.header("X-Accel-Buffering") == "no");
  auto events = event_data(a.body());
  REQUIRE(events.size() >= 3);
  CHECK(events.back() == "[DONE]");
  events.pop_back();
  auto usage = boost::json::parse(events.back());
  CHECK(usage.at("choices").as_array().empty());
  CHECK(usage.at("usage").at("completion_tokens") == 50);
  events.pop_back();
  std::string text, reason;
  std::size_t ids = 0;
  for (const auto& e : events) {
    CHECK(reason.empty());
    auto choice = boost::json::parse(e).at("choices").at(0).as_object();
    text += std::string_view(choice.at("text").as_string());
    if (choice.contains("token_ids")) ids += choice.at("token_ids").as_array().size();
    if (choice.at("finish_reason").is_string()) reason = choice.at("finish_reason").as_string();
  }
  CHECK(text == sim_text(7, 50));
  CHECK(ids == 50);
  CHECK(reason == "length");
  CHECK(c.get("/health/live").status == 200);  // the connection goes on

  auto chat =
      c.post("/v1/chat/completions",
             R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":4,"seed":2,"stream":true})");
  std::string said;
  for (const auto& e : event_data(chat.body())) {
    if (e == "[DONE]") continue;
    said += std::string_view(boost::json::parse(e).at("choices").at(0).at("delta").at("content").as_string());
  }
  CHECK(said == sim_text(2, 4));
}

TEST_CASE("http: several prompts are answered in their order, each as if it were alone") {
  server_fixture f;
  http_client c(f.port());
  const auto alone = c.post("/v1/completions", R"({"prompt":"a","max_tokens":5,"n":2,"seed":7})").json();
  const std::string body = R"({"prompt":["a","bc",[104,105,106]],"max_tokens":5,"n":2,"seed":7)";
  const auto whole = c.post("/v1/completions", body + "}").json();
  REQUIRE(whole.at("choices").as_array().size() == 6);
  std::vector<std::string> texts;
  for (int i = 0; i < 6; ++i) {
    CHECK(whole.at("choices").at(i).at("index") == i);
    CHECK(whole.at("choices").at(i).at("text") == alone.at("choices").at(i % 2).at("text"));
    texts.emplace_back(whole.at("choices").at(i).at("text").as_string());
  }
  CHECK(whole.at("usage").at("prompt_tokens") == 1 + 2 + 3);
  CHECK(whole.at("usage").at("completion_tokens") == 30);
  CHECK(streamed_texts(c.post("/v1/completions", body + R"(,"stream":true})").body(), 6) == texts);

  const auto wrong = c.post("/v1/completions", R"({"prompt":["a",[1,5000]],"max_tokens":5})");
  CHECK(wrong.status == 400);
  CHECK(wrong.error().at("param") == "prompt[1]");
}

TEST_CASE("http: with echo the prompt's text stands before each answer, streamed or not") {
  server_fixture f;
  http_client c(f.port());
  const std::string body =
      R"({"prompt":["say \"hi\" ",[104,105,32]],"max_tokens":3,"n":2,"seed":7,"echo":true)";
  const std::string first = "say \"hi\" " + sim_text(7, 3), second = "w104 w105 w032 " + sim_text(7, 3);
  const std::vector<std::string> want = {first, first, second, second};
  const auto whole = c.post("/v1/completions", body + "}").json();
  std::vector<std::string> texts;
  for (const auto& choice : whole.at("choices").as_array()) texts.emplace_back(choice.at("text").as_string());
  CHECK(texts == want);
  CHECK(whole.at("usage").at("completion_tokens") == 12);
  CHECK(streamed_texts(c.post("/v1/completions", body + R"(,"stream":true})").body(), 4) == want);
}

TEST_CASE("http: a stream that has nothing to say sends comments, and one that has sends none") {
  server_options o;
  o.sim = "rate=100,prefill=0.001";  // the first token comes in a quarter of an hour
  o.net.limits.sse_keep_alive = std::chrono::milliseconds(100);
  server_fixture f(o);
  http_client c(f.port());
  c.send(c.request("POST", "/v1/chat/completions",
                   R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":1,"stream":true})", {}));
  const std::string begun = c.read_until(": keep-alive\n\n") + c.read_until(": keep-alive\n\n");
  CHECK(begun.find("\"role\":\"assistant\"") != begun.npos);
  c.drop();
  f.until_quiet();

  o.sim = "rate=1000,prefill=100000000";
  o.net.limits.sse_keep_alive = std::chrono::milliseconds(60'000);
  server_fixture quick(o);
  http_client other(quick.port());
  const auto a = other.post("/v1/completions", R"({"prompt":"x","max_tokens":500,"stream":true})");
  CHECK(a.body().find(": keep-alive") == std::string::npos);
}

TEST_CASE("http: a choice that fails ends the answer: an error as data, or the status") {
  server_options o;
  o.sim = "rate=200,prefill=100000000,fault=sampler@100";  // a quarter of a second after the stream has begun
  for (const bool stream : {true, false}) {
    server_fixture f(o);
    http_client c(f.port());
    const auto a = c.post("/v1/completions",
                          fmt::format(R"({{"prompt":"x","max_tokens":100000,"n":2,"stream":{}}})", stream));
    CHECK(a.status == (stream ? 200 : 500));
    if (!stream) {
      CHECK(a.error().at("type") == "server_error");
    } else {
      const auto events = event_data(a.body());
      REQUIRE(events.size() > 2);
      CHECK(events.back() == "[DONE]");
      const auto error = boost::json::parse(events[events.size() - 2]).at("error");
      CHECK(error.at("type") == "server_error");
      CHECK(error.at("code") == "internal");
      for (std::size_t i = 0; i + 2 < events.size(); ++i)
        CHECK(boost::json::parse(events[i]).at("choices").at(0).at("finish_reason").is_null());
    }
    f.until_quiet();  // the other choice was cancelled
  }
}

TEST_CASE("http: the answer's id, with its prefix or without, names it in /v1/jobs and over a socket") {
  const std::string by = GENERATE("DELETE", "DELETE, bare", "response.cancel", "response.cancel, bare");
  CAPTURE(by);
  server_fixture f(slow());
  http_client c(f.port()), other(f.port());
  c.send(c.request("POST", "/v1/chat/completions",
                   R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":100000,"n":3,"stream":true})",
                   {}));
  const std::string first = c.read_until("\n\n");
  std::string id = first.substr(first.find("chatcmpl-"));
  id = id.substr(0, id.find('"'));
  const std::string bare = id.substr(std::string_view("chatcmpl-").size());
  CHECK(other.get("/v1/jobs/" + id).json().at("id") == json_text(bare));
  CHECK(other.get("/v1/jobs/" + bare).json().at("id") == json_text(bare));
  CHECK(other.get("/v1/jobs/job-" + bare).status == 404);
  const std::string named = by.ends_with("bare") ? bare : id;
  if (by.starts_with("DELETE")) {
    const auto gone = other.ask("DELETE", "/v1/jobs/" + named, {}, {});
    CHECK(gone.json().at("id") == json_text(bare));
    CHECK(gone.json().at("finish_reason") == "cancel");
  } else {
    ws_client socket(f.port());
    socket.read("session.created");
    socket.send(fmt::format(R"({{"type":"response.cancel","response_id":"{}"}})", named));
    f.until_quiet();
  }
  const std::string rest = c.read_until("[DONE]");
  std::size_t cancelled = 0;
  for (auto at = rest.find("\"cancel\""); at != rest.npos; at = rest.find("\"cancel\"", at + 1)) ++cancelled;
  CHECK(cancelled == 3);
}

TEST_CASE("http: a refused stream is a status, not an event") {
  server_fixture f;
  http_client c(f.port());
  auto a = c.post("/v1/completions", R"({"prompt":"x","stream":true,"temperature":9})");
  CHECK(a.status == 400);
  CHECK(a.error().at("param") == "temperature");
}

TEST_CASE("http: HTTP/1.0 gets its stream without chunks, until the connection ends") {
  server_fixture f;
  http_client c(f.port());
  const std::string body = R"({"prompt":"x","max_tokens":5,"seed":1,"stream":true})";
  c.send(
      fmt::format("POST /v1/completions HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                  "Content-Length: {}\r\n\r\n{}",
                  body.size(), body));
  auto a = c.read();
  CHECK(a.status == 200);
  CHECK(event_data(a.body()).back() == "[DONE]");
}

TEST_CASE("http: a client that goes away takes its job along") {
  const bool stream = GENERATE(true, false);
  CAPTURE(stream);
  server_fixture f(slow());
  http_client c(f.port());
  c.send(c.request("POST", "/v1/completions",
                   fmt::format(R"({{"prompt":"x","max_tokens":100000,"stream":{}}})", stream), {}));
  if (stream) c.read_until("w");
  f.until([&] { return f.service->stats().engine.decoding == 1; });
  c.drop();
  f.until_quiet();
  http_client other(f.port());
  auto jobs = other.get("/v1/jobs").json().at("jobs").as_array();
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0].at("state") == "finished");
  CHECK(jobs[0].at("finish_reason") == "cancel");
}

namespace {

std::string whole_post(std::string_view target, std::string_view body, std::string_view version = "1.1") {
  return fmt::format(
      "POST {} HTTP/{}\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
      target, version, body.size(), body);
}

// Waits until the only job has ended, and returns how.
std::string ending_of_the_job(server_fixture& f) {
  f.until([&] {
    const auto jobs = f.list_jobs();
    return jobs.size() == 1 && jobs[0].state == "finished";
  });
  return f.list_jobs().front().finish_reason;
}

constexpr std::string_view probe = "HTTP/1.1 100 Continue\r\n\r\n";

// Removes the probes in front of an answer, and counts them.
int take_probes(std::string& heard) {
  int n = 0;
  for (; heard.starts_with(probe); ++n) heard.erase(0, probe.size());
  return n;
}

}  // namespace

TEST_CASE("http: a client that ends its sending side behind its request gets its answer") {
  const bool stream = GENERATE(false, true), message = GENERATE(false, true);
  CAPTURE(stream, message);
  server_fixture f;
  raw_client c(f.port());
  const std::string asked =
      message ? R"("model":"sim","messages":[{"role":"user","content":"x"}])" : R"("prompt":"x")";
  c.send(whole_post(message ? "/v1/messages" : "/v1/completions",
                    fmt::format(R"({{{},"max_tokens":400,"stream":{}}})", asked, stream)));
  c.finish();
  std::string heard = c.read_to_end();
  take_probes(heard);
  CAPTURE(heard.substr(0, 200));
  CHECK(heard.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(heard.find(stream ? (message ? "message_stop" : "[DONE]") : "400") != heard.npos);
  CHECK(ending_of_the_job(f) == "length");
}

TEST_CASE("http: a client that has said all is asked again and again whether it is there") {
  server_fixture f(slow());
  raw_client c(f.port());
  c.send(whole_post("/v1/completions", R"({"prompt":"x","max_tokens":150})"));
  c.finish();
  std::string heard = c.read_to_end();
  CHECK(take_probes(heard) >= 2);
  CHECK(heard.starts_with("HTTP/1.1 200 OK\r\n"));
}

TEST_CASE("http: requests that were sent ahead of the end of the sending side are all answered") {
  server_fixture f;
  raw_client c(f.port());
  const auto one = whole_post("/v1/completions", R"({"prompt":"x","max_tokens":7})");
  c.send(one + one + "GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n");
  c.finish();
  const std::string heard = c.read_to_end();
  int answers = 0;
  for (auto at = heard.find("200 OK"); at != heard.npos; at = heard.find("200 OK", at + 1)) ++answers;
  CHECK(answers == 3);
}

TEST_CASE("http: a request that the end of the sending side cuts off ends the connection after the answer") {
  server_fixture f(slow());
  raw_client c(f.port());
  c.send(whole_post("/v1/completions", R"({"prompt":"x","max_tokens":40})") +
         "GET /health/live HTTP/1.1\r\nHo");
  c.finish();
  c.read_until(probe);  // the end was seen while the job ran
  std::string heard = c.read_to_end();
  take_probes(heard);
  CHECK(heard.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(heard.find("HTTP/1.1 4", 1) == heard.npos);  // not ended by its time
}

TEST_CASE(
    "http: a client that says all and leaves takes its job along, whatever it was sent before it left") {
  const bool stream = GENERATE(false, true), hears = GENERATE(false, true);
  CAPTURE(stream, hears);
  server_fixture f(slow());
  {
    raw_client c(f.port());
    c.send(whole_post("/v1/completions",
                      fmt::format(R"({{"prompt":"x","max_tokens":100000,"stream":{}}})", stream)));
    c.finish();
    if (hears) c.read_until(stream ? "data: " : probe);
  }
  CHECK(ending_of_the_job(f) == "cancel");
}

// A long body is watched while it is parsed, and then its job is.
TEST_CASE("http: a client that says all in a long body and leaves leaves nothing behind") {
  const bool stream = GENERATE(false, true);
  CAPTURE(stream);
  server_fixture f(slow());
  {
    raw_client c(f.port());
    c.send(whole_post("/v1/completions", fmt::format(R"({{"prompt":"{}","max_tokens":100000,"stream":{}}})",
                                                     std::string(100'000, 'x'), stream)));
    c.finish();
    c.read_until(stream ? "data: " : probe);
  }
  f.until([&] { return f.service->memory()->used() == 0; });
  for (const auto& job : f.list_jobs()) CHECK(job.finish_reason == "cancel");
}

TEST_CASE(
    "http: to HTTP/1.0 nothing can be sent before the answer, so the end of its sending side is its end") {
  server_fixture f(slow());
  raw_client c(f.port());
  c.send(whole_post("/v1/completions", R"({"prompt":"x","max_tokens":100000})",
                    "1.0"));  // nothing may be sent before its answer
  c.finish();
  CHECK(ending_of_the_job(f) == "cancel");
  CHECK(c.read_to_end().empty());
}

TEST_CASE("http: an event reader that stops loses its connection, and its job is cancelled") {
  server_options o;
  o.sim = "rate=50000,prefill=100000000";
  o.net.limits.write_time = std::chrono::milliseconds(300);
  server_fixture f(o);
  http_client stuck(f.port());
  stuck.send(
      stuck.request("POST", "/v1/completions", R"({"prompt":"x","max_tokens":130000,"stream":true})", {}));
  http_client other(f.port());
  f.until([&] {
    auto jobs = other.get("/v1/jobs").json().at("jobs").as_array();
    return jobs.size() == 1 && jobs[0].at("state") == "finished";
  });
  CHECK(other.get("/v1/jobs").json().at("jobs").at(0).at("finish_reason") == "cancel");
}

// The answers to a few streams fill the buffers of both systems. Where the last byte that fits falls is
// different for each client, so that some of them stop the server inside the header of a stream.
TEST_CASE("http: a client that reads no answer loses its connection, wherever the answer stops") {
  server_options o;
  o.sim = "rate=1000000";
  o.net.limits.write_time = std::chrono::milliseconds(300);
  o.net.limits.send_buffer = 1;  // the least that the system has
  server_fixture f(o);
  constexpr int clients = 24, streams = 60, least_receive_buffer = 1;
  http_client other(f.port());
  const std::string short_answer = other.request("GET", "/health/live", "", "");
  const std::string stream =
      other.request("POST", "/v1/completions", R"({"prompt":"x","max_tokens":1,"stream":true})", "");
  std::vector<std::unique_ptr<raw_client>> all;
  for (int i = 0; i < clients; ++i) {
    std::string ahead;
    for (int n = 0; n < i; ++n) ahead += short_answer;
    for (int n = 0; n < streams; ++n) ahead += stream;
    all.emplace_back(std::make_unique<raw_client>(f.port(), least_receive_buffer))
        ->send_without_reading(ahead);
  }
  f.until([&] { return std::ranges::all_of(all, [](const auto& c) { return c->was_reset(); }); });
}

// After FIN the system wakes no further read. The rounds send FIN at moments around the job's end, at which
// the server also ends the read that watches the client.
TEST_CASE("http: a client that has said all it has to say is not waited for after its answer") {
  server_options o;
  o.sim = "rate=1000000,prefill=100000000";
  o.net.limits.keep_alive = std::chrono::minutes(10);
  server_fixture f(o);
  http_client other(f.port());
  for (const char* streamed : {"false", "true"}) {
    const std::string body = fmt::format(R"({{"prompt":"x","max_tokens":1,"stream":{}}})", streamed);
    const std::string ask = other.request("POST", "/v1/completions", body, "");
    for (int round = 0; round < 1500; ++round) {
      raw_client c(f.port());
      c.send(ask);
      const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(200) * round;
      while (std::chrono::steady_clock::now() < until) {
      }
      c.finish();
      c.read_to_end();
    }
  }
}

}  // namespace weir::tests::http_completion_test
