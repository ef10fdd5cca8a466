// Texts from outside, as long as messages show them.
#include "core/shortened.h"

#include <catch2/catch.hpp>

namespace weir::tests::shortened_test {

using core::longest_shown;
using core::shortened;

TEST_CASE("shortened: a text that is short enough stays as it is") {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, longest_shown})
    CHECK(shortened(std::string(bytes, 'x')) == std::string(bytes, 'x'));
}

TEST_CASE("shortened: a longer text is cut between two characters, and says so") {
  CHECK(shortened(std::string(longest_shown + 1, 'x')) == std::string(longest_shown - 3, 'x') + "…");
  for (std::size_t before = 0; before < 4; ++before) {
    std::string text(before, 'x');
    while (text.size() <= longest_shown) text += "水";
    const auto cut = shortened(text);
    CAPTURE(before);
    CHECK(cut.size() <= longest_shown);
    CHECK(cut.size() > longest_shown - 3);
    const auto kept = cut.substr(0, cut.size() - 3);
    CHECK(text.starts_with(kept));
    CHECK((kept.size() - before) % 3 == 0);
    CHECK(cut.ends_with("…"));
  }
}

}  // namespace weir::tests::shortened_test
