#include "core/text/tokenizer/sentence_normalizer.h"

#include <catch2/catch.hpp>

#include "core/text/tokenizer/normalizer.h"
#include "tests/support/charsmap_bytes.h"

namespace weir::tests::sentence_normalizer_test {

using namespace weir::core;
using Catch::Matchers::Contains;

TEST_CASE("spaces become U+2581, one stands in front, and extra ones go") {
  sentence_rules r;
  CHECK(normalize("  a  b ", true, r) == "▁a▁b");
  CHECK(normalize("   ", true, r).empty());
  CHECK(normalize("", true, r).empty());
  r.removes_extra_spaces = false;
  CHECK(normalize(" a  b ", true, r) == "▁▁a▁▁b▁");
  r.leading_space = false;
  CHECK(normalize(" a", true, r) == "▁a");
}

TEST_CASE("a text that goes on behind an added token gets no space where only the start gets one") {
  sentence_rules r;
  r.at_the_start_alone = true;
  CHECK(normalize("a", true, r) == "▁a");
  CHECK(normalize("a", false, r) == "a");
  CHECK(normalize(" a ", false, r) == "▁a");
  r.at_the_start_alone = false;
  CHECK(normalize("a", false, r) == "▁a");
}

TEST_CASE("the longest string of the table is replaced, and user-defined pieces are not") {
  sentence_rules r;
  r.replacements.emplace(charsmap_writer{{"\n", " "}, {"A", "a"}, {"AB", "x y"}, {"-", ""}}.table(), "t");
  CHECK(normalize("\nA AB\n\n-A", true, r) == "▁a▁x▁y▁a");
  r.user_defined = piece_trie({{"AB", 0}, {"\n\n", 0}});
  CHECK(normalize("A AB\n\n-A", true, r) == "▁a▁AB\n\na");
}

TEST_CASE("a table whose string ends inside a character leaves valid text") {
  sentence_rules r;
  r.replacements.emplace(charsmap_writer{{"\xC3", "e"}}.table(), "t");
  CHECK(normalize("é", true, r) == "▁e\uFFFD");
}

TEST_CASE("rules that make a text too long are refused") {
  sentence_rules r;
  r.replacements.emplace(charsmap_writer{{"a", std::string(29, 'x')}}.table(), "t");
  CHECK(growth_of(r) == Approx(32));
  CHECK_NOTHROW(normalizer(r, "table"));
  r.replacements.emplace(charsmap_writer{{"a", std::string(30, 'x')}}.table(), "t");
  try {
    const normalizer n(r, "table");
    FAIL("it was accepted");
  } catch (const refusal& why) {
    CHECK_THAT(why.why.message, Contains("table: makes a text more than 32 times as long"));
  }
}

}  // namespace weir::tests::sentence_normalizer_test
