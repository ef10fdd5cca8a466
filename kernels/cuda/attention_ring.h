// attention_ring.h — what the warps of attention_bulk.cu pass on to each other, in a block's shared memory.
#pragma once

#include <algorithm>

#include "kernels/cuda/attention_piece.h"
#include "kernels/cuda/barrier.h"

namespace weir::kernels::cuda {

constexpr int meeters = page_pieces;  // warps that meet a piece each
constexpr unsigned bulk_threads = (meeters + 2) * 32;

// Of a ring of 64 KB, or of two stages: two blocks find room beside each other.
template <int head_dim>
constexpr int stage_bytes = page_pieces * piece_bytes<head_dim>;
template <int head_dim>
constexpr int stages = std::max(2, 65536 / stage_bytes<head_dim>);

// Query heads that are joined at once: half of those that a lane has one of (attention_piece.h), or a part of
// that half.
template <int head_dim>
constexpr int join_lines = head_dim <= 64 ? 8 : head_dim <= 128 ? 4 : 2;

// One key head of one entry of the list.
struct item {
  int row, head;
  int part, parts, slot;  // as the entry has them
};

// What a stage of the ring holds: pieces of one page.
struct chunk {
  item of;            // head -1: there is no more
  int position;       // of the row
  int page, at;       // where the page lies; its first piece, of the row's
  int first, end;     // its pieces that are here
  int kept;           // where the item's slot is
  bool begins, ends;  // whether it is the item's first or last
};

template <int head_dim>
struct alignas(128) ring {
  unsigned char stage[stages<head_dim>][stage_bytes<head_dim>];
  float met[meeters][join_lines<head_dim>][head_dim + 4];
  float2 ends[meeters][join_lines<head_dim>];  // the largest score, the total
  chunk what[stages<head_dim>];
  item joined;
  std::uint64_t full[stages<head_dim>], empty[stages<head_dim>], met_full, met_empty;
  // Behind it: the items' slots, as many as there are stages.
};

// What an item has from the kernel before: its queries as they lie in qkv; and where they are fresh its key,
// its value, and its row's angles.
struct slot_shape {
  int queries, row, angles;  // bytes
  __host__ __device__ explicit slot_shape(const head_shape& h)
      : queries(static_cast<int>(h.heads / h.kv_heads * h.head_dim * 2)),
        row(static_cast<int>(h.head_dim * 2)),
        angles(static_cast<int>(h.head_dim / 2 * 4)) {}
  __host__ __device__ int bytes() const { return queries + 2 * row + 2 * angles; }
};

template <int head_dim>
__device__ __forceinline__ unsigned char* slot_at(ring<head_dim>& r, const slot_shape& shape, int slot) {
  return reinterpret_cast<unsigned char*>(&r + 1) + slot * shape.bytes();
}

}  // namespace weir::kernels::cuda
