// Which answers the rules of calls allow, in each format, over vocabularies with and without marks.
#include "core/grammar/calls.h"

#include <catch2/catch.hpp>
#include <set>

#include "core/grammar/cache.h"
#include "tests/core/grammar/calls/calls_kit.h"

namespace weir::tests::calls_test {
namespace {

using namespace weir::core::grammar;
using choice = core::tool_wishes::choice;

// A call of look(place, count) and one of tell(), as the template of the format writes them.
struct call_texts {
  const char* format;
  std::string before, look, between, tell, behind;
  bool list = false;  // parts that stand around all calls

  std::string one() const { return before + look + behind; }
  std::string two() const { return before + look + between + tell + behind; }
};

const std::vector<call_texts>& all_formats() {
  const std::string json = R"({"place": "K \"ö\"\nln", "count": 3})";
  const auto object = [&](const char* name, const char* arguments) {
    return std::pair{fmt::format(R"({{"{}": "look", "{}": {}}})", name, arguments, json),
                     fmt::format(R"({{"{}": "tell", "{}": {{}}}})", name, arguments)};
  };
  const auto [look, tell] = object("name", "arguments");
  const auto [llama_look, llama_tell] = object("name", "parameters");
  static const std::vector<call_texts> all{
      {"hermes", "", "<tool_call>\n" + look + "\n</tool_call>", "\n",
       "<tool_call>\n" + tell + "\n</tool_call>", ""},
      {"minimax-m1", "<tool_calls>\n", look, "\n", tell, "\n</tool_calls>"},
      {"mistral-v3", "[TOOL_CALLS][", R"({"name": "look", "arguments": )" + json + R"(, "id": "abcdef123"})",
       ", ", tell, "]"},
      {"apriel", "<tool_calls>[", look, ", ", tell, "]</tool_calls>"},
      {"nemotron", "<TOOLCALL>[", look, ", ", tell, "]</TOOLCALL>"},
      {"phi", "<|tool_call|>[", look, ", ", tell, "]<|/tool_call|>"},
      {"granite", "<|tool_call|>[", look, ", ", tell, "]"},
      {"cohere", "<|START_ACTION|>[\n    ",
       R"({"tool_call_id": "0", "tool_name": "look", "parameters": )" + json + "}", ",\n    ",
       R"({"tool_call_id": "1", "tool_name": "tell", "parameters": {}})", "\n]<|END_ACTION|>"},
      {"command-r", "Action: ```json\n[\n    ", R"({"tool_name": "look", "parameters": )" + json + "}",
       ",\n    ", R"({"tool_name": "tell", "parameters": {}})", "\n]\n```"},
      {"apertus", "<|tools_prefix|>[", R"({"look": )" + json + "}", ", ", R"({"tell": {}})",
       "]<|tools_suffix|>"},
      {"gigachat", "", "<|function_call|>" + look, "", "<|function_call|>" + tell, ""},
      {"llama3", "", llama_look, "; ", llama_tell, ""},
      {"kimi", "<|tool_calls_section_begin|>",
       "<|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>" + json + "<|tool_call_end|>", "",
       "<|tool_call_begin|>functions.tell:1<|tool_call_argument_begin|>{}<|tool_call_end|>",
       "<|tool_calls_section_end|>"},
      {"deepseek-v3", "<｜tool▁calls▁begin｜>",
       "<｜tool▁call▁begin｜>function<｜tool▁sep｜>look\n```json\n" + json + "\n```<｜tool▁call▁end｜>", "\n",
       "<｜tool▁call▁begin｜>function<｜tool▁sep｜>tell\n```json\n{}\n```<｜tool▁call▁end｜>",
       "<｜tool▁calls▁end｜>"},
      {"deepseek-v3.1", "<｜tool▁calls▁begin｜>",
       "<｜tool▁call▁begin｜>look<｜tool▁sep｜>" + json + "<｜tool▁call▁end｜>", "",
       "<｜tool▁call▁begin｜>tell<｜tool▁sep｜>{}<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"},
      {"solar", "<|tool_calls|>",
       "<|tool_call:begin|>abcdef123<|tool_call:name|>look<|tool_call:args|>" + json + "<|tool_call:end|>",
       "", "<|tool_call:begin|>abcdef124<|tool_call:name|>tell<|tool_call:args|>{}<|tool_call:end|>",
       "<|calls|>"},
      {"mistral", "", "[TOOL_CALLS]look[CALL_ID]abcdef123[ARGS]" + json, "", "[TOOL_CALLS]tell[ARGS]{}", ""},
      {"functionary", "", "<function=look>" + json + "</function>", "", "<function=tell>{}</function>", ""},
      {"qwen-coder", "",
       "<tool_call>\n<function=look>\n<parameter=place>\nK \"ö\"\nln\n</parameter>\n<parameter=count>\n3\n"
       "</parameter>\n</function>\n</tool_call>",
       "\n", "<tool_call>\n<function=tell>\n</function>\n</tool_call>", ""},
      {"seed", "",
       "<seed:tool_call>\n<function=look>\n<parameter=place>K \"ö\"\nln</parameter>\n<parameter=count>3"
       "</parameter>\n</function>\n</seed:tool_call>",
       "\n", "<seed:tool_call>\n<function=tell>\n</function>\n</seed:tool_call>", ""},
      {"glm", "",
       "<tool_call>look\n<arg_key>place</arg_key>\n<arg_value>K "
       "\"ö\"\nln</arg_value>\n<arg_key>count</arg_key>\n"
       "<arg_value>3</arg_value>\n</tool_call>",
       "\n", "<tool_call>tell\n</tool_call>", ""},
      {"hy3", "<tool_calls:opensource>\n",
       "<tool_call:opensource>look<tool_sep:opensource>\n<arg_key:opensource>place</arg_key:opensource>\n"
       "<arg_value:opensource>K "
       "\"ö\"\nln</arg_value:opensource>\n<arg_key:opensource>count</arg_key:opensource>\n"
       "<arg_value:opensource>3</arg_value:opensource>\n</tool_call:opensource>\n",
       "", "<tool_call:opensource>tell<tool_sep:opensource>\n</tool_call:opensource>\n",
       "</tool_calls:opensource>"},
      {"minimax-m2", "<minimax:tool_call>\n",
       "<invoke name=\"look\">\n<parameter name=\"place\">K \"ö\"\nln</parameter>\n<parameter "
       "name=\"count\">3"
       "</parameter>\n</invoke>\n",
       "", "<invoke name=\"tell\">\n</invoke>\n", "</minimax:tool_call>"},
      {"deepseek-v3.2", "<｜DSML｜function_calls>\n",
       "<｜DSML｜invoke name=\"look\">\n<｜DSML｜parameter name=\"place\" string=\"true\">K \"ö\"\nln"
       "</｜DSML｜parameter>\n<｜DSML｜parameter name=\"count\" string=\"false\">3</｜DSML｜parameter>\n"
       "</｜DSML｜invoke>\n",
       "", "<｜DSML｜invoke name=\"tell\">\n</｜DSML｜invoke>\n", "</｜DSML｜function_calls>"},
      {"minicpm5", "",
       "<function name=\"look\"><param name=\"place\"><![CDATA[K \"ö\"\nln]]></param><param "
       "name=\"count\">3</param>"
       "</function>",
       "\n", "<function name=\"tell\"></function>", ""},
      {"gemma", "", "<|tool_call>call:look{place:<|\"|>K \"ö\"\nln<|\"|>,count:3}<tool_call|>", "",
       "<|tool_call>call:tell{}<tool_call|>", ""},
      {"lfm2", "<|tool_call_start|>[", R"(look(place="K \"ö\"\nln", count=3))", ", ", "tell()",
       "]<|tool_call_end|>"},
  };
  return all;
}

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

