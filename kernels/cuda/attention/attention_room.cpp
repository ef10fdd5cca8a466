#include "kernels/cuda/attention/attention_room.h"

namespace weir::kernels::cuda {
namespace {

// The most parts of a list. Only rows with more pieces than `limit` (list_decodes) are divided, each into
// fewer than 2 * pieces / limit parts, and the limit is at least a quarter more than a block's share of all
// pieces. The parts' key heads are therefore fewer than twice the blocks.
std::uint32_t most_parts(const cuda_facts& d, const head_shape& h) {
  return 2 * bulk_blocks(d, h) / h.kv_heads + 1;
}

// The size of the scratch for listed rows in parts: the sums of each part, a counter for each part and key
// head, and in front of these counters the counter of items taken.
split_room room_for_parts(const cuda_facts& d, const head_shape& h) {
  if (bulk_blocks(d, h) == 0) return {0, 0};
  const std::uint32_t parts = most_parts(d, h) * h.kv_heads;
  return {std::uint64_t{parts} * static_cast<std::uint64_t>(part_floats(h)), parts + 1};
}

}  // namespace

std::uint32_t bulk_blocks(const cuda_facts& d, const head_shape& h) {
  if (d.path != code_path::hopper) return 0;
  const int head_dim = static_cast<int>(h.head_dim), stages = ring_stages(h.pages, head_dim);
  const std::size_t shared =
      bulk_ring_bytes(h.pages, head_dim) + static_cast<std::size_t>(stages * slot_shape(h).bytes());
  return static_cast<std::uint32_t>(std::min<std::size_t>(2, (d.shared_per_block + 1024) / (shared + 1024)) *
                                    static_cast<std::size_t>(d.multiprocessors));
}

// attention_decode.cu, with one block for each row and key head, is as fast in two cases: where it splits
// contexts among blocks, and for small heads while all blocks run at once and the contexts are of similar
// length.
bool lists_pay(const cuda_facts& d, const head_shape& h, std::uint32_t rows, std::uint64_t longest,
               std::uint64_t all) {
  const std::uint64_t items = std::uint64_t{rows} * h.kv_heads,
                      room = static_cast<std::uint64_t>(d.multiprocessors);
  if (items <= room || bulk_blocks(d, h) == 0) return false;
  return h.head_dim > 64 || items > 4 * room || 4 * longest * rows > 5 * all;
}

std::uint32_t most_listed(const cuda_facts& d, const head_shape& h, std::uint32_t rows) {
  return rows + most_parts(d, h);
}

split_room split_room_of(const cuda_facts& d, const head_shape& h) {
  const split_room parts = room_for_parts(d, h);
  const std::uint64_t split = std::uint64_t{most_blocks(d)} * (h.heads / h.kv_heads) * (h.head_dim + 2);
  return {std::max(parts.floats, split), std::max(parts.counters, most_items(d))};
}

}  // namespace weir::kernels::cuda
