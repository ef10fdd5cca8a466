// The bodies that common clients send, field by field as they send them, and what each is answered.
#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "tests/support/data.h"
#include "tests/support/golden.h"
#include "tests/support/http_client.h"
#include "tests/support/server_fixture.h"
#include "tests/support/sse.h"

namespace weir::tests::client_bodies_test {
namespace {

namespace json = boost::json;
using names = std::vector<std::string>;

// `param` of each warning of an answer.
names ignored_in(const json::value& answer) {
  names out;
  const auto* warnings = answer.as_object().if_contains("warnings");
  if (!warnings) return out;
  for (const auto& w : warnings->as_array()) out.emplace_back(w.at("param").as_string());
  return out;
}

json::value first_event(const http_answer& a) { return json::parse(event_data(a.body()).at(0)); }

// An answer that is whole: its text, and the unknown fields that it names.
void check_answered(const http_answer& a, const names& ignored) {
  INFO(a.body());
  REQUIRE(a.status == 200);
  CHECK(ignored_in(a.json()) == ignored);
  const auto choice = a.json().at("choices").at(0);
  const auto* message = choice.as_object().if_contains("message");
  CHECK_FALSE((message ? message->at("content") : choice.at("text")).as_string().empty());
}

void check_streamed(const http_answer& a, const names& ignored) {
  INFO(a.body());
  REQUIRE(a.status == 200);
  CHECK(ignored_in(first_event(a)) == ignored);
  CHECK(a.body().find("warnings", a.body().find("\n\n")) == std::string::npos);
  CHECK(a.body().ends_with("data: [DONE]\n\n"));
}

// A template whose model calls tools as Hermes does.
actors::template_text calling_template() {
  actors::template_text t;
  t.source =
      "{% for m in messages %}{{ m.role }}: {{ m.content }}{% for c in m.tool_calls or [] %}\n<tool_call>\n"
      "{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | tojson "
      "}}}\n</tool_call>"
      "{% endfor %}\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}";
  t.file = "calling.jinja";
  return t;
}

}  // namespace

TEST_CASE("clients: SillyTavern's text completion, with all its samplers off") {
  server_fixture f;
  http_client c(f.port());
  const std::string body = R"({"prompt":"Alice: hi\nBob:","model":"","max_new_tokens":8,"max_tokens":8,
    "temperature":0.7,"top_p":0.95,"typical_p":1,"typical":1,"sampler_seed":-1,"seed":-1,"min_p":0,
    "repetition_penalty":1.05,"frequency_penalty":0,"presence_penalty":0,"top_k":-1,"skew":0,"min_tokens":0,
    "num_beams":1,"length_penalty":1,"early_stopping":false,"add_bos_token":true,"dynamic_temperature":false,
    "dynatemp_low":1,"dynatemp_high":1,"dynatemp_range":0,"dynatemp_exponent":1,"smoothing_factor":0,
    "smoothing_curve":1,"dry_allowed_length":2,"dry_multiplier":0,"dry_base":1.75,
    "dry_sequence_breakers":"[\"\\n\",\":\"]","dry_penalty_last_n":0,"stopping_strings":["\nAlice:"],
    "stop":["\nAlice:"],"truncation_length":4096,"ban_eos_token":false,"skip_special_tokens":true,
    "include_reasoning":true,"top_a":0,"tfs":1,"mirostat_mode":0,"mirostat_tau":5,"mirostat_eta":0.1,
    "mirostat":0,"custom_token_bans":"","banned_strings":[],"api_type":"vllm","api_server":"http://host:1/",
    "xtc_threshold":0.1,"xtc_probability":0,"nsigma":0})";
  check_answered(c.post("/v1/completions", body),
                 {"max_new_tokens", "sampler_seed", "skew", "add_bos_token", "stopping_strings",
                  "truncation_length", "api_type", "api_server"});
  // A sampler that is on would change the answer.
  const auto on = c.post("/v1/completions", R"({"prompt":"x","negative_prompt":"y"})");
  CHECK(on.status == 400);
  CHECK(on.error().at("param") == "negative_prompt");
}

TEST_CASE("clients: Open WebUI's chat, streamed, with fields of its own") {
  server_fixture f;
  http_client c(f.port());
  check_streamed(c.post("/v1/chat/completions", R"({"model":"sim","stream":true,"max_tokens":8,
    "messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"hi"}],
    "stream_options":{"include_usage":true},"temperature":0.8,"stop":["###"],"chat_id":"c-1",
    "session_id":"s-1","features":{"web_search":false},"tool_ids":null,
    "background_tasks":{"title_generation":true}})"),
                 {"chat_id", "session_id", "features", "background_tasks"});
}