bool is_bare(const call_texts& f) { return std::string_view(f.format) == "llama3"; }

template <class Check>
void over_all_vocabularies(const call_rules& r, Check check) {
  int n = 0;
  for (const auto& words : vocabularies(r)) {
    INFO(r.format << ", vocabulary " << n++);
    const answer_under_test a(r, words);
    if (a.refusal) FAIL_CHECK(a.refusal->message);
    if (a.over) check(a);
  }
}

}  // namespace

TEST_CASE("calls: required calls of each format", "[grammar]") {
  for (const auto& f : all_formats()) {
    over_all_vocabularies(rules_for(f.format), [&](const answer_under_test& a) {
      CHECK(a.accepts(f.one()));
      CHECK(a.accepts(f.two()));
      CHECK_FALSE(a.accepts(""));
      CHECK_FALSE(a.accepts("Well."));
      CHECK_FALSE(a.accepts("Well." + f.one()));
      CHECK_FALSE(a.accepts(replaced(f.one(), "look", "lurk")));
      CHECK_FALSE(a.accepts(replaced(f.one(), "count", "size")));
      CHECK_FALSE(a.accepts(replaced(f.one(), "3", "true")));
      CHECK_FALSE(a.accepts(replaced(f.two(), "tell", "tall")));
    });
    auto one = rules_for(f.format);
    one.tools.parallel = false;
    over_all_vocabularies(one, [&](const answer_under_test& a) {
      CHECK(a.accepts(f.one()));
      CHECK_FALSE(a.accepts(f.two()));
    });
    auto named = rules_for(f.format);
    named.tools.tools.pop_back();
    over_all_vocabularies(named, [&](const answer_under_test& a) {
      CHECK(a.accepts(f.one()));
      CHECK_FALSE(a.accepts(f.two()));
    });
  }
}

