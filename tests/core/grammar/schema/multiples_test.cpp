// multipleOf by remainders, against decimals that are compared exactly.
#include <random>

#include "core/grammar/schema/decimal.h"
#include "tests/core/grammar/schema/schema_kit.h"

namespace weir::tests::multiples_test {

using namespace weir::core::grammar;

namespace {

std::string number_text(std::mt19937& random, unsigned whole, unsigned behind) {
  std::string out = random() % 4 == 0 ? "-" : "";
  std::string digits;
  for (unsigned i = 0, n = 1 + random() % whole; i < n; ++i) digits += static_cast<char>('0' + random() % 10);
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size() - 1));
  out += digits;
  if (behind == 0 || random() % 2 == 0) return out;
  out += '.';
  for (unsigned i = 0, n = 1 + random() % behind; i < n; ++i) out += static_cast<char>('0' + random() % 10);
  return out;
}

struct asked {
  bool integers;
  decimal of;
  std::optional<decimal> low, high;
  bool above = false, below = false;  // the bounds are exclusive

  std::string schema() const {
    std::string out =
        fmt::format(R"({{"type":"{}","multipleOf":{})", integers ? "integer" : "number", of.text());
    if (low) out += fmt::format(",\"{}\":{}", above ? "exclusiveMinimum" : "minimum", low->text());
    if (high) out += fmt::format(",\"{}\":{}", below ? "exclusiveMaximum" : "maximum", high->text());
    return out + "}";
  }
  bool allows(const std::string& text) const {
    const auto v = decimal::parse(text);
    if (!v || !is_multiple(*v, of).value()) return false;
    if (integers && (text.find('.') != text.npos || text == "-0")) return false;
    if (low && (*v < *low || (above && *v == *low))) return false;
    return !high || !(*high < *v || (below && *v == *high));
  }
};

asked random_question(std::mt19937& random) {
  constexpr const char* steps[] = {"7",   "3",      "0.7", "0.03", "1.1", "13",
                                   "360", "0.0007", "70",  "999",  "2.1", "6"};
  asked q{random() % 2 == 0, decimal::of(steps[random() % std::size(steps)]), {}, {}};
  if (random() % 2 == 0) q.low = decimal::of(number_text(random, 3, 4));
  if (random() % 2 == 0) q.high = decimal::of(number_text(random, 4, 4));
  q.above = random() % 2 == 0;
  q.below = random() % 2 == 0;
  return q;
}

// The multiple k × `of` as a text, now and then with zeros at its end.
std::string multiple(const decimal& of, std::int64_t k, std::mt19937& random) {
  decimal v = decimal::of(k * std::stoll(of.digits));
  if (!v.zero()) v.exponent += of.exponent;
  std::string text = v.text();
  if (random() % 3 == 0) text += text.find('.') == text.npos ? ".0" : "00";
  return text;
}

}  // namespace

