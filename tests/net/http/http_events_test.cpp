// Streams over HTTP that survive their connection: ids of events, on_disconnect, GET /v1/jobs/{id}/events.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <random>

#include "net/http/event_cursor.h"
#include "tests/support/http_client.h"
#include "tests/support/plain_http.h"
#include "tests/support/raw_client.h"
#include "tests/support/seed.h"
#include "tests/support/server_fixture.h"
#include "tests/support/sse.h"
#include "tests/support/ws_talk.h"

namespace weir::tests::http_events_test {
namespace {

using std::chrono::milliseconds;

enum class dialect { chat, completions, messages };

constexpr const char* paths[] = {"/v1/chat/completions", "/v1/completions", "/v1/messages"};

std::string body_of(dialect d, std::string_view fields) {
  constexpr const char* inputs[] = {R"("messages":[{"role":"user","content":"hi"}])", R"("prompt":"x")",
                                    R"("messages":[{"role":"user","content":"hi"}])"};
  return fmt::format("{{{},{}}}", inputs[static_cast<int>(d)], fields);
}

const char* path_of(dialect d) { return paths[static_cast<int>(d)]; }

std::string follow(std::string_view id, std::string_view cursor) {
  const auto header = cursor.empty() ? std::string() : fmt::format("Last-Event-ID: {}\r\n", cursor);
  return plain_request("GET", fmt::format("/v1/jobs/{}/events", id), header);
}

// What a client has of an answer, over all of its connections.
struct reader {
  std::string id, last;            // of the answer, and of the last event that had one
  std::string head;                // what all events of the answer repeat
  std::vector<std::string> texts;  // of the choices
  std::vector<std::string> finish;
  std::vector<std::size_t> ids;  // tokens whose ids came
  int roles = 0, usages = 0;
  bool ended = false;

  explicit reader(std::size_t choices) : texts(choices), finish(choices), ids(choices) {}

  void take(std::string_view stream) {
    for (const auto& e : whole_events(stream)) {
      if (!e.id.empty()) last = e.id;
      if (e.data == "[DONE]" || e.type == "message_stop") ended = true;
      if (e.data == "[DONE]") continue;
      const auto said = boost::json::parse(e.data).as_object();
      e.type.empty() ? take_openai(said) : take_anthropic(said);
    }
  }

