// The orders of messages that templates take, and what a conversation becomes where they do not take it: of
// small templates, and of every published one.
#include "core/text/chat/message_turns.h"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include "core/text/chat/chat_template.h"
#include "tests/support/published_templates.h"

namespace weir::tests::message_turns_test {

using namespace weir::core;
namespace js = boost::json;

namespace {

message_turns turns_learnt(std::string_view source) {
  const auto p = jinja::program::compile(source);
  REQUIRE(p.has_value());
  return turns_of(**p, source, {}, forms_of(**p, {}));
}

js::array list_of(std::string_view text) {
  return js::parse(js::string_view(text.data(), text.size())).as_array();
}

std::string arranged(const message_turns& turns, std::string_view messages, std::size_t reminders = 0) {
  js::array all = list_of(messages);
  CHECK(arrange(all, turns).reminders == reminders);
  return js::serialize(all);
}

// How often a word stands in a text.
std::size_t count_of(std::string_view text, std::string_view word) {
  std::size_t n = 0;
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++n;
  return n;
}

bool stand_in_order(std::string_view text, std::initializer_list<std::string_view> words) {
  std::size_t from = 0;
  for (const auto word : words) {
    const auto at = text.find(word, from);
    if (at == text.npos) return false;
    from = at;
  }
  return true;
}

struct made_prompt {
  std::string text;  // or why there is none
  bool made = false;
  std::vector<std::string> notes;
};

made_prompt prompt_of(const chat_template& chat, std::string_view messages, bool tools = false) {
  conversation c;
  c.messages = list_of(messages);
  if (tools)
    c.tools = js::parse(R"([{"type":"function","function":{"name":"get","description":"d","parameters":
      {"type":"object","properties":{"city":{"type":"string","description":"d"}},"required":["city"]}}}])");
  made_prompt out;
  const auto made = chat.render(c, tests::published_now, {}, &out.notes);
  out.made = made.has_value();
  out.text = made ? made->text : made.error().message;
  return out;
}

// Calls `check(chat, turns)` for each published template.
template <class Check>
void each_published(Check check) {
  for (const auto& file : tests::published_templates()) {
    CAPTURE(file.name);
    check(file.name, *chat_template::from_source(file.source, {{"bos_token", "<s>"}, {"eos_token", "</s>"}}),
          turns_learnt(file.source));
  }
}

constexpr const char* takes_all =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% for c in m.tool_calls %}"
    "[{{ c.id }} {{ c.function.name }} {{ c.function.arguments | tojson }}]{% endfor %}\n{% endfor %}";

}  // namespace

TEST_CASE("message turns: a template that shows all messages gets them as they are") {
  const auto turns = turns_learnt(takes_all);
  CHECK((turns.late_system && turns.late_developer && turns.first_runs && turns.user_runs));
  CHECK((turns.user_after_result && !turns.short_ids && !turns.one_call && turns.reasoning.empty()));
  const std::string sent =
      R"([{"role":"system","content":"a"},{"role":"system","content":"b"},{"role":"user","content":"c"},)"
      R"({"role":"system","content":"d"},{"role":"assistant","content":"e","reasoning":"r","tool_calls":)"
      R"([{"id":"call_1","function":{"name":"f","arguments":{}}},)"
      R"({"id":"call_2","function":{"name":"g","arguments":{}}}]},)"
      R"({"role":"tool","tool_call_id":"call_2","name":"g","content":"h"}])";
  CHECK(arranged(turns, sent) == sent);
  CHECK(arranged(turns, "[]") == "[]");
}

TEST_CASE("message turns: a template that refuses, drops or moves a late system message gets a user's turn") {
  constexpr const char* sources[] = {
      "{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('no') }}"
      "{% endif %}<{{ m.role }}>{{ m.content }}\n{% endfor %}",
      "{% for m in messages %}{% if m.role != 'system' or loop.first %}<{{ m.role }}>{{ m.content }}\n"
      "{% endif %}{% endfor %}",
      "{% for m in messages if m.role == 'system' %}<system>{{ m.content }}\n{% endfor %}"
      "{% for m in messages if m.role != 'system' %}<{{ m.role }}>{{ m.content }}\n{% endfor %}",
  };
  for (const auto source : sources) {
    CAPTURE(source);
    const auto chat = chat_template::from_source(source);
    for (const auto role : {"system", "developer"}) {
      const auto made =
          prompt_of(*chat, fmt::format(R"([{{"role":"system","content":"s"}},{{"role":"user","content":"a"}},
                                 {{"role":"{}","content":[{{"type":"text","text":"late"}}]}}])",
                                       role));
      CHECK(made.text == "<system>s\n<user>a\n<user><system-reminder>\nlate\n</system-reminder>\n");
      REQUIRE(made.notes.size() == 1);
      CHECK_THAT(made.notes[0], Catch::Contains("no place for a message of the system behind other turns"));
    }
    CHECK(
        prompt_of(*chat, R"([{"role":"system","content":"s"},{"role":"user","content":"a"}])").notes.empty());
  }
}

