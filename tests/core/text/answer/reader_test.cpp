#include "core/text/answer/reader.h"

#include <catch2/catch.hpp>
#include <random>

#include "tests/core/text/answer/answer_fixtures.h"

namespace weir::tests::reader_test {
namespace {

struct row {
  const char *format, *answer, *parts;
};

const char* const look = R"(look{"place": "K \"ö\"\nln", "count": 3})";

// Of each format two calls, as its template writes them.
const row rows[] = {
    {"hermes",
     "Well.\n<tool_call>\n{\"name\": \"look\", \"arguments\": {\"place\": \"K \\\"ö\\\"\\nln\", \"count\": "
     "3}}\n</tool_call>\n<tool_call>\n{\"name\": \"tell\", \"arguments\": {}}\n</tool_call>",
     "\"Well.\"LOOKtell{}"},
    {"qwen-coder",
     "Well.\n\n<tool_call>\n<function=look>\n<parameter=place>\nK "
     "\"ö\"\nln\n</parameter>\n<parameter=count>\n3\n"
     "</parameter>\n</function>\n</tool_call>\n<tool_call>\n<function=tell>\n</function>\n</tool_call>",
     "\"Well.\"LOOKtell{}"},
    {"seed",
     "Well.\n<seed:tool_call>\n<function=look>\n<parameter=place>K \"ö\"\nln</parameter>\n<parameter=count>3"
     "</parameter>\n</function>\n</seed:tool_call>\n<seed:tool_call>\n<function=tell>\n</function>\n"
     "</seed:tool_call>",
     "\"Well.\"LOOKtell{}"},
    {"glm",
     "Well.\n<tool_call>look\n<arg_key>place</arg_key>\n<arg_value>K \"ö\"\nln</arg_value>\n<arg_key>count"
     "</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n<tool_call>tell\n</tool_call>",
     "\"Well.\"LOOKtell{}"},
    {"glm",
     "Well.<tool_call>look<arg_key>place</arg_key><arg_value>K \"ö\"\nln</arg_value><arg_key>count</arg_key>"
     "<arg_value>3</arg_value></tool_call><tool_call>tell</tool_call>",
     "\"Well.\"LOOKtell{}"},
    {"hy3",
     "Well.<tool_calls:opensource>\n<tool_call:opensource>look<tool_sep:opensource>\n<arg_key:opensource>"
     "place"
     "</arg_key:opensource>\n<arg_value:opensource>K "
     "\"ö\"\nln</arg_value:opensource>\n<arg_key:opensource>count"
     "</arg_key:opensource>\n<arg_value:opensource>3</arg_value:opensource>\n</tool_call:opensource>\n"
     "<tool_call:opensource>tell<tool_sep:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>",
     "\"Well.\"LOOKtell{}"},
    {"minimax-m2",
     "Well.\n<minimax:tool_call>\n<invoke name=\"look\">\n<parameter name=\"place\">K \"ö\"\nln</parameter>\n"
     "<parameter name=\"count\">3</parameter>\n</invoke>\n<invoke name=\"tell\">\n</invoke>\n"
     "</minimax:tool_call>",
     "\"Well.\"LOOKtell{}"},
    {"deepseek-v3.2",
     "Well.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"look\">\n<｜DSML｜parameter name=\"place\" "
     "string=\"true\">K \"ö\"\nln</｜DSML｜parameter>\n<｜DSML｜parameter name=\"count\" string=\"false\">3"
     "</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name=\"tell\">\n</｜DSML｜invoke>\n"
     "</｜DSML｜function_calls>",
     "\"Well.\"LOOKtell{}"},
    {"minicpm5",
     "Well.\n<function name=\"look\"><param name=\"place\"><![CDATA[K \"ö\"\nln]]></param><param "
     "name=\"count\">3</param></function>\n<function name=\"tell\"></function>",
     "\"Well.\"LOOKtell{}"},
    {"gemma",
     "Well.<|tool_call>call:look{place:<|\"|>K \"ö\"\nln<|\"|>,count:3}<tool_call|><|tool_call>call:tell{}"
     "<tool_call|>",
     "\"Well.\"LOOKtell{}"},
    {"kimi",
     "Well.<|tool_calls_section_begin|><|tool_call_begin|>functions.look:0<|tool_call_argument_begin|>{"
     "\"place\": "
     "\"K \\\"ö\\\"\\nln\", \"count\": 3}<|tool_call_end|><|tool_call_begin|>functions.tell:1"
     "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
     "\"Well.\"look#functions.look:0{\"place\": \"K \\\"ö\\\"\\nln\", \"count\": 3}tell#functions.tell:1{}"},
    {"deepseek-v3",
     "Well.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>look\n```json\n{\"place\": \"K "
     "\\\"ö\\\"\\nln\", \"count\": "
     "3}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>tell"
     "\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
     "\"Well.\"LOOKtell{}"},
    {"deepseek-v3.1",
     "Well.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>look<｜tool▁sep｜>{\"place\": \"K \\\"ö\\\"\\nln\", "
     "\"count\": 3}<｜tool▁call▁end｜><｜tool▁call▁begin｜>tell<｜tool▁sep｜>{}<｜tool▁call▁end｜>"
     "<｜tool▁calls▁end｜>",
     "\"Well.\"LOOKtell{}"},
    {"mistral",
     "Well.[TOOL_CALLS]look[CALL_ID]abcdef123[ARGS]{\"place\": \"K \\\"ö\\\"\\nln\", \"count\": "
     "3}[TOOL_CALLS]tell[ARGS]{}",
     "\"Well.\"look#abcdef123{\"place\": \"K \\\"ö\\\"\\nln\", \"count\": 3}tell{}"},
    {"mistral-v3",
     "Well.[TOOL_CALLS][{\"name\": \"look\", \"arguments\": {\"place\": \"K \\\"ö\\\"\\nln\", \"count\": 3}, "
     "\"id\": \"abcdef123\"}, {\"name\": \"tell\", \"arguments\": {}}]",
     "\"Well.\"LOOKtell{}"},
    {"functionary",
     "Well.<function=look>{\"place\": \"K \\\"ö\\\"\\nln\", \"count\": "
     "3}</function><function=tell>{}</function>",
     "\"Well.\"LOOKtell{}"},
    {"minimax-m1",
     "Well.\n<tool_calls>\n{\"name\": \"look\", \"arguments\": {\"place\": \"K \\\"ö\\\"\\nln\", \"count\": "
     "3}}\n{\"name\": \"tell\", \"arguments\": {}}\n</tool_calls>",
     "\"Well.\"LOOKtell{}"},
    {"granite",
     "Well.<|tool_call|>[{\"name\": \"look\", \"arguments\": {\"place\": \"K \\\"ö\\\"\\nln\", \"count\": "
     "3}}, "
     "{\"name\": \"tell\", \"arguments\": {}}]",
     "\"Well.\"LOOKtell{}"},
    {"cohere",
     "<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"look\", \"parameters\": {\"place\": "
     "\"K "
     "\\\"ö\\\"\\nln\", \"count\": 3}},\n    {\"tool_call_id\": \"1\", \"tool_name\": \"tell\", "
     "\"parameters\": "
     "{}}\n]<|END_ACTION|>",
     "look#0{\"place\": \"K \\\"ö\\\"\\nln\", \"count\": 3}tell#1{}"},
    {"apertus",
     "Well.<|tools_prefix|>[{\"look\": {\"place\": \"K \\\"ö\\\"\\nln\", \"count\": 3}}, {\"tell\": "
     "{}}]<|tools_suffix|>",
     "\"Well.\"LOOKtell{}"},
    {"lfm2", "Well.<|tool_call_start|>[look(place=\"K \\\"ö\\\"\\nln\", count=3), tell()]<|tool_call_end|>",
     "\"Well.\"LOOKtell{}"},
    {"llama3",
     "{\"name\": \"look\", \"parameters\": {\"place\": \"K \\\"ö\\\"\\nln\", \"count\": 3}}; {\"name\": "
     "\"tell\", "
     "\"parameters\": {}}",
     "LOOKtell{}"},
    {"llama3",
     "<|python_tag|>{\"name\": \"look\", \"parameters\": {\"place\": \"K \\\"ö\\\"\\nln\", \"count\": 3}}; "
     "{\"name\": \"tell\", \"parameters\": {}}",
     "LOOKtell{}"},
};