TEST_CASE("calls: a model that decides may write text, and its calls follow the tools", "[grammar]") {
  for (const auto& f : all_formats()) {
    over_all_vocabularies(rules_for(f.format, choice::automatic), [&](const answer_under_test& a) {
      CHECK(a.accepts(""));
      CHECK(a.accepts("Well, <b>1</b> [x] {y}."));
      CHECK(a.accepts(f.one()));
      CHECK(a.accepts(f.two()));
      CHECK_FALSE(a.accepts(replaced(f.one(), "look", "lurk")));
      CHECK_FALSE(a.accepts(replaced(f.one(), "3", "true")));
      if (is_bare(f)) return;
      CHECK(a.accepts("Well.\n" + f.one()));
      CHECK(a.accepts("Well.\n" + f.one() + " and " + f.two() + " so."));
      CHECK_FALSE(a.accepts("Well.\n" + replaced(f.one(), "look", "lurk")));
      CHECK_FALSE(a.accepts("Well.\n" + f.one() + "\n" + replaced(f.one(), "3", "true")));
    });
    auto one = rules_for(f.format, choice::automatic);
    one.tools.parallel = false;
    over_all_vocabularies(one, [&](const answer_under_test& a) {
      CHECK(a.accepts(f.one()));
      CHECK_FALSE(a.accepts(f.two()));
      if (is_bare(f)) return;
      CHECK(a.accepts("Well." + f.one() + "\n"));
      CHECK_FALSE(a.accepts("Well." + f.one() + "\n" + f.one()));
    });
  }
}

TEST_CASE("calls: without calls, an opening that is one token cannot be written", "[grammar]") {
  for (const auto& f : all_formats()) {
    const auto rules = rules_for(f.format, choice::none);
    CHECK(needs_constraint(rules));
    const bool has_token = !marks_of(rules).empty() && !is_bare(f);
    int n = 0;
    for (const auto& words : vocabularies(rules)) {
      INFO(f.format << ", vocabulary " << n);
      const answer_under_test a(rules, words);
      REQUIRE(a.over);
      CHECK(a.accepts("Well."));
      const auto& format = *core::find_call_format(f.format);
      const core::known_format known({format, {}, core::envelope::none}, *words);
      const std::string opening =
          known.compared(format.section_open.empty() ? format.open : format.section_open);
      const bool masked = opening.find('\xFF') != opening.npos;
      CHECK(a.accepts(f.one()) != masked);
      if (n > 0 && f.format == std::string_view("hermes")) CHECK((masked && has_token));
      ++n;
    }
  }
}

TEST_CASE("calls: in a text, an opening that is one token is known by this token alone", "[grammar]") {
  const auto rules = rules_for("hermes", choice::automatic);
  const auto words = bytes_and_marks(marks_of(rules), true);
  const answer_under_test a(rules, words);
  REQUIRE(a.over);
  auto at = a.over->start();
  for (const char c : std::string_view("a <tool_call> b"))
    at = a.over->accept(at, static_cast<unsigned char>(c));
  CHECK(a.over->may_end(at));
  const auto mark = *words->id_of("<tool_call>");
  CHECK(a.over->mask(at)->has(mark));
  at = a.over->accept(at, mark);
  CHECK_FALSE(a.over->may_end(at));
  CHECK(a.over->mask(at)->count() == 1);
}

