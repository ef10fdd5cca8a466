// The structure of EXL2's linears. Golden values are in quantised_test.cpp, random ones in
// quantised_random_test.cpp.
#include "core/model/load/exl2.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <random>

namespace weir::tests::exl2_test {

using namespace weir::core;
using Catch::Matchers::Contains;

namespace {

using halves = std::vector<std::uint16_t>;
using numbers = std::vector<std::uint32_t>;

numbers in_order(std::uint32_t count) {
  numbers n(count);
  std::iota(n.begin(), n.end(), 0);
  return n;
}

std::string refusal(const halves& groups, const numbers& places, std::uint64_t words) {
  const auto r = lay_out_exl2(groups, places, words, "l");
  if (r) return "accepted";
  CHECK(r.error().code == errc::bad_file);
  return r.error().message;
}

}  // namespace

TEST_CASE("exl2: each group fills whole blocks, and columns are the inputs in the order of the file") {
  numbers places = in_order(80);
  std::reverse(places.begin(), places.end());
  // 32 inputs of 5 bits in 5 rows of words, 16 of 4 bits in 2, then 32 of 2 bits in 2.
  CHECK(
      refusal({5, 0, 3, 5, 2, 7}, places, 9) ==
      "tensor 'l.q_groups': group 1 ends inside a code");  // 64 bits are 21 codes of 3 bits and one more bit
  const auto l = lay_out_exl2(halves{5, 0, 4, 5, 2, 7}, places, 9, "l").value();
  REQUIRE(l.groups.size() == 3);
  CHECK((l.groups[0].inputs == 32 && l.groups[0].first_column == 0 && l.groups[0].columns == 32));
  CHECK((l.groups[1].inputs == 16 && l.groups[1].first_column == 32 && l.groups[1].columns == 32));
  CHECK((l.groups[2].inputs == 32 && l.groups[2].first_column == 64 && l.groups[2].columns == 32));
  CHECK((l.groups[2].bits == 2 && l.groups[2].first_word == 7));
  CHECK(l.group_of_block == numbers{0, 1, 2});
  REQUIRE(l.inputs->size() == 96);
  for (std::uint32_t i = 0; i < 48; ++i) CHECK((*l.inputs)[i] == 79 - i);
  for (std::uint32_t i = 64; i < 96; ++i) CHECK((*l.inputs)[i] == 79 - (i - 16));
}

TEST_CASE("exl2: groups that do not fit are refused by name") {
  const numbers places = in_order(64);
  CHECK(refusal({4, 0, 4, 4}, places, 8) == "accepted");
  CHECK_THAT(refusal({}, places, 8), Contains("'l.q_groups' has 0 numbers"));
  CHECK_THAT(refusal({4, 0, 4}, places, 8), Contains("'l.q_groups' has 3 numbers"));
  for (const std::uint16_t bits : {0, 1, 7, 9, 65535})
    CHECK_THAT(refusal({bits, 0, 4, 4}, places, 8), Contains("'l.q_groups': group 0 has codes of"));
  CHECK_THAT(refusal({3, 0, 4, 3}, places, 7), Contains("group 1 has wider codes"));
  CHECK_THAT(refusal({4, 1, 4, 4}, places, 8), Contains("group 0 begins at row 1"));
  CHECK_THAT(refusal({4, 0, 4, 0}, places, 8), Contains("group 0 has rows 0 to 0 of q_weight"));
  CHECK_THAT(refusal({4, 0, 4, 4, 4, 2}, places, 8), Contains("group 1 has rows 4 to 2"));
  CHECK_THAT(refusal({4, 0, 4, 9}, places, 8), Contains("group 0 has rows 0 to 9 of q_weight, which has 8"));
  CHECK_THAT(refusal({4, 0, 4, 4}, places, 4), Contains("group 1 has rows 4 to 4"));
  CHECK_THAT(refusal({4, 0, 4, 4}, places, 9), Contains("group 1 has 5 rows of q_weight, but 32 inputs"));
  CHECK_THAT(refusal({4, 0, 4, 4}, places, 7), Contains("group 1 has 3 rows of q_weight, but 32 inputs"));
  CHECK_THAT(refusal({2, 0, 2, 4}, places, 8), Contains("group 1 has 4 rows of q_weight, but 0 inputs"));
  CHECK_THAT(refusal({2, 0, 2, 5}, places, 8), Contains("group 0 has 5 rows of q_weight, but 64 inputs"));
  numbers twice = places;
  twice[3] = 7;
  CHECK_THAT(refusal({4, 0, 4, 4}, twice, 8), Contains("'l.q_invperm' is no permutation of 64 inputs"));
  twice[3] = 64;
  CHECK_THAT(refusal({4, 0, 4, 4}, twice, 8), Contains("'l.q_invperm' is no permutation"));
}

TEST_CASE("exl2: any numbers are refused or lie inside their tensors") {
  std::mt19937 r(7);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    halves groups;
    std::uint16_t row = 0;
    for (std::uint32_t g = 1 + r() % 4; g > 0; --g) {
      groups.push_back(static_cast<std::uint16_t>(r() % 8 ? 2 + r() % 3 * 2 : r()));
      groups.push_back(row);
      row = static_cast<std::uint16_t>(row + (r() % 16 ? 1 + r() % 4 : r()));
    }
    const numbers places = in_order(1 + r() % 64);
    const std::uint64_t words = row + r() % 3;
    const auto l = lay_out_exl2(groups, places, words, "l");
    if (!l) continue;
    ++accepted;
    std::size_t inputs = 0, columns = 0;
    for (const exl2_group& g : l->groups) {
      REQUIRE(g.first_column == columns);
      REQUIRE((std::uint64_t{g.inputs} * g.bits + 31) / 32 + g.first_word <= words);
      inputs += g.inputs;
      columns += g.columns;
    }
    REQUIRE(inputs == places.size());
    REQUIRE((columns == l->inputs->size() && columns == l->group_of_block.size() * 32));
  }
  CHECK(accepted > 50);
}

TEST_CASE("exl2: a scale is rounded twice to f16") {
  CHECK(exl2_scale(0, 256) == 1);
  CHECK(exl2_scale(15, 1) == 1);
  CHECK(exl2_scale(15, 65504) == 65504);
  CHECK(exl2_scale(0, 0x1p-24f) == 0);                // less than half of the smallest f16
  CHECK(exl2_scale(15, 0x1p-15f) == 256 * 0x1p-23f);  // 2^-23 is a subnormal f16
  CHECK(exl2_scale(2, 0x1.004p-9f) == 9 * 0x1p-17f);  // 1.004p-17 rounds to a subnormal
  CHECK(exl2_scale(2, 0x1.ffcp0f) == 0x1.1fcp-4f);    // 9 * 0x1.ffcp-8 = 0x1.1fdcp-4
}

}  // namespace weir::tests::exl2_test
