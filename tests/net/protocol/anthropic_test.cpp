// Anthropic's protocol without a socket: bodies, answers, events.
#include "net/protocol/anthropic.h"

#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>
#include <set>

#include "core/text/chat/chat_template.h"
#include "tests/support/answer_pieces.h"

namespace weir::tests::anthropic_test {

using namespace weir::net;
using anthropic::route;

namespace {

constexpr const char* hi = R"([{"role":"user","content":"hi"}])";

core::result<anthropic::parsed_request> message(const std::string& messages, const std::string& more = {}) {
  return anthropic::parse(route::messages,
                          fmt::format(R"({{"max_tokens":5,"messages":{}{}}})", messages, more));
}

const core::conversation& said(const core::result<anthropic::parsed_request>& p) {
  INFO((p ? "" : p.error().message));
  REQUIRE(p.has_value());
  return std::get<core::conversation>(p->request.input);
}

std::string json_of(const core::conversation& c) { return boost::json::serialize(c.messages); }

// Splits a stream into its events, each of which has to have the type that its name says.
std::vector<boost::json::object> events_of(std::string_view stream) {
  std::vector<boost::json::object> out;
  while (!stream.empty()) {
    const auto end = stream.find("\n\n"), data = stream.find("\ndata: ");
    REQUIRE(stream.starts_with("event: "));
    REQUIRE(data < end);
    const auto text = stream.substr(data + 7, end - data - 7);
    out.push_back(boost::json::parse(boost::json::string_view(text.data(), text.size())).as_object());
    CHECK(stream.substr(7, data - 7) == std::string_view(out.back().at("type").as_string()));
    stream.remove_prefix(end + 2);
  }
  return out;
}

actors::outcome outcome_of(core::finish_reason reason) {
  actors::outcome how;
  how.reason = reason;
  how.input_tokens = 10;
  how.cached_tokens = 4;
  how.output_tokens = 5;
  return how;
}

const anthropic::identity who{"msg_1", "m", "r1"};

}  // namespace

TEST_CASE("anthropic: a message's fields reach the request") {
  const auto p = message(hi, R"(,"model":"m","system":"be brief","stream":true,"temperature":0.5,"top_k":5,
      "top_p":0.9,"stop_sequences":["x","y"],"min_p":0.1,"seed":7,"ignore_eos":true,"cache_salt":"s",
      "chat_template_kwargs":{"enable_thinking":false})");
  CHECK(json_of(said(p)) == R"([{"role":"system","content":"be brief"},{"role":"user","content":"hi"}])");
  CHECK(said(p).add_generation_prompt);
  CHECK(said(p).variables.at("enable_thinking") == false);
  CHECK(p->request.input_param == "messages");
  CHECK(p->request.model == "m");
  CHECK(p->request.max_tokens == 5);
  CHECK(p->request.stop == std::vector<std::string>{"x", "y"});
  CHECK(p->request.stop_param == "stop_sequences");
  CHECK(p->request.sampling.temperature == 0.5);
  CHECK(p->request.sampling.top_k == 5);
  CHECK(p->request.sampling.top_p == 0.9);
  CHECK(p->request.sampling.min_p == 0.1);
  CHECK(p->request.sampling.seed == 7u);
  CHECK(p->request.ignore_eos);
  CHECK(p->request.cache_salt == "s");
  CHECK(p->stream);
  CHECK_FALSE(message(hi)->stream);
}

TEST_CASE("anthropic: text blocks become the parts of a content, in messages and in system") {
  const auto p =
      message(R"([{"role":"user","content":[{"type":"text","text":"a"},
      {"type":"text","text":"b","cache_control":{"type":"ephemeral"},"citations":null}]},
      {"role":"user","content":[]},{"role":"system","content":"c"}])",
              R"(,"system":[{"type":"text","text":"s"},{"type":"text","text":"t","citations":[]}])");
  CHECK(json_of(said(p)) ==
        R"([{"role":"system","content":[{"type":"text","text":"s"},{"type":"text","text":"t"}]},)"
        R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},)"
        R"({"role":"user","content":""},)"
        R"({"role":"system","content":"c"}])");
  for (const char* none : {R"("")", "[]", "null"})
    CHECK(said(message(hi, fmt::format(R"(,"system":{})", none))).messages.size() == 1);
}

