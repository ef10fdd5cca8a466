// In which steps pools can change: the memory of any number of whole steps ends at whole units in every run.
#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "kernels/cuda/backend.h"
#include "kernels/pool_steps.h"
#include "tests/support/budget.h"
#include "tests/support/seed.h"

namespace weir::tests::pool_steps_test {

using namespace weir::kernels;

namespace {

constexpr memory_pieces device{2u << 20, 16u << 20};

pool_steps of(std::uint64_t part, memory_pieces pieces = device) {
  return steps_of(pieces, std::span(&part, 1));
}

}  // namespace

TEST_CASE("pools of known models change in steps that follow from their pages") {
  CHECK(of(128u << 10).step == 128);  // an 8B in bf16: 8 key heads of 128
  CHECK(of(128u << 10).even == 16);
  CHECK(of(64u << 10).step == 256);  // the same in fp8
  CHECK(of(68u << 10).even == 512);  // and in q8, with a scale for each 32 numbers
  CHECK(of(68u << 10).step == 512);
  CHECK(of(4096, {4096, 4096}).step == 1);
  CHECK(of(4096, {}).step == 0);
}

TEST_CASE("a pool changes if it has two steps and ends at a whole unit, and auto pools are rounded to that") {
  const pool_steps s = of(128u << 10);
  CHECK_FALSE(s.change(255));
  CHECK(s.change(256));
  CHECK_FALSE(s.change(257));
  CHECK(s.change(272));
  CHECK(s.rounded(257) == 256);
  CHECK(s.rounded(255) == 255);
  CHECK(s.rounded(279) == 279);  // 7 of them are too many
  CHECK(s.rounded(1'000'007) == 1'000'000);
  CHECK(s.held(1, 272) == 128);
  CHECK(s.held(129, 272) == 256);
  CHECK(s.held(257, 272) == 272);
  CHECK_FALSE(pool_steps{}.change(1 << 20));
  CHECK(pool_steps{}.rounded(1'000'007) == 1'000'007);
}

TEST_CASE("whatever the sizes of pages, steps and even pools are whole units of memory in each run") {
  std::mt19937_64 random(weir::tests::drawn_seed(7));
  const unsigned all = weir::tests::rounds(2000);
  unsigned found = 0;
  for (unsigned i = 0; i < all; ++i) {
    const memory_pieces pieces = random() % 2 ? device : memory_pieces{4096, 4096};
    std::vector<std::uint64_t> parts(1 + random() % 3);
    for (auto& p : parts) p = 64 * (1 + random() % 16) * (8 << random() % 6);
    const pool_steps s = steps_of(pieces, parts);
    if (s.step == 0) continue;
    ++found;
    REQUIRE(s.step % s.even == 0);
    for (const std::uint64_t p : parts) {
      REQUIRE(s.even * p % pieces.unit == 0);
      REQUIRE(s.step * p >= pieces.usual);
    }
    const auto count = static_cast<std::uint32_t>(random() % 100'000);
    const std::uint32_t rounded = s.rounded(count);
    REQUIRE(rounded <= count);
    REQUIRE((rounded == count || (s.change(rounded) && count - rounded < s.even)));
  }
  CHECK(found > all / 2);
}

TEST_CASE("a plan without a device knows the pieces of one, and that some devices have none") {
  CHECK(cuda_sizes(hopper_facts)->pieces.unit == device.unit);
  CHECK(cuda_sizes(hopper_facts)->pieces.usual == device.usual);
  cuda_facts none = hopper_facts;
  none.memory_unit = 0;
  CHECK(cuda_sizes(none)->pieces.unit == 0);
}

}  // namespace weir::tests::pool_steps_test