 private:
  void take_openai(const boost::json::object& said) {
    REQUIRE(said.contains("choices"));
    id = said.at("id").as_string();
    const std::string its = id + std::to_string(said.at("created").as_int64()) +
                            std::string(said.at("system_fingerprint").as_string());
    if (head.empty()) head = its;
    CHECK(head == its);
    usages += said.contains("usage") && said.at("usage").is_object();
    for (const auto& c : said.at("choices").as_array()) {
      const auto i = c.at("index").to_number<std::size_t>();
      const auto* delta = c.as_object().if_contains("delta");
      roles += delta && delta->as_object().contains("role");
      texts.at(i) += delta ? delta->at("content").as_string() : c.at("text").as_string();
      if (c.as_object().contains("token_ids")) ids.at(i) += c.at("token_ids").as_array().size();
      if (c.at("finish_reason").is_string()) finish.at(i) = c.at("finish_reason").as_string();
    }
  }
  void take_anthropic(const boost::json::object& said) {
    if (said.at("type") == "message_start") {
      ++roles;
      id = said.at("message").at("id").as_string();
    }
    if (said.at("type") == "content_block_delta") texts.at(0) += said.at("delta").at("text").as_string();
    if (said.at("type") == "message_delta") finish.at(0) = said.at("delta").at("stop_reason").as_string();
  }
};

// Sends a request, and gives the reader at most `most` bytes of the stream that comes; all of it by default.
void read_stream(const server_fixture& f, reader& r, const std::string& request,
                 std::size_t most = std::string::npos) {
  r.take(plain_body(f.port(), request, most));
}

// Sends a request whose client is lost as soon as it knows the answer's id, and returns the id.
std::string begin_lost(const server_fixture& f, dialect d, std::string_view fields) {
  raw_client c(f.port());
  c.send(plain_request("POST", path_of(d), {}, body_of(d, fields)));
  const std::string& heard = c.read_until("\"id\":\"");
  while (heard.find("\"", heard.find("\"id\":\"") + 6) == heard.npos && c.read_more()) {
  }
  const auto begin = heard.find("\"id\":\"") + 6;
  REQUIRE(begin > 6);
  return heard.substr(begin, heard.find('"', begin) - begin);
}

std::string code_of(const http_answer& a) { return std::string(a.error().at("code").as_string()); }

constexpr const char* lasting = R"("max_tokens":100000,"seed":4,"stream":true,"on_disconnect":"continue")";

}  // namespace

TEST_CASE("events: cut at any byte again and again, an answer goes on without gap or repeat") {
  const auto [d, n] = GENERATE(table<dialect, std::size_t>({{dialect::chat, 1},
                                                            {dialect::chat, 2},
                                                            {dialect::completions, 1},
                                                            {dialect::completions, 2},
                                                            {dialect::messages, 1}}));
  CAPTURE(path_of(d), n);
  server_options o;
  o.sim = "rate=700,prefill=100000000";
  o.shards = 3;
  server_fixture f(o);
  constexpr std::size_t tokens = 250;
  std::mt19937_64 draw(drawn_seed(n + static_cast<std::uint64_t>(d)));
  std::string fields = fmt::format(R"("max_tokens":{},"stream":true,"on_disconnect":"continue")", tokens);
  if (d != dialect::messages)
    fields += fmt::format(R"(,"n":{},"return_token_ids":true,"stream_options":{{"include_usage":true}})", n);
  const auto cut = [&] { return 1 + draw() % 3000; };

  reader r(n);
  read_stream(f, r, plain_request("POST", path_of(d), {}, body_of(d, fields)), 700 + cut());
  REQUIRE_FALSE(r.id.empty());
  int cuts = 0;
  for (; !r.ended; ++cuts) read_stream(f, r, follow(r.id, r.last), cut());
  CHECK(cuts > 3);
  reader again(n);
  read_stream(f, again, follow(r.id, "0"));
  CHECK(again.roles == (d == dialect::completions ? 0 : static_cast<int>(n)));
  CHECK(again.usages == (d == dialect::messages ? 0 : 1));
  for (std::size_t i = 0; i < n; ++i) {
    CHECK(r.texts[i] == again.texts[i]);
    CHECK(r.texts[i].size() == 5 * tokens);
    CHECK(r.finish[i] == (d == dialect::messages ? "max_tokens" : "length"));
    CHECK(r.ids[i] == (d == dialect::messages ? 0 : tokens));
  }
  CHECK(again.head == r.head);
  CHECK(again.last == (n == 1 ? "250" : "250.250"));
}

TEST_CASE("events: an id counts the tokens of each choice, and only events of tokens have one") {
  server_fixture f;
  http_client c(f.port());
  const auto ids_in = [&](dialect d, std::string_view fields) {
    const auto a = c.post(path_of(d), body_of(d, fields));
    REQUIRE(a.status == 200);
    std::vector<std::string> ids;
    for (const auto& e : whole_events(a.body())) {
      const bool has_text = e.type.empty()
                                ? e.data.find("w") != e.data.npos && e.data.find("\"role\"") == e.data.npos &&
                                      e.data.find("\"choices\":[{") != e.data.npos
                                : e.type == "content_block_delta";
      CAPTURE(e.data);
      CHECK(e.id.empty() != has_text);
      if (!e.id.empty()) ids.push_back(e.id);
    }
    return ids;
  };
  const auto number = [](const std::string& id) { return std::stoi(id); };
  for (const auto d : {dialect::chat, dialect::completions, dialect::messages}) {
    CAPTURE(path_of(d));
    const auto ids = ids_in(d, R"("max_tokens":9,"stream":true)");
    REQUIRE_FALSE(ids.empty());
    CHECK(ids.back() == "9");
    CHECK(std::ranges::is_sorted(ids, {}, number));
  }
  const auto of_three = ids_in(dialect::chat, R"("max_tokens":9,"n":3,"stream":true)");
  CHECK(of_three.back() == "9.9.9");
  std::vector<std::uint32_t> had(3, 0);
  for (const auto& id : of_three) {  // an event has tokens of one choice: whichever had some to be sent
    const auto has = net::parse_event_id(id).value();
    REQUIRE(has.size() == 3);
    int risen = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(has[i] >= had[i]);
      risen += has[i] > had[i];
    }
    CHECK(risen == 1);
    had = has;
  }
}

