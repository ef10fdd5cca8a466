// What compiling may cost, what constraints hold, and what a process keeps of them.
#include <catch2/catch.hpp>
#include <functional>

#include "core/grammar/cache.h"
#include "core/grammar/cursor.h"
#include "core/grammar/forced_tokens.h"
#include "tests/core/grammar/grammar_kit.h"
#include "tests/support/free_turn.h"
#include "tests/support/manual_clock.h"

namespace weir::tests::budget_test {

using namespace weir::core::grammar;
using weir::core::errc;
using kind = constraint_text::kind;

namespace {

constraint_text text_of(kind what, std::string text) {
  constraint_text c;
  c.what = what;
  c.text = std::move(text);
  if (what == kind::choice)
    for (int i = 0; i < 10'000; ++i) c.choices.push_back("choice number " + std::to_string(i));
  if (what == kind::grammar) c.syntax = c.text.find("::=") == c.text.npos ? "lark" : "gbnf";
  return c;
}

std::string many(const std::string& before, const std::string& each, const std::string& after, int n) {
  std::string out = before;
  for (int i = 0; i < n; ++i) {
    auto one = each;
    for (auto at = one.find('#'); at != one.npos; at = one.find('#')) one.replace(at, 1, std::to_string(i));
    out += one;
  }
  return out + after;
}

// One of each kind, all with much to do.
std::vector<constraint_text> large_ones() {
  return {
      text_of(kind::json_schema, many("{\"properties\":{", "\"name#\":{\"type\":[\"string\",\"null\"]},",
                                      "\"z\":{}},\"required\":[\"z\"]}", 5'000)),
      text_of(kind::json_schema, many("{\"enum\":[", "\"value #\",", "0]}", 20'000)),
      text_of(kind::json_schema,
              many("{\"oneOf\":[", "{\"required\":[\"a#\"],\"properties\":{\"b#\":{}}},", "{}]}", 40)),
      text_of(kind::regex, many("", "(a#|b.){1,#3}", "", 2'000)),
      text_of(kind::grammar, many("root ::= r0\n", "r# ::= \"x\" [a-z]{#} | r# \"y#\"\n", "", 3'000)),
      text_of(kind::grammar,
              many("start: r0\n", "r#: \"x\" /[^a-z]+#/ | r# T#\nT#: \"t\" \"a\"..\"z\"\n", "", 2'000)),
      text_of(kind::choice, ""),
  };
}

weir::core::error stopped(const constraint_text& c, const fuel::limits& most) {
  fuel budget(most);
  auto out = compile(c, budget);
  if (!out) return out.error();
  auto over = constraint::make(std::move(*out), byte_views(), {}, &budget);
  REQUIRE(over.has_error());
  return over.error();
}

}  // namespace

TEST_CASE("a compilation ends where its fuel, its time or its client does", "[grammar]") {
  free_turn late, unwanted;
  unwanted.unwanted = true;
  for (const auto& c : large_ones()) {
    INFO(c.text.substr(0, 60));
    CHECK(stopped(c, {.units = 1'000}).code == errc::invalid_param);
    CHECK(stopped(c, {.units = 1'000}).message.find("1000 units") != std::string::npos);
    CHECK(stopped(c, {.at = &late, .deadline = late.now()}).code == errc::overloaded);
    CHECK(stopped(c, {.at = &unwanted}).code == errc::unavailable);
  }
}

TEST_CASE("with fuel enough a compilation makes what it makes without", "[grammar]") {
  const auto c = text_of(kind::grammar, "root ::= [a-z]+ \"!\"");
  fuel budget({});
  auto out = compile(c, budget);
  REQUIRE(out.has_value());
  const auto burnt = budget.burnt();
  CHECK(burnt > 0);
  const auto over = constraint::make(std::move(*out), byte_views(), {}, &budget);
  REQUIRE(over.has_value());
  CHECK(budget.burnt() > burnt);
  const auto after = budget.burnt();
  CHECK_FALSE(refused_at(**over, "abc!"));
  CHECK(budget.burnt() == after);  // a walk burns nothing
}

namespace {

const std::vector<constraint_text> small_ones{
    text_of(kind::json_object, ""),
    text_of(kind::regex, "(?!.*foo)[a-z ]{3,50}!"),
    text_of(kind::grammar, "root ::= e\ne ::= e \"+\" e | \"(\" e \")\" | [0-9]+"),
    text_of(kind::json_schema, R"({"properties":{"a":{"pattern":"^x+$"},"b":{"type":"number"}}})"),
};

}  // namespace

TEST_CASE("a fresh constraint allows what the old one allowed, and remembers nothing", "[grammar]") {
  std::mt19937 random(3);
  for (const auto& c : small_ones) {
    INFO(c.text);
    const auto old = *bound(c, bundled_views());
    const auto begin = old->bytes();
    cursor job(old);
    std::vector<weir::core::token_id> written;
    std::vector<std::vector<weir::core::token_id>> masks{job.mask()->ids()};
    while (written.size() < 30 && !job.must_end()) {
      written.push_back(masks.back()[random() % masks.back().size()]);
      REQUIRE(job.accept(written.back()));
      masks.push_back(job.mask()->ids());
    }
    CHECK(old->bytes() > begin);
    const auto fresh = old->fresh();
    CHECK(fresh->bytes() <= begin);
    REQUIRE(job.move_to(fresh, written));
    CHECK(&job.over() == fresh.get());
    for (auto n = written.size();; --n) {
      CHECK(job.mask()->ids() == masks[n]);
      if (n == 0) break;
      job.rewind(1);
    }
    CHECK_FALSE(job.move_to(*bound(text_of(kind::regex, "x")), {}) == false);
  }
}

TEST_CASE("what a walk makes of expressions counts as remembered, and ends at the cap", "[grammar]") {
  // A state for each set of the last letters.
  const auto over = *bound(text_of(kind::regex, "(a|b)*a(a|b){40}"));
  const auto begin = over->bytes();
  std::mt19937 random(7);
  auto at = over->start();
  std::size_t steps = 0;
  while (at != constraint::failed && steps < 2'000'000) {
    at = over->step(at, random() % 2 == 0 ? 'a' : 'b');
    ++steps;
  }
  CHECK(at == constraint::failed);
  CHECK(over->failure() == "it needs too many states");
  CHECK(over->bytes() < begin + constraint::most_memo_bytes + (std::size_t{1} << 20));
}

TEST_CASE("a cursor stays where it is when its tokens are not allowed elsewhere", "[grammar]") {
  const auto views = byte_views();
  cursor job(*bound(text_of(kind::regex, "ab*"), views));
  REQUIRE(job.accept('a'));
  const std::vector<weir::core::token_id> written{'a'};
  CHECK_FALSE(job.move_to(*bound(text_of(kind::regex, "b"), views), written));
  CHECK(job.accept('b'));
}

TEST_CASE("forced bytes are those that every text goes on with", "[grammar]") {
  const auto forced = [](const constraint_text& c, std::string_view before) {
    const auto over = *bound(c);
    return forced_bytes(*over, over->step(over->start(), before));
  };
  const auto regex = text_of(kind::regex, "one(two|tea)(three)?|other");
  CHECK(forced(regex, "") == "o");
  CHECK(forced(regex, "on") == "et");
  CHECK(forced(regex, "onetw") == "o");
  CHECK(forced(regex, "onetwo").empty());  // it may end
  CHECK(forced(regex, "onetwot") == "hree");
  CHECK(forced(text_of(kind::regex, "a{100}"), "").size() == 64);
  CHECK(forced(text_of(kind::regex, "\xC3\xA9|\xC3\xA8"), "") == "\xC3");
  auto schema = text_of(kind::json_schema,
                        R"({"type":"object","properties":{"name":{"type":"null"}},"required":["name"],
                                               "additionalProperties":false})");
  schema.space = json_space::compact;
  CHECK(forced(schema, "") == R"({"name":null})");
  const auto grammar = text_of(kind::grammar, "root ::= \"ab\" <[5]>");
  CHECK(forced(grammar, "") == "ab");
}

TEST_CASE("a token is single where no other may come and the text may not end", "[grammar]") {
  cursor job(*bound(text_of(kind::regex, "ab?")));
  CHECK(single_token(job.over(), job.at()) == 'a');
  REQUIRE(job.accept('a'));
  CHECK_FALSE(single_token(job.over(), job.at()));
}

namespace {

struct asked {
  constraint_cache cache;
  manual_clock time;
  int compiled = 0;

  explicit asked(const constraint_cache::options& how = {}) : cache(how) {}
  constraint_cache::answer made(const constraint_text& c) {
    ++compiled;
    auto out = compile(c);
    if (!out) return out.error();
    auto warnings = out->warnings;
    auto over = constraint::make(std::move(*out), byte_views());
    if (!over) return over.error();
    return constraint_cache::ready{*over, std::move(warnings)};
  }
  constraint_cache::answer get(const constraint_text& c) {
    const auto key = key_of(c, "v");
    auto claim = cache.ask(key, time.now(), {});
    if (claim.known) return *claim.known;
    REQUIRE(claim.compile);
    auto out = made(c);
    cache.settle(key, out, time.now());
    return out;
  }
};

}  // namespace

TEST_CASE("a constraint is compiled once for all who ask, with its warnings", "[grammar]") {
  asked a;
  const auto c = text_of(kind::json_schema, R"({"items":{"uniqueItems":true}})");
  const auto first = a.get(c), second = a.get(c);
  REQUIRE(first.has_value());
  CHECK(a.compiled == 1);
  CHECK(first->over == second->over);
  CHECK(second->warnings.size() == first->warnings.size());
  auto strict = c;
  strict.strict = true;
  CHECK(a.get(strict).has_error());
  CHECK(a.compiled == 2);
}

TEST_CASE("whatever tells two constraints apart is in their key", "[grammar]") {
  const auto base = text_of(kind::grammar, "root ::= \"a\"");
  std::vector<constraint_text> others(5, base);
  others[0].text += " ";
  others[1].syntax = "lark";
  others[2].strict = true;
  others[3].space = json_space::compact;
  others[4].what = kind::regex;
  for (const auto& o : others) CHECK_FALSE(key_of(o, "v") == key_of(base, "v"));
  CHECK_FALSE(key_of(base, "w") == key_of(base, "v"));
  constraint_text one, two;
  one.choices = {"ab", "c"}, two.choices = {"a", "bc"};
  CHECK_FALSE(key_of(one, "v") == key_of(two, "v"));
}

TEST_CASE("who asks while another compiles is told when that one has settled", "[grammar]") {
  asked a;
  const auto key = key_of(text_of(kind::regex, "a"), "v");
  CHECK(a.cache.ask(key, a.time.now(), {}).compile);
  int told = 0;
  const auto waiting =
      a.cache.ask(key, a.time.now(), [&](const auto& answer) { told += answer.has_error(); });
  CHECK_FALSE(waiting.compile);
  CHECK_FALSE(waiting.known);
  a.cache.settle(key, weir::core::make_error(errc::unavailable, "cancelled"), a.time.now());
  CHECK(told == 1);
  CHECK(a.cache.size() == 0);
  CHECK(a.cache.ask(key, a.time.now(), {}).compile);  // nothing is known of it
}

TEST_CASE("a refusal is known for a while, one for a deadline for some seconds", "[grammar]") {
  asked a;
  const auto wrong = text_of(kind::regex, "(");
  CHECK(a.get(wrong).has_error());
  a.time.advance(std::chrono::seconds(59));
  CHECK(a.get(wrong).has_error());
  CHECK(a.compiled == 1);
  a.time.advance(std::chrono::seconds(1));
  CHECK(a.get(wrong).has_error());
  CHECK(a.compiled == 2);
  const auto key = key_of(text_of(kind::regex, "late"), "v");
  CHECK(a.cache.ask(key, a.time.now(), {}).compile);
  CHECK_FALSE(a.cache.find(key, a.time.now()));
  a.cache.settle(key, weir::core::make_error(errc::overloaded, "late"), a.time.now());
  a.time.advance(std::chrono::seconds(4));
  const auto again = a.cache.ask(key, a.time.now(), {});
  REQUIRE(again.known);
  CHECK(again.known->error().retry_after_ms == 6'000);
  CHECK(a.cache.find(key, a.time.now())->has_error());
  a.time.advance(std::chrono::seconds(6));
  CHECK_FALSE(a.cache.find(key, a.time.now()));
  CHECK(a.cache.ask(key, a.time.now(), {}).compile);
}

TEST_CASE("refusals that are kept stay within the bytes of the cache", "[grammar]") {
  asked a({.max_bytes = 10'000});
  for (int i = 0; i < 1'000; ++i) {
    const auto key = key_of(text_of(kind::regex, std::to_string(i)), "v");
    REQUIRE(a.cache.ask(key, a.time.now(), {}).compile);
    a.cache.settle(key, weir::core::make_error(errc::overloaded, "late"), a.time.now());
  }
  CHECK(a.cache.bytes() <= 10'000);
  CHECK(a.cache.size() < 40);
}

TEST_CASE("a cache holds its bytes, and what was asked for least recently goes first", "[grammar]") {
  const auto one = text_of(kind::regex, "a+1"), two = text_of(kind::regex, "a+2");
  const auto size = (*bound(one))->bytes() + 256;
  asked a({.max_bytes = 3 * size - size / 2});
  a.get(one), a.get(two), a.get(one);
  CHECK(a.compiled == 2);
  a.get(text_of(kind::regex, "a+3"));
  CHECK(a.cache.size() == 2);
  CHECK(a.cache.bytes() <= 3 * size - size / 2);
  a.get(one);
  CHECK(a.compiled == 3);
  a.get(two);
  CHECK(a.compiled == 4);
}

TEST_CASE("a constraint that remembers too much is replaced by a fresh one", "[grammar]") {
  const auto c = text_of(kind::json_object, "");
  const auto size = (*bound(c))->bytes();
  asked a({.max_bytes_of_one = size + 2'000});
  const auto first = a.get(c);
  CHECK(a.get(c)->over == first->over);
  refused_at(*first->over, R"({"a":[1,2,{"b":null}],"c":[true,[[[{"d":0.5}]]]]})");
  REQUIRE(first->over->bytes() > size + 2'000);
  const auto second = a.get(c);
  CHECK(second->over != first->over);
  CHECK(second->over->bytes() <= size);
  CHECK(a.compiled == 1);
}

}  // namespace weir::tests::budget_test
