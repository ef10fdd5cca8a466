// attention_ring.h — the shared memory through which the warps of a block of attention_bulk.cu work together.
//
// A block has six warps. The load warp (attention_load.h) copies keys and values into a ring of stages, one
// page of one key head each. Four compute warps multiply one piece of a page each. The join warp
// (attention_join.h) merges the results of the four. An «item» is the work on one key head of one entry of
// the list.
#pragma once

#include "kernels/cuda/attention/attention_fresh.h"
#include "kernels/cuda/device/barrier.h"

namespace weir::kernels::cuda {

constexpr int compute_warps = page_pieces;  // compute warps: one for each piece of a page
constexpr unsigned bulk_threads = (compute_warps + 2) * 32;

// The bytes of a stage: keys and values of one page and key head.
template <page_type pages, int head_dim>
constexpr int stage_bytes = ring_stage_bytes(pages, head_dim);

// The number of stages, and that of query heads that are joined at a time (attention_room.h).
template <page_type pages, int head_dim>
constexpr int stages = ring_stages(pages, head_dim);
template <int head_dim>
constexpr int join_lines = ring_join_lines(head_dim);

// One key head of one entry of the list: the unit of work that a block takes.
struct item {
  int row, head;          // the row of the step; the key head
  int part, parts, slot;  // of decode_row; `parts` is less where the context has fewer pieces than parts
};

// What a stage of the ring holds: pieces of one page, which belong to one item.
struct chunk {
  item of;            // its head is -1 in the last chunk of a block, which holds nothing
  int position;       // of the row in its sequence
  int page, at;       // the page's number; its first piece, counted in the sequence
  int first, end;     // pieces [first, end) of the page are in the stage
  int kept;           // the index of the item's slot (slot_at)
  bool begins, ends;  // whether this is the item's first chunk, its last chunk
};

// The layout of the shared memory. The items' slots lie behind it, as many as there are stages.
template <page_type pages, int head_dim>
struct alignas(128) ring {
  unsigned char stage[stages<pages, head_dim>][stage_bytes<pages, head_dim>];
  // The sums of each compute warp for join_lines query heads (attention_sums in attention_piece.h), for the
  // join warp.
  float sums[compute_warps][join_lines<head_dim>][head_dim + 4];
  float2 ends[compute_warps][join_lines<head_dim>];  // their largest scores and totals
  chunk what[stages<pages, head_dim>];               // what each stage holds
  // Each compute warp's room for fresh_numbers::lay().
  alignas(16) float rooms[compute_warps][fresh_room<pages, head_dim>];
  item joined;  // the item of `sums`; its head is -1 when there are no more items
  // Barriers (barrier.h). full: the load warp's copies to a stage have arrived. empty: the compute warps are
  // done with a stage. sums_full: the compute warps have written `sums`. sums_empty: the join warp has read
  // it.
  std::uint64_t full[stages<pages, head_dim>], empty[stages<pages, head_dim>], sums_full, sums_empty;
};

// The address of slot `slot` in shared memory.
template <page_type pages, int head_dim>
__device__ __forceinline__ unsigned char* slot_at(ring<pages, head_dim>& r, const slot_shape& shape,
                                                  int slot) {
  return reinterpret_cast<unsigned char*>(&r + 1) + slot * shape.bytes();
}

}  // namespace weir::kernels::cuda