std::string wanted(std::string_view parts) {
  std::string out(parts);
  if (const auto at = out.find("LOOK"); at != out.npos) out.replace(at, 4, look);
  return out;
}

answer_setting setting(const char* format) {
  answer_setting s;
  s.format = format;
  return s;
}

// Cuts that leave characters whole.
std::vector<std::string_view> cut(std::string_view text, std::mt19937& random, std::size_t longest) {
  std::vector<std::string_view> pieces;
  while (!text.empty()) {
    std::size_t n = std::min<std::size_t>(1 + random() % longest, text.size());
    while (n < text.size() && (static_cast<unsigned char>(text[n]) & 0xC0) == 0x80) ++n;
    pieces.push_back(text.substr(0, n));
    text.remove_prefix(n);
  }
  return pieces;
}

}  // namespace

TEST_CASE("reader: calls of each format, with reasoning and text before them") {
  for (const row& r : rows) {
    INFO(r.format << ": " << r.answer);
    core::answer_marks marks;
    CHECK(read_whole(setting(r.format), r.answer, &marks) == wanted(r.parts));
    CHECK(marks.warnings.empty());
    const std::string thoughtful = std::string("<think>\nhm <b>\n</think>\n\n") + r.answer;
    CHECK(read_whole(setting(r.format), thoughtful) == "(hm <b>)" + wanted(r.parts));
  }
}