TEST_CASE("calls: an answer is calls, or a text that follows its own constraint", "[grammar]") {
  for (const auto& f : all_formats()) {
    auto rules = rules_for(f.format, choice::automatic);
    rules.text.emplace().what = constraint_text::kind::json_object;
    over_all_vocabularies(rules, [&](const answer_under_test& a) {
      CHECK(a.accepts(f.one()));
      CHECK(a.accepts(f.two()));
      CHECK(a.accepts(R"({"a": [1, 2]})"));
      CHECK_FALSE(a.accepts("Well."));
      CHECK_FALSE(a.accepts(""));
      CHECK_FALSE(a.accepts(R"({"a": [1, 2]})" + f.one()));
    });
    rules.tools.how = choice::none;
    over_all_vocabularies(rules, [&](const answer_under_test& a) {
      CHECK(a.accepts(R"({"a": [1, 2]})"));
      CHECK_FALSE(a.accepts("Well."));
    });
  }
}

TEST_CASE("calls: texts of every kind of constraint behind reasoning", "[grammar]") {
  const std::vector<std::pair<constraint_text, std::string>> kinds{
      {{.what = constraint_text::kind::regex, .text = "a+b"}, "aab"},
      {{.what = constraint_text::kind::choice, .choices = {"yes", "no"}}, "no"},
      {{.what = constraint_text::kind::json_schema, .text = R"({"type":"integer"})", .strict = true}, "12"},
      {{.what = constraint_text::kind::grammar, .text = "root ::= \"x\" root | \"y\"", .syntax = "gbnf"},
       "xxy"},
      {{.what = constraint_text::kind::grammar,
        .text = "start: \"x\"+ %json {\"type\":\"boolean\"}",
        .syntax = "lark"},
       "xxtrue"},
  };
  for (const auto& [text, in] : kinds) {
    INFO(in);
    call_rules rules;
    rules.reasoning = {"<think>\n", "\n</think>\n\n"};
    rules.text = text;
    over_all_vocabularies(rules, [&](const answer_under_test& a) {
      CHECK(a.accepts(in));
      CHECK(a.accepts("<think>\nhm\n</think>\n\n" + in));
      CHECK(a.accepts("<think>hm</think>" + in));
      CHECK_FALSE(a.accepts("<think>\nhm\n</think>\n\n"));
      CHECK_FALSE(a.accepts("<think>\nhm\n" + in));
      CHECK_FALSE(a.accepts("hm\n</think>\n\n" + in));
    });
    rules.begins_in_reasoning = true;
    over_all_vocabularies(rules, [&](const answer_under_test& a) {
      CHECK(a.accepts("hm\n</think>\n\n" + in));
      CHECK(a.accepts("</think>" + in));
      CHECK_FALSE(a.accepts(in));
    });
  }
}

TEST_CASE("calls: reasoning may stand before calls, and the opening of a call ends reasoning", "[grammar]") {
  for (const auto& f : all_formats()) {
    if (is_bare(f)) continue;
    for (const auto how : {choice::required, choice::automatic}) {
      auto rules = rules_for(f.format, how);
      rules.reasoning = {"<think>\n", "\n</think>\n\n"};
      over_all_vocabularies(rules, [&](const answer_under_test& a) {
        CHECK(a.accepts(f.two()));
        CHECK(a.accepts("<think>\nhm\n</think>\n\n" + f.two()));
        CHECK(a.accepts("<think>\nhm" + f.two()));
        CHECK_FALSE(a.accepts("<think>\nhm\n</think>\n\n" + replaced(f.one(), "look", "lurk")));
        CHECK_FALSE(a.accepts("<think>\nhm" + replaced(f.one(), "look", "lurk")));
        CHECK_FALSE(a.accepts("<think>\nhm" + replaced(f.one(), "3", "true")));
        CHECK(a.accepts("<think>\nhm\n</think>\n\nWell.") == (how == choice::automatic));
      });
      rules.begins_in_reasoning = true;
      over_all_vocabularies(rules, [&](const answer_under_test& a) {
        CHECK(a.accepts("hm\n</think>\n\n" + f.two()));
        CHECK(a.accepts("hm" + f.two()));
        CHECK(a.accepts("</think>" + f.one()));
        CHECK_FALSE(a.accepts("hm</think>" + replaced(f.one(), "look", "lurk")));
      });
    }
  }
}

