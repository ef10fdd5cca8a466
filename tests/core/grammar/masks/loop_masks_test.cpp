#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "tests/core/grammar/grammar_kit.h"

namespace weir::tests::loop_masks_test {

using namespace weir::core::grammar;

namespace {

void check_masks(const char* expression, std::mt19937& random) {
  INFO(expression);
  auto c = compile_regex(expression);
  REQUIRE(c.has_value());
  auto over = constraint::make(std::move(*c), bundled_views());
  REQUIRE(over.has_value());
  for (int walk = 0; walk < 6; ++walk) CHECK(masks_are_exact(**over, random, 12));
}

}  // namespace

// Loops that a walk takes in one piece, and the ends of loops, where it must not.
TEST_CASE("masks of loops over bytes are exact", "[grammar]") {
  constexpr const char* expressions[] = {
      R"("[a-z]*")",                    // one state
      R"("[a-z]{1,3}")",                // ends within a token
      R"("[a-zA-Z0-9_]{2,40}")",        // a minimum
      R"("[ a-z]{4}[A-Z]{3}-[0-9]+")",  // one loop behind another
      R"("[a-z]+ing")",                 // what follows shares bytes with the loop
      R"("[a-z]*[aeiou][a-z]{0,2}")",   // over behind bytes that the loop has
      R"("([a-z]|[A-Z][a-z])*")",       // longer bodies beside a byte
      R"("[^"\\]{0,5}")",               // characters of several bytes
      R"(^(?!th)[a-z ]{2,9}$)",         // an exception
      R"([a-z]{1,4}(, ?[a-z]+)*)",      // may be over in the middle
      R"("a*[^]*")",                    // anything behind
      R"(([a-z]{2,5}|[a-f0-9]{3,9}):)",
  };
  std::mt19937 random(11);
  for (const auto* expression : expressions) check_masks(expression, random);
}

TEST_CASE("masks of terminals that begin with fixed bytes are exact", "[grammar]") {
  constexpr const char* expressions[] = {"the", "the [a-z]+", "(the|then|there) (is|it)", "a",
                                         "\"name\": ?1"};
  std::mt19937 random(12);
  for (const auto* expression : expressions) check_masks(expression, random);
}

}  // namespace weir::tests::loop_masks_test