TEST_CASE("reader: however an answer is cut into tokens, its parts are the same") {
  std::mt19937 random(7);
  for (const row& r : rows) {
    INFO(r.format);
    const std::string answer = std::string("<think>\nhm ö\n</think>\n\n") + r.answer;
    const std::string whole = read_whole(setting(r.format), answer);
    for (int i = 0; i < 60; ++i) {
      const std::size_t longest = i % 3 == 0 ? 1 : i % 3 == 1 ? 5 : 256;
      CHECK(read_pieces(setting(r.format), cut(answer, random, longest)) == whole);
    }
  }
}

TEST_CASE("reader: a mark that is one token is known by this token alone") {
  for (const bool special : {false, true}) {
    answer_setting s = setting("hermes");
    s.words = bytes_and_marks({"<tool_call>", "</tool_call>", "<think>", "</think>"}, special);
    const std::string call =
        "<tool_call>\n{\"name\": \"tell\", \"arguments\": {\"hour\": \"1\"}}\n</tool_call>";
    CHECK(read_tokens(s, "<think>\na\n</think>\n\nb\n" + call) == "(a)\"b\"tell{\"hour\": \"1\"}");
    // The same characters as ordinary text are text.
    CHECK(read_whole(s, call) == '"' + call + '"');
    CHECK(read_whole(s, "<think>a</think>b") == "\"<think>a</think>b\"");
  }
}

TEST_CASE("reader: a mark inside of arguments is part of their text") {
  answer_setting s = setting("hermes");
  s.words = bytes_and_marks({"<tool_call>", "</tool_call>", "<think>", "</think>"}, false);
  CHECK(read_tokens(s,
                    "<tool_call>{\"name\":\"tell\",\"arguments\":{\"hour\":\"a</tool_call>b<think>\"}}"
                    "</tool_call>") == R"(tell{"hour":"a</tool_call>b<think>"})");
  s.format = "qwen-coder";
  CHECK(read_tokens(
            s,
            "<tool_call>\n<function=tell>\n<parameter=hour>\na</tool_call>b\n</parameter>\n</function>\n"
            "</tool_call>") == R"(tell{"hour": "a</tool_call>b"})");
}