TEST_CASE("calls: messages of gpt-oss", "[grammar]") {
  const std::string thought = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant",
                    call =
                        "<|channel|>commentary to=functions.look <|constrain|>json<|message|>"
                        R"({"place":"a"}<|call|>)",
                    remark = "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant",
                    text = "<|channel|>final<|message|>Well.";
  over_all_vocabularies(rules_for("harmony"), [&](const answer_under_test& a) {
    CHECK(a.accepts(call));
    CHECK(a.accepts(thought + call));
    CHECK(a.accepts(thought + thought + call + "<|start|>assistant" + call));
    CHECK_FALSE(a.accepts(thought + text));
    CHECK_FALSE(a.accepts(remark + call));
    CHECK_FALSE(a.accepts(thought + replaced(call, "look", "lurk")));
    CHECK_FALSE(a.accepts(thought + replaced(call, "\"a\"", "1")));
  });
  auto rules = rules_for("harmony", choice::automatic);
  over_all_vocabularies(rules, [&](const answer_under_test& a) {
    CHECK(a.accepts(thought + remark + call));
    CHECK(a.accepts(thought + text));
    CHECK_FALSE(a.accepts(thought + replaced(call, "look", "lurk")));
  });
  rules.tools.parallel = false;
  over_all_vocabularies(rules, [&](const answer_under_test& a) {
    CHECK(a.accepts(thought + call));
    CHECK_FALSE(a.accepts(call + "<|start|>assistant" + call));
  });
  rules.text.emplace().what = constraint_text::kind::json_object;
  over_all_vocabularies(rules, [&](const answer_under_test& a) {
    CHECK(a.accepts(thought + call));
    CHECK(a.accepts(thought + "<|channel|>final<|message|>{}"));
    CHECK_FALSE(a.accepts(thought + text));
    CHECK_FALSE(a.accepts(remark + call));
  });
  over_all_vocabularies(rules_for("harmony", choice::none), [&](const answer_under_test& a) {
    CHECK(a.accepts(thought + text));
    CHECK_FALSE(a.accepts(call));
  });
  auto short_thought = rules_for("harmony", choice::automatic, {});
  short_thought.max_reasoning_tokens = 2;
  over_all_vocabularies(short_thought, [&](const answer_under_test& a) {
    CHECK(a.accepts(thought + text));
    CHECK(a.accepts(text));
    CHECK_FALSE(a.accepts(replaced(thought, "hm", "hmm") + text));
    CHECK_FALSE(a.accepts(thought + thought + text));
  });
  short_thought.max_reasoning_tokens = 0;
  over_all_vocabularies(short_thought, [&](const answer_under_test& a) {
    CHECK(a.accepts(text));
    CHECK_FALSE(a.accepts(thought + text));
  });
}

TEST_CASE("calls: messages of Muse Glimmer", "[grammar]") {
  const std::string thought = " to=self<|message|>hm<|eom|><|start|>assistant",
                    call =
                        " to=look<|message|><atem:function_calls>\n<atem:invoke name=\"look\">\n"
                        "<atem:parameter name=\"place\">a b</atem:parameter>\n</atem:invoke>\n"
                        "</atem:function_calls>",
                    next = "<|eom|><|start|>assistant", text = " to=user<|message|>Well.";
  over_all_vocabularies(rules_for("muse-glimmer"), [&](const answer_under_test& a) {
    CHECK(a.accepts(call));
    CHECK(a.accepts(thought + call + next + call));
    CHECK_FALSE(a.accepts(thought + text));
    CHECK_FALSE(a.accepts(thought + replaced(call, "to=look", "to=tell")));
  });
  over_all_vocabularies(rules_for("muse-glimmer", choice::automatic), [&](const answer_under_test& a) {
    CHECK(a.accepts(thought + text));
    CHECK(a.accepts(thought + call + next + text));
    CHECK_FALSE(a.accepts(thought + replaced(call, "place", "where")));
  });
}

