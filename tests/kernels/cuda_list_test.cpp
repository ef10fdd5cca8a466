// The list of rows that decode, which the host makes: no device is asked for anything.
#ifdef WEIR_WITH_CUDA
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <vector>

#include "kernels/cuda/layers.h"
#include "tests/kernels/random_data.h"

namespace weir::tests::cuda_list_test {

using namespace weir::kernels::cuda;

namespace {

constexpr std::uint32_t piece = 16;  // tokens

std::uint32_t pieces_of(const decode_row& r) { return static_cast<std::uint32_t>(r.position) / piece + 1; }

// Rows of one length, of random lengths, or short rows beside a few very long ones.
std::vector<decode_row> random_rows(tests::rng& r) {
  std::vector<decode_row> rows;
  const std::uint32_t count = pick(r, 0, 3) ? pick(r, 1, 100) : pick(r, 100, 700), kind = pick(r, 0, 2);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t position = kind == 0             ? 511
                                   : kind == 1           ? pick(r, 0, 4000)
                                   : pick(r, 0, 20) == 0 ? pick(r, 8000, 131071)
                                                         : pick(r, 0, 100);
    rows.push_back({static_cast<std::int32_t>(i), static_cast<std::int32_t>(position),
                    static_cast<std::int32_t>(7 * i)});
  }
  return rows;
}

}  // namespace

TEST_CASE("cuda: rows that decode are listed once, longest first, and what their parts leave finds room") {
  device d;  // with the properties of an H200
  d.multiprocessors = 132;
  d.path = code_path::hopper;
  d.shared_per_block = 227 << 10;
  tests::rng r(31);
  std::uint32_t divided = 0;
  for (int round = 0; round < 400; ++round) {
    constexpr std::uint32_t widths[] = {16, 32, 64, 96, 128, 256}, groups[] = {1, 2, 4, 8, 16};
    const std::uint32_t group = groups[pick(r, 0, 4)], kv_heads = pick(r, 1, 16);
    const head_shape h{kv_heads * group, kv_heads, widths[pick(r, 0, 5)]};
    const auto rows = random_rows(r);
    const std::uint32_t most = most_listed(d, h, static_cast<std::uint32_t>(rows.size()));
    std::vector<decode_row> list(most + 1, decode_row{-7, -7, -7});
    const std::uint32_t made = list_decodes(d, h, rows, list.data());
    CAPTURE(round, h.head_dim, h.kv_heads, group, rows.size(), made, most);
    REQUIRE(made <= most);
    REQUIRE(list[made].row == -7);

    std::map<std::int32_t, std::vector<const decode_row*>> of_row;
    std::uint32_t longest = 0;
    for (std::uint32_t i = 0; i < made; ++i) {
      of_row[list[i].row].push_back(&list[i]);
      longest = std::max(longest, pieces_of(list[i]) / list[i].parts);
    }
    for (std::uint32_t i = 1; i < made; ++i)
      REQUIRE(pieces_of(list[i]) / list[i].parts <=
              pieces_of(list[i - 1]) / list[i - 1].parts + longest / 12 + 1);

    REQUIRE(of_row.size() == rows.size());
    const split_room room = split_room_of(d, h);
    const std::uint64_t left_by_one = (group * (h.head_dim + 2) + 3) / 4 * 4;
    std::vector<int> taken(room.counters);
    for (const decode_row& row : rows) {
      const auto& entries = of_row.at(row.row);
      for (std::size_t i = 0; i < entries.size(); ++i) {
        const decode_row& e = *entries[i];
        REQUIRE(e.position == row.position);
        REQUIRE(e.pages_at == row.pages_at);
        REQUIRE(e.part == i);
        REQUIRE(e.parts == entries.size());
        REQUIRE(e.parts <= pieces_of(row));
        if (e.parts == 1) continue;
        ++divided;
        const std::uint64_t behind = std::uint64_t{e.slot + e.part + 1u} * h.kv_heads;
        REQUIRE(behind * left_by_one <= room.floats);
        REQUIRE(behind + 1 <= room.counters);
        REQUIRE(++taken[e.slot + e.part] == 1);
      }
    }
  }
  CHECK(divided > 100);
}

}  // namespace weir::tests::cuda_list_test

#endif
