#include "kernels/cuda/experts/division.h"

namespace weir::kernels::cuda {

expert_division divide_experts(std::uint32_t slots, std::uint32_t experts, bool plain, bool deterministic) {
  const auto by = [&](std::uint32_t size) {
    return expert_division{false, size, most_tiles(slots, experts, size)};
  };
  if (deterministic) return by(tile_slots);
  if (slots <= most_single_slots) return {true, 0, 0};
  const std::uint32_t each = slots / experts;  // as if all experts had as many
  if (!plain) return by(each <= small_tile_slots ? small_tile_slots : tile_slots);
  if (each <= 8) return by(small_tile_slots);
  return by(each <= 32 ? tile_slots : large_tile_slots);
}

expert_room expert_room_of(const model_shape& m, std::uint32_t rows) {
  expert_room out;
  std::uint64_t slots = 0, tiles = 0, gates = 0;
  for (const layer_shape& l : m.layers) {
    if (!l.mlp.is_mixture()) continue;
    const std::uint32_t here = rows * l.mlp.slots();
    slots = std::max(slots, std::uint64_t{here});
    tiles = std::max(tiles, std::uint64_t{most_tiles(here, l.mlp.router.experts, small_tile_slots)});
    if (l.mlp.shared) out.shared = std::uint64_t{rows} * m.hidden;
    if (l.mlp.shared_gate) gates = rows;
  }
  if (slots == 0) return out;
  out.made = slots * m.hidden;
  const auto take = [&](std::uint64_t bytes) {
    const std::uint64_t at = out.lists.bytes;
    out.lists.bytes += (bytes + 255) / 256 * 256;
    return at;
  };
  out.lists.added = take(most_single_slots * ((std::uint64_t{m.hidden} + 15) / 16) * sizeof(std::uint32_t));
  out.lists.ids = take(slots * sizeof(std::int32_t));
  out.lists.weights = take(slots * sizeof(float));
  out.lists.gates = take(gates * sizeof(float));
  out.lists.order = take(slots * sizeof(std::int32_t));
  out.lists.tiles = take(tiles * sizeof(expert_tile));
  out.lists.count = take(sizeof(std::int32_t));
  return out;
}

}  // namespace weir::kernels::cuda