TEST_CASE("message turns: where no user's turn may stand, the reminder is part of the one beside it") {
  message_turns turns;
  turns.late_system = turns.late_developer = turns.user_runs = turns.user_after_result = false;
  const auto reminder = [](std::string_view said) {
    return fmt::format(R"(<system-reminder>\n{}\n</system-reminder>)", said);
  };
  CHECK(arranged(turns, R"([{"role":"user","content":"a"},{"role":"system","content":"s"},
                            {"role":"assistant","content":"b"}])",
                 1) == (R"([{"role":"user","content":"a\n\n)" + reminder("s") +
                        R"("},{"role":"assistant","content":"b"}])"));
  CHECK(arranged(turns, R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"},
                            {"role":"system","content":"s"},{"role":"developer","content":"t"},
                            {"role":"user","content":"c"}])",
                 2) ==
        (R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":")" +
         reminder("s") + R"(\n\n)" + reminder("t") + R"(\n\nc"}])"));
  CHECK(arranged(turns, R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"},
                            {"role":"system","content":"s"}])",
                 1) ==
        (R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":")" +
         reminder("s") + R"("}])"));
  CHECK(arranged(turns, R"([{"role":"user","content":"a"},{"role":"tool","content":"r"},
                            {"role":"system","content":"s"}])",
                 1) ==
        (R"([{"role":"user","content":"a"},{"role":"tool","content":"r\n\n)" + reminder("s") + R"("}])"));
  // Between a call and its result there is no place for a turn.
  CHECK(arranged(turns, R"([{"role":"user","content":"a"},{"role":"assistant","content":"",
                            "tool_calls":[{"id":"1"}]},{"role":"system","content":"s"},
                            {"role":"tool","content":"r"}])",
                 1) ==
        (R"([{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"id":"1"}]},)"
         R"({"role":"tool","content":")" +
         reminder("s") + R"(\n\nr"}])"));
  // Nothing is said.
  CHECK(arranged(turns, R"([{"role":"user","content":"a"},{"role":"system","content":" "}])") ==
        R"([{"role":"user","content":"a"}])");
}

TEST_CASE("message turns: a reminder behind a result hides no reasoning") {
  // Reasoning is shown behind the last turn of the user, and a late system message refused.
  constexpr std::string_view source =
      "{% set ns = namespace(last=0) %}{% for m in messages %}{% if m.role == 'user' %}"
      "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}{% for m in messages %}"
      "{% if m.role == 'system' and not loop.first %}{{ raise_exception('no') }}{% endif %}<{{ m.role }}>"
      "{% if m.reasoning_content and loop.index0 > ns.last %}[{{ m.reasoning_content }}]{% endif %}"
      "{{ m.content }}{% for c in m.tool_calls %}({{ c.function.name }}){% endfor %}{% endfor %}";
  CHECK_FALSE(turns_learnt(source).user_after_result);
  const auto chat = chat_template::from_source(source);
  const std::string calls = R"([{"role":"user","content":"a"},{"role":"assistant","content":"",
      "reasoning_content":"hm","tool_calls":[{"id":"1","function":{"name":"f","arguments":{}}}]},
      {"role":"tool","tool_call_id":"1","content":"r"})";
  const auto before = prompt_of(*chat, calls + "]"),
             after = prompt_of(*chat, calls + R"(,{"role":"system","content":"late"}])");
  CHECK(before.text == "<user>a<assistant>[hm](f)<tool>r");
  CHECK(after.text == before.text + "\n\n<system-reminder>\nlate\n</system-reminder>");
  CHECK(after.notes.size() == 1);
}

