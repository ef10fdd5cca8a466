// What goes to the chat template, over both routes.
#include "net/protocol/request_fields.h"

#include <catch2/catch.hpp>

#include "net/protocol/openai.h"
#include "net/protocol/ws_protocol.h"

namespace weir::tests::request_fields_test {

using namespace weir::net;

namespace {

core::result<actors::request> over_http(const std::string& fields, const std::string& messages) {
  auto p = openai::parse(openai::dialect::chat, fmt::format(R"({{"messages":{}{}}})", messages, fields));
  if (!p) return p.error();
  return std::move(p->request);
}

core::result<actors::request> over_socket(const std::string& fields, const std::string& input) {
  auto m = ws::parse(fmt::format(R"({{"type":"response.create","id":"a"{},"input":{}}})", fields, input));
  if (auto* created = std::get_if<ws::response_create>(&m)) {
    CHECK(created->ignored.empty());
    return std::move(created->request);
  }
  const auto& e = std::get<ws::protocol_error>(m);
  return core::bad_param(e.param, "{}", e.message);
}

const std::string hi = R"([{"role":"user","content":"hi"}])";
const std::string tool = R"({"type":"function","function":{"name":"f"}})";

// Calls f with the conversation of a request over each route.
template <class F>
void over_both(const std::string& fields, const std::string& messages, F f) {
  for (const auto& r : {over_http(fields, messages), over_socket(fields, messages)}) {
    INFO((r ? "" : r.error().message));
    REQUIRE(r.has_value());
    f(std::get<core::conversation>(r->input));
  }
}

void refused(const std::string& fields, const std::string& messages, const std::string& param,
             const std::string& says) {
  CAPTURE(fields, messages);
  for (const auto& r : {over_http(fields, messages), over_socket(fields, messages)}) {
    REQUIRE(!r);
    if (!param.empty()) CHECK(r.error().param == param);
    CHECK_THAT(r.error().message, Catch::Contains(says));
  }
}

}  // namespace

TEST_CASE("request fields: what the template gets goes through as it came") {
  const std::string said =
      R"([{"role":"developer","content":"d"},{"role":"assistant","content":null,"tool_calls":)"
      R"([{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}],)"
      R"("reasoning_content":"hm"},{"role":"tool","tool_call_id":"1","name":"f","content":"2"}])";
  const std::string fields =
      R"(,"tools":[)" + tool +
      R"(],"documents":[{"text":"t"}],"chat_template_kwargs":{"enable_thinking":false},)" +
      R"("add_generation_prompt":false)";
  over_both(fields, said, [&](const core::conversation& c) {
    CHECK(c.messages == json::parse(said));
    CHECK(c.tools.at(0) == json::parse(tool));
    CHECK(c.documents.at(0).at("text") == "t");
    CHECK(c.variables.at("enable_thinking") == false);
    CHECK_FALSE(c.add_generation_prompt);
    CHECK_FALSE(c.continue_final_message);
  });
}

TEST_CASE(
    "request fields: empty lists of tools and documents are none, and tool_choice none hides the tools") {
  over_both(R"(,"tools":[],"documents":[])", hi, [](const auto& c) {
    CHECK(c.tools.is_null());
    CHECK(c.documents.is_null());
    CHECK(c.add_generation_prompt);
  });
  over_both(R"(,"tool_choice":"none","tools":[)" + tool + "]", hi,
            [](const auto& c) { CHECK(c.tools.is_null()); });
  over_both(R"(,"tool_choice":"auto","tools":[)" + tool + "]", hi,
            [](const auto& c) { CHECK(c.tools.is_array()); });
}

TEST_CASE("request fields: to go on with the last message begins no new one") {
  over_both(R"(,"continue_final_message":true)", hi, [](const auto& c) {
    CHECK(c.continue_final_message);
    CHECK_FALSE(c.add_generation_prompt);
  });
  refused(R"(,"continue_final_message":true,"add_generation_prompt":true)", hi, "continue_final_message",
          "cannot both be true");
}

TEST_CASE("request fields: fields of the template with a wrong value are refused by name") {
  const struct {
    const char *fields, *param, *says;
  } rows[] = {
      {R"(,"tools":5)", "tools", "tools must be an array, not a number"},
      {R"(,"tools":["f"])", "tools", "tools[0] must be an object, not a string"},
      {R"(,"documents":{})", "documents", "documents must be an array, not an object"},
      {R"(,"tool_choice":"required")", "tool_choice", "tool_choice: there are no tools"},
      {R"(,"tool_choice":{"type":"function","name":"f"})", "tool_choice", "there is no tool called 'f'"},
      {R"(,"tool_choice":5)", "tool_choice", "tool_choice must be a string or an object, not a number"},
      {R"(,"chat_template_kwargs":[])", "chat_template_kwargs", "must be an object, not an array"},
      {R"(,"add_generation_prompt":1)", "add_generation_prompt", "must be true or false"},
  };
  for (const auto& r : rows) refused(r.fields, hi, r.param, r.says);
}

TEST_CASE("request fields: a preset's name, and what it shall not set") {
  const std::string fields =
      R"(,"preset":"story","logit_bias":{},"seed":-1,"bad_words":[],"top_k":null,"min_p":0,"typical":0.5)";
  for (const auto& r : {over_http(fields, hi), over_socket(fields, hi)}) {
    REQUIRE(r.has_value());
    CHECK(r->preset == "story");
    CHECK(r->sampling_left_out == std::vector<std::string_view>{"logit_bias", "seed", "bad_words"});
    CHECK(r->sampling.min_p == 0);
    CHECK(r->sampling.typical_p == 0.5);
  }
  for (const auto& r : {over_http(R"(,"preset":null)", hi), over_socket("", hi)}) {
    REQUIRE(r.has_value());
    CHECK_FALSE(r->preset.has_value());
  }
  refused(R"(,"preset":7)", hi, "preset", "preset must be a string");
}

TEST_CASE("request fields: how reasoning is shown, and how long it may be") {
  const auto both = [](const std::string& fields, auto check) {
    for (const auto& r : {over_http(fields, hi), over_socket(fields, hi)}) {
      INFO(fields << (r ? "" : r.error().message));
      REQUIRE(r.has_value());
      check(*r);
    }
  };
  for (const auto format : {"auto", "deepseek", "separate"})
    both(fmt::format(R"(,"reasoning_format":"{}")", format),
         [](const auto& r) { CHECK(r.separate_reasoning); });
  both(R"(,"reasoning_format":"none")", [](const auto& r) { CHECK_FALSE(r.separate_reasoning); });
  both("", [](const auto& r) { CHECK((r.show_reasoning && !r.max_reasoning_tokens)); });
  both(R"(,"include_reasoning":false)", [](const auto& r) { CHECK_FALSE(r.show_reasoning); });
  for (const std::string name : {"max_reasoning_tokens", "thinking_token_budget"})
    both(fmt::format(R"(,"{}":0)", name), [&](const auto& r) {
      CHECK(r.max_reasoning_tokens == 0);
      CHECK(r.max_reasoning_param == name);
    });
  both(R"(,"max_reasoning_tokens":7,"thinking_token_budget":7)",
       [](const auto& r) { CHECK(r.max_reasoning_tokens == 7); });
  refused(R"(,"max_reasoning_tokens":7,"thinking_token_budget":8)", hi, "", "are the same field");
  refused(R"(,"max_reasoning_tokens":-1)", hi, "max_reasoning_tokens", "must be at least 0, not -1");
  refused(R"(,"reasoning_format":"deepseek-legacy")", hi, "reasoning_format", "reasoning_format must be");
}

TEST_CASE("request fields: a raw prompt takes nothing that goes to the template") {
  for (const auto& [name, value] : {std::pair<std::string, std::string>{"tools", "[" + tool + "]"},
                                    {"documents", R"([{"text":"t"}])"},
                                    {"chat_template_kwargs", R"({"a":1})"},
                                    {"add_generation_prompt", "false"},
                                    {"continue_final_message", "true"}}) {
    CAPTURE(name);
    const auto r = over_socket(fmt::format(R"(,"{}":{})", name, value), R"("raw")");
    REQUIRE(!r);
    CHECK(r.error().message == name + " goes with messages only, not with a raw prompt");
    const auto p =
        openai::parse(openai::dialect::completion, fmt::format(R"({{"prompt":"x","{}":{}}})", name, value));
    REQUIRE(!p);
    CHECK(p.error().param == name);
  }
  CHECK(over_socket(R"(,"tools":[],"tool_choice":"none")", R"("raw")").has_value());
}

}  // namespace weir::tests::request_fields_test