TEST_CASE("clients: LibreChat's chat, with a content of parts and a user") {
  server_fixture f;
  http_client c(f.port());
  check_streamed(c.post("/v1/chat/completions", R"({"model":"sim","user":"66f0","temperature":1,"top_p":1,
    "presence_penalty":0,"frequency_penalty":0,"stream":true,"max_tokens":8,
    "messages":[{"role":"system","content":"Be kind."},
      {"role":"user","content":[{"type":"text","text":"Look up Paris"}]}]})"),
                 {});
}

TEST_CASE("clients: LlamaIndex's chat, with tools in its history and an effort for models that reason") {
  server_fixture f;
  http_client c(f.port());
  check_answered(c.post("/v1/chat/completions", R"({"model":"sim","stream":false,"temperature":0.1,
    "max_tokens":8,"parallel_tool_calls":false,"reasoning_effort":"medium","messages":[
      {"role":"user","content":"Weather?"},
      {"role":"assistant","content":null,"tool_calls":[{"id":"abcdef123","type":"function",
        "function":{"name":"get","arguments":"{\"city\": \"Paris\"}"}}]},
      {"role":"tool","content":"18","name":"get","tool_call_id":"abcdef123"}]})"),
                 {});
}

TEST_CASE("clients: Zed's chat, with parts, no tools and a cache key") {
  server_fixture f;
  http_client c(f.port());
  check_streamed(c.post("/v1/chat/completions", R"({"model":"sim","stream":true,
    "stream_options":{"include_usage":true},"max_completion_tokens":8,"stop":[],"temperature":1.0,
    "tool_choice":"auto","parallel_tool_calls":false,"tools":[],"prompt_cache_key":"thread-1","messages":[
      {"role":"system","content":"You edit."},
      {"role":"user","content":[{"type":"text","text":"<context>a</context>"},
                                {"type":"text","text":"rename it"}]}]})"),
                 {});
}

TEST_CASE("clients: the AI SDK's chat, with a schema, a tool's history and empty contents") {
  server_options o;
  o.owner.chat_template = std::make_shared<const actors::template_text>(calling_template());
  server_fixture f(o);
  http_client c(f.port());
  check_streamed(c.post("/v1/chat/completions", R"({"model":"sim","max_tokens":8,"temperature":0,
    "stream":true,"stream_options":{"include_usage":true},"tool_choice":"auto",
    "tools":[{"type":"function","function":{"name":"get","description":"d","parameters":{"type":"object",
      "properties":{},"additionalProperties":false,"$schema":"http://json-schema.org/draft-07/schema#"}}}],
    "messages":[{"role":"user","content":"Weather?"},
      {"role":"assistant","content":"","tool_calls":[{"id":"call_1","type":"function",
        "function":{"name":"get","arguments":"{}"}}]},
      {"role":"tool","tool_call_id":"call_1","content":"{\"c\":18}"}]})"),
                 {});
}

TEST_CASE("clients: a system message in the middle that the template refuses is named in the answer") {
  auto strict = calling_template();
  strict.source =
      "{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('late') }}"
      "{% endif %}{% endfor %}" +
      strict.source;
  server_options o;
  o.owner.chat_template = std::make_shared<const actors::template_text>(strict);
  server_fixture f(o);
  http_client c(f.port());
  const std::string tools = R"("tools":[{"type":"function","function":{"name":"get"}}],)";
  for (const std::string& more : {std::string(), tools}) {
    const auto body = [&](std::string_view fields) {
      return fmt::format(R"({{"model":"sim","max_tokens":8,{}{}"messages":[{{"role":"user","content":"a"}},
        {{"role":"assistant","content":"b"}},{{"role":"system","content":"c"}},
        {{"role":"user","content":"d"}}]}})",
                         more, fields);
    };
    const auto whole = c.post("/v1/chat/completions", body(""));
    check_answered(whole, {"messages"});
    CHECK_THAT(std::string(whole.json().at("warnings").at(0).at("message").as_string()),
               Catch::Contains("no place for a message of the system behind other turns"));
    check_streamed(c.post("/v1/chat/completions", body(R"("stream":true,)")), {"messages"});
  }
  const auto blocks = c.post("/v1/messages", R"({"model":"sim","max_tokens":8,"messages":[
      {"role":"user","content":"a"},{"role":"system","content":"c"}]})");
  INFO(blocks.body());
  REQUIRE(blocks.status == 200);
  CHECK(ignored_in(blocks.json()) == names{"messages"});
}