TEST_CASE("anthropic: unknown fields are taken and named, or refused if that is asked") {
  const char* messages = R"([{"role":"user","name":"n","content":[{"type":"text","text":"a","more":1}]}])";
  const char* more = R"(,"metadata":{"team":"x"},"temprature":1,"n":1)";
  const auto p = message(messages, more);
  REQUIRE(p.has_value());
  const auto told = p->ignored.told();
  CHECK(std::set<std::string>(told.begin(), told.end()) ==
        std::set<std::string>{"messages[0].name", "messages[0].content[0].more", "metadata.team",
                              "temprature", "n"});
  const auto strict = anthropic::parse(
      route::messages, fmt::format(R"({{"max_tokens":5,"messages":{}{}}})", messages, more), SIZE_MAX, true);
  REQUIRE(!strict);
  CHECK_THAT(strict.error().message, Catch::Contains("unknown field '"));
}

TEST_CASE("anthropic: a last message of the assistant is gone on with") {
  const auto p = message(R"([{"role":"user","content":"hi"},{"role":"assistant","content":"well, "}])");
  CHECK(said(p).continue_final_message);
  CHECK_FALSE(said(p).add_generation_prompt);
  const auto blank = message(R"([{"role":"user","content":"hi"},{"role":"assistant","content":" \n"}])");
  REQUIRE(!blank);
  CHECK(blank.error().param == "messages");
}

TEST_CASE("anthropic: fields that change nothing here are accepted, null where any field may be null") {
  for (const char* more :
       {R"("metadata":{"user_id":"me"})", R"("metadata":{"user_id":null})", R"("metadata":{})",
        R"("service_tier":"auto")", R"("service_tier":"standard_only")",
        R"("cache_control":{"type":"ephemeral"})", R"("thinking":{"type":"disabled"})", R"("tools":[])",
        R"("tool_choice":{"type":"auto"})", R"("mcp_servers":[])", R"("container":null)", R"("system":null)",
        R"("stop_sequences":null)", R"("stream":null)", R"("temperature":null)", R"("top_k":null)",
        R"("metadata":null)", R"("service_tier":null)", R"("cache_control":null)"}) {
    const auto p = message(hi, std::string(",") + more);
    INFO(more << (p ? "" : ": " + p.error().message));
    CHECK(p.has_value());
  }
}