TEST_CASE("reader: what leaves the format is text, and no byte of it is lost") {
  const struct {
    const char *format, *answer, *parts;
  } broken[] = {
      {"hermes", "<tool_call> is a mark", "\"<tool_call> is a mark\""},
      {"hermes", "a <tool_call>[1]</tool_call> b", "\"a <tool_call>[1]</tool_call> b\""},
      {"hermes", "<tool_call>{\"name\":\"tell\",\"arguments\":{\"hour\":oops}}</tool_call>",
       "tell{\"hour\":…\"oops}}</tool_call>\""},
      {"hermes", "a <tool_call>{\"nom\":\"tell\"}</tool_call>",
       "\"a <tool_call>{\"nom\":\"tell\"}</tool_call>\""},
      {"kimi", "<|tool_calls_section_begin|>hello", "\"<|tool_calls_section_begin|>hello\""},
      {"qwen-coder", "<tool_call>\n<function=tell>\noops", "tell{…\"\noops\""},
      {"lfm2", "<|tool_call_start|>[no calls here]", "\"<|tool_call_start|>[no calls here]\""},
      {"llama3", "{\"name\": \"look\", \"parameters\": {}} is what I would send",
       "\"{\"name\": \"look\", \"parameters\": {}} is what I would send\""},
      {"llama3", "{\"name\": \"nobody\", \"parameters\": {}}",
       "\"{\"name\": \"nobody\", \"parameters\": {}}\""},
      {"llama3", "{\"name\": \"look\"}", "\"{\"name\": \"look\"}\""},
      {"llama3", "{\"a\": 1}", "\"{\"a\": 1}\""},
      {"llama3", "Hi {\"name\": \"look\", \"parameters\": {}}",
       "\"Hi {\"name\": \"look\", \"parameters\": {}}\""},
  };
  std::mt19937 random(8);
  for (const auto& r : broken) {
    INFO(r.format << ": " << r.answer);
    core::answer_marks marks;
    CHECK(read_whole(setting(r.format), r.answer, &marks) == r.parts);
    if (std::string_view(r.format) != "llama3") CHECK(marks.warnings.size() == 1);
    for (int i = 0; i < 20; ++i) CHECK(read_pieces(setting(r.format), cut(r.answer, random, 4)) == r.parts);
  }
}

TEST_CASE("reader: an answer that ends inside a call leaves the call without an end") {
  CHECK(read_whole(setting("hermes"), "<tool_call>{\"name\":\"tell\",\"arguments\":{\"hour\":\"1") ==
        "tell{\"hour\":\"1…");
  CHECK(read_whole(setting("hermes"), "<tool_call>{\"na") == "\"<tool_call>{\"na\"");
  CHECK(read_whole(setting("qwen-coder"), "<tool_call>\n<function=look>\n<parameter=place>\nab\n") ==
        "look{\"place\": \"ab…");
  CHECK(read_whole(setting("hermes"), "<think>\nhm, ") == "(hm, )");
  CHECK(read_whole(setting("hermes"), "text <thi") == "\"text <thi\"");
}

TEST_CASE("reader: white space stands anywhere between the marks of a call, however it is cut") {
  const struct {
    const char *format, *answer;
  } spaced[] = {
      {"glm", "<tool_call>\n tell \n<arg_key>hour</arg_key> \n <arg_value>1</arg_value>\n </tool_call>"},
      {"kimi",
       "<|tool_calls_section_begin|>\n<|tool_call_begin|> functions.tell:0 \n<|tool_call_argument_begin|> "
       "{\"hour\": \"1\"} <|tool_call_end|>\n<|tool_calls_section_end|>"},
      {"gemma", "<|tool_call>call: tell { hour : <|\"|>1<|\"|> } <tool_call|>"},
      {"lfm2", "<|tool_call_start|>[ tell ( hour = '1' ) ]<|tool_call_end|>"},
      {"hermes", "<tool_call> {\n \"name\" : \"tell\" , \"arguments\" : {\"hour\": \"1\"}\n }\n</tool_call>"},
  };
  std::mt19937 random(10);
  for (const auto& r : spaced) {
    INFO(r.format);
    const std::string whole = read_whole(setting(r.format), r.answer);
    CHECK_THAT(whole, Catch::StartsWith("tell"));
    CHECK_THAT(whole, Catch::EndsWith("{\"hour\": \"1\"}"));
    for (int i = 0; i < 30; ++i) CHECK(read_pieces(setting(r.format), cut(r.answer, random, 3)) == whole);
  }
}