TEST_CASE("message turns: a template that asks for an answer behind each user's turn has no runs of them") {
  const auto turns = turns_learnt(
      "{% for m in messages %}{% if m.role == 'user' %}<user>{{ m.content }}<assistant>{% else %}"
      "{{ m.content }}{% endif %}{% endfor %}");
  CHECK_FALSE(turns.user_runs);
}

TEST_CASE("message turns: instructions at the beginning are one where the template reads one") {
  const auto turns = turns_learnt(
      "{% if messages[0].role == 'system' %}<system>{{ messages[0].content }}\n{% endif %}"
      "{% for m in messages if m.role != 'system' %}<{{ m.role }}>{{ m.content }}\n{% endfor %}");
  CHECK_FALSE(turns.first_runs);
  CHECK(arranged(turns, R"([{"role":"system","content":"a"},{"role":"system","content":
                             [{"type":"text","text":"b"}]},{"role":"user","content":"c"}])") ==
        R"([{"role":"system","content":"a\n\nb"},{"role":"user","content":"c"}])");
}

TEST_CASE("message turns: a message with several calls becomes one for each, each before its result") {
  const auto turns = turns_learnt(
      "{% for m in messages %}{% if m.tool_calls %}{% if m.tool_calls | length > 1 %}"
      "{{ raise_exception('one call') }}{% endif %}<call>{{ m.tool_calls[0].function | tojson }}{% endif %}"
      "<{{ m.role }}>{{ m.content }}\n{% endfor %}");
  CHECK(turns.one_call);
  CHECK(
      arranged(turns, R"([{"role":"assistant","content":"see","reasoning_content":"r","tool_calls":[
          {"id":"1","function":{"name":"f"}},{"id":"2","function":{"name":"g"}}]},
          {"role":"tool","tool_call_id":"2","content":"y"},{"role":"tool","tool_call_id":"1","content":"x"},
          {"role":"tool","tool_call_id":"9","content":"z"},{"role":"user","content":"b"}])") ==
      R"([{"role":"assistant","content":"see","reasoning_content":"r","tool_calls":)"
      R"([{"id":"1","function":{"name":"f"}}]},{"role":"tool","tool_call_id":"1","content":"x","name":"f"},)"
      R"({"role":"assistant","content":"","tool_calls":[{"id":"2","function":{"name":"g"}}]},)"
      R"({"role":"tool","tool_call_id":"2","content":"y","name":"g"},)"
      R"({"role":"tool","tool_call_id":"9","content":"z"},{"role":"user","content":"b"}])");
}

TEST_CASE("message turns: ids become nine letters and digits where the template wants them") {
  const auto turns = turns_learnt(
      "{% for m in messages %}{% for c in m.tool_calls %}{% if c.id | length != 9 %}"
      "{{ raise_exception('nine') }}{% endif %}{{ c.id }}{% endfor %}{{ m.content }}{% endfor %}");
  CHECK(turns.short_ids);
  js::array all = list_of(R"([{"role":"assistant","content":"","tool_calls":[
      {"id":"toolu_01A","function":{"name":"f"}},{"id":"abcdef123","function":{"name":"f"}},
      {"id":"toolu_01B","function":{"name":"f"}}]},{"role":"tool","tool_call_id":"toolu_01A","content":""},
      {"role":"tool","tool_call_id":"abcdef123","content":""}])");
  arrange(all, turns);
  const auto& calls = all[0].at("tool_calls").as_array();
  const std::string id(calls[0].at("id").as_string());
  CHECK(id.size() == 9);
  CHECK(all[1].at("tool_call_id") == calls[0].at("id"));
  CHECK(calls[2].at("id") != calls[0].at("id"));
  CHECK(calls[1].at("id") == "abcdef123");
  CHECK(all[2].at("tool_call_id") == "abcdef123");
}

TEST_CASE("message turns: a tool's result has the name of the tool that was called") {
  const message_turns any;
  CHECK(arranged(any, R"([{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f"}}]},
          {"role":"tool","tool_call_id":"1","content":""},{"role":"tool","tool_call_id":"2","content":""},
          {"role":"tool","tool_call_id":"1","name":"own","content":""}])") ==
        R"([{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f"}}]},)"
        R"({"role":"tool","tool_call_id":"1","content":"","name":"f"},)"
        R"({"role":"tool","tool_call_id":"2","content":""},)"
        R"({"role":"tool","tool_call_id":"1","name":"own","content":""}])");
  const std::string longest =
      fmt::format(R"([{{"role":"assistant","tool_calls":[{{"id":"1","function":{{"name":"{}"}}}}]}},)"
                  R"({{"role":"tool","tool_call_id":"1","content":""}}])",
                  std::string(129, 'n'));
  CHECK(arranged(any, longest) == longest);
}

