#include "apps/progress.h"

#include <catch2/catch.hpp>

#include "apps/size_text.h"

using namespace std::chrono_literals;

namespace weir::apps {

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

TEST_CASE("sizes have three digits and a unit") {
  CHECK(size_text(0) == "0.00 kB");
  CHECK(size_text(12'345) == "12.3 kB");
  CHECK(size_text(21'300'000) == "21.3 MB");
  CHECK(size_text(1'073'741'824) == "1.07 GB");
  CHECK(size_text(32'100'000'000) == "32.1 GB");
  CHECK(size_text(999'600'000) == "1.00 GB");
  CHECK(size_text(17'282ull << 20) == "18.1 GB");
  CHECK(size_text(140'000'000'000) == "140 GB");
}

}  // namespace weir::apps