TEST_CASE("calls: reasoning has at most so many tokens", "[grammar]") {
  for (const std::uint32_t most : {0u, 1u, 3u}) {
    for (const bool begun : {false, true}) {
      call_rules rules;
      rules.reasoning = {"<think>", "</think>"};
      rules.begins_in_reasoning = begun;
      rules.max_reasoning_tokens = most;
      CHECK(needs_constraint(rules));
      over_all_vocabularies(rules, [&](const answer_under_test& a) {
        const std::string open = begun ? "" : "<think>";
        for (const std::uint32_t n : {most == 0 ? 0 : most - 1, most, most + 1}) {
          INFO(n << " of " << most);
          CHECK(a.accepts(open + std::string(n, 'h') + "</think>Well.") == (n <= most));
        }
        // Where the maximum is reached, the mark that closes is all that may come.
        auto at = a.over->start();
        for (const auto id : a.words().encode(open + std::string(most, 'h'), {})) at = a.over->accept(at, id);
        CHECK(a.over->mask(at)->count() == 1);
        if (!begun) {
          CHECK(a.accepts("Well."));
          CHECK_FALSE(a.accepts("Well.<think>" + std::string(most + 1, 'h')));
        }
      });
    }
  }
}

TEST_CASE("calls: a call that ends reasoning does not count as reasoning", "[grammar]") {
  auto rules = rules_for("hermes", choice::automatic);
  for (auto& t : rules.tools.tools) t.strict = false;
  rules.reasoning = {"<think>", "</think>"};
  rules.begins_in_reasoning = true;
  rules.max_reasoning_tokens = 2;
  const auto words = bytes_and_marks(marks_of(rules), true);
  const answer_under_test a(rules, words);
  const std::string call = "<tool_call>\n{\"name\": \"look\", \"arguments\": {}}\n</tool_call>";
  CHECK(a.accepts("hm" + call + "Well."));
  CHECK(a.accepts("hm</think>" + call));
  CHECK_FALSE(a.accepts("hmm" + call));
}

TEST_CASE("calls: a maximum of reasoning whose tokens cannot be counted is refused by name", "[grammar]") {
  call_rules rules;
  rules.reasoning = {"<think>", "</think>"};
  rules.max_reasoning_tokens = 3;
  rules.budget_param = "thinking.budget_tokens";
  const answer_under_test a(rules, bytes_and_marks({"two bytes"}, false));
  REQUIRE(a.refusal);
  CHECK(a.refusal->code == core::errc::not_supported);
  CHECK(a.refusal->param == "thinking.budget_tokens");
}

TEST_CASE("calls: a forced call of a strict tool behind reasoning that has a maximum", "[grammar]") {
  auto rules = rules_for("hermes", choice::required, {two_tools()[0]});
  rules.tools.parallel = false;
  rules.reasoning = {"<think>\n", "\n</think>\n\n"};
  rules.begins_in_reasoning = true;
  rules.max_reasoning_tokens = 4;
  const std::string call =
      "<tool_call>\n{\"name\": \"look\", \"arguments\": {\"place\": \"a\"}}\n</tool_call>";
  over_all_vocabularies(rules, [&](const answer_under_test& a) {
    CHECK(a.accepts("hmm\n</think>\n\n" + call));
    CHECK(a.accepts("hm" + call));
    CHECK_FALSE(a.accepts("hmmm\n</think>\n\n" + call));
    CHECK_FALSE(a.accepts("hmm\n</think>\n\nWell."));
    CHECK_FALSE(a.accepts("hmm\n</think>\n\n" + call + "\n" + call));
  });
}

TEST_CASE("calls: what asks nothing needs no constraint", "[grammar]") {
  auto tools = two_tools();
  auto rules = rules_for("hermes", choice::automatic, tools);
  CHECK(needs_constraint(rules));  // a strict tool
  for (auto& t : rules.tools.tools) t.strict = false;
  CHECK_FALSE(needs_constraint(rules));
  rules.tools.parallel = false;
  CHECK(needs_constraint(rules));
  rules.tools.parallel = true;
  rules.max_reasoning_tokens = 5;
  CHECK_FALSE(needs_constraint(rules));  // there is no reasoning
  rules.reasoning = {"<think>", "</think>"};
  CHECK(needs_constraint(rules));
  CHECK_FALSE(needs_constraint({}));
}