TEST_CASE("reader: quotes of Gemma inside of lists may be cut anywhere") {
  const std::string answer = "<|tool_call>call:look{deep:{a:[<|\"|>x,]<|\"|>,1]}}<tool_call|>";
  const std::string parts = R"(look{"deep": {"a": ["x,]", 1]}})";
  std::mt19937 random(11);
  CHECK(read_whole(setting("gemma"), answer) == parts);
  for (int i = 0; i < 50; ++i) CHECK(read_pieces(setting("gemma"), cut(answer, random, 4)) == parts);
}

TEST_CASE("reader: an answer may begin inside reasoning, and a call ends reasoning") {
  answer_setting s = setting("hermes");
  s.begins_in_reasoning = true;
  CHECK(read_whole(s, "\na b\n</think>\n\nc\n") == "(a b)\"c\n\"");
  CHECK(read_whole(s, "</think>\n\nc") == "\"c\"");
  CHECK(read_whole(s, "a\n<tool_call>{\"name\":\"tell\",\"arguments\":{}}</tool_call>") == "(a)tell{}");
  s.separate = false;
  CHECK(read_whole(s, "a\n</think>\n\nc") == "\"a\n</think>\n\nc\"");
}

TEST_CASE("reader: messages of gpt-oss, with the recipient at both places") {
  answer_setting s = setting("harmony");
  s.reasoning = {};
  s.messages = core::envelope::harmony;
  const std::string thought = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant";
  CHECK(read_whole(s, thought + "<|channel|>final<|message|>Hi.<|return|>") == "(hm)\"Hi.\"");
  for (const char* header : {"<|channel|>commentary to=functions.tell <|constrain|>json<|message|>",
                             " to=functions.tell<|channel|>commentary json<|message|>"}) {
    CHECK(read_whole(s, thought + header + "{\"hour\":\"1\"}<|call|>") == "(hm)tell{\"hour\":\"1\"}");
    CHECK(read_whole(s, thought + "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant" +
                            header + "{\"hour\":\"1\"}<|call|>") == "(hm)\"I look.\"tell{\"hour\":\"1\"}");
  }
  CHECK(read_whole(s, "plain text") == "\"plain text\"");
  CHECK(read_whole(s, "<|channel|>weird header without an end") ==
        "\"<|channel|>weird header without an end\"");
  s.words = bytes_and_marks(
      {"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|return|>", "<|call|>"},
      true);
  CHECK(read_tokens(
            s, thought + "<|channel|>commentary to=functions.tell <|constrain|>json<|message|>{}<|call|>") ==
        "(hm)tell{}");
}

TEST_CASE("reader: messages of Muse Glimmer") {
  answer_setting s = setting("muse-glimmer");
  s.reasoning = {};
  s.messages = core::envelope::recipients;
  CHECK(read_whole(
            s,
            " to=self<|message|>hm<|eom|><|start|>assistant to=tell<|message|><atem:function_calls>\n"
            "<atem:invoke name=\"tell\">\n<atem:parameter name=\"hour\">1</atem:parameter>\n"
            "</atem:invoke>\n</atem:function_calls><|eom|><|start|>assistant to=user<|message|>Hi.<|eot|>") ==
        "(hm)tell{\"hour\": \"1\"}\"Hi.\"");
}

