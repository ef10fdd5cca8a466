// How the products of experts are divided, and the room that they take. No device is needed.
#include <catch2/catch.hpp>
#include <set>

#include "kernels/cuda/experts/division.h"
#include "tests/kernels/random_data.h"
#include "tests/support/plain_layer.h"
#include "tests/support/seed.h"

namespace weir::tests::cuda_expert_division_test {

using namespace weir::kernels;
using namespace weir::kernels::cuda;

TEST_CASE("cuda: tiles of slots are never more than there is room for, whatever experts the slots have") {
  rng r(static_cast<rng::result_type>(drawn_seed(1)));
  for (int round = 0; round < 300; ++round) {
    const std::uint32_t experts = pick(r, 1, round % 3 ? 1024 : 8), slots = pick(r, 1, 3000),
                        few = pick(r, 1, experts);
    std::vector<std::uint32_t> counts(experts);
    for (std::uint32_t i = 0; i < slots; ++i) ++counts[pick(r, 0, few - 1)];
    for (const std::uint32_t size : {small_tile_slots, tile_slots, large_tile_slots}) {
      std::uint32_t tiles = 0;
      for (const std::uint32_t n : counts) tiles += (n + size - 1) / size;
      CAPTURE(experts, slots, few, size);
      CHECK(tiles <= most_tiles(slots, experts, size));
    }
  }
  CHECK(most_tiles(16, 1, 16) == 2);
  CHECK(most_tiles(17, 8, 16) == 9);
  CHECK(most_tiles(1, 1024, 16) == 1);
}

TEST_CASE("cuda: few slots are multiplied one by one, more of them in tiles that grow with their number") {
  CHECK(divide_experts(most_single_slots, 128, true, false) == expert_division{true, 0, 0});
  CHECK(divide_experts(most_single_slots + 1, 128, true, false).tile_slots == small_tile_slots);
  CHECK(divide_experts(128 * 8, 128, true, false).tile_slots == small_tile_slots);
  CHECK(divide_experts(128 * 9, 128, true, false).tile_slots == tile_slots);
  CHECK(divide_experts(128 * 33, 128, true, false).tile_slots == large_tile_slots);
  CHECK(divide_experts(128 * 16, 128, false, false).tile_slots == small_tile_slots);
  CHECK(divide_experts(128 * 17, 128, false, false).tile_slots == tile_slots);
  CHECK(divide_experts(128 * 65, 128, false, false).tile_slots == tile_slots);
  std::set<std::uint32_t> sizes;
  for (std::uint32_t slots = 1; slots < 70000; slots += 13) {
    const expert_division by = divide_experts(slots, 128, true, true);
    CHECK(!by.single);
    CHECK(by.tiles == most_tiles(slots, 128, by.tile_slots));
    sizes.insert(by.tile_slots);
  }
  CHECK(sizes.size() == 1);  // a deterministic device has one way
}

TEST_CASE(
    "cuda: the room of mixtures holds every division of as many rows and fewer, and lists do not overlap") {
  model_shape m;
  m.hidden = 256;
  m.layers = {plain_layer(512, 4, 2, 64), plain_layer(512, 4, 2, 64), plain_layer(512, 4, 2, 64)};
  CHECK(expert_room_of(m, 100).lists.bytes == 0);
  CHECK(expert_room_of(m, 100).made == 0);
  m.layers[0].mlp.router = {.experts = 128, .chosen = 8};
  m.layers[2].mlp.router = {.experts = 16, .chosen = 3};
  m.layers[2].mlp.shared = 512;
  for (const std::uint32_t rows : {1u, 7u, 64u, 1000u, 2560u}) {
    const expert_room room = expert_room_of(m, rows);
    const expert_places& p = room.lists;
    CHECK(room.made == std::uint64_t{rows} * 8 * 256);
    CHECK(room.shared == std::uint64_t{rows} * 256);
    CHECK(p.weights - p.ids >= rows * 8 * 4);
    CHECK(p.gates - p.weights >= rows * 8 * 4);
    CHECK(p.tiles - p.order >= rows * 8 * 4);
    CHECK(p.bytes > p.count);
    for (const layer_shape& l : m.layers)
      for (std::uint32_t some = 1; l.mlp.is_mixture() && some <= rows; ++some)
        for (const bool deterministic : {false, true}) {
          const expert_division by =
              divide_experts(some * l.mlp.slots(), l.mlp.router.experts, true, deterministic);
          REQUIRE(by.tiles * sizeof(expert_tile) <= p.count - p.tiles);
        }
  }
  m.layers[2].mlp.shared_gate = true;
  CHECK(expert_room_of(m, 1000).lists.bytes >= expert_room_of(m, 999).lists.bytes);
  const expert_places gated = expert_room_of(m, 1000).lists;
  CHECK(gated.order - gated.gates >= 4000);
}

}  // namespace weir::tests::cuda_expert_division_test