TEST_CASE("anthropic: a bad body is refused naming the field") {
  const auto one = [](const std::string& content) {
    return fmt::format(R"({{"max_tokens":5,"messages":[{{"role":"user","content":{}}}]}})", content);
  };
  const auto more = [](const std::string& field) {
    return fmt::format(R"({{"max_tokens":5,"messages":{},{}}})", hi, field);
  };
  const struct {
    std::string body, param, says;
  } rows[] = {
      {"", "", "not JSON"},
      {"[]", "", "the body must be an object, not an array"},
      {R"({"max_tokens":5})", "messages", "messages is missing"},
      {R"({"max_tokens":5,"messages":"hi"})", "messages", "messages must be an array, not a string"},
      {R"({"max_tokens":5,"messages":[]})", "messages", "messages is empty"},
      {R"({"max_tokens":5,"messages":["hi"]})", "messages", "messages[0] must be an object, not a string"},
      {R"({"max_tokens":5,"messages":[{"content":"hi"}]})", "messages",
       "messages[0] must have a string 'role'"},
      {R"({"max_tokens":5,"messages":[{"role":"tool","content":"hi"}]})", "messages",
       R"(messages[0].role must be "user", "assistant" or "system", not "tool")"},
      {R"({"max_tokens":5,"messages":[{"role":"user"}]})", "messages", "messages[0] must have a 'content'"},
      {one("null"), "messages", "messages[0].content must be a string or a list of blocks, not null"},
      {one(R"(["hi"])"), "messages", "messages[0].content[0] must be an object, not a string"},
      {one(R"([{"text":"hi"}])"), "messages", "messages[0].content[0] must have a string 'type'"},
      {one(R"([{"type":"text"}])"), "messages", "messages[0].content[0] must have a string 'text'"},
      {one(R"([{"type":"text","text":"a"},{"type":"document","source":{}}])"), "messages",
       "messages[0].content[1]: blocks of type 'document' are not supported yet"},
      {one(R"([{"type":"tool_result"}])"), "messages", "[0] must have a string 'tool_use_id'"},
      {one(R"([{"type":"tool_use","id":"a","name":"f","input":{}}])"), "messages",
       "tool_use and thinking blocks are the assistant's"},
      {one(R"([{"type":"thinking","thinking":"a"}])"), "messages",
       "tool_use and thinking blocks are the assistant's"},
      {one(R"([{"type":"text","text":"a","citations":[{}]}])"), "messages",
       "messages[0].content[0].citations is not supported yet"},
      {one(R"([{"type":"text","text":"a","cache_control":5}])"), "messages",
       "messages[0].content[0].cache_control must be an object, not a number"},
      {more(R"("system":5)"), "system", "system must be a string or a list of blocks, not a number"},
      {more(R"("system":[{"type":"document"}])"), "system",
       "system[0]: blocks of type 'document' are not supported yet"},
      {fmt::format(R"({{"messages":{}}})", hi), "max_tokens", "max_tokens is missing"},
      {fmt::format(R"({{"max_tokens":null,"messages":{}}})", hi), "max_tokens", "max_tokens is missing"},
      {fmt::format(R"({{"max_tokens":"5","messages":{}}})", hi), "max_tokens", "integer"},
      {more(R"("tools":[{"name":"f","input_schema":5}])"), "tools[0].input_schema", "must be an object"},
      {more(R"("tools":[{"type":"bash_20250124","name":"bash"}])"), "tools",
       "'bash_20250124' are not supported"},
      {more(R"("tool_choice":{"type":"any"})"), "tool_choice", "there are no tools"},
      {more(R"("thinking":{"type":"often"})"), "thinking", "thinking.type must be"},
      {more(R"("container":"c")"), "container", "container is not supported yet"},
      {more(R"("mcp_servers":[{}])"), "mcp_servers", "mcp_servers is not supported yet"},
      {more(R"("context_management":[])"), "context_management", "must be an object, not an array"},
      {more(R"("thinking":{"type":"enabled","budget_tokens":5})"), "thinking.budget_tokens",
       "thinking.budget_tokens must be below max_tokens, 5, not 5"},
      {more(R"("thinking":{"type":"enabled","budget_tokens":-1})"), "thinking.budget_tokens",
       "must be at least 0"},
      {more(R"("thinking":{"type":"enabled","budget_tokens":2},"max_reasoning_tokens":3)"), "",
       "are the same field"},
      {more(R"("output_config":{"effort":5})"), "output_config.effort", "must be a string"},
      {more(R"("output_config":{"task_budget":{}})"), "output_config",
       "output_config.task_budget is not supported yet"},
      {more(R"("metadata":"me")"), "metadata", "metadata must be an object, not a string"},
      {more(R"("metadata":{"user_id":5})"), "metadata", "metadata.user_id must be a string, not a number"},
      {more(R"("service_tier":"fast")"), "service_tier", R"(service_tier must be "auto" or "standard_only")"},
      {more(R"("cache_control":"ephemeral")"), "cache_control",
       "cache_control must be an object, not a string"},
      {more(R"("stop_sequences":"x")"), "stop_sequences",
       "stop_sequences must be an array of strings, not a string"},
      {more(R"("stop_sequences":["x",5])"), "stop_sequences",
       "stop_sequences[1] must be a string, not a number"},
      {more(R"("stream":"yes")"), "stream", "stream must be true or false, not a string"},
      {more(R"("stop":["x"])"), "stop", "unknown field 'stop'"},
      {more(R"("continue_final_message":true)"), "continue_final_message",
       "unknown field 'continue_final_message'"},
      {more(R"("logprobs":true)"), "logprobs", "logprobs is not supported yet"},
      {more(R"("stream":true,"stream":true)"), "stream", "'stream' is there twice"},
  };
  for (const auto& r : rows) {
    CAPTURE(r.body);
    const auto p = anthropic::parse(route::messages, r.body);
    REQUIRE(!p);
    CHECK(p.error().code == core::errc::invalid_param);
    if (!r.param.empty()) CHECK(p.error().param == r.param);
    CHECK_THAT(p.error().message, Catch::Contains(r.says));
  }
}

TEST_CASE("anthropic: the line of Claude Code's that differs in every request is a constant") {
  const auto prompt = [](std::string_view cch, bool blocks) {
    const auto line = fmt::format("x-anthropic-billing-header: cc_version=2.1.232; cch={};", cch);
    const auto system = blocks ? fmt::format(R"([{{"type":"text","text":"{}"}},
        {{"type":"text","text":"You are","cache_control":{{"type":"ephemeral"}}}}])",
                                             line)
                               : fmt::format(R"("{}\nYou are")", line);
    const auto p = message(hi, ",\"system\":" + system);
    const auto made = core::chat_template::chatml()->render(said(p), {});
    REQUIRE(made.has_value());
    return made->text;
  };
  for (const bool blocks : {true, false}) {
    CHECK(prompt("a1b2c", blocks) == prompt("00fff", blocks));
    CHECK(prompt("a1b2c", blocks)
              .starts_with("<|im_start|>system\nx-anthropic-billing-header: none\nYou are<|im_end|>"));
  }
  // Only such a line, at the beginning.
  CHECK(json_of(said(message(hi, R"(,"system":"a x-anthropic-billing-header: b")"))).find(": b") !=
        std::string::npos);
}