TEST_CASE("clients: lm-eval's loglikelihood has the logprobs of the prompt, in the older shape") {
  const auto dir = tests::bundled_models().back();
  const tests::golden g = tests::read_golden(dir);
  server_options o;
  o.model_dir = dir.string();
  o.owner.kv_tokens = 2048;
  server_fixture f(o);
  http_client c(f.port());
  const json::array prompt(g.input_ids.begin(), g.input_ids.end());
  const std::string ids = json::serialize(prompt);
  const auto likely = c.post(
      "/v1/completions",
      fmt::format(R"({{"model":"toy","prompt":[{},{}],"max_tokens":1,"logprobs":1,"seed":1234,"echo":true,)"
                  R"("temperature":0}})",
                  ids, ids));
  INFO(likely.body());
  REQUIRE(likely.status == 200);
  const auto choices = likely.json().at("choices").as_array();
  REQUIRE(choices.size() == 2);
  CHECK(choices[0].at("logprobs") == choices[1].at("logprobs"));
  const auto& l = choices[0].at("logprobs");
  const auto tokens = l.at("tokens").as_array(), logprobs = l.at("token_logprobs").as_array(),
             top = l.at("top_logprobs").as_array(), offsets = l.at("text_offset").as_array();
  REQUIRE(tokens.size() == prompt.size() + 1);
  for (const auto* list : {&logprobs, &top, &offsets}) CHECK(list->size() == tokens.size());
  CHECK(logprobs[0].is_null());
  CHECK(top[0].is_null());
  CHECK(offsets[0] == 0);

  const auto scored =
      c.post("/v1/completions", fmt::format(R"({{"prompt":{},"max_tokens":1,"prompt_logprobs":1}})", ids));
  const auto told = scored.json().at("choices").at(0).at("prompt_logprobs").as_array();
  for (std::size_t i = 1; i < prompt.size(); ++i) {
    const auto& own = told[i].at(std::to_string(g.input_ids[i]));
    CHECK(logprobs[i] == own.at("logprob"));
    CHECK(top[i].at(tokens[i].as_string()) == logprobs[i]);  // by which lm-eval knows the greedy ones
    CHECK(offsets[i].to_number<int>() >= offsets[i - 1].to_number<int>());
  }

  const auto alone = c.post(
      "/v1/completions",
      fmt::format(R"({{"prompt":{},"max_tokens":0,"logprobs":1,"echo":true,"return_token_ids":true}})", ids));
  INFO(alone.body());
  REQUIRE(alone.status == 200);
  const auto only = alone.json().at("choices").at(0);
  CHECK(only.at("logprobs").at("tokens").as_array().size() == prompt.size());
  CHECK(only.at("logprobs").at("token_logprobs") == json::array(logprobs.begin(), logprobs.end() - 1));
  CHECK(only.at("token_ids").as_array().empty());
  CHECK(only.at("finish_reason") == "length");
  CHECK(alone.json().at("usage").at("completion_tokens") == 0);
  CHECK(std::string_view(choices[0].at("text").as_string()).starts_with(only.at("text").as_string()));
  CHECK_FALSE(only.as_object().contains("prompt_logprobs"));
}

TEST_CASE("clients: a prompt that is too long is told as each dialect's clients know it") {
  server_options o;
  o.sim += ",ctx=64";
  server_fixture f(o);
  http_client c(f.port());
  const std::string body = fmt::format(R"({{"max_tokens":5,"messages":[{{"role":"user","content":"{}"}}]}})",
                                       std::string(100, 'x'));
  const auto chat = c.post("/v1/chat/completions", body);
  CHECK(chat.status == 400);
  CHECK(chat.error().at("code") == "context_length_exceeded");
  CHECK(chat.error().at("param") == "messages");
  const std::string said(chat.error().at("message").as_string());
  CHECK_THAT(said, Catch::Contains("maximum context length is 64 tokens"));
  const auto message = c.post("/v1/messages", body);
  CHECK(message.status == 400);
  CHECK(message.error().at("type") == "invalid_request_error");
  CHECK_THAT(std::string(message.error().at("message").as_string()),
             Catch::Matches("prompt is too long: 1[0-9]+ tokens > 63 maximum.*"));
}

