#include "core/grammar/notation/lark.h"

#include <catch2/catch.hpp>
#include <set>

#include "core/grammar/regex/regex.h"
#include "tests/core/grammar/grammar_kit.h"

namespace weir::tests::lark_test {

using namespace weir::core::grammar;

namespace {

std::shared_ptr<constraint> made(const std::string& source,
                                 std::shared_ptr<terminal_views> views = byte_views()) {
  return bound_grammar(source, "lark", std::move(views));
}

const std::vector<grammar_texts> facts{
    {"start: \"a\" | \"bc\"", {"a", "bc"}, {"", "abc"}},
    {"start: a B\na: \"x\"\nB: \"y\"+", {"xy", "xyy"}, {"x", "yx"}},
    {"?start: _a -> alias\n!_a.2: \"x\" // comment\n# comment\n _B.10: \"y\"", {"x"}, {"y"}},
    {"start: \"a\"\n  | \"b\"\n  | (\"c\"\n  | \"d\")", {"a", "b", "c", "d"}, {"e"}},
    {"start: [\"a\"] \"b\"~2 \"c\"~1..2", {"bbc", "abbcc"}, {"abc", "bbccc"}},
    {"start: \"a\"{2} \"b\"{1,} \"c\"{,2}", {"aab", "aabbcc"}, {"ab", "aabccc"}},
    {"start: \"Stra\xC3\x9F\x65\"i", {"STRA\xC3\x9F\x45", "stra\xC3\x9F\x65"}, {"strass"}},
    {"start: \"a\"..\"c\" \"\\u00e0\"..\"\\u00e9\"", {"a\xC3\xA0"}, {"d\xC3\xA0", "a"}},
    {"start: /ab+\\/c/i", {"AB/c", "abbb/C"}, {"a/c"}},
    {"start: /a.b/s", {"a\nb"}, {"ab"}},
    {"start: X\nX: /[a-z]+/ & ~/.*foo.*/", {"bar", "fo"}, {"foo", "xfoox", ""}},
    {"start: X\nX: ~(\"a\" | \"b\") & /./", {"c"}, {"a", "b", "cc"}},
    {"start: X\nX: Y \"-\" Y\nY: DIGIT DIGIT\n%import common.DIGIT", {"12-34"}, {"1-2"}},
    {"start: NUMBER (\",\" NUMBER)*\n%import common.NUMBER\n%ignore \" \"",
     {"1, 2.5 ,3", " 1 "},
     {"1 2", "1,"}},
    {"start: \"if\" NAME\n%import common.CNAME -> NAME\n%import common (WS, DIGIT)\n%ignore WS\n%ignore "
     "/#.*/",
     {"if  x", "if x # y", "ifx"},
     {"if", "x"}},
    {"start: \"a\" b*\nb: \"b\" start \"c\"", {"a", "abac", "abacbac"}, {"ab", "abc"}},
    {"start: start \"+\" start | \"n\"", {"n", "n+n"}, {"+"}},
    {"start: %json {\"enum\": [1, \"}\"]} \"!\"", {"1!", "\"}\"!"}, {"1", "2!"}},
    {"start: ESCAPED_STRING\n%import common.ESCAPED_STRING", {"\"a\\\"b\""}, {"\"a\"b\"", "\"a\nb\""}},
    {"start: C_COMMENT\n%import common.C_COMMENT", {"/* a ** b */"}, {"/* a */ b */"}},
};

}  // namespace

TEST_CASE("a Lark grammar allows what it says and nothing else", "[grammar]") { check_texts(facts, "lark"); }

TEST_CASE("Lark masks have exactly the tokens whose bytes may follow", "[grammar]") {
  check_masks(facts, "lark");
}

TEST_CASE("the terminals of common are expressions", "[grammar]") {
  for (const auto* name : {"DIGIT", "NUMBER", "SIGNED_FLOAT", "ESCAPED_STRING", "CNAME", "WS", "NEWLINE",
                           "SH_COMMENT", "CPP_COMMENT", "C_COMMENT", "SQL_COMMENT"}) {
    INFO(name);
    regex_pool pool;
    CHECK(parse_regex(pool, lark_common(name)).has_value());
  }
  CHECK(lark_common("NOTHING").empty());
}

TEST_CASE("a Lark grammar that is refused is told what and where", "[grammar]") {
  const std::vector<std::pair<std::string, std::string>> all{
      {"", "the rule start"},
      {"start: a", "a is not defined, at line 1, column 8"},
      {"start: \"a\"\nstart: \"b\"", "start is defined twice, at line 2, column 1"},
      {"start: \"a", "a string that is not closed, at line 1, column 8"},
      {"start: (\"a\"", "a group that is not closed"},
      {"start: [\"a\")", "without its opening one"},
      {"start: \"a\"~3..2", "~n..m"},
      {"start: \"a\"..\"bc\"", "one character each"},
      {"start: /a", "an expression that is not closed"},
      {"start: /(a/", "a group that is not closed in an expression"},
      {"start: /a/x", "the flag x"},
      {"start: A\nA: b\nb: \"x\"", "the rule b in a terminal"},
      {"start: A\nA: \"a\" A | \"b\"", "the terminal A calls itself, at line 2"},
      {"start: a & \"b\"\na: \"b\"", "& outside of terminals"},
      {"start: ~\"b\"", "~ outside of terminals"},
      {"start: A\nA: <a>", "a token in a terminal"},
      {"start: a[stop=\"\"]: \"b\"", "was expected"},
      {"start: a\na[lazy]: \"b\"", "attributes of a rule, at line 2, column 2"},
      {"start: a{\"x\"}\na{x}: x", "count in braces"},
      {"start: a::1", "parameters of a rule"},
      {"start: %regex {}", "%regex, at line 1, column 8"},
      {"start: \"a\"\n%declare A", "%declare"},
      {"%import python.NAME\nstart: NAME", "an import of anything but common"},
      {"%import common.NAME\nstart: NAME", "common has no terminal \"NAME\""},
      {"start: %json []", "without an object"},
      {"start: %json {\"a\"", "not closed"},
      {"start: %json {\"$ref\": \"other.json\"}", "another document"},
      {"start: @other", "references to other grammars"},
      {"start: <[1-0]>", "ids of tokens"},
      {"start: <[0-2000000000]>", "more than 300000 tokens"},
  };
  for (const auto& [source, message] : all) {
    INFO(source);
    const auto out = bound(grammar_of(source, "lark"));
    REQUIRE(out.has_error());
    INFO(out.error().message);
    CHECK(out.error().message.find(message) != std::string::npos);
  }
}

TEST_CASE("sets of tokens in a Lark grammar are of ids", "[grammar]") {
  const auto views = std::make_shared<terminal_views>(std::make_shared<const token_trie>(
      std::make_shared<toy_tokenizer>(std::vector<std::string>{"<a>", "<b>", "x", "y", "z"})));
  const auto ids = [&](const std::string& source) {
    const auto over = made(source, views);
    return over->mask(over->start())->ids();
  };
  CHECK(ids("start: <a>") == std::vector<int>{0});
  CHECK(ids("start: <[0,2-3]>") == std::vector<int>{0, 2, 3});
  CHECK(ids("start: <[^0,2-3]>") == std::vector<int>{1, 4});
  CHECK(ids("start: <[*]>") == std::vector<int>{0, 1, 2, 3, 4});
}

namespace {

// Whether the source has a word of a feature that only one of llguidance and this front end has.
bool known_difference(std::string_view source) {
  for (const auto* word : {"%regex", "x-guidance", "stop", "capture", "::", "\"if\": {}",
                           "%json { \"type\": \"string\" }", "pattern", "\"known\""})
    if (source.find(word) != source.npos) return true;
  return false;
}

}  // namespace

TEST_CASE("llguidance's grammars are read, and judge texts as it does", "[grammar]") {
  for (const auto& f : grammar_facts("lark")) {
    const std::string source(f.at("grammar").as_string());
    if (known_difference(source)) continue;
    INFO(source);
    const auto over = bound(grammar_of(source, "lark"), bundled_views());
    const bool by_ids = source.find("<[") != source.npos;  // of a larger vocabulary
    if (const auto* error = f.if_contains("error"); error && !by_ids)
      CHECK(over.has_error() == error->as_bool());
    if (!over) continue;
    for (const auto& t : f.at("tests").as_array()) {
      const auto& test = t.as_object();
      INFO(test.at("text").as_string());
      CHECK(!refused_at(**over, test.at("text").as_string()) == test.at("accepted").as_bool());
    }
  }
}

}  // namespace weir::tests::lark_test
