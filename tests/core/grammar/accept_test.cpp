#include "core/grammar/accept.h"

#include <boost/json.hpp>
#include <catch2/catch.hpp>

#include "tests/support/data.h"
#include "tests/support/manual_clock.h"

namespace weir::tests::accept_test {

using namespace weir::core::grammar;
using weir::core::errc;

namespace {

acceptor& bundled() {
  static const auto t = weir::core::load_tokenizer(weir::tests::bundled_models().front().string());
  static const weir::core::system_clock clock;
  static acceptor a(t.value(), clock);
  return a;
}

accept_verdict verdict_on(const std::string& line) {
  const auto parsed = parse_accept_line(line);
  REQUIRE(parsed.has_value());
  REQUIRE(parsed->own);
  const auto prepared = bundled().prepare(*parsed->own, parsed->field);
  REQUIRE(prepared.has_value());
  const auto verdict = bundled().check(*prepared, parsed->subject);
  REQUIRE(verdict.has_value());
  return *verdict;
}

}  // namespace

TEST_CASE("a line is judged by its own constraint", "[grammar]") {
  const auto whole = verdict_on(R"({"regex":"ab+","text":"abb"})");
  CHECK(whole.accepted);
  CHECK(whole.may_end);
  CHECK_FALSE(whole.at);
  CHECK(whole.completion == "");
  const auto unfinished = verdict_on(R"({"choice":["yes","no"],"text":"ye"})");
  CHECK(unfinished.accepted);
  CHECK_FALSE(unfinished.may_end);
  CHECK(unfinished.completion == "s");
  const auto wrong = verdict_on(R"({"choice":["yes","no"],"text":"yet"})");
  CHECK_FALSE(wrong.accepted);
  CHECK(wrong.at == 2u);
  CHECK_FALSE(wrong.completion);
}

TEST_CASE("a line may have a grammar in either notation", "[grammar]") {
  const auto gbnf = verdict_on(R"({"grammar":"root ::= \"a\" root | \"!\"","text":"aa"})");
  CHECK(gbnf.accepted);
  CHECK(gbnf.completion == "!");
  const auto lark = verdict_on(R"({"grammar":"start: \"a\"+ \"!\"","grammar_syntax":"lark","text":"ab"})");
  CHECK(lark.at == 1u);
  const auto wrong = parse_accept_line(R"({"grammar":"root ::= (","text":""})");
  REQUIRE(wrong.has_value());
  const auto prepared = bundled().prepare(*wrong->own, wrong->field);
  REQUIRE(prepared.has_error());
  CHECK(prepared.error().param == "grammar");
  CHECK(prepared.error().message.find("line 1, column 10") != std::string::npos);
}

TEST_CASE("tokens are judged like their text, and the byte is the same", "[grammar]") {
  const auto t = weir::core::load_tokenizer(weir::tests::bundled_models().front().string());
  REQUIRE(t.has_value());
  const std::string text = "a rather long sentence, with commas";
  const auto ids = (*t)->encode(text, {.add_special = false, .parse_special = false});
  boost::json::object line{{"regex", "[a-z ]*"}, {"ids", boost::json::value_from(ids)}};
  const auto by_ids = verdict_on(boost::json::serialize(line));
  line.erase("ids");
  line["text"] = text;
  const auto by_text = verdict_on(boost::json::serialize(line));
  CHECK(by_text.at == text.find(','));
  CHECK(by_ids.at == by_text.at);
  CHECK(by_ids.mask == by_text.mask);
}

TEST_CASE("a verdict is one line of JSON", "[grammar]") {
  accept_verdict v;
  v.accepted = true;
  v.may_end = true;
  v.completion = "";
  v.compile_us = 12.345;
  v.mask_us = {1, 2, 3};
  v.mask = {3, 5};
  CHECK(to_json(v, false) ==
        R"({"accepted":true,"at":null,"may_end":true,"completion":"","compile_us":12.35,)"
        R"("mask_us":{"p50":1,"p99":2,"max":3}})");
  CHECK(boost::json::parse(to_json(v, true)).at("mask") == boost::json::value({3, 5}));
  CHECK(to_json(weir::core::bad_param("regex", "wrong")) ==
        R"({"error":{"message":"wrong","param":"regex"}})");
}

TEST_CASE("a line that is wrong says which field", "[grammar]") {
  const std::vector<std::pair<const char*, const char*>> lines{
      {"[]", ""},
      {R"({"text":"a","ids":[1]})", "text"},
      {R"({"regex":"a"})", "text"},
      {R"({"text":1})", "text"},
      {R"({"ids":["a"]})", "ids"},
      {R"({"ids":[-1]})", "ids"},
      {R"({"regex":"a","choice":["a"],"text":"a"})", "choice"},
      {R"({"choice":"a","text":"a"})", "choice"},
      {R"({"regex":1,"text":"a"})", "regex"},
      {R"({"grammar":"a","grammar_syntax":"ebnf","text":"a"})", "grammar_syntax"},
      {R"({"schema":{},"whitespace":"none","text":"a"})", "whitespace"},
      {R"({"schema":{},"strict":1,"text":"a"})", "strict"},
  };
  for (const auto& [line, param] : lines) {
    INFO(line);
    const auto parsed = parse_accept_line(line);
    REQUIRE(parsed.has_error());
    CHECK(parsed.error().code == errc::invalid_param);
    CHECK(parsed.error().param == param);
  }
  const auto bad = parse_accept_line(R"({"regex":"a(","text":"a"})");
  REQUIRE(bad.has_value());
  const auto prepared = bundled().prepare(*bad->own, bad->field);
  REQUIRE(prepared.has_error());
  CHECK(prepared.error().param == "regex");
}

TEST_CASE("a schema keeps the text that it has in its line", "[grammar]") {
  const auto parsed = parse_accept_line(
      R"({ "text" : "{\"schema\":0}", "schema" : {"b":1.10,"a":"}\"","schema":[1e400]} , "strict":true})");
  REQUIRE(parsed.has_value());
  REQUIRE(parsed->own);
  CHECK(parsed->own->text == R"({"b":1.10,"a":"}\"","schema":[1e400]})");
  CHECK(parsed->own->strict);
}

}  // namespace weir::tests::accept_test