TEST_CASE("anthropic: what Claude Code sends beside the messages is taken, and named where it does nothing") {
  const auto p =
      message(hi, R"(,"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},
      "thinking":{"type":"adaptive"},"output_config":{"effort":"high"},"betas":["a"],"mcp_servers":[])");
  const auto& c = said(p);
  CHECK(c.variables.at("enable_thinking") == true);
  CHECK(c.variables.at("reasoning_effort") == "high");
  CHECK_FALSE(c.reasoning_effort);
  std::vector<std::string> named;
  for (const auto& w : p->all_warnings()) named.push_back(w.where);
  CHECK(named == std::vector<std::string>{"betas", "context_management"});
  CHECK(said(message(hi, R"(,"output_config":{"effort":"low"},
      "chat_template_kwargs":{"reasoning_effort":"high"})"))
            .variables.at("reasoning_effort") == "high");
  CHECK(message(hi, R"(,"context_management":{})")->all_warnings().empty());
}

TEST_CASE("anthropic: names that come back in an error are no longer than 64 bytes") {
  const std::string longest(100000, 'n'), cut = std::string(61, 'n') + "…";
  CHECK(message(hi, ",\"" + longest + "\":1")->ignored.told() == std::vector<std::string>{cut});
  CHECK(message(R"([{"role":")" + longest + R"(","content":""}])").error().message.size() < 200);
  CHECK(message(R"([{"role":"user","content":"",")" + longest + "\":1}]").error().message.size() < 200);
  const auto type = R"([{"role":"user","content":[{"type":")" + longest + "\"}]}]";
  CHECK(message(type).error().message.size() < 200);
}

TEST_CASE("anthropic: a body to count takes the fields of a message, and needs messages alone") {
  CHECK(anthropic::parse(route::count_tokens, fmt::format(R"({{"messages":{}}})", hi)).has_value());
  CHECK(anthropic::parse(route::count_tokens,
                         fmt::format(R"({{"max_tokens":1,"system":"s","messages":{}}})", hi))
            .has_value());
  CHECK(anthropic::parse(route::count_tokens, "{}").error().param == "messages");
  const auto tools = fmt::format(R"({{"tools":[{{}}],"messages":{}}})", hi);
  CHECK(anthropic::parse(route::count_tokens, tools).error().param == "tools");
}

TEST_CASE("anthropic: endings have their stop reasons") {
  using core::finish_reason;
  const auto reason = [](finish_reason r, std::int64_t max_tokens) {
    return anthropic::stop_reason(outcome_of(r), max_tokens);
  };
  CHECK(reason(finish_reason::stop, 5) == "end_turn");
  CHECK(reason(finish_reason::length, 5) == "max_tokens");
  CHECK(reason(finish_reason::length, 6) == "model_context_window_exceeded");
  CHECK(reason(finish_reason::timeout, 6) == "max_tokens");
  CHECK(reason(finish_reason::repetition, 6) == "max_tokens");
  CHECK(reason(finish_reason::cancel, 6) == "cancel");
  auto by_string = outcome_of(finish_reason::stop);
  by_string.stop_string = 0;
  CHECK(anthropic::stop_reason(by_string, 5) == "stop_sequence");
}

namespace {

boost::json::value whole(net::body_parts body) {
  std::string out;
  while (body.append(out)) {
  }
  return boost::json::parse(out);
}

}  // namespace