TEST_CASE("schema: multiples are told by their remainder, between any bounds", "[grammar]") {
  std::mt19937 random(11);
  int impossible = 0, accepted = 0;
  for (int round = 0; round < 300; ++round) {
    const asked q = random_question(random);
    INFO(q.schema());
    const schema_under_test s(q.schema(), true);
    if (!s.constraint) {  // no multiple lies between the bounds
      REQUIRE(s.refusal->message.find("no text satisfies") != std::string::npos);
      ++impossible;
      for (std::int64_t k = -20'000; k <= 20'000; ++k) REQUIRE_FALSE(q.allows(multiple(q.of, k, random)));
      continue;
    }
    for (int i = 0; i < 100; ++i) {
      const std::string text = i % 2 == 0 ? multiple(q.of, static_cast<int>(random() % 4'000) - 2'000, random)
                                          : number_text(random, 5, 5);
      INFO(text);
      CHECK(s.accepts(text) == q.allows(text));
      accepted += q.allows(text);
    }
  }
  CHECK(impossible < 100);
  CHECK(accepted > 3'000);
}

TEST_CASE("schema: every beginning of a multiple that is accepted leads to one", "[grammar]") {
  std::mt19937 random(12);
  for (int round = 0; round < 60; ++round) {
    const asked q = random_question(random);
    INFO(q.schema());
    const schema_under_test s(q.schema(), true);
    if (!s.constraint) continue;
    std::string text;
    for (auto at = s.constraint->start(); text.size() < 20;) {
      const auto rest = s.constraint->completion(at);
      REQUIRE(rest);
      INFO(text << *rest);
      CHECK(q.allows(text + *rest));
      std::vector<char> next;
      for (const char c : std::string_view("-.0123456789"))
        if (s.constraint->step(at, static_cast<unsigned char>(c)) != constraint::dead) next.push_back(c);
      if (next.empty()) break;
      text += next[random() % next.size()];
      at = s.constraint->step(at, static_cast<unsigned char>(text.back()));
    }
  }
}

TEST_CASE("schema: multiples have at most 64 digits on each side, and remainders at most 10,000",
          "[grammar]") {
  const schema_under_test s(R"({"type":"number","multipleOf":0.7})", true);
  REQUIRE(s.constraint);
  CHECK(s.accepts(std::string(64, '7')));
  CHECK_FALSE(s.accepts(std::string(65, '7')));
  CHECK(s.accepts("0.7" + std::string(63, '0')));
  CHECK_FALSE(s.accepts("0.7" + std::string(64, '0')));
  CHECK(s.refused_at(std::string(63, '7') + "8") == 64);  // a decimal part may make a multiple of it
  CHECK(s.refused_at("0.8") == 2);
  const schema_under_test many(R"({"type":"integer","multipleOf":9973})", true);
  REQUIRE(many.constraint);
  CHECK(many.accepts("9973" + std::string(11, '0')));
  CHECK_FALSE(many.accepts("9973" + std::string(12, '0')));
  CHECK(many.refused_at("99730000000000") == std::nullopt);
  CHECK(schema_under_test(R"({"type":"integer","multipleOf":10007})", true).refusal);
  CHECK(schema_under_test(R"({"type":"number","multipleOf":0.9973})", true).refusal);
  CHECK(schema_under_test(R"({"type":"integer","multipleOf":0.9973})", true).constraint);
}

TEST_CASE("schema: all states of the most remainders have a place in what is remembered", "[grammar]") {
  const schema_under_test s(R"({"type":"array","items":{"type":"integer","multipleOf":9973}})", true);
  REQUIRE(s.constraint);
  std::mt19937 random(13);
  auto at = s.constraint->step(s.constraint->start(), '[');
  for (int i = 0; i < 20'000; ++i) {  // numbers of 14 digits, raised to the next multiple
    std::string text = std::to_string(1 + random() % 9);
    for (int k = 0; k < 9; ++k) text += static_cast<char>('0' + random() % 10);
    const auto n = std::stoull(text + "0000");
    at = s.constraint->step(at, std::to_string(n + 9'973 - n % 9'973) + ",");
    REQUIRE(at != constraint::failed);
    REQUIRE(at != constraint::dead);
  }
}

TEST_CASE("schema: several multiples, the opposite of one, and numbers that are not whole", "[grammar]") {
  const schema_under_test both(
      R"({"type":"integer","allOf":[{"multipleOf":6},{"multipleOf":7},{"multipleOf":4}]})", true);
  const schema_under_test not_seven(R"({"type":"integer","minimum":0,"not":{"multipleOf":7}})", true);
  const schema_under_test broken(R"({"type":"number","not":{"type":"integer"},"multipleOf":0.3})", true);
  REQUIRE((both.constraint && not_seven.constraint && broken.constraint));
  for (int n = 0; n < 500; ++n) {
    const std::string text = std::to_string(n);
    CHECK(both.accepts(text) == (n % 84 == 0));
    CHECK(not_seven.accepts(text) == (n % 7 != 0));
  }
  CHECK(broken.accepts("0.3"));
  CHECK_FALSE(broken.accepts("3.0"));
  CHECK_FALSE(broken.accepts("0.4"));
}

}  // namespace weir::tests::multiples_test
