#include "actors/loading_lines.h"

#include <catch2/catch.hpp>

namespace weir::tests::loading_lines_test {

using namespace std::chrono_literals;
using weir::actors::loading_lines;

TEST_CASE("a load of less than a second leaves no line in a log") {
  loading_lines lines;
  for (std::uint64_t done = 0; done <= 100; ++done)
    CHECK_FALSE(lines.next(done * 9999us, "rill", done * 1000000, 100000000));
}

TEST_CASE("a longer load leaves a line for each quarter of each model from then on") {
  loading_lines lines;
  CHECK_FALSE(lines.next(999ms, "a", 10, 40));
  CHECK(lines.next(1s, "a", 11000000, 40000000) == "loading a: 25 % of 40.0 MB");
  CHECK_FALSE(lines.next(2s, "a", 19999999, 40000000));
  CHECK(lines.next(3s, "a", 20000000, 40000000) == "loading a: 50 % of 40.0 MB");
  CHECK(lines.next(4s, "a", 40000000, 40000000) == "loading a: 100 % of 40.0 MB");
  CHECK(lines.next(5s, "b", 0, 8000000) == "loading b: 0 % of 8.0 MB");
}

}  // namespace weir::tests::loading_lines_test