TEST_CASE("anthropic: a message object has text, the stop sequence and usage that adds up to the prompt") {
  auto how = outcome_of(core::finish_reason::stop);
  how.stop_string = 1;
  const auto said = log_of_tokens({{1, "a\"b}"}}), nothing = log_of_tokens({});
  const auto o = whole(anthropic::response_body(who, said, how, {5, {"x", "\n\"y"}})).as_object();
  CHECK(o.at("id") == "msg_1");
  CHECK(o.at("type") == "message");
  CHECK(o.at("role") == "assistant");
  CHECK(o.at("model") == "m");
  CHECK(o.at("content") == boost::json::parse(R"([{"type":"text","text":"a\"b}","citations":null}])"));
  CHECK(o.at("stop_reason") == "stop_sequence");
  CHECK(o.at("stop_sequence") == "\n\"y");
  const auto& usage = o.at("usage");
  CHECK(usage.at("input_tokens") == 6);
  CHECK(usage.at("cache_read_input_tokens") == 4);
  CHECK(usage.at("cache_creation_input_tokens") == 0);
  CHECK(usage.at("output_tokens") == 5);
  const auto plain =
      whole(anthropic::response_body(who, nothing, outcome_of(core::finish_reason::stop), {5, {"x"}}));
  CHECK(plain.at("stop_reason") == "end_turn");
  CHECK(plain.at("stop_sequence").is_null());
  CHECK(boost::json::parse(anthropic::count_body(12)) == boost::json::parse(R"({"input_tokens":12})"));
}

TEST_CASE("anthropic: a stream begins, has its pieces, and ends with the reason and the usage") {
  const anthropic::event_writer w(who, 10, {5, {}});
  std::string out;
  w.open(out, 0);
  w.piece(out, 0, text_piece("a\n", true), {}, "");
  w.piece(out, 0, text_piece(""), {}, "max_tokens");
  const actors::outcome how[] = {outcome_of(core::finish_reason::length)};
  w.end(out, how);
  const auto events = events_of(out);
  REQUIRE(events.size() == 7);
  const auto& start = events[0].at("message");
  CHECK(events[0].at("type") == "message_start");
  CHECK(start.at("id") == "msg_1");
  CHECK(start.at("content").as_array().empty());
  CHECK(start.at("stop_reason").is_null());
  CHECK(start.at("stop_sequence").is_null());
  CHECK(start.at("usage").at("input_tokens") == 10);
  CHECK(start.at("usage").at("output_tokens") == 0);
  CHECK(events[1] == boost::json::parse(R"({"type":"ping"})"));
  CHECK(events[2] == boost::json::parse(R"({"type":"content_block_start","index":0,
                               "content_block":{"type":"text","text":"","citations":null}})"));
  CHECK(events[3] ==
        boost::json::parse(
            R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\n"}})"));
  CHECK(events[4] == boost::json::parse(R"({"type":"content_block_stop","index":0})"));
  CHECK(events[5].at("type") == "message_delta");
  CHECK(events[5].at("delta").at("stop_reason") == "max_tokens");
  CHECK(events[5].at("delta").at("stop_sequence").is_null());
  CHECK(events[5].at("usage").at("input_tokens") == 6);
  CHECK(events[5].at("usage").at("cache_read_input_tokens") == 4);
  CHECK(events[5].at("usage").at("output_tokens") == 5);
  CHECK(events[6] == boost::json::parse(R"({"type":"message_stop"})"));
}

TEST_CASE("anthropic: after the event of an error there is none") {
  const anthropic::event_writer w(who, 10, {5, {}});
  auto how = outcome_of(core::finish_reason::error);
  how.fault = core::error{core::errc::internal, "broken", ""};
  std::string out;
  w.fail(out, *how.fault);
  w.end(out, std::span(&how, 1));
  const auto events = events_of(out);
  REQUIRE(events.size() == 1);
  CHECK(events[0] ==
        boost::json::parse(
            R"({"type":"error","error":{"type":"api_error","message":"broken"},"request_id":"r1"})"));
}

TEST_CASE("anthropic: errors have the type of their status") {
  const std::pair<unsigned, const char*> rows[] = {
      {400, "invalid_request_error"}, {401, "authentication_error"},
      {403, "permission_error"},      {404, "not_found_error"},
      {405, "invalid_request_error"}, {413, "request_too_large"},
      {429, "rate_limit_error"},      {500, "api_error"},
      {503, "overloaded_error"},
  };
  for (const auto& [status, type] : rows) {
    CAPTURE(status);
    const auto e = boost::json::parse(anthropic::error_body(status, "because", "r1"));
    CHECK(e.at("type") == "error");
    CHECK(e.at("error").at("type") == type);
    CHECK(e.at("error").at("message") == "because");
    CHECK(e.at("request_id") == "r1");
  }
  CHECK(anthropic::is_path("/v1/messages"));
  CHECK(anthropic::is_path("/v1/messages/batches"));
  CHECK_FALSE(anthropic::is_path("/v1/messagesx"));
  CHECK_FALSE(anthropic::is_path("/v1/message"));
}

}  // namespace weir::tests::anthropic_test
