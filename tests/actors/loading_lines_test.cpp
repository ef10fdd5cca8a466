#include "actors/loading_lines.h"

#include <catch2/catch.hpp>

namespace weir::tests::loading_lines_test {

using namespace std::chrono_literals;
using weir::actors::loading_lines;

TEST_CASE("a load of less than five seconds leaves no line in a log") {
  loading_lines lines;
  for (std::uint64_t done = 0; done <= 100; ++done)
    CHECK_FALSE(lines.next(done * 49999us, "rill", done * 1000000, 100000000));
}

TEST_CASE("a longer load leaves a line every five seconds, whatever the model") {
  loading_lines lines;
  CHECK_FALSE(lines.next(4999ms, "a", 10, 40));
  CHECK(lines.next(5s, "a", 11000000, 40000000) == "loading a: 27 % of 40.0 MB");
  CHECK_FALSE(lines.next(9999ms, "a", 39999999, 40000000));
  CHECK(lines.next(10s, "b", 0, 32100000000) == "loading b: 0 % of 32.1 GB");
  CHECK_FALSE(lines.next(11s, "b", 32100000000, 32100000000));
}

}  // namespace weir::tests::loading_lines_test