TEST_CASE("calls: a schema of a strict tool is refused by name, another is relaxed with a warning",
          "[grammar]") {
  const std::string not_enforced =
      R"({"type":"object","properties":{"a":{"type":"array","uniqueItems":true}}})";
  const std::string impossible = R"({"type":"object","required":["a"],"properties":{
      "a":{"type":"string","pattern":"^b$","minLength":2}}})";
  const std::string no_schema = R"({"type":"object","properties":{"a":{"type":"strin"}}})";
  for (const auto* format : {"hermes", "qwen-coder", "gemma", "lfm2"}) {
    INFO(format);
    const auto words = bytes_and_marks({}, false);
    for (const auto& schema : {not_enforced, no_schema, std::string("{"), std::string("false"), impossible}) {
      INFO(schema);
      auto rules = rules_for(format, choice::required, {two_tools()[0], tool_of("bad", schema)});
      const answer_under_test strict(rules, words);
      REQUIRE(strict.refusal);
      CHECK(strict.refusal->code == core::errc::invalid_param);
      CHECK(strict.refusal->param.starts_with("tools.bad"));
      CHECK(strict.refusal->message.find("bad") != std::string::npos);
      rules.tools.tools[1].strict = false;
      const answer_under_test relaxed(rules, words);
      REQUIRE(relaxed.over);
      REQUIRE(relaxed.warnings.size() == 1);
      CHECK(relaxed.warnings[0].where.starts_with("tools.bad"));
      CHECK(relaxed.warnings[0].message.starts_with("tool bad: "));
    }
    const answer_under_test placed(rules_for(format, choice::required, {tool_of("bad", no_schema)}), words);
    CHECK(placed.refusal->param == "tools.bad/properties/a/type");
  }
  // The other tools are as strict as they were.
  const auto rules =
      rules_for("hermes", choice::required, {two_tools()[0], tool_of("bad", no_schema, false)});
  over_all_vocabularies(rules, [&](const answer_under_test& a) {
    const std::string begin = "<tool_call>\n{\"name\": \"", end = "}\n</tool_call>";
    CHECK(a.accepts(begin + R"(bad", "arguments": {"a": [7, null]})" + end));
    CHECK_FALSE(a.accepts(begin + R"(bad", "arguments": 7)" + end));
    CHECK_FALSE(a.accepts(begin + R"(look", "arguments": {"a": 7})" + end));
  });
}

TEST_CASE("calls: arguments are objects, whatever else a schema allows", "[grammar]") {
  for (const auto* schema : {"", "{}", "true", R"({"description":"anything"})", R"({"enum":[1,{"a":1}]})"}) {
    INFO(schema);
    over_all_vocabularies(rules_for("functionary", choice::required, {tool_of("f", schema)}),
                          [&](const answer_under_test& a) {
                            CHECK(a.accepts(R"(<function=f>{"a": 1}</function>)"));
                            for (const auto* other : {"1", "[]", "\"a\"", "null"})
                              CHECK_FALSE(a.accepts(fmt::format("<function=f>{}</function>", other)));
                          });
  }
}

TEST_CASE("calls: the input of a custom tool follows its regular expression", "[grammar]") {
  const auto tools = std::vector{custom_of("run", "(?:[a-z]+|\"\\n\")[0-9]{2}", "regex", true)};
  over_all_vocabularies(rules_for("functionary", choice::required, tools), [&](const answer_under_test& a) {
    CHECK(a.accepts(R"(<function=run>{"input": "ab12"}</function>)"));
    CHECK(a.accepts(R"(<function=run>{"input": "\"\n\"12"}</function>)"));
    CHECK_FALSE(a.accepts(R"(<function=run>{"input": "ab1"}</function>)"));
    CHECK_FALSE(a.accepts(R"(<function=run>{}</function>)"));
  });
  over_all_vocabularies(rules_for("seed", choice::required, tools), [&](const answer_under_test& a) {
    const auto call = [](const char* input) {
      return fmt::format(
          "<seed:tool_call>\n<function=run>\n<parameter=input>{}</parameter>\n</function>\n</seed:tool_call>",
          input);
    };
    CHECK(a.accepts(call("ab12")));
    CHECK(a.accepts(call("\"\n\"12")));
    CHECK_FALSE(a.accepts(call("\"ab12\"")));
  });
}

TEST_CASE("calls: a grammar that cannot be enforced is refused for a strict tool, else warned of",
          "[grammar]") {
  const auto words = bytes_and_marks({}, false);
  for (const auto& [grammar, syntax] :
       {std::pair{"start: \"a\"", "lark"}, {"(a)\\1", "regex"}, {"(?!b)a", "regex"}}) {
    INFO(grammar);
    const answer_under_test strict(
        rules_for("hermes", choice::required, {custom_of("run", grammar, syntax, true)}), words);
    REQUIRE(strict.refusal);
    CHECK(strict.refusal->code == core::errc::not_supported);
    CHECK(strict.refusal->param == "tools.run");
    const answer_under_test relaxed(
        rules_for("hermes", choice::required, {custom_of("run", grammar, syntax, false)}), words);
    REQUIRE(relaxed.over);
    REQUIRE(relaxed.warnings.size() == 1);
    CHECK(relaxed.warnings[0].where == "tools.run");
    CHECK(relaxed.accepts(
        "<tool_call>\n{\"name\": \"run\", \"arguments\": {\"input\": \"zz\"}}\n</tool_call>"));
  }
}

TEST_CASE("calls: a call that is required needs a format and a tool", "[grammar]") {
  const auto words = bytes_and_marks({}, false);
  const answer_under_test no_format(rules_for(""), words),
      no_tool(rules_for("hermes", choice::required, {}), words);
  REQUIRE(no_format.refusal);
  CHECK(no_format.refusal->code == core::errc::not_supported);
  REQUIRE(no_tool.refusal);
  CHECK(no_tool.refusal->code == core::errc::invalid_param);
}

TEST_CASE("calls: errors of the text's constraint have the client's name of it, warnings the place in it",
          "[grammar]") {
  const auto words = bytes_and_marks({}, false);
  auto rules = rules_for("hermes", choice::automatic);
  rules.text_param = "response_format.json_schema.schema";
  auto& text = rules.text.emplace();
  text.what = constraint_text::kind::json_schema;
  text.text = R"({"properties":{"a":{"type":"array","uniqueItems":true}}})";
  const answer_under_test relaxed(rules, words);
  REQUIRE(relaxed.warnings.size() == 1);
  CHECK(relaxed.warnings[0].where == "/properties/a/uniqueItems");
  text.strict = true;
  const answer_under_test strict(rules, words);
  REQUIRE(strict.refusal);
  CHECK(strict.refusal->param == "response_format.json_schema.schema/properties/a/uniqueItems");
}

TEST_CASE("calls: answers that differ in anything have different keys", "[grammar]") {
  const auto key = [](const call_rules& r) {
    constraint_text c{.what = constraint_text::kind::answer};
    c.answer = std::make_shared<const call_rules>(r);
    const auto k = key_of(c, "v");
    return std::pair{k.low, k.high};
  };
  std::vector<call_rules> all{rules_for("hermes")};
  const auto add = [&](auto change) { change(all.emplace_back(all.front())); };
  add([](call_rules& r) { r.format = "llama3"; });
  add([](call_rules& r) { r.reasoning.open = "<a>"; });
  add([](call_rules& r) { r.reasoning.close = "<a>"; });
  add([](call_rules& r) { r.messages = core::envelope::harmony; });
  add([](call_rules& r) { r.tools.how = choice::none; });
  add([](call_rules& r) { r.tools.parallel = false; });
  add([](call_rules& r) { r.begins_in_reasoning = true; });
  add([](call_rules& r) { r.max_reasoning_tokens = 0; });
  add([](call_rules& r) { r.max_reasoning_tokens = 1; });
  add([](call_rules& r) { r.text.emplace(); });
  add([](call_rules& r) { r.text.emplace().strict = true; });
  add([](call_rules& r) { r.text_param = "a"; });
  add([](call_rules& r) { r.budget_param = "a"; });
  add([](call_rules& r) { r.tools.tools.pop_back(); });
  add([](call_rules& r) { r.tools.tools[0].name = "a"; });
  add([](call_rules& r) { r.tools.tools[0].parameters += ' '; });
  add([](call_rules& r) { r.tools.tools[0].grammar = "a"; });
  add([](call_rules& r) { r.tools.tools[0].syntax = "a"; });
  add([](call_rules& r) { r.tools.tools[0].param = "a"; });
  add([](call_rules& r) { r.tools.tools[0].what = core::tool_definition::kind::custom; });
  add([](call_rules& r) { r.tools.tools[0].strict = false; });
  std::set<std::pair<std::uint64_t, std::uint64_t>> keys;
  for (const auto& r : all) keys.insert(key(r));
  CHECK(keys.size() == all.size());
  CHECK(key(all.front()) == key(rules_for("hermes")));
}

}  // namespace weir::tests::calls_test
