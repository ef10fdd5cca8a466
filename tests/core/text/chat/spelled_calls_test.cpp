// Calls of earlier messages in prompts: those of templates that write none, those that stand beside a content
// that is not null, and those of every published template.
#include "core/text/chat/spelled_calls.h"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include "core/text/chat/chat_template.h"
#include "tests/support/published_templates.h"

namespace weir::tests::spelled_calls_test {
namespace {

using namespace weir::core;
namespace js = boost::json;

// Shows tools in the manner of a family, and writes no calls.
std::shared_ptr<const chat_template> silent(std::string_view about_tools) {
  return chat_template::from_source(
      "{% if tools %}" + std::string(about_tools) +
      "{% for t in tools %}{{ t | tojson }}{% endfor %}\n{% endif %}"
      "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
      "{% if add_generation_prompt %}assistant: {% endif %}");
}

constexpr std::string_view asked = R"([{"role":"user","content":"what now?"},
  {"role":"assistant","content":CONTENT,"tool_calls":[
    {"id":"abcdef123","type":"function","function":{"name":"weirlook",
     "arguments":"{\"place\":\"Kiel \\\"<x>\\\"\",\"deep\":{\"on\":true,\"no\":null}}"}},
    {"id":"abcdef124","type":"function","function":{"name":"weirtell","arguments":"{}"}}]},
  {"role":"tool","tool_call_id":"abcdef123","name":"weirlook","content":"weirwarm"},
  {"role":"tool","tool_call_id":"abcdef124","name":"weirtell","content":"weircold"}])";

conversation calls_of(std::string_view content) {
  std::string text(asked);
  text.replace(text.find("CONTENT"), 7, content);
  conversation c;
  c.messages = js::parse(text).as_array();
  js::array tools;
  for (const char* name : {"weirlook", "weirtell"})
    tools.push_back(js::object{{"type", "function"},
                               {"function", js::object{{"name", name},
                                                       {"description", "d"},
                                                       {"parameters", js::object{{"type", "object"}}}}}});
  c.tools = std::move(tools);
  return c;
}

jinja::rendering rendered(const chat_template& chat, std::string_view content) {
  const auto made = chat.render(calls_of(content), {});
  INFO((made ? std::string() : made.error().message));
  REQUIRE(made.has_value());
  return *made;
}

bool is_sent(const jinja::rendering& r, std::string_view word) {
  const auto at = r.text.find(word);
  REQUIRE(at != r.text.npos);
  return std::ranges::any_of(
      r.content, [&](const jinja::span& s) { return s.begin <= at && at + word.size() <= s.end; });
}

}  // namespace

TEST_CASE("spelled calls: a template that writes none has them behind the text, in its model's form") {
  const auto lfm2 = silent("List of tools: ");
  CHECK_FALSE(lfm2->format(true).writes_calls);
  const auto made = rendered(*lfm2, R"("I look.")");
  CHECK_THAT(made.text,
             Catch::Contains("assistant: I look.\n<|tool_call_start|>[weirlook(place=\"Kiel \\\"<x>\\\"\", "
                             "deep={\"on\": True, \"no\": None}), weirtell()]<|tool_call_end|>\ntool: weirwarm"));
  CHECK_FALSE(is_sent(made, "<|tool_call_start|>["));
  CHECK(is_sent(made, "weirlook(place="));
  CHECK_FALSE(is_sent(made, "]<|tool_call_end|>"));
  CHECK(is_sent(made, "I look."));
  CHECK(is_sent(made, "weirwarm"));

  const auto granite = rendered(*silent("Write <|tool_call|> and a list. "), "null");
  CHECK_THAT(granite.text,
             Catch::Contains("assistant: <|tool_call|>[{\"name\": \"weirlook\", \"arguments\": {\"place\": "
                             "\"Kiel \\\"<x>\\\"\", \"deep\": {\"on\": true, \"no\": null}}}, {\"name\": "
                             "\"weirtell\", \"arguments\": {}}]\ntool: weirwarm"));
  const auto hermes = rendered(*silent("Write <tool_call>{\"name\", \"arguments\"}</tool_call>. "), "null");
  CHECK_THAT(hermes.text, Catch::Contains("</tool_call>\n<tool_call>\n{\"name\": \"weirtell\""));
  CHECK_FALSE(is_sent(hermes, "\n</tool_call>"));
}

TEST_CASE("spelled calls: a template that wants null beside calls gets it, and a text before them") {
  const auto chat = chat_template::from_source(
      "{% for m in messages %}{{ m.role }}: {% if m.tool_calls and m.content is none %}"
      "{% for c in m.tool_calls %}<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": "
      "{{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}{% else %}{{ m.content }}{% endif %}\n"
      "{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}");
  CHECK(chat->format(true).null_beside_calls);
  CHECK_THAT(rendered(*chat, R"("")").text, Catch::Contains("assistant: <tool_call>\n{\"name\": \"weirlook\""));
  CHECK_THAT(rendered(*chat, R"("I look.")").text,
             Catch::Contains("assistant: I look.assistant: <tool_call>\n{\"name\": \"weirlook\""));
}

TEST_CASE("spelled calls: published templates show earlier calls, beside a text and alone") {
  for (const auto& t : published_templates()) {
    const auto chat = chat_template::from_source(t.source);
    if (chat->fault() || !chat->format(true).has_calls()) continue;
    if (t.name == "Kimi-K2-Thinking") continue;  // changes a list, which Python's sandbox refuses, too
    for (const char* content : {"null", R"("")", R"("I look.")"}) {
      CAPTURE(t.name, content);
      const auto made = rendered(*chat, content);
      CHECK_THAT(made.text, Catch::Contains("weirlook"));
      for (const char* word : {"weirtell", "Kiel", "weirwarm", "weircold"}) CHECK_THAT(made.text, Catch::Contains(word));
      CHECK(made.text.rfind("Kiel") < made.text.rfind("weirwarm"));
    }
  }
}

}  // namespace weir::tests::spelled_calls_test