TEST_CASE("message turns: reasoning stands in the member that the template reads, once") {
  const auto turns = turns_learnt(
      "{% for m in messages %}{% if m.thinking %}<think>{{ m.thinking }}</think>{% endif %}{{ m.content }}"
      "{% endfor %}");
  CHECK(turns.reasoning == "thinking");
  const std::string expected = R"([{"role":"assistant","content":"a","thinking":"hm"}])";
  for (const auto sent : {R"("reasoning_content":"hm")", R"("reasoning":"hm")", R"("thinking":"hm")",
                          R"("reasoning":"hm","reasoning_content":"hm","thinking":"hm")"})
    CHECK(arranged(turns, fmt::format(R"([{{"role":"assistant","content":"a",{}}}])", sent)) == expected);
  const std::string no_text = R"([{"role":"assistant","content":"a","thinking":true,"reasoning":{}}])";
  CHECK(arranged(turns, no_text) == no_text);
}

// ---- published templates

TEST_CASE("published templates: a late system message is shown at its place, or is a user's turn there") {
  constexpr std::string_view late[] = {
      R"([{"role":"user","content":"one"},{"role":"assistant","content":"two"},
          {"role":"user","content":"three"}@])",
      R"([{"role":"user","content":"one"},{"role":"assistant","content":"two"}@,
          {"role":"user","content":"three"}])",
      R"([{"role":"user","content":"one"}@,{"role":"assistant","content":"two"},
          {"role":"user","content":"three"}])",
      R"([{"role":"system","content":"zero"},{"role":"user","content":"one"},
          {"role":"assistant","content":"two"}@@,{"role":"user","content":"three"}])",
  };
  const auto put = [](std::string_view messages, std::string_view what) {
    std::string out;
    for (const char c : messages) c == '@' ? out += what : out += c;
    return out;
  };
  std::size_t reminded = 0, shown = 0;
  each_published([&](const std::string&, const chat_template& chat, const message_turns& turns) {
    for (const auto messages : late)
      for (const std::string role : {"system", "developer"}) {
        CAPTURE(messages, role);
        const auto without = prompt_of(chat, put(messages, ""));
        if (!without.made || !stand_in_order(without.text, {"one", "two", "three"})) continue;
        const auto with =
            prompt_of(chat, put(messages, fmt::format(R"(,{{"role":"{}","content":"L8"}})", role)));
        INFO(with.text);
        REQUIRE(with.made);
        const auto count = static_cast<std::size_t>(std::ranges::count(messages, '@'));
        CHECK(count_of(with.text, "L8") == count);
        if (messages == late[0]) CHECK(stand_in_order(with.text, {"one", "two", "three", "L8"}));
        if (messages == late[1]) CHECK(stand_in_order(with.text, {"one", "two", "L8", "three"}));
        if (messages == late[2]) CHECK(stand_in_order(with.text, {"one", "L8", "two", "three"}));
        if (messages == late[3]) CHECK(stand_in_order(with.text, {"one", "two", "L8", "L8", "three"}));
        CHECK(count_of(with.text, "zero") == count_of(without.text, "zero"));
        const bool taken = role == "system" ? turns.late_system : turns.late_developer;
        CHECK(with.notes.empty() == taken);
        CHECK(count_of(with.text, "<system-reminder>\nL8\n</system-reminder>") == (taken ? 0 : count));
        (taken ? shown : reminded) += 1;
      }
  });
  CHECK(((reminded > 50 && shown > 100) || tests::published_templates().empty()));
}

TEST_CASE("published templates: a conversation that goes on keeps the prompt before a late system message") {
  each_published([](const std::string&, const chat_template& chat, const message_turns& turns) {
    if (turns.late_system) return;
    const std::string head = R"([{"role":"user","content":"one"},{"role":"assistant","content":"two"},
        {"role":"user","content":"three"})",
                      late = R"(,{"role":"system","content":"L8"})";
    const auto before = prompt_of(chat, head + late + "]");
    const auto behind = prompt_of(chat, head + late + R"(,{"role":"assistant","content":"four"},
        {"role":"user","content":"five"}])");
    if (!before.made) return;
    const auto to = before.text.find("</system-reminder>");
    REQUIRE(to != before.text.npos);
    INFO(before.text << "\n----\n" << behind.text);
    CHECK(behind.text.find("</system-reminder>") == to);
  });
}

