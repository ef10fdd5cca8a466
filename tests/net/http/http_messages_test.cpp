// Anthropic's messages over HTTP: whole, as events, counted, refused, and what becomes of one whose client
// goes.
#include <fmt/format.h>

#include <boost/asio/system_executor.hpp>
#include <boost/json/parse.hpp>

#include "tests/support/http_client.h"
#include "tests/support/server_fixture.h"
#include "tests/support/sse.h"

namespace weir::tests::http_messages_test {
namespace {

std::string body_of(std::string_view fields, std::string_view content = "hi") {
  return fmt::format(R"({{"messages":[{{"role":"user","content":"{}"}}]{}}})", content, fields);
}

// The events of a stream, each of which has the type that its name says.
std::vector<boost::json::object> events_of(std::string_view stream) {
  std::vector<boost::json::object> out;
  for (const auto& e : whole_events(stream)) {
    out.push_back(boost::json::parse(e.data).as_object());
    REQUIRE(e.type == std::string_view(out.back().at("type").as_string()));
  }
  return out;
}

std::string text_in(const std::vector<boost::json::object>& events) {
  std::string text;
  for (const auto& e : events)
    if (e.at("type") == "content_block_delta") text += e.at("delta").at("text").as_string();
  return text;
}

std::int64_t prompt_tokens(const boost::json::value& usage) {
  return usage.at("input_tokens").to_number<std::int64_t>() +
         usage.at("cache_creation_input_tokens").to_number<std::int64_t>() +
         usage.at("cache_read_input_tokens").to_number<std::int64_t>();
}

}  // namespace

TEST_CASE("messages: an answer is the job's text, its reason and its usage") {
  server_fixture f;
  http_client c(f.port());
  const auto a =
      c.post("/v1/messages", body_of(R"(,"max_tokens":20,"seed":7,"model":"sim","system":"be brief")"),
             "anthropic-version: 2023-06-01\r\n");
  REQUIRE(a.status == 200);
  CHECK(a.header("request-id") == a.header("x-request-id"));
  CHECK(a.header("request-id").size() == 32);
  const auto o = a.json();
  CHECK(o.at("type") == "message");
  CHECK(o.at("role") == "assistant");
  CHECK(o.at("model") == "sim");
  CHECK(o.at("content").as_array().size() == 1);
  CHECK(o.at("content").at(0).at("text") == json_text(sim_text(7, 20)));
  CHECK(o.at("stop_reason") == "max_tokens");
  CHECK(o.at("stop_sequence").is_null());
  CHECK(o.at("usage").at("output_tokens") == 20);
  const std::string id(o.at("id").as_string());
  REQUIRE(id.starts_with("msg_"));
  CHECK(c.get("/v1/jobs/" + id.substr(4)).json().at("finish_reason") == "length");
}

TEST_CASE("messages: a stream's pieces join to the same text, between its start and its end") {
  server_fixture f;
  http_client c(f.port());
  const auto a = c.post("/v1/messages", body_of(R"(,"max_tokens":20,"seed":7,"stream":true)"));
  REQUIRE(a.status == 200);
  CHECK(a.header("Content-Type") == "text/event-stream");
  CHECK(a.header("request-id").size() == 32);
  const auto events = events_of(a.body());
  REQUIRE(events.size() >= 7);
  CHECK(events[0].at("type") == "message_start");
  CHECK(events[1].at("type") == "ping");
  CHECK(events[2].at("type") == "content_block_start");
  for (std::size_t i = 3; i + 3 < events.size(); ++i) CHECK(events[i].at("type") == "content_block_delta");
  CHECK(events[events.size() - 3].at("type") == "content_block_stop");
  CHECK(events[events.size() - 2].at("type") == "message_delta");
  CHECK(events.back().at("type") == "message_stop");
  CHECK(text_in(events) == sim_text(7, 20));
  const auto& delta = events[events.size() - 2];
  CHECK(delta.at("delta").at("stop_reason") == "max_tokens");
  CHECK(delta.at("usage").at("output_tokens") == 20);
  const auto& begun = events[0].at("message");
  CHECK(begun.at("id").as_string().size() == 4 + 32);
  CHECK(begun.at("model") == "sim");
  CHECK(prompt_tokens(begun.at("usage")) == prompt_tokens(delta.at("usage")));
  CHECK(c.get("/health").status == 200);  // the connection goes on
}

TEST_CASE("messages: how many tokens a prompt has is the same before, in a stream and at the end") {
  server_fixture f;
  http_client c(f.port());
  const std::string fields = R"(,"system":[{"type":"text","text":"be brief"}])", prompt(200, 'p');
  const auto count = c.post("/v1/messages/count_tokens", body_of(fields, prompt));
  REQUIRE(count.status == 200);
  const auto tokens = count.json().at("input_tokens").to_number<std::int64_t>();
  CHECK(tokens > 200);
  const auto usage = [&](const char* more) {
    const auto a = c.post("/v1/messages", body_of(fields + more, prompt));
    REQUIRE(a.status == 200);
    return a.json().at("usage");
  };
  const auto first = usage(R"(,"max_tokens":1)"), second = usage(R"(,"max_tokens":1)");
  CHECK(prompt_tokens(first) == tokens);
  CHECK(prompt_tokens(second) == tokens);
  CHECK(first.at("cache_read_input_tokens") == 0);
  CHECK(second.at("cache_read_input_tokens").as_int64() >= 192);
  const auto stream = c.post("/v1/messages", body_of(fields + R"(,"max_tokens":1,"stream":true)", prompt));
  const auto events = events_of(stream.body());
  CHECK(prompt_tokens(events.front().at("message").at("usage")) == tokens);
  CHECK(prompt_tokens(events.at(events.size() - 2).at("usage")) == tokens);
}

TEST_CASE("messages: the tokens of a prompt are counted where the context has no room for them") {
  server_options o;
  o.sim += ",ctx=64";
  server_fixture f(o);
  http_client c(f.port());
  const std::string prompt(100, 'p');
  CHECK(c.post("/v1/messages/count_tokens", body_of("", prompt)).json().at("input_tokens").as_int64() > 100);
  const auto refused = c.post("/v1/messages", body_of(R"(,"max_tokens":1)", prompt));
  CHECK(refused.status == 400);
  CHECK(refused.error().at("type") == "invalid_request_error");
  const auto unknown = c.post("/v1/messages/count_tokens", body_of(R"(,"model":"other")"));
  CHECK(unknown.status == 404);
  CHECK(unknown.error().at("type") == "not_found_error");
  CHECK(c.post("/v1/messages/count_tokens", "{}").error().at("message") == "messages is missing");
}

TEST_CASE("messages: an answer says which of its stop sequences ended it, or that none did") {
  server_fixture f;
  http_client c(f.port());
  const std::string third = fmt::format("w{:03d}", core::sim_token(7, 3));
  REQUIRE(sim_text(7, 3).find(third) == std::string::npos);
  const auto fields = fmt::format(R"(,"max_tokens":20,"seed":7,"stop_sequences":["never","{}"])", third);
  const auto whole = c.post("/v1/messages", body_of(fields)).json();
  CHECK(whole.at("content").at(0).at("text") == json_text(sim_text(7, 3)));
  CHECK(whole.at("stop_reason") == "stop_sequence");
  CHECK(whole.at("stop_sequence") == json_text(third));
  const auto events = events_of(c.post("/v1/messages", body_of(fields + R"(,"stream":true)")).body());
  CHECK(text_in(events) == sim_text(7, 3));
  CHECK(events.at(events.size() - 2).at("delta").at("stop_reason") == "stop_sequence");
  CHECK(events.at(events.size() - 2).at("delta").at("stop_sequence") == json_text(third));

  const auto by_id = fmt::format(
      R"(,"max_tokens":20,"seed":7,"stop_sequences":["never"],"stop_token_ids":[{}])", core::sim_token(7, 3));
  const auto ended = c.post("/v1/messages", body_of(by_id)).json();
  CHECK(ended.at("stop_reason") == "end_turn");
  CHECK(ended.at("stop_sequence").is_null());
}

TEST_CASE("messages: an answer that fills the context says so") {
  server_options o;
  o.sim += ",ctx=64";
  server_fixture f(o);
  http_client c(f.port());
  const auto a = c.post("/v1/messages", body_of(R"(,"max_tokens":100,"seed":7)")).json();
  CHECK(a.at("stop_reason") == "model_context_window_exceeded");
  CHECK(prompt_tokens(a.at("usage")) + a.at("usage").at("output_tokens").as_int64() == 64);
}

TEST_CASE("messages: errors have Anthropic's shape on Anthropic's paths, and nowhere else") {
  server_options o;
  o.net.api_keys = {"secret"};
  o.net.limits.body_bytes = 1024;
  server_fixture f(o);
  http_client c(f.port());
  const std::string key = "x-api-key: secret\r\n", fine = body_of(R"(,"max_tokens":1)");
  const auto check = [](const http_answer& a, unsigned status, const char* type) {
    CHECK(a.status == status);
    CHECK(a.json().at("type") == "error");
    CHECK(a.error().at("type") == type);
    CHECK_FALSE(a.error().at("message").as_string().empty());
    CHECK(a.json().at("request_id") == json_text(a.header("request-id")));
    CHECK(a.header("x-request-id") == a.header("request-id"));
  };
  check(c.post("/v1/messages", fine), 401, "authentication_error");
  check(c.post("/v1/messages", fine, "x-api-key: wrong\r\n"), 401, "authentication_error");
  check(c.post("/v1/messages/count_tokens", fine), 401, "authentication_error");
  check(c.post("/v1/messages", "{", key), 400, "invalid_request_error");
  check(c.post("/v1/messages", body_of(R"(,"max_tokens":0)"), key), 400, "invalid_request_error");
  check(c.post("/v1/messages", body_of(R"(,"max_tokens":1,"stop_sequences":[""])"), key), 400,
        "invalid_request_error");
  check(c.post("/v1/messages", body_of(R"(,"max_tokens":1,"model":"y")"), key), 404, "not_found_error");
  check(c.post("/v1/messages/batches", "{}", key), 404, "not_found_error");
  check(c.get("/v1/messages", key), 405, "invalid_request_error");
  check(c.post("/v1/messages", fine, key + "Content-Type: text/plain\r\n"), 415, "invalid_request_error");
  check(http_client(f.port()).post("/v1/messages", body_of("", std::string(1024, 'x')), key), 413,
        "request_too_large");
  CHECK(c.post("/v1/messages", fine, key).status == 200);
  const auto elsewhere = c.post("/v1/completions", "{", key);
  CHECK(elsewhere.error().at("type") == "invalid_request_error");
  CHECK(elsewhere.error().as_object().contains("code"));
  CHECK(elsewhere.header("request-id").empty());
}

TEST_CASE("messages: a token of a page may not write messages") {
  server_options o;
  o.net.api_keys = {"secret"};
  server_fixture f(o);
  http_client c(f.port());
  const auto token = c.post("/v1/stream/tokens", "{}", "x-api-key: secret\r\n").json().at("token");
  const auto a = c.post("/v1/messages", body_of(R"(,"max_tokens":1)"),
                        fmt::format("x-api-key: {}\r\n", std::string(token.as_string())));
  CHECK(a.status == 403);
  CHECK(a.error().at("type") == "permission_error");
}

TEST_CASE("messages: a server that has no room, or is leaving, says when to come again") {
  server_options o = slow();
  o.owner.max_batch = 1;
  o.owner.queue = 0;
  server_fixture f(o);
  http_client busy(f.port()), c(f.port());
  busy.send(busy.request("POST", "/v1/messages", body_of(R"(,"max_tokens":100000,"stream":true)"), {}));
  busy.read_until("content_block_delta");
  const auto full = c.post("/v1/messages", body_of(R"(,"max_tokens":1)"));
  CHECK(full.status == 429);
  CHECK(full.error().at("type") == "rate_limit_error");
  CHECK_FALSE(full.header("Retry-After").empty());
  f.service->drain(boost::asio::system_executor(), [] {});
  const auto leaving = c.post("/v1/messages", body_of(R"(,"max_tokens":1,"stream":true)"));
  CHECK(leaving.status == 503);
  CHECK(leaving.error().at("type") == "overloaded_error");
  CHECK_FALSE(leaving.header("Retry-After").empty());
}

TEST_CASE("messages: a fault is a status before the first byte of an answer, and an event in a stream") {
  server_options o;
  // Half a second after the stream has begun: a fault that comes before its first byte would be a status.
  o.sim = "rate=200,prefill=100000000,fault=sampler@100-101";
  server_fixture f(o);
  http_client c(f.port());
  const auto streamed = c.post("/v1/messages", body_of(R"(,"max_tokens":200,"seed":7,"stream":true)"));
  CHECK(streamed.status == 200);
  const auto events = events_of(streamed.body());
  CHECK(text_in(events) == sim_text(7, 99));
  CHECK(events.back().at("type") == "error");
  CHECK(events.back().at("error").at("type") == "api_error");
  CHECK(events.back().at("request_id") == json_text(streamed.header("request-id")));
  const auto whole = c.post("/v1/messages", body_of(R"(,"max_tokens":200)"));
  CHECK(whole.status == 500);
  CHECK(whole.error().at("type") == "api_error");
}

TEST_CASE("messages: a client that goes away takes its job along") {
  const bool stream = GENERATE(true, false);
  CAPTURE(stream);
  server_fixture f(slow());
  http_client c(f.port());
  c.send(c.request("POST", "/v1/messages",
                   body_of(fmt::format(R"(,"max_tokens":100000,"stream":{})", stream)), {}));
  if (stream) c.read_until("content_block_delta");
  f.until([&] { return f.service->stats().engine.decoding == 1; });
  c.drop();
  f.until_quiet();
  f.until([&] { return f.list_jobs().at(0).finish_reason == "cancel"; });
  CHECK(f.list_jobs().size() == 1);
}

TEST_CASE("messages: one that is cancelled by its id says so") {
  server_fixture f(slow());
  http_client c(f.port()), other(f.port());
  c.send(c.request("POST", "/v1/messages", body_of(R"(,"max_tokens":100000,"stream":true)"), {}));
  const auto begun = c.read_until("content_block_delta");
  const auto at = begun.find("\"id\":\"msg_");
  REQUIRE(at != begun.npos);
  CHECK(other.ask("DELETE", "/v1/jobs/" + begun.substr(at + 10, 32), {}, {}).status == 200);
  const auto rest = c.read_until("message_stop");
  CHECK(rest.find(R"("stop_reason":"cancel")") != rest.npos);
}

}  // namespace weir::tests::http_messages_test
