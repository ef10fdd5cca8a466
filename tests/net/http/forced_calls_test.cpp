// Calls that have to be written, arguments that follow schemas, and reasoning that ends: over each dialect,
// by a model that draws tokens at random.
#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <random>

#include "tests/support/http_client.h"
#include "tests/support/plain_http.h"
#include "tests/support/seed.h"
#include "tests/support/server_fixture.h"
#include "tests/support/sse.h"
#include "tests/support/toy_directory.h"
#include "tests/support/ws_client.h"

namespace weir::tests::forced_calls_test {
namespace {

namespace json = boost::json;

// A template of Hermes' calls; `ending` stands behind the prompt for the answer.
actors::template_text calls_template(std::string_view ending = {}, bool reasons = true) {
  actors::template_text t;
  t.source = "{% for m in messages %}{{ m.role }}: ";
  if (reasons)
    t.source += "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n\n{% endif %}";
  t.source +=
      "{{ m.content or '' }}{% for c in m.tool_calls or [] %}\n<tool_call>\n{\"name\": "
      "\"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson }}}\n</tool_call>"
      "{% endfor %}\n{% endfor %}{% if add_generation_prompt %}assistant: ";
  t.source += ending;
  t.source += "{% endif %}";
  t.file = "calls.jinja";
  return t;
}

// A server of a model that computes, has a token for every byte, and draws at random.
struct drawing_server {
  static server_options of(const std::filesystem::path& dir, actors::template_text t) {
    server_options o;
    o.model_dir = dir.string();
    o.owner.chat_template = std::make_shared<const actors::template_text>(std::move(t));
    return o;
  }
  explicit drawing_server(actors::template_text t = calls_template())
      : f(of((tests::write_toy_directory(dir.path()), dir.path()), std::move(t))) {}
  json::value post(const char* route, const std::string& body, int status = 200) {
    http_client c(f.port());
    const auto answer = c.post(route, body);
    INFO(body << "\n" << answer.body());
    CHECK(static_cast<int>(answer.status) == status);
    return json::parse(answer.body());
  }

  tests::temporary_dir dir;
  server_fixture f;
};

constexpr std::string_view parameters =
    R"({"type":"object","properties":{"hour":{"type":"integer","minimum":0,"maximum":23},)"
    R"("zone":{"enum":["utc","local"]}},"required":["hour","zone"],"additionalProperties":false})";

std::string chat_tools(std::string_view schema = parameters, bool strict = false) {
  return fmt::format(R"("tools":[{{"type":"function","function":{{"name":"clock","parameters":{0}{1}}}}},)"
                     R"({{"type":"function","function":{{"name":"bell","parameters":{0}{1}}}}}])",
                     schema, strict ? R"(,"strict":true)" : "");
}

std::string chat(std::string_view fields, unsigned seed = 1) {
  return fmt::format(R"({{"messages":[{{"role":"user","content":"x"}}],"max_tokens":400,"seed":{},{}}})",
                     seed, fields);
}

void check_arguments(std::string_view text) {
  INFO(text);
  const auto a = json::parse(json::string_view(text.data(), text.size())).as_object();
  CHECK(a.size() == 2);
  CHECK((a.at("hour").as_int64() >= 0 && a.at("hour").as_int64() <= 23));
  CHECK((a.at("zone") == "utc" || a.at("zone") == "local"));
}

// What a client has of a streamed chat, over all of its connections.
struct heard {
  std::string id, last, reasoning, arguments, finish;
  bool ended = false;

  // Reads at most `most` bytes of the answer.
  void read(unsigned short port, const std::string& request, std::size_t most = std::string::npos) {
    const auto all = plain_body(port, request, most);
    for (const auto& e : whole_events(all)) {
      if (!e.id.empty()) last = e.id;
      if (e.data == "[DONE]") ended = true;
      if (e.data != "[DONE]") take(json::parse(e.data).at("choices").at(0));
    }
    const auto named = all.find("\"id\":\"chatcmpl-");
    const auto end = named == all.npos ? named : all.find('"', named + 6);
    if (end != all.npos) id = all.substr(named + 6, end - named - 6);
  }

