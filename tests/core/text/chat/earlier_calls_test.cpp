// Calls of earlier messages in prompts: of templates that leave them out, of those that want null beside
// them, and of every published template.
#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include "core/text/chat/chat_template.h"
#include "tests/support/published_templates.h"

namespace weir::tests::earlier_calls_test {
namespace {

using namespace weir::core;
namespace js = boost::json;

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
    tools.push_back(js::object{
        {"type", "function"},
        {"function",
         js::object{{"name", name}, {"description", "d"}, {"parameters", js::object{{"type", "object"}}}}}});
  c.tools = std::move(tools);
  return c;
}

jinja::rendering rendered(const chat_template& chat, std::string_view content) {
  const auto made = chat.render(calls_of(content), {});
  INFO((made ? std::string() : made.error().message));
  REQUIRE(made.has_value());
  return *made;
}

}  // namespace

TEST_CASE("earlier calls: a template that shows tools and leaves calls out says so") {
  const auto chat = chat_template::from_source(
      "{% if tools %}List of tools: {{ tools | tojson }}\n{% endif %}"
      "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
      "{% if add_generation_prompt %}assistant: {% endif %}");
  CHECK_FALSE(chat->format(true).writes_calls);
  std::vector<std::string> notes;
  REQUIRE(chat->render(calls_of("null"), {}, {}, &notes).has_value());
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes[0], Catch::Contains("leaves out the calls of earlier messages"));
  conversation none = calls_of("null");
  none.messages.erase(none.messages.begin() + 1, none.messages.end());
  notes.clear();
  REQUIRE(chat->render(none, {}, {}, &notes).has_value());
  CHECK(notes.empty());
}

TEST_CASE("earlier calls: a template that wants null beside calls gets it, and a text before them") {
  const auto chat = chat_template::from_source(
      "{% for m in messages %}{{ m.role }}: {% if m.tool_calls and m.content is none %}"
      "{% for c in m.tool_calls %}<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": "
      "{{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}{% else %}{{ m.content }}{% endif %}\n"
      "{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}");
  CHECK((chat->format(true).null_beside_calls && chat->format(true).calls_alone));
  CHECK_THAT(rendered(*chat, R"("")").text,
             Catch::Contains("assistant: <tool_call>\n{\"name\": \"weirlook\""));
  CHECK_THAT(rendered(*chat, R"("I look.")").text,
             Catch::Contains("assistant: I look.assistant: <tool_call>\n{\"name\": \"weirlook\""));
}

TEST_CASE("earlier calls: published templates show earlier calls, beside a text and alone") {
  for (const auto& t : published_templates()) {
    const auto chat = chat_template::from_source(t.source, {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
    if (chat->fault() || !chat->format(true).has_calls() || !chat->format(true).writes_calls) continue;
    if (t.name == "Kimi-K2-Thinking") continue;  // changes a list, which Python's sandbox refuses, too
    for (const char* content : {"null", R"("")", R"("I look.")"}) {
      CAPTURE(t.name, content);
      const auto made = rendered(*chat, content);
      CHECK_THAT(made.text, Catch::Contains("weirlook"));
      for (const char* word : {"weirtell", "Kiel", "weirwarm", "weircold"})
        CHECK_THAT(made.text, Catch::Contains(word));
      CHECK(made.text.rfind("Kiel") < made.text.rfind("weirwarm"));
    }
  }
}

}  // namespace weir::tests::earlier_calls_test
