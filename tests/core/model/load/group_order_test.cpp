#include "core/model/load/group_order.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <random>

namespace weir::tests::group_order_test {

using namespace weir::core;
using Catch::Matchers::Contains;

namespace {

using numbers = std::vector<std::uint32_t>;

std::string refusal(const numbers& groups, std::uint32_t size, errc code) {
  const auto r = order_of_groups(groups, size, "l.g_idx");
  REQUIRE(!r.has_value());
  CHECK(r.error().code == code);
  return r.error().message;
}

}  // namespace

TEST_CASE("inputs are sorted by group, those of a group as they were") {
  CHECK(order_of_groups(numbers{1, 0, 1, 0, 2}, 2, "").value() == numbers{1, 3, 0, 2, 4});
  CHECK(order_of_groups(numbers{0, 0, 0}, 5, "").value() == numbers{0, 1, 2});
  std::mt19937 r(1);
  for (int round = 0; round < 50; ++round) {
    const std::uint32_t size = 1 + r() % 40, inputs = 1 + r() % 300;
    numbers groups(inputs);
    for (std::uint32_t k = 0; k < inputs; ++k) groups[k] = k / size;
    numbers wanted(inputs);
    std::iota(wanted.begin(), wanted.end(), 0);
    CHECK(order_of_groups(groups, size, "").value() == wanted);
    std::ranges::shuffle(groups, r);
    std::ranges::stable_sort(wanted, {}, [&](std::uint32_t k) { return groups[k]; });
    CHECK(order_of_groups(groups, size, "").value() == wanted);
  }
}

TEST_CASE("groups that there are not, and groups of unequal size, are refused with the tensor's name") {
  CHECK_THAT(refusal({0, 0, 1, 2}, 2, errc::bad_file), Contains("'l.g_idx': input 3 is in group 2 of 2"));
  CHECK_THAT(refusal({0, 0, 1, 0xffffffffu}, 2, errc::bad_file), Contains("group 4294967295 of 2"));
  CHECK_THAT(refusal({0, 0, 0, 1}, 2, errc::not_supported),
             Contains("'l.g_idx': group 0 has 3 inputs, not 2"));
  // The last group is the one that may be short.
  CHECK_THAT(refusal({0, 1, 1, 2, 2}, 2, errc::not_supported), Contains("group 0 has 1 inputs, not 2"));
}

}  // namespace weir::tests::group_order_test