 private:
  void take(const json::value& choice) {
    const auto& delta = choice.at("delta").as_object();
    const auto* more = delta.if_contains("reasoning_content");
    if (more) reasoning += std::string_view(more->as_string());
    if (const auto* calls = delta.if_contains("tool_calls"))
      arguments += std::string_view(calls->at(0).at("function").at("arguments").as_string());
    if (choice.at("finish_reason").is_string()) finish = choice.at("finish_reason").as_string();
  }
};

}  // namespace

TEST_CASE("forced calls: a required call is a call, whatever is drawn, over each dialect") {
  drawing_server s;
  for (unsigned seed = 0; seed < 6; ++seed) {
    const auto whole = s.post("/v1/chat/completions",
                              chat(chat_tools() + R"(,"tool_choice":"required","parallel_tool_calls":false,)"
                                                  R"("max_reasoning_tokens":9)",
                                   seed));
    const auto& choice = whole.at("choices").at(0);
    CHECK(choice.at("finish_reason") == "tool_calls");
    const auto& message = choice.at("message").as_object();
    CHECK(message.at("content").is_null());
    REQUIRE(message.at("tool_calls").as_array().size() == 1);
    check_arguments(message.at("tool_calls").at(0).at("function").at("arguments").as_string());
  }
  const auto blocks = s.post("/v1/messages", fmt::format(R"({{"max_tokens":400,"seed":3,"messages":[
      {{"role":"user","content":"x"}}],"max_reasoning_tokens":9,"tools":[{{"name":"clock","input_schema":{}}}],
      "tool_choice":{{"type":"any","disable_parallel_tool_use":true}}}})",
                                                         parameters));
  CHECK(blocks.at("stop_reason") == "tool_use");
  const auto& used = blocks.at("content").as_array().back();
  CHECK(used.at("type") == "tool_use");
  check_arguments(json::serialize(used.at("input")));

  const auto response = s.post("/v1/responses", fmt::format(R"({{"max_output_tokens":400,"seed":3,"input":"x",
      "max_reasoning_tokens":9,"tools":[{{"type":"function","name":"clock","parameters":{}}}],
      "parallel_tool_calls":false,"tool_choice":"required"}})",
                                                            parameters));
  const auto& item = response.at("output").as_array().back();
  CHECK(item.at("type") == "function_call");
  check_arguments(item.at("arguments").as_string());

  ws_client ws(s.f.port());
  ws.send(fmt::format(R"({{"type":"response.create","id":"a","seed":3,"max_tokens":400,
      "input":[{{"role":"user","content":"x"}}],"max_reasoning_tokens":9,"parallel_tool_calls":false,
      "tool_choice":"required",{}}})",
                      chat_tools()));
  std::string arguments;
  for (;;) {
    const auto frame = ws.read();
    if (frame.at("type") == "response.done") break;
    const auto* part = frame.if_contains("part");
    if (part && *part == "arguments") arguments += std::string_view(frame.at("delta").as_string());
  }
  check_arguments(arguments);
}

TEST_CASE("forced calls: the choice of one tool is one call of this tool") {
  drawing_server s;
  for (unsigned seed = 0; seed < 6; ++seed) {
    const auto whole = s.post(
        "/v1/chat/completions",
        chat(chat_tools() +
                 R"(,"tool_choice":{"type":"function","function":{"name":"bell"}},"max_reasoning_tokens":0)",
             seed));
    const auto& calls = whole.at("choices").at(0).at("message").at("tool_calls").as_array();
    REQUIRE(calls.size() == 1);
    CHECK(calls[0].at("function").at("name") == "bell");
    check_arguments(calls[0].at("function").at("arguments").as_string());
  }
}