TEST_CASE("events: several clients follow an answer at once, on every shard, each from its own place") {
  server_options o;
  o.sim = "rate=500,prefill=100000000";
  o.shards = 3;
  server_fixture f(o);
  const std::string id =
      begin_lost(f, dialect::chat, R"("max_tokens":300,"seed":9,"stream":true,"on_disconnect":"continue")");
  std::vector<std::unique_ptr<raw_client>> all;
  for (int i = 0; i < 6; ++i) {
    all.push_back(std::make_unique<raw_client>(f.port()));
    all.back()->send(follow(i % 2 ? id : id.substr(id.find('-') + 1), {}));
  }
  for (const auto& c : all) {
    const auto& heard = c->read_to_end();
    reader r(1);
    r.take(std::string_view(heard).substr(heard.find("\r\n\r\n") + 4));
    CHECK(r.texts[0] == sim_text(9, 300));
    CHECK(r.ended);
  }
  http_client c(f.port());
  const auto after = c.get(fmt::format("/v1/jobs/{}/events?after=290", id));
  CHECK(after.header("Content-Type") == "text/event-stream");
  reader tail(1);
  tail.take(after.body());
  CHECK(tail.texts[0] == sim_text(9, 300).substr(5 * 290));
  CHECK(tail.roles == 0);
  reader by_header(1);  // what a browser has heard since goes before the path
  by_header.take(c.get(fmt::format("/v1/jobs/{}/events?after=290", id), "Last-Event-ID: 299\r\n").body());
  CHECK(by_header.texts[0] == sim_text(9, 300).substr(5 * 299));
  CHECK(c.get("/health/live").status == 200);  // the connection goes on
}

