// division.h — how the products of experts are divided among blocks, and the sizes of what they compute in.
// The decoder and the plan of its memory both ask here.
//
// A slot is a row and one of its experts (ops.h). Few slots are multiplied one by one: each has blocks of its
// own, which read its expert's matrix. Many slots are put in the order of their experts first, and divided
// into tiles: up to `tile_slots` slots of one expert each. How many tiles there are is known on the device
// alone, so as many blocks are launched as there could be, and those without a tile end at once.
//
// Thread safety: pure functions, any thread. Plain C++: no device is needed to ask.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/model_shape.h"

namespace weir::kernels::cuda {

// The most slots that are multiplied one by one. Beyond, so many slots share experts that it pays to read an
// expert's matrix once for all of them.
constexpr std::uint32_t most_single_slots = 16;

// The sizes of tiles. Blocks of quantised weights have no large ones.
constexpr std::uint32_t small_tile_slots = 16, tile_slots = 64, large_tile_slots = 128;

struct expert_division {
  bool single = false;           // slots are multiplied one by one
  std::uint32_t tile_slots = 0;  // the most slots of a tile; 0 where `single`
  std::uint32_t tiles = 0;       // the most tiles that there can be, whatever experts the slots have
  bool operator==(const expert_division&) const = default;
};

// The most tiles of `size` slots.
constexpr std::uint32_t most_tiles(std::uint32_t slots, std::uint32_t experts, std::uint32_t size) {
  return slots / size + std::min(slots, experts);
}

// For `slots` slots of `experts` experts, whose matrices are all plain or not. On a deterministic device
// there is one way for every number of slots, so that what becomes of a slot depends on that slot alone.
expert_division divide_experts(std::uint32_t slots, std::uint32_t experts, bool plain, bool deterministic);

// One tile: slots order[first] to order[first + count - 1], which have the same expert.
struct expert_tile {
  std::int32_t expert, first, count;
};

// The lists of a step's slots, as bytes from the beginning of one buffer.
struct expert_places {
  // [most_single_slots, tiles of 16 outputs] u32: slots of a row whose tile is done. Counters, 0 between
  // kernels: they are the first of the lists, so that they stay where they are while the others grow.
  std::uint64_t added = 0;
  std::uint64_t ids = 0;      // [slots] i32: the expert of each slot; -1: its row pads the batch
  std::uint64_t weights = 0;  // [slots] f32
  std::uint64_t gates = 0;    // [rows] f32: of the shared expert
  std::uint64_t order = 0;    // [slots] i32: slots by expert
  std::uint64_t tiles = 0;    // [most_tiles()] expert_tile
  std::uint64_t count = 0;    // i32: how many tiles there are
  std::uint64_t bytes = 0;    // of all; 0: the model has no mixtures
};

// What mixtures take beside these lists, for steps of some number of rows: numbers of f32.
struct expert_room {
  expert_places lists;
  std::uint64_t made = 0;    // [slots, hidden]: what experts make
  std::uint64_t shared = 0;  // [rows, hidden]: what a shared expert makes
};

// For steps of up to `rows` rows. The largest mixture of the model counts.
expert_room expert_room_of(const model_shape& m, std::uint32_t rows);

}  // namespace weir::kernels::cuda