TEST_CASE("reader: the input of a custom tool is the text of its one argument") {
  answer_setting s = setting("hermes");
  core::tool_definition t;
  t.name = "run";
  t.what = core::tool_definition::kind::custom;
  t.parameters = R"({"type":"object","properties":{"input":{"type":"string"}}})";
  s.tools = {t};
  CHECK(
      read_whole(
          s, R"(<tool_call>{"name":"run","arguments":{"input":"a\n\"b\"\u00f6\ud83d\ude00"}}</tool_call>)") ==
      "runa\n\"b\"ö😀");
  s.format = "qwen-coder";
  CHECK(read_whole(s,
                   "<tool_call>\n<function=run>\n<parameter=input>\na\n\"b\"\n</parameter>\n</function>\n"
                   "</tool_call>") == "runa\n\"b\"");
}

TEST_CASE("reader: values of parameters have the types of the schema") {
  const auto value = [](const char* name, const char* said) {
    return read_whole(setting("glm"), std::string("<tool_call>look<arg_key>") + name +
                                          "</arg_key><arg_value>" + said + "</arg_value></tool_call>");
  };
  CHECK(value("place", "3") == R"(look{"place": "3"})");
  CHECK(value("count", "3") == R"(look{"count": 3})");
  CHECK(value("count", "three") == R"(look{"count": "three"})");
  CHECK(value("sure", "True") == R"(look{"sure": true})");
  CHECK(value("deep", R"({"a":[1]})") == R"(look{"deep": {"a":[1]}})");
  CHECK(value("other", "[1]") == R"(look{"other": [1]})");
  CHECK(value("other", "abc") == R"(look{"other": "abc"})");
}

TEST_CASE("reader: arguments may stand before the name, be text, or be missing") {
  const auto call = [](const char* inside) {
    return read_whole(setting("hermes"), std::string("<tool_call>") + inside + "</tool_call>");
  };
  CHECK(call(R"({"arguments":{"hour":"1"},"name":"tell"})") == R"(tell{"hour":"1"})");
  CHECK(call(R"({"name":"tell","arguments":"{\"hour\":\"1\"}"})") == R"(tell{"hour":"1"})");
  CHECK(call(R"({"name":"tell"})") == "tell{}");
  CHECK(call(R"({"name":"tell","arguments":null})") == "tell{}");
  CHECK(call(R"({"id":7,"type":"function","name":"tell","arguments":{}})") == "tell{}");
}

TEST_CASE("reader: a long answer costs what its bytes cost", "[long]") {
  std::string text(4'000'000, 'a');
  for (std::size_t i = 0; i < text.size(); i += 61) text[i] = '<';
  core::answer_reader reader(plan_of(setting("hermes")));
  std::string out;
  core::answer_marks marks;
  std::uint32_t n = 0;
  for (std::size_t at = 0; at < text.size(); at += 4)
    reader.take(n++, 0, std::string_view(text).substr(at, 4), out, marks);
  reader.end(n - 1, {}, out, marks);
  CHECK(out == text);
}

// A model may be made to write white space alone: each token of it costs what any token costs.
TEST_CASE("reader: white space without an end is read in linear time", "[long]") {
  for (const char* before : {"", "a", "<tool_call>", "<tool_call>{", "<tool_call>{\"name\"", "<think>"})
    for (const char* format : {"hermes", "qwen-coder", "llama3"}) {
      core::answer_reader reader(plan_of(setting(format)));
      std::string out;
      core::answer_marks marks;
      std::uint32_t n = 0;
      reader.take(n++, 0, before, out, marks);
      for (int i = 0; i < 300'000; ++i) reader.take(n++, 0, "\n", out, marks);
      reader.end(n - 1, {}, out, marks);
      CHECK(out.size() < 400'000);
    }
}

TEST_CASE("reader: random splits of each format", "[long]") {
  std::mt19937 random(9);
  for (const row& r : rows) {
    const std::string answer = std::string("<think>\nhm ö\n</think>\n\n") + r.answer;
    const std::string whole = read_whole(setting(r.format), answer);
    for (int i = 0; i < 4000; ++i)
      REQUIRE(read_pieces(setting(r.format), cut(answer, random, 1 + random() % 30)) == whole);
  }
}

}  // namespace weir::tests::reader_test
