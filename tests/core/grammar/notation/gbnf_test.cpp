#include "core/grammar/notation/gbnf.h"

#include <catch2/catch.hpp>

#include "tests/core/grammar/grammar_kit.h"
#include "tests/support/earley.h"
#include "tests/support/seed.h"

namespace weir::tests::gbnf_test {

using namespace weir::core::grammar;

namespace {

std::shared_ptr<constraint> made(const std::string& source,
                                 std::shared_ptr<terminal_views> views = byte_views()) {
  return bound_grammar(source, "gbnf", std::move(views));
}

std::string refusal(const std::string& source) {
  const auto out = bound(grammar_of(source, "gbnf"));
  REQUIRE(out.has_error());
  CHECK(out.error().code == weir::core::errc::invalid_param);
  return out.error().message;
}

const std::vector<grammar_texts> facts{
    {"root ::= \"a\" | \"bc\"", {"a", "bc"}, {"", "b", "abc"}},
    {"root::=\"a\"", {"a"}, {"b"}},
    {"root ::= \"\\x41\\u0042\\U00000043\\t\\\"\\\\\"", {"ABC\t\"\\"}, {"abc"}},
    {"root ::= \"\\xe9\\uD83D\\uDE00\"", {"\xC3\xA9\xF0\x9F\x98\x80"}, {"\xE9"}},
    {"root ::= [^a-c\\]]+", {"d", "\n", "\xC3\xA9"}, {"a", "]", ""}},
    {"root ::= [a-]", {"a", "-"}, {"b"}},
    {"root ::= [a\\-c]", {"a", "-", "c"}, {"b"}},
    {"root ::= .", {"x", "\n", "\xE2\x82\xAC"}, {"", "xy", "\xE2"}},
    {"root ::= \"ab\"* \"c\"?", {"", "abab", "c", "abc"}, {"a", "cc"}},
    {"root ::= \"a\"{2} \"b\"{1,} \"c\"{0,2}", {"aab", "aabbbcc"}, {"ab", "aac", "aabccc"}},
    {"root ::= \"a\" {2}", {"aa"}, {"a"}},
    {"root ::= (\"a\"+)*", {"", "aaa"}, {"b"}},
    {"root ::= ( [x]* )*", {"", "xx"}, {"y"}},
    {"root ::= x \"1\"\nx ::= y # comment ::=\ny ::= \"#\"\n", {"#1"}, {"1"}},
    {"root ::= \"a\" |\n  \"b\"\n", {"a", "b"}, {"c"}},
    {"root ::= \"a\"\n  | \"b\"\n  \"c\"\n\nx ::= \"z\"", {"a", "bc"}, {"b", "z"}},
    {"root ::= (\n \"a\"\n # more\n | b\n)\r\nb ::= \"b\"", {"a", "b"}, {"ab"}},
    {"root ::= | \"a\"", {"", "a"}, {"b"}},
    {"root ::= \"\"", {""}, {"a"}},
    {"root ::= root \"a\" | \"b\"", {"b", "baaa"}, {"a", "ab"}},
    {"root ::= x\nx ::= y \"a\" | \"c\"\ny ::= x \"b\"", {"c", "cba", "cbaba"}, {"cb", "ba"}},
    {"root ::= e\ne ::= e \"+\" e | \"n\" | \"(\" e \")\"", {"n", "n+n+n", "(n+n)+n"}, {"n+", "(n"}},
    {"root ::= s\ns ::= s s | \"a\" | \"\"", {"", "a", "aaaa"}, {"b"}},
    {"root ::= a a\na ::= b?\nb ::= \"x\" a \"y\"", {"", "xy", "xxyyxy"}, {"x", "yx", "xyxyxy"}},
    {"root ::= \"a\" nobody-s-business\nnobody-s-business ::= [0-9]{1,1000000}", {"a7", "a123"}, {"a"}},
};

}  // namespace

TEST_CASE("a GBNF grammar allows what it says and nothing else", "[grammar]") { check_texts(facts, "gbnf"); }

TEST_CASE("GBNF texts are followed as Earley's recogniser follows the rules", "[grammar]") {
  std::mt19937 random(drawn_seed(7));
  for (const auto& f : facts) {
    INFO(f.source);
    auto rules = compile_gbnf(f.source);
    REQUIRE(rules.has_value());
    earley definition(*rules->grammar);
    const auto over = made(f.source);
    std::string letters = "ab";
    for (const auto& text : f.in) letters += text;
    for (int i = 0; i < 60; ++i) {
      std::string text;
      for (auto n = random() % 6; n > 0; --n) text += letters[random() % letters.size()];
      INFO(text);
      CHECK(!refused_at(*over, text) == definition.accepts(text));
    }
  }
}

TEST_CASE("GBNF masks have exactly the tokens whose bytes may follow", "[grammar]") {
  check_masks(facts, "gbnf");
}

TEST_CASE("llama.cpp's grammars are read, and judge texts as it does", "[grammar]") {
  std::mt19937 random(13);
  for (const auto& f : grammar_facts("gbnf")) {
    const std::string source(f.at("grammar").as_string());
    INFO(source);
    if (f.contains("tokens")) {  // by ids of a vocabulary that is not here
      CHECK(compile_gbnf(source).has_value());
      continue;
    }
    const auto over = made(source);
    for (const auto& t : f.at("tests").as_array()) {
      const auto& test = t.as_object();
      const auto at = refused_at(*over, test.at("text").as_string());
      INFO(test.at("text").as_string());
      CHECK(!at == test.at("accepted").as_bool());
      if (const auto* place = test.if_contains("at"); place && place->is_int64())
        CHECK(at == static_cast<std::size_t>(place->get_int64()));
    }
    const auto real = bound(grammar_of(source, "gbnf"), bundled_views());
    if (real) CHECK(masks_are_exact(**real, random, 20));
  }
}

TEST_CASE("tokens of a GBNF grammar come by their ids alone", "[grammar]") {
  const auto views = std::make_shared<terminal_views>(std::make_shared<const token_trie>(
      std::make_shared<toy_tokenizer>(std::vector<std::string>{"<a>", "<b>", "x", "<", "a", ">", "y"})));
  const auto over = made("root ::= <a> [xy]* (!<a> | <[0]>) <b>", views);
  const auto after = [&](std::vector<int> ids) {
    auto at = over->start();
    for (const auto id : ids) at = over->accept(at, id);
    return at;
  };
  CHECK(over->mask(over->start())->ids() == std::vector<int>{0});
  CHECK(after({3, 4, 5}) == constraint::dead);
  CHECK(over->mask(after({0}))->ids() == std::vector<int>{0, 1, 2, 3, 4, 5, 6});
  CHECK(over->mask(after({0, 2, 1}))->ids() == std::vector<int>{1});
  CHECK(over->must_end(after({0, 2, 1, 1})));
  const auto unknown = bound(grammar_of("root ::= <nobody>", "gbnf"), views);
  REQUIRE(unknown.has_error());
  CHECK(unknown.error().message.find("<nobody>") != std::string::npos);
}

TEST_CASE("a GBNF grammar that is refused is told what and where", "[grammar]") {
  const std::vector<std::pair<std::string, std::string>> all{
      {"", "the rule root, at line 1, column 1"},
      {"other ::= \"a\"", "the rule root"},
      {"root ::= a", "a is not defined, at line 1, column 10"},
      {"root ::= \"a\"\nroot ::= \"b\"", "root is defined twice, at line 2, column 1"},
      {"root ::= \"a", "a literal that is not closed, at line 1, column 10"},
      {"root ::= [a", "a class that is not closed"},
      {"root ::= [z-a]", "wrong order"},
      {"root ::= (\"a\"\n", "a group that is not closed, at line 1, column 10"},
      {"root ::= \"a\")", "without its opening one, at line 1, column 13"},
      {"root ::= *", "nothing to repeat"},
      {"root ::= \"a\"{2,1}", "maximum is below its minimum"},
      {"root ::= \"a\"{,2}", "without a minimum"},
      {"root ::= \"a\"{99999999999}", "too large"},
      {"root ::= \"\\q\"", "an escape that is not known, at line 1, column 11"},
      {"root ::= \"\\xZZ\"", "hexadecimal"},
      {"root ::= \"\\uD800\"", "surrogate"},
      {"root ::= \"\\UFFFFFFFF\"", "above U+10FFFF"},
      {"root ::= <[a]>", "a token that is not <[id]>"},
      {"root ::= <a", "a token's name that is not closed"},
      {"root = \"a\"", "::= was expected"},
      {"root[max_tokens=3] ::= \"a\"", "options of a rule, at line 1, column 5"},
      {"root ::= \"a\" (= \"b\")", "look-ahead"},
      {"root ::= TagDispatch((\"a\", b))", "xgrammar's function TagDispatch"},
      {"root ::= /a/", "was expected, at line 1, column 10"},
      {"root ::= \"\xFF\"", "UTF-8"},
      {"root ::= x\nx ::= \"a\" x", "the rule x (line 2, column 1) is to blame"},
      {"root ::= \"" + std::string(300'000, 'a') + "\"", "262144 bytes"},
  };
  for (const auto& [source, message] : all) {
    INFO(source.substr(0, 100));
    const auto got = refusal(source);
    INFO(got);
    CHECK(got.find(message) != std::string::npos);
  }
}

TEST_CASE("a source with ::= is GBNF where no syntax is named", "[grammar]") {
  CHECK_FALSE(refused_at(**bound(grammar_of("root ::= \"a\"", "")), "a"));
  CHECK(bound(grammar_of("root ::= \"a\"", "ebnf")).has_error());
}

TEST_CASE("nesting in a GBNF grammar is bounded by nothing but its size", "[grammar]") {
  const std::string open(100'000, '('), close(100'000, ')');
  CHECK_FALSE(refused_at(*made("root ::= " + open + "\"a\"" + close), "a"));
  std::string stars = "root ::= \"a\"";
  for (int i = 0; i < 5'000; ++i) stars += "{2}";
  const auto over = bound(grammar_of(stars, "gbnf"));
  CHECK((over.has_error() || (*over)->step((*over)->start(), 'a') != constraint::dead));
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 5'000; ++i)
    chain += "r" + std::to_string(i) + " ::= \"(\" r" + std::to_string(i + 1) + " \")\"?\n";
  chain += "r5000 ::= \"x\" r0 | \"y\"";
  CHECK(made(chain)->step(made(chain)->start(), '(') > constraint::failed);
}

TEST_CASE("a GBNF grammar with too many ways to begin is refused when it is compiled", "[grammar]") {
  std::string source = "root ::= \"end\"";
  for (int i = 0; i < 4'000; ++i) source += " | \"w" + std::to_string(i) + " \" root";
  CHECK(refusal(source).find("too ambiguous where a text begins") != std::string::npos);
}

TEST_CASE("a string that a GBNF grammar spells by characters costs what one terminal costs", "[grammar]") {
  const auto over = made(
      "root ::= \"{\" pair (\",\" pair)* \"}\"\npair ::= string \":\" string\n"
      "string ::= \"\\\"\" char* \"\\\"\"\nchar ::= [^\"\\\\\\x7F\\x00-\\x1F] | \"\\\\\" [nt\"]",
      bundled_views());
  const auto at = over->step(over->start(), "{\"abc");
  REQUIRE(at > constraint::failed);
  CHECK(over->mask(at)->ids() == over->mask_by_definition(at).ids());
  CHECK(over->step(over->start(), "{\"abcd") == at);
}

}  // namespace weir::tests::gbnf_test
