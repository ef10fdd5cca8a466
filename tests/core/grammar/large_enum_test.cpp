// Enums of very many strings: what they cost, and that they are exact.
#include <set>

#include "tests/core/grammar/grammar_kit.h"

namespace weir::tests::large_enum_test {

using namespace weir::core::grammar;

namespace {

// Different texts of four letters.
std::vector<std::string> words(std::uint32_t n) {
  std::vector<std::string> out;
  for (std::uint32_t i = 0; i < n; ++i) {
    std::string word;
    for (std::uint32_t x = i * 1'009 % 456'976, k = 0; k < 4; ++k, x /= 26)
      word += static_cast<char>('a' + x % 26);
    out.push_back(std::move(word));
  }
  return out;
}

constraint_text enum_of(const std::vector<std::string>& all, const std::string& beside = "") {
  constraint_text c;
  c.what = constraint_text::kind::json_schema;
  c.strict = true;
  c.text = "{" + beside + "\"enum\":[";
  for (const auto& w : all) c.text.append(1, '"').append(w).append("\",");
  c.text.back() = ']';
  c.text += "}";
  return c;
}

struct made {
  std::shared_ptr<constraint> over;
  std::uint64_t burnt = 0;
};

made made_of(const constraint_text& c) {
  fuel budget({});
  auto out = compile(c, budget);
  if (!out) FAIL(out.error().message);
  auto over = constraint::make(std::move(*out), byte_views(), {}, &budget);
  if (!over) FAIL(over.error().message);
  return {*over, budget.burnt()};
}

// Where a text must be refused (see refused_at), found without a grammar.
std::optional<std::size_t> expected(const std::set<std::string>& all, const std::string& text) {
  for (std::size_t n = 1; n <= text.size(); ++n) {
    const auto at = all.lower_bound(text.substr(0, n));
    if (at == all.end() || at->compare(0, n, text, 0, n) != 0) return n - 1;
  }
  return all.contains(text) ? std::nullopt : std::optional(text.size());
}

}  // namespace

TEST_CASE("an enum of 100,000 strings is exact, within its fuel and its bytes", "[grammar]") {
  const auto all = words(100'000);
  const auto [over, burnt] = made_of(enum_of(all));
  CHECK(burnt < 5'000'000);
  CHECK(over->bytes() < std::size_t{16} << 20);
  std::set<std::string> quoted;
  for (const auto& w : all) quoted.insert('"' + w + '"');
  std::mt19937 random(5);
  for (int i = 0; i < 3'000; ++i) {
    std::string text = '"' + all[random() % all.size()] + '"';
    CHECK_FALSE(refused_at(*over, text));
    text[1 + random() % 5] = static_cast<char>('a' + random() % 26);
    CHECK(refused_at(*over, text) == expected(quoted, text));
  }
}

TEST_CASE("ten times as many values cost ten times as much, whatever else is asked of them", "[grammar]") {
  for (const char* beside : {"", R"("type":"string","maxLength":4,"pattern":"^[a-z]+$",)",
                             R"("anyOf":[{"minLength":4},{"const":"aaaa"}],)"}) {
    INFO(beside);
    const auto few = made_of(enum_of(words(2'000), beside)).burnt;
    const auto many = made_of(enum_of(words(20'000), beside)).burnt;
    CHECK(many < 12 * few);
  }
}

TEST_CASE("a large enum is filtered by another, and by what must not be", "[grammar]") {
  const auto all = words(20'000);
  auto c = enum_of(all, R"("allOf":[{"enum":["aaaa",")" + all[70] + R"(",")" + all[71] +
                            R"(",5]},{"not":{"const":")" + all[71] + R"("}}],)");
  const auto over = made_of(c).over;
  CHECK_FALSE(refused_at(*over, '"' + all[70] + '"'));
  CHECK(refused_at(*over, '"' + all[71] + '"'));
  CHECK(refused_at(*over, '"' + all[72] + '"'));
  CHECK(refused_at(*over, "5"));
}

TEST_CASE("the numbers and strings of an enum are one terminal", "[grammar]") {
  std::string schema = R"({"enum":[)";
  for (int i = 0; i < 20'000; ++i) schema += std::to_string(i * 7) + ",";
  schema += R"("a",null,true,2.50]})";
  const schema_under_test s(schema, true);
  REQUIRE(s.constraint);
  for (const char* text : {"0", "7", "70", "139993", "\"a\"", "null", "true", "2.50"}) CHECK(s.accepts(text));
  for (const char* text : {"1", "71", "139994", "\"b\"", "false", "2.5"}) CHECK_FALSE(s.accepts(text));
}

TEST_CASE("an enum of long strings costs their bytes, at once and where it is walked", "[grammar]") {
  std::vector<std::string> all;
  for (char c = 'a'; c <= 'p'; ++c)
    for (char d = 'a'; d <= 'd'; ++d) all.push_back(std::string(6'000, c) + d + std::string(6'000, 'z') + c);
  const auto [over, burnt] = made_of(enum_of(all));
  CHECK(over->bytes() < std::size_t{4} << 20);
  CHECK_FALSE(refused_at(*over, '"' + all[17] + '"'));
  auto other = '"' + all[17] + '"';
  other[9'000] = 'y';
  CHECK(refused_at(*over, other) == 9'000);
  CHECK(over->bytes() < std::size_t{16} << 20);
}

TEST_CASE("masks of a large enum are exact over a real vocabulary", "[grammar]") {
  std::mt19937 random(6);
  auto all = words(3'000);
  for (std::size_t i = 0; i < all.size(); i += 2) all[i] += " and more";
  const auto over = *bound(enum_of(all), bundled_views());
  for (int i = 0; i < 20; ++i) CHECK(masks_are_exact(*over, random, 30));
  const auto fresh = over->fresh();
  CHECK_FALSE(refused_at(*fresh, '"' + all[0] + '"'));
}

}  // namespace weir::tests::large_enum_test
