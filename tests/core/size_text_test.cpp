#include "core/size_text.h"

#include <catch2/catch.hpp>

namespace weir::tests::size_text_test {

using weir::core::size_text;

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

}  // namespace weir::tests::size_text_test
