#include "core/grammar/regex/regex.h"

#include <boost/json.hpp>
#include <catch2/catch.hpp>
#include <fstream>
#include <random>
#include <regex>
#include <string>
#include <vector>

#include "tests/core/grammar/each_text.h"
#include "tests/support/data.h"

namespace weir::tests::regex_test {

using namespace weir::core::grammar;

namespace {

bool matches(regex_pool& pool, regex_id r, std::string_view text) {
  for (const char c : text) r = pool.transition(r, static_cast<unsigned char>(c));
  return pool.nullable(r);
}

regex_options searching() {
  regex_options o;
  o.how = regex_options::match::search;
  return o;
}

struct fact {
  const char* expression;
  std::vector<std::string> in, out;
  regex_options options = {};
};

const std::vector<fact> facts{
    {"", {""}, {"a"}},
    {"a|bc", {"a", "bc"}, {"", "b", "abc"}},
    {"(a|b)*c{2,3}", {"cc", "abccc"}, {"c", "acccc"}},
    {"a{2,}", {"aa", "aaaa"}, {"a"}},
    {"a{3}?", {"aaa"}, {"aa", "aaaa"}},
    {"[^a-c]", {"d", "\xC3\xA9", "\xF0\x9F\x98\x80"}, {"a", "", "\xC3"}},
    {".", {"x", "\xE2\x82\xAC"}, {"\n", "\r", "\xE2\x80\xA8"}},
    {"(?s).", {"\n"}, {}},
    {"(?i)k\xC3\xA4se", {"K\xC3\x84SE", "k\xC3\xA4Se", "\xE2\x84\xAA\xC3\xA4se"}, {"kase"}},
    {"(?i:a)b", {"Ab"}, {"AB"}},
    {"\\d\\w\\s", {"1_\t", "0a\xC2\xA0"}, {"1-\t", "\xD9\xA1_ "}},
    {"\\x41\\u0042\\u{43}\\cJ", {"ABC\n"}, {}},
    {"\\uD83D\\uDE00", {"\xF0\x9F\x98\x80"}, {}},
    {"[\\uD800-\\uDFFFa]", {"a"}, {"\xED\xA0\x80"}},
    {"\\p{Lu}\\P{Lu}",
     {"Aa",
      "\xC3\x84"
      "1"},
     {"aa", "AA"}},
    {"\\p{Script=Greek}+", {"\xCE\xB1\xCE\xA9"}, {"a"}},
    {"[\\w-]+", {"a-b"}, {"a b"}},
    {"[]", {}, {"", "a"}},
    {"[^]", {"\n"}, {""}},
    {"(?<year>\\d{4})-(?:a|b)", {"2024-b"}, {"2024-"}},
    {"^abc$", {"abc"}, {"abcd"}},
    {"a^b|c", {"c"}, {"ab"}},
    {"(^|x)a", {"a", "xa"}, {"ya"}},
    {"\\bfoo\\b.*", {"foo", "foo bar"}, {"foobar"}},
    {"a\\Bb", {"ab"}, {}},
    {"(?!ab)[a-c]+", {"ba", "aa", "a"}, {"ab", "abc"}},
    {"(?=.*\\d)(?=.*[a-z]).{3,5}", {"a1c", "11111a"[0] ? "1a111" : ""}, {"abc", "123", "a1"}},
    {"abc", {"abc", "xabcx"}, {"ab", ""}, searching()},
    {"^abc", {"abc", "abcx"}, {"xabc"}, searching()},
    {"abc$", {"abc", "xabc"}, {"abcx"}, searching()},
    {"^a|b$", {"a", "ax", "xb"}, {"xa", "bx"}, searching()},
    {"\\bcat\\b", {"cat", "a cat!", "cat-nap"}, {"cats", "scat"}, searching()},
    {"^(?!.*\\.\\.)[a-z.]+$", {"a.b", "."}, {"a..b", ""}, searching()},
    {"^(\\([0-9]{3}\\))?[0-9]{3}-[0-9]{4}$",
     {"555-1212", "(888)555-1212"},
     {"(888)555-1212 ext. 532"},
     searching()},
    {"(a*)*b", {"b", "aaab"}, {"a"}},
    {"(a|a)*", {"", "aaaa"}, {"b"}},
    {"(|a)+", {"", "aa"}, {"b"}},
    {"a{0}", {""}, {"a"}},
    {"(^a|b)+", {"abb", "bbb"}, {"ba"}},
    {"(a$|b)+", {"bba", "bb"}, {"ab"}},
};

const std::vector<std::pair<const char*, std::size_t>> refused{
    {"a(?=b)", 1}, {"(a)\\1", 3}, {"(?<=a)b", 0}, {"(?<!a)b", 0}, {"(?>a)", 0},     {"a++", 2},
    {"a**", 2},    {"*a", 0},     {"(a", 1},      {"a)", 1},      {"[a", 0},        {"[b-a]", 1},
    {"\\k<x>", 0}, {"(?m)a", 2},  {"(?R)", 0},    {"a{3,2}", 1},  {"\\p{Nope}", 2}, {"\\q", 0},
    {"a{,3}", 1},  {"\\u12", 4},  {"\\", 0},      {"(?#x)", 2},   {"\xFF", 0},      {"a{99999999999}", 2},
};

}  // namespace

TEST_CASE("regular expressions mean what ECMA-262 says", "[grammar]") {
  for (const auto& f : facts) {
    INFO(f.expression);
    regex_pool pool;
    const auto r = parse_regex(pool, f.expression, f.options);
    REQUIRE(r.has_value());
    for (const auto& text : f.in) {
      INFO("\"" << text << "\"");
      CHECK(matches(pool, *r, text));
    }
    for (const auto& text : f.out) {
      INFO("\"" << text << "\"");
      CHECK_FALSE(matches(pool, *r, text));
    }
  }
}

TEST_CASE("what is not regular or not known is refused with its offset", "[grammar]") {
  for (const auto& [expression, offset] : refused) {
    INFO(expression);
    regex_pool pool;
    const auto r = parse_regex(pool, expression);
    REQUIRE(r.has_error());
    CHECK(r.error().offset == offset);
    CHECK_FALSE(r.error().message.empty());
  }
}

TEST_CASE("texts that other engines judged are judged alike", "[grammar]") {
  std::ifstream in(weir::tests::data_dir() / "schemas/engines/regex.jsonl");
  if (!in) WARN("no data");
  std::size_t texts = 0;
  for (std::string line; std::getline(in, line);) {
    const auto o = boost::json::parse(line).as_object();
    const std::string expression(o.at("regex").as_string());
    INFO(expression);
    regex_pool pool;
    const auto r = parse_regex(pool, expression);
    if (!r) {
      WARN(expression << ": " << r.error().message << " at " << r.error().offset);
      continue;
    }
    for (const auto& t : o.at("tests").as_array()) {
      const auto& test = t.as_object();
      if (test.contains("py")) continue;  // judged otherwise by an independent engine
      const std::string text(test.at("text").as_string());
      INFO("\"" << text << "\"");
      CHECK(matches(pool, *r, text) == test.at("accepted").as_bool());
      ++texts;
    }
  }
  if (std::filesystem::exists(weir::tests::data_dir())) CHECK(texts > 100);
}

namespace {

using random_engine = std::mt19937;

std::size_t below(random_engine& random, std::size_t n) { return random() % n; }

// An expression over a, b and `-`, which is no word character.
std::string expression(random_engine& random, int depth, bool borders) {
  const auto inner = [&] { return expression(random, depth - 1, borders); };
  switch (below(random, depth > 0 ? 9 : 3)) {
    case 0:
      return "a";
    case 1:
      return "b";
    case 2:
      return borders && below(random, 2) ? std::vector<std::string>{"^", "$", "\\b", "\\B"}[below(random, 4)]
                                         : "-";
    case 3:
      return inner() + inner();
    case 4:
      return "(?:" + inner() + "|" + inner() + ")";
    case 5:
      return borders ? "(?:" + inner() + "){0,2}" : "(?:" + inner() + ")*";
    case 6:
      return "(?:" + inner() + "){1,2}";
    case 7:
      return "[ab]";
    default:
      return inner() + "(?:" + inner() + ")?";
  }
}

}  // namespace

TEST_CASE("random expressions match what the standard library's engine matches", "[grammar]") {
  random_engine random(2024);
  for (int i = 0; i < 300; ++i) {
    const bool borders = i % 3 == 0, search = i % 2 == 0;
    const auto source = expression(random, 3, borders);
    INFO(source << (search ? ", searched" : ", whole"));
    regex_pool pool;
    const auto r = parse_regex(pool, source, search ? searching() : regex_options{});
    REQUIRE(r.has_value());
    const std::regex other(source);
    each_text("ab-", 4, [&](const std::string& text) {
      const bool theirs = search ? std::regex_search(text, other) : std::regex_match(text, other);
      if (matches(pool, *r, text) == theirs) return;
      INFO("\"" << text << "\"");
      CHECK(matches(pool, *r, text) == theirs);
    });
  }
}

TEST_CASE("a transition is `nothing` exactly where no text of the language begins so", "[grammar]") {
  random_engine random(7);
  for (int i = 0; i < 150; ++i) {
    regex_pool pool;
    const auto x = *parse_regex(pool, expression(random, 3, false)),
               y = *parse_regex(pool, expression(random, 3, false));
    const auto r = pool.both(x, i % 2 ? y : pool.complement(y));
    each_text("ab-", 3, [&](const std::string& text) {
      auto state = r;
      for (const char c : text) state = pool.transition(state, static_cast<unsigned char>(c));
      const auto end = pool.shortest(state, 40);
      CHECK((state != regex_pool::nothing && pool.live(state)) == end.found);
      if (end.found) CHECK(matches(pool, r, text + end.text));
      const bool in_y = matches(pool, y, text);
      CHECK(pool.nullable(state) == (matches(pool, x, text) && (i % 2 ? in_y : !in_y)));
    });
  }
}

TEST_CASE("counts above the horizon change nothing within it", "[grammar]") {
  random_engine random(11);
  for (int i = 0; i < 100; ++i) {
    regex_pool pool;
    const auto x = *parse_regex(pool, expression(random, 2, false));
    const auto min = static_cast<std::uint32_t>(below(random, 7)),
               max = min + static_cast<std::uint32_t>(below(random, 7));
    const auto r = pool.concat(pool.repeat(x, min, max), pool.byte('b'));
    const auto cut = pool.within(r, 3);
    each_text("ab-", 3, [&](const std::string& text) {
      auto one = r, two = cut;
      for (const char c : text) {
        one = pool.transition(one, static_cast<unsigned char>(c));
        two = pool.transition(two, static_cast<unsigned char>(c));
      }
      CHECK((one == regex_pool::nothing) == (two == regex_pool::nothing));
      CHECK(pool.nullable(one) == pool.nullable(two));
    });
  }
}

TEST_CASE("a tree of literals has exactly its texts", "[grammar]") {
  random_engine random(3);
  std::vector<std::string> some;
  each_text("ab", 5, [&](const std::string& text) {
    if (below(random, 3) == 0) some.push_back(text);
  });
  regex_pool pool;
  const auto r = pool.literals(some);
  each_text("ab", 6, [&](const std::string& text) {
    CHECK(matches(pool, r, text) == (std::find(some.begin(), some.end(), text) != some.end()));
  });
}

TEST_CASE("expressions that would need endless states are refused within bounds", "[grammar]") {
  regex_pool pool(20'000);
  const auto r = parse_regex(pool, "(?:(?:a{1,100000}){1,100000}b?){1,100000}");
  REQUIRE(r.has_value());
  auto state = *r;
  for (int i = 0; i < 2'000 && !pool.exhausted(); ++i) state = pool.transition(state, 'a');
  CHECK(pool.size() <= 20'000);
  CHECK(parse_regex(pool, std::string(300, '(')).has_error());
  CHECK(parse_regex(pool, std::string(70'000, 'a')).has_error());
}

TEST_CASE("a language whose texts are long or come late is not taken for an empty one", "[grammar]") {
  const auto inside = [](regex_pool& pool, const char* source, regex_id other) {
    const auto r = parse_regex(pool, source);
    REQUIRE(r.has_value());
    return pool.both(*r, other);
  };
  regex_pool pool;
  const auto long_text = pool.repeat(pool.bytes(byte_set().set()), 1'000, unbounded);
  CHECK(pool.live(inside(pool, "(ab|a.{5})*", long_text)));
  CHECK(pool.live(
      inside(pool, "(a|b)*a(a|b){18}", pool.any_number(pool.either(pool.byte('a'), pool.byte('b'))))));
  CHECK(pool.live(inside(pool, "(a{1,100000}){1,100000}b", pool.complement(pool.byte('b')))));
  CHECK_FALSE(pool.exhausted());
}

TEST_CASE("a search through terms that grow with the text gives up by its work", "[grammar]") {
  regex_pool pool;
  byte_set letters;
  for (const char c : {'a', 'b', 'c'}) letters.set(static_cast<unsigned char>(c));
  const auto ends_otherwise = *parse_regex(pool, "([a-c]{1,3}){1,100000}d");
  CHECK(pool.live(pool.both(ends_otherwise, pool.any_number(pool.bytes(letters)))));
  CHECK(pool.exhausted());
  CHECK(pool.bytes() < std::size_t{32} << 20);
}

TEST_CASE("a search that gives up finds nothing empty, and the pool says so", "[grammar]") {
  regex_pool pool;
  const auto x = parse_regex(pool, "(a|b)*a(a|b){24}"), y = parse_regex(pool, "(a|b)*b(a|b){24}");
  CHECK(pool.live(pool.both(*x, *y)));  // empty, but nobody can tell
  CHECK(pool.exhausted());
  CHECK_FALSE(pool.failure().empty());
  regex_pool small(2'000);  // the same where it has no room for more terms
  const auto z = parse_regex(small, "(a|b)*a(a|b){24}"), w = parse_regex(small, "(a|b)*b(a|b){24}");
  CHECK(small.live(small.both(*z, *w)));
  CHECK(small.exhausted());
}

}  // namespace weir::tests::regex_test