TEST_CASE("forced calls: reasoning ends at its maximum, and a constraint begins behind it") {
  drawing_server s(calls_template("<think>\\n"));
  for (unsigned seed = 0; seed < 6; ++seed) {
    const auto whole = s.post(
        "/v1/chat/completions",
        chat(R"("max_reasoning_tokens":12,"response_format":{"type":"json_schema","json_schema":{"name":"n",)"
             R"("schema":{"enum":[7]}}})",
             seed));
    const auto& message = whole.at("choices").at(0).at("message").as_object();
    CHECK(message.at("content") == "7");
    const auto& details = whole.at("usage").at("completion_tokens_details");
    CHECK(details.at("reasoning_tokens").as_int64() <= 12 + 9);  // and the mark that ends it
    CHECK(whole.at("choices").at(0).at("finish_reason") == "stop");
    const auto call = s.post("/v1/chat/completions",
                             chat(chat_tools() + R"(,"max_reasoning_tokens":5,"parallel_tool_calls":false,)"
                                                 R"("tool_choice":"required")",
                                  seed));
    CHECK(call.at("choices").at(0).at("message").at("tool_calls").as_array().size() == 1);
  }
}

TEST_CASE(
    "forced calls: a stream that is cut in the middle of reasoning and of a call goes on as if it were "
    "whole") {
  drawing_server s(calls_template("<think>\\n"));
  std::mt19937_64 draw(drawn_seed(1));
  const auto body = chat(chat_tools(R"({"type":"object","properties":{"s":{"type":"string","maxLength":40}},)"
                                    R"("required":["s"],"additionalProperties":false})") +
                         R"(,"max_reasoning_tokens":30,"tool_choice":"required","parallel_tool_calls":false,)"
                         R"("stream":true,"on_disconnect":"continue")");
  const auto asked = plain_request("POST", "/v1/chat/completions", {}, body);
  heard whole;
  whole.read(s.f.port(), asked);
  CHECK(whole.finish == "tool_calls");
  CHECK_FALSE(whole.reasoning.empty());
  for (int round = 0; round < 5; ++round) {
    heard cut;
    cut.read(s.f.port(), asked, 600 + draw() % 3000);
    REQUIRE_FALSE(cut.id.empty());
    while (!cut.ended)
      cut.read(s.f.port(),
               plain_request("GET", "/v1/jobs/" + cut.id + "/events",
                             cut.last.empty() ? std::string() : "Last-Event-ID: " + cut.last + "\r\n"),
               1 + draw() % 3000);
    CHECK(cut.reasoning == whole.reasoning);
    CHECK(cut.arguments == whole.arguments);
    CHECK(cut.finish == whole.finish);
  }
}

TEST_CASE("forced calls: what cannot be enforced is refused for a strict tool, else told") {
  drawing_server s;
  constexpr std::string_view far =
      R"({"type":"object","properties":{"hour":{"$ref":"https://elsewhere/x"}}})";
  const auto refused = s.post("/v1/chat/completions", chat(chat_tools(far, true)), 400);
  CHECK_THAT(std::string(refused.at("error").at("param").as_string()),
             Catch::StartsWith("tools[0].function.parameters"));
  const auto told = s.post("/v1/chat/completions",
                           chat(chat_tools(far) + R"(,"tool_choice":"required","max_reasoning_tokens":0)"));
  CHECK_THAT(std::string(told.at("warnings").at(0).at("param").as_string()),
             Catch::StartsWith("tools[0].function.parameters"));
  // A function of Responses follows its schema as far as can be, unless `strict` is false.
  const auto response = [&](std::string_view strict) {
    const auto whole = s.post("/v1/responses",
                              fmt::format(R"({{"max_output_tokens":9,"input":"x","tools":[{{"type":"function",
        "name":"clock",{}"parameters":{}}}]}})",
                                          strict, far));
    return whole.as_object().contains("warnings");
  };
  CHECK(response(""));
  CHECK_FALSE(response(R"("strict":false,)"));
}

TEST_CASE("forced calls: a maximum of reasoning that has no place is refused or told") {
  drawing_server s(calls_template({}, false));
  http_client c(s.f.port());
  const auto raw = c.post("/v1/completions", R"({"prompt":"x","max_tokens":2,"max_reasoning_tokens":5})");
  CHECK(raw.status == 400);
  CHECK(raw.json().at("error").at("param") == "max_reasoning_tokens");
  const auto told = s.post("/v1/chat/completions", chat(R"("max_reasoning_tokens":5)"));
  CHECK(told.at("warnings").at(0).at("param") == "max_reasoning_tokens");
  s.post("/v1/chat/completions", chat(R"("max_reasoning_tokens":4294967296)"), 400);
}

}  // namespace weir::tests::forced_calls_test