TEST_CASE("published templates: a late system message behind a result leaves the reasoning before it") {
  std::size_t appended = 0;
  each_published([&](const std::string&, const chat_template& chat, const message_turns& turns) {
    if (turns.late_system || turns.reasoning.empty()) return;
    const std::string calls = fmt::format(R"([{{"role":"user","content":"a"}},{{"role":"assistant",
        "content":"","{}":"H8","tool_calls":[{{"id":"abcdef123","type":"function","function":{{"name":"get",
        "arguments":{{"city":"K"}}}}}}]}},{{"role":"tool","tool_call_id":"abcdef123","content":"18"}})",
                                          turns.reasoning);
    const auto before = prompt_of(chat, calls + "]", true),
               after = prompt_of(chat, calls + R"(,{"role":"system","content":"L8"}])", true);
    INFO(before.text << "\n----\n" << after.text);
    CHECK(count_of(after.text, "H8") == count_of(before.text, "H8"));
    CHECK(count_of(after.text, "L8") == (after.made ? 1 : 0));
    if (after.made && !turns.user_after_result) ++appended;
  });
  CHECK((appended > 0 || tests::published_templates().empty()));
}

TEST_CASE("published templates: Mistral's ids of calls are mapped, and Llama's calls come one by one") {
  const std::string ids =
      R"([{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"id":"toolu_01A09q",
          "type":"function","function":{"name":"get","arguments":{"city":"K"}}}]},
          {"role":"tool","tool_call_id":"toolu_01A09q","content":"18"}])";
  const std::string several =
      R"([{"role":"user","content":"a"},{"role":"assistant","content":"","tool_calls":[{"id":"abcdef123",
          "type":"function","function":{"name":"get","arguments":{"city":"Kiel"}}},{"id":"abcdef124",
          "type":"function","function":{"name":"get","arguments":{"city":"Rome"}}}]},
          {"role":"tool","tool_call_id":"abcdef123","content":"18"},
          {"role":"tool","tool_call_id":"abcdef124","content":"31"}])";
  std::size_t mapped = 0, split = 0;
  each_published([&](const std::string& name, const chat_template& chat, const message_turns& turns) {
    CHECK(turns.one_call == (name.starts_with("meta-llama-Llama-3") || name.starts_with("GigaChat3")));
    if (turns.short_ids) {
      const auto made = prompt_of(chat, ids, true);
      INFO(made.text);
      CHECK(made.made);
      CHECK(count_of(made.text, "toolu_") == 0);
      ++mapped;
    }
    if (turns.one_call) {
      const auto made = prompt_of(chat, several, true);
      INFO(made.text);
      CHECK(made.made);
      CHECK(stand_in_order(made.text, {"Kiel", "18", "Rome", "31"}));
      ++split;
    }
  });
  CHECK(((mapped == 3 && split == 3) || tests::published_templates().empty()));
}

TEST_CASE("published templates: reasoning gives one prompt, whatever member it was sent in") {
  each_published([](const std::string&, const chat_template& chat, const message_turns& turns) {
    if (turns.reasoning.empty()) return;
    const auto with = [&](std::string_view members) {
      return prompt_of(chat,
                       fmt::format(R"([{{"role":"user","content":"a"}},{{"role":"assistant","content":"",
          {}"tool_calls":[{{"id":"abcdef123","type":"function","function":{{"name":"get",
          "arguments":{{"city":"K"}}}}}}]}},{{"role":"tool","tool_call_id":"abcdef123","content":"18"}}])",
                                   members),
                       true)
          .text;
    };
    const auto expected = with(fmt::format(R"("{}":"hm",)", turns.reasoning));
    for (const auto members : {R"("reasoning_content":"hm",)", R"("reasoning":"hm",)", R"("thinking":"hm",)",
                               R"("reasoning_content":"hm","reasoning":"hm",)"})
      CHECK(with(members) == expected);
  });
}

}  // namespace weir::tests::message_turns_test
