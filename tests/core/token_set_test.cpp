#include "core/token_set.h"

#include <catch2/catch.hpp>
#include <limits>
#include <random>
#include <set>

namespace weir::tests::token_set_test {

using namespace weir::core;

TEST_CASE("token set: a long list of equal ids is one id") {
  const token_set s = std::vector<token_id>(250'000, 7);
  CHECK(s.size() == 1);
  CHECK(s.bytes() == sizeof(token_id));
  CHECK(s.contains(7));
}

TEST_CASE("token set: it holds what a std::set holds, without negative ids") {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::set<token_id> wanted;
    std::vector<token_id> ids;
    for (std::size_t n = random() % 200; n > 0; --n) {
      ids.push_back(static_cast<token_id>(random() % 1000) - 100);
      if (ids.back() >= 0) wanted.insert(ids.back());
    }
    const token_set s = ids;
    REQUIRE(std::ranges::equal(s, wanted));
    for (token_id id = -100; id < 900; ++id) REQUIRE(s.contains(id) == wanted.contains(id));
    const auto limit = static_cast<std::uint32_t>(random() % 900);
    const auto below = std::ranges::count_if(wanted, [&](token_id id) { return id < std::int64_t{limit}; });
    REQUIRE(s.below(limit).size() == static_cast<std::size_t>(below));
  }
  const token_set last{std::numeric_limits<token_id>::max(), 3};
  CHECK(last.below(1000).size() == 1);
}

TEST_CASE("token set: one set with another shares the memory of the one that has all") {
  const token_set some{1, 5, 9}, few{5}, other{4};
  CHECK(some.with(few).ids().data() == some.ids().data());
  CHECK(few.with(some).ids().data() == some.ids().data());
  CHECK(some.with({}).ids().data() == some.ids().data());
  CHECK(some.with(other) == token_set{1, 4, 5, 9});
  CHECK(some.with(other).contains(4));
}

}  // namespace weir::tests::token_set_test
