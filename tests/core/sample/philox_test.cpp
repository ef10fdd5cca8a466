#include "core/sample/philox.h"

#include <catch2/catch.hpp>
#include <set>

namespace weir::tests::philox_test {

using namespace weir::core;

TEST_CASE("Philox4x32-10 gives Random123's known answers") {
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == philox_counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
        philox_counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        philox_counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a uniform number depends on the whole seed and on each part of its site") {
  std::set<double> seen;
  for (const std::uint64_t seed : {0ULL, 1ULL, 1ULL << 32, ~0ULL}) {
    for (std::uint32_t part = 0; part < 4; ++part) {
      for (std::uint32_t value = 1; value < 50; ++value) {
        draw_site at;
        (part == 0 ? at.position : part == 1 ? at.choice : part == 2 ? at.attempt : at.draw) = value;
        const double u = uniform(seed, at);
        CHECK(u >= 0);
        CHECK(u < 1);
        CHECK(u == uniform(seed, at));
        seen.insert(u);
      }
    }
  }
  CHECK(seen.size() == 4 * 4 * 49);
}

}  // namespace weir::tests::philox_test