TEST_CASE("clients: unknown fields are named in a message, in its stream and in a count") {
  server_fixture f;
  http_client c(f.port());
  const std::string body = R"({"max_tokens":4,"messages":[{"role":"user","content":"hi"}],"odd":1)";
  CHECK(ignored_in(c.post("/v1/messages", body + "}").json()) == names{"odd"});
  CHECK(ignored_in(c.post("/v1/messages/count_tokens", body + "}").json()) == names{"odd"});
  const auto stream = c.post("/v1/messages", body + R"(,"stream":true})").body();
  const auto begin = stream.find("data: ") + 6;
  const auto start = json::parse(stream.substr(begin, stream.find("\n\n") - begin));
  CHECK(ignored_in(start.at("message")) == names{"odd"});
  CHECK(ignored_in(
            c.post("/v1/messages", R"({"max_tokens":4,"messages":[{"role":"user","content":"hi"}]})").json())
            .empty());
}

TEST_CASE("clients: with --strict-fields an unknown field is refused by name, on every dialect's routes") {
  server_options o;
  o.net.limits.strict_fields = true;
  server_fixture f(o);
  http_client c(f.port());
  const std::string said = R"("messages":[{"role":"user","content":"hi"}],"max_tokens":2,"odd":1)";
  for (const auto& [path, body] :
       {std::pair<std::string, std::string>{"/v1/chat/completions", "{" + said + "}"},
        {"/v1/messages", "{" + said + "}"},
        {"/v1/messages/count_tokens", "{" + said + "}"},
        {"/v1/completions", R"({"prompt":"x","odd":1})"}}) {
    CAPTURE(path);
    const auto no = c.post(path, body);
    CHECK(no.status == 400);
    CHECK_THAT(std::string(no.error().at("message").as_string()), Catch::Contains("unknown field 'odd'"));
  }
}

TEST_CASE("clients: a body that is no JSON says at which byte, whatever schemas stand before it") {
  server_fixture f;
  http_client c(f.port());
  const auto says = [&](const std::string& body) {
    return std::string(c.post("/v1/completions", body).error().at("message").as_string());
  };
  CHECK_THAT(says(R"({"prompt":'x'})"), Catch::Contains("not JSON at byte 10"));
  const std::string schema = R"({"json_schema":{"type": "string", "title": "a"},"prompt":)";
  CHECK_THAT(says(schema + "'x'}"), Catch::Contains(fmt::format("not JSON at byte {}", schema.size())));
  CHECK_THAT(says(R"({"prompt":"x")"), Catch::Contains("not JSON at byte 13"));
}

TEST_CASE("clients: a schema that is none is refused with its pointer, strict or not") {
  const auto dir = tests::bundled_models().back();
  server_options o;
  o.model_dir = dir.string();
  o.owner.kv_tokens = 2048;
  server_fixture f(o);
  http_client c(f.port());
  for (const char* strict : {"", R"("strict":true,)", R"("strict":false,)"})
    for (const auto& [schema, pointer] :
         {std::pair<const char*, const char*>{R"({"type":12})", "/type"},
          {R"({"type":"strin"})", "/type"},
          {R"({"properties":5})", "/properties"},
          {R"({"type":"object","properties":{"a":{"enum":"x"}}})", "/properties/a/enum"}}) {
      CAPTURE(strict, schema);
      const auto no =
          c.post("/v1/completions", fmt::format(R"({{"prompt":"x","max_tokens":5,"response_format":
        {{"type":"json_schema","json_schema":{{{}"name":"n","schema":{}}}}}}})",
                                                strict, schema));
      CHECK(no.status == 400);
      CHECK(no.error().at("param") == json_text(std::string("response_format.json_schema.schema") + pointer));
    }
}

TEST_CASE("clients: the list of models says that the first model is still being loaded") {
  actors::system_time clock;
  const auto seen = std::make_shared<core::incidents>([](std::string_view) {});
  net::shards io(1, seen);
  actors::service_options s;
  s.seen = seen;
  s.models.push_back({"sim", "sim:rate=5000"});
  s.owner.device = "sim";
  actors::service service(std::move(s), clock);  // whose load() was not called
  net::server_options o;
  o.listen = "127.0.0.1:0";
  net::server server(service, io, o);
  REQUIRE(server.start().has_value());
  http_client c(server.port());
  const auto a = c.get("/v1/models");
  CHECK(a.status == 200);
  CHECK(a.json().at("data").at(0).at("id") == "sim");
  CHECK(a.json().at("data").at(0).at("status").at("value") == "loading");
  server.stop();
}

}  // namespace weir::tests::client_bodies_test