TEST_CASE("events: what cannot be followed is refused, and the refusal says why") {
  auto o = slow();
  o.net.limits.followers = 2;
  server_fixture f(o);
  http_client c(f.port());
  const std::string id = begin_lost(f, dialect::chat, lasting) + "/events";
  const std::string two = begin_lost(f, dialect::completions, std::string(lasting) + R"(,"n":2)") + "/events";
  const struct {
    std::string path, header;
    unsigned status;
    const char *code, *param;
  } rows[] = {
      {"chatcmpl-0123456789abcdef0123456789abcdef/events", {}, 404, "not_found", nullptr},
      {"x/events", {}, 404, "not_found", nullptr},
      {"job-" + id, {}, 404, "not_found", nullptr},
      {id, "Last-Event-ID: x", 400, "invalid_cursor", "Last-Event-ID"},
      {id, "Last-Event-ID: -1", 400, "invalid_cursor", "Last-Event-ID"},
      {id, "Last-Event-ID: 1.", 400, "invalid_cursor", "Last-Event-ID"},
      {id, "Last-Event-ID: 4294967296", 400, "invalid_cursor", "Last-Event-ID"},
      {id, "Last-Event-ID: 99999", 400, "invalid_cursor", "Last-Event-ID"},
      {id, "Last-Event-ID: 1.1", 400, "invalid_cursor", "Last-Event-ID"},
      {id, "Last-Event-ID: 0\r\nLast-Event-ID: 0", 400, "invalid_cursor", "Last-Event-ID"},
      {id + "?after=99999", {}, 400, "invalid_cursor", "after"},
      {two + "?after=0.99999", {}, 400, "invalid_cursor", "after"},
      {two, "Last-Event-ID: 1", 400, "invalid_cursor", "Last-Event-ID"},
  };
  for (const auto& r : rows) {
    CAPTURE(r.path, r.header);
    const auto a = c.get("/v1/jobs/" + r.path, r.header.empty() ? r.header : r.header + "\r\n");
    CHECK(a.status == r.status);
    CHECK(code_of(a) == r.code);
    CHECK((r.param ? a.error().at("param") == r.param : a.error().at("param").is_null()));
  }
  CHECK(c.ask("HEAD", "/v1/jobs/" + id, {}, {}).status == 200);
  for (const char* method : {"POST", "DELETE", "PUT"}) {
    const auto a = c.ask(method, "/v1/jobs/" + id, {}, {});
    CHECK(a.status == 405);
    CHECK(a.header("Allow") == "GET, HEAD");
  }

  raw_client one(f.port()), other(f.port());
  for (auto* follower : {&one, &other}) {
    follower->send("GET /v1/jobs/" + id + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    follower->read_until("data: ");
  }
  const auto crowded = c.get("/v1/jobs/" + id);
  CHECK(crowded.status == 429);
  CHECK(code_of(crowded) == "too_many_jobs");
}

TEST_CASE("events: an answer that was not to go on is cancelled with its client, and cannot be followed") {
  const std::string fields = GENERATE("", R"(,"on_disconnect":"cancel")", R"(,"on_disconnect":null)");
  server_fixture f(slow());
  http_client c(f.port());
  const auto id =
      begin_lost(f, dialect::completions, R"("max_tokens":100000,"seed":4,"stream":true)" + fields);
  CHECK(c.get(fmt::format("/v1/jobs/{}/events", id)).status == 404);
  f.until_quiet();
  CHECK(finish_reasons(f) == std::multiset<std::string>{"cancel"});
  CHECK(code_of(c.get(fmt::format("/v1/jobs/{}/events", id))) == "not_found");
  ws_client socket(f.port());  // nor can a job of weir.v1 be followed as events
  socket.read("session.created");
  socket.send(create("a", R"("max_tokens":100000)"));
  const auto made = std::string(socket.read("response.created").at("response_id").as_string());
  CHECK(code_of(c.get(fmt::format("/v1/jobs/{}/events", made))) == "not_found");
}

TEST_CASE("events: a lost answer is cancelled after the grace, unless somebody follows it") {
  auto o = slow();
  o.net.limits.detach_grace = milliseconds(300);
  server_fixture f(o);
  http_client c(f.port());
  const auto followed = begin_lost(f, dialect::chat, lasting);
  raw_client follower(f.port());
  follower.send(follow(followed, {}));
  follower.read_until("data: ");
  const auto left = begin_lost(f, dialect::chat, std::string(lasting) + R"(,"n":2)");
  f.until([&] {
    const auto jobs = f.list_jobs();
    return std::ranges::count(jobs, "cancel", &actors::job_view::finish_reason) == 2;
  });
  CHECK(code_of(c.get(fmt::format("/v1/jobs/{}/events", left))) == "resume_expired");
  f.until([&] { return f.service->stats().engine.decoding == 1; });
  CHECK(c.ask("DELETE", "/v1/jobs/" + followed, {}, {}).status == 200);
  CHECK(follower.read_to_end().find("\"finish_reason\":\"cancel\"") != std::string::npos);
}

TEST_CASE("events: an answer that has ended is kept, streamed or not, whole or failed") {
  server_options o;
  o.net.limits.retain = std::chrono::seconds(1);
  server_fixture f(o);
  http_client c(f.port());
  const std::string fields = R"("max_tokens":20,"seed":7,"on_disconnect":"continue")";
  const auto whole = c.post("/v1/messages", body_of(dialect::messages, fields)).json();
  reader r(1);
  read_stream(f, r, follow(std::string(whole.at("id").as_string()), {}));
  CHECK(json_text(r.texts[0]) == whole.at("content").at(0).at("text"));
  CHECK(r.finish[0] == "max_tokens");
  const auto streamed =
      c.post("/v1/completions", body_of(dialect::completions, fields + R"(,"stream":true)"));
  reader first(1), second(1);
  first.take(streamed.body());
  read_stream(f, second, follow(first.id, {}));
  CHECK(second.texts == first.texts);
  f.until([&] {
    const auto late = c.get(fmt::format("/v1/jobs/{}/events", first.id));
    return late.status == 404 && code_of(late) == "resume_expired";
  });

  server_options faulty;
  faulty.sim = "rate=200,prefill=100000000,fault=sampler@20";
  server_fixture g(faulty);
  const auto id = begin_lost(g, dialect::chat, std::string(lasting) + R"(,"n":2)");
  http_client other(g.port());
  const auto failed = event_data(other.get(fmt::format("/v1/jobs/{}/events", id)).body());
  REQUIRE(failed.size() > 3);
  CHECK(failed.back() == "[DONE]");
  CHECK(boost::json::parse(failed[failed.size() - 2]).at("error").at("code") == "internal");
}

TEST_CASE("events: a stream begins when its job is admitted, long before the first token") {
  const auto d = GENERATE(dialect::chat, dialect::completions, dialect::messages);
  CAPTURE(path_of(d));
  server_options o;
  o.sim = "rate=100,prefill=0.001";  // the first token comes in a quarter of an hour
  o.owner.max_batch = 1;
  server_fixture f(o);
  raw_client computed(f.port()), queued(f.port());
  constexpr const char* first[] = {"\"role\":\"assistant\"", ": begun\n\n", "event: ping"};
  for (auto* c : {&computed, &queued}) {
    c->send(plain_request("POST", path_of(d), {}, body_of(d, lasting)));
    const auto& heard = c->read_until(first[static_cast<int>(d)]);
    CHECK(heard.find("200 OK") != heard.npos);
    CHECK(heard.find(first[static_cast<int>(d)]) != heard.npos);
  }
  const auto jobs = f.list_jobs();
  REQUIRE(jobs.size() == 2);
  for (const auto& j : jobs) {
    raw_client follower(f.port());
    follower.send(follow(j.id.text(), {}));
    const auto& heard = follower.read_until(first[static_cast<int>(d)]);
    CHECK(heard.find(first[static_cast<int>(d)]) != heard.npos);
  }
}

TEST_CASE("events: the prompt, logprobs and their offsets go on as if nothing had been cut") {
  server_fixture f;
  http_client c(f.port());
  const std::string fields = R"("max_tokens":40,"seed":7,"stream":true,"on_disconnect":"continue")";
  const auto stream_of = [&](std::string_view more) {
    return c.post("/v1/completions", body_of(dialect::completions, fields + std::string(more))).body();
  };
  reader echoed(1), again(1), later(1);
  echoed.take(stream_of(R"(,"echo":true)"));
  CHECK(echoed.texts[0] == "x" + sim_text(7, 40));
  read_stream(f, again, follow(echoed.id, "0"));
  read_stream(f, later, follow(echoed.id, "39"));
  CHECK(again.texts == echoed.texts);
  CHECK(later.texts[0] == sim_text(7, 40).substr(5 * 39));

  const auto offsets = [](std::string_view stream) {
    std::vector<std::int64_t> out;
    for (const auto& data : event_data(stream)) {
      if (data == "[DONE]") continue;
      const auto said = boost::json::parse(data);
      const auto& part = said.at("choices").at(0).at("logprobs");
      if (part.is_null()) continue;
      for (const auto& at : part.at("text_offset").as_array()) out.push_back(at.as_int64());
    }
    return out;
  };
  const auto whole = stream_of(R"(,"logprobs":1)");
  reader r(1);
  r.take(whole);
  const auto rest = offsets(c.get(fmt::format("/v1/jobs/{}/events?after=30", r.id)).body());
  const auto all = offsets(whole);
  REQUIRE(all.size() == 40);
  CHECK(rest == std::vector<std::int64_t>(all.begin() + 30, all.end()));
}

TEST_CASE("events: only the key of an answer follows it, and weir.v1 may follow it too") {
  auto o = slow();
  o.net.api_keys = {"first", "second"};
  server_fixture f(o);
  http_client c(f.port());
  const std::string mine = "Authorization: Bearer first\r\n";
  raw_client lost(f.port());
  lost.send(plain_request("POST", "/v1/chat/completions", mine, body_of(dialect::chat, lasting)));
  lost.read_until("data: ");
  const auto id = f.list_jobs().at(0).id.text();
  const std::string path = fmt::format("/v1/jobs/{}/events", id);
  CHECK(code_of(c.get(path, "Authorization: Bearer second\r\n")) == "not_found");
  CHECK(c.get(path).status == 401);
  const auto issued = c.post("/v1/stream/tokens", R"({"sub":"u"})", mine).json();
  const auto token = std::string(issued.at("token").as_string());
  CHECK(code_of(c.get(path, fmt::format("Authorization: Bearer {}\r\n", token))) == "token_forbidden");
  CHECK(c.ask("HEAD", path, {}, mine).status == 200);
  ws_client socket(f.port(), {.authorization = "Bearer first"});
  socket.read("session.created");
  socket.send(fmt::format(R"({{"type":"response.resume","id":"a","response_id":"{}","after":0}})", id));
  CHECK(socket.read().at("type") == "response.resumed");
}

TEST_CASE("events: what on_disconnect cannot be is refused") {
  server_fixture f;
  http_client c(f.port());
  for (const auto d : {dialect::chat, dialect::completions, dialect::messages}) {
    CAPTURE(path_of(d));
    const auto no = c.post(path_of(d), body_of(d, R"("max_tokens":4,"on_disconnect":"later")"));
    CHECK(no.status == 400);
    CHECK(no.body().find("on_disconnect must be") != std::string::npos);
  }
  for (const char* more :
       {R"("prompt_logprobs":1)", R"("echo":true,"logprobs":1)", R"("echo":true,"max_tokens":0)"}) {
    CAPTURE(more);
    const auto no = c.post("/v1/completions", body_of(dialect::completions,
                                                      std::string(more) + R"(,"on_disconnect":"continue")"));
    CHECK(no.status == 400);
    CHECK(no.error().at("param") == "on_disconnect");
  }
}

}  // namespace weir::tests::http_events_test
