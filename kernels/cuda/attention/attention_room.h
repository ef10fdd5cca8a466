// attention_room.h — the memory that decode attention needs on a device: scratch for contexts that several
// blocks share, the list of decoding rows (attention_bulk.cu), and the shared memory of its blocks.
//
// Thread safety: pure functions, any thread. Plain C++: no device is needed to ask.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device/facts.h"
#include "kernels/cuda/pages/head_shape.h"

namespace weir::kernels::cuda {

// Attention multiplies keys and values in pieces of so many tokens; a page holds page_pieces of them.
constexpr int piece_tokens = 16, page_pieces = page_tokens / piece_tokens;

// The layout of a slot of the ring (attention_ring.h). A slot holds what an item needs from earlier kernels:
// the group's queries as they are in qkv; where the rows are fresh, also the row's key, its value, and its
// angles (cos, then sin).
struct slot_shape {
  int queries, row, angles;  // bytes of the queries; of the key or the value; of cos or sin
  constexpr explicit slot_shape(const head_shape& h)
      : queries(static_cast<int>(h.heads / h.kv_heads * h.head_dim * 2)),
        row(static_cast<int>(h.head_dim * 2)),
        angles(static_cast<int>(h.head_dim / 2 * 4)) {}
  // The bytes of a slot.
  constexpr int bytes() const { return queries + 2 * row + 2 * angles; }
};

// The bytes of a stage of the ring: keys and values of one page and key head.
constexpr int ring_stage_bytes(page_type t, int head_dim) {
  return page_pieces * 2 * head_bytes(t, head_dim, piece_tokens);
}

// The number of stages: as many as fit into 64 KB without scales, so that two blocks fit on a multiprocessor;
// at least two.
constexpr int ring_stages(page_type t, int head_dim) {
  return std::max(2, 65536 / (2 * page_tokens * head_dim * number_bytes(t)));
}

// The number of query heads that the compute warps pass to the join warp at a time. It divides 8: a lane has
// one head of the lower 8 of a tile and one of the upper 8 (attention_piece.h), and one of them is passed at
// a time.
constexpr int ring_join_lines(int head_dim) { return head_dim <= 64 ? 8 : head_dim <= 128 ? 4 : 2; }

// The floats of shared memory in which a warp turns a row's own key and value (fresh_numbers::lay).
constexpr int fresh_floats(page_type t, int head_dim) { return t == page_type::q8 ? 2 * head_dim : 4; }

// The bytes of the ring without its slots: sizeof(ring), which attention_bulk.cu compares.
constexpr std::size_t bulk_ring_bytes(page_type t, int head_dim) {
  const auto up = [](std::size_t n, std::size_t unit) { return (n + unit - 1) / unit * unit; };
  const auto stages = static_cast<std::size_t>(ring_stages(t, head_dim)),
             lines = static_cast<std::size_t>(page_pieces * ring_join_lines(head_dim));
  constexpr std::size_t chunk = 48, item = 20, barrier = 8;
  std::size_t at = stages * static_cast<std::size_t>(ring_stage_bytes(t, head_dim));
  at += lines * static_cast<std::size_t>(head_dim + 4) * sizeof(float) + lines * 2 * sizeof(float);
  at = up(at + stages * chunk, 16);
  at += page_pieces * static_cast<std::size_t>(fresh_floats(t, head_dim)) * sizeof(float);
  return up(up(at + item, barrier) + (2 * stages + 2) * barrier, 128);
}

// The number of blocks that work through listed rows (attention_bulk.cu); 0: the device does not support
// that.
std::uint32_t bulk_blocks(const cuda_facts& d, const head_shape& h);

// Whether it is quicker to list the decoding rows (list_decodes, attention_bulk.cu) than to give each row and
// key head a block (attention_decode.cu): for `rows` rows whose longest context has `longest` tokens and
// whose contexts have `all` tokens together. False on the general path.
bool lists_pay(const cuda_facts& d, const head_shape& h, std::uint32_t rows, std::uint64_t longest,
               std::uint64_t all);

// The most entries that list_decodes makes of `rows` rows.
std::uint32_t most_listed(const cuda_facts& d, const head_shape& h, std::uint32_t rows);

// The floats that one part of one key head leaves in split_scratch::parts: sums [group, head_dim], then for
// each query head its largest score and its total. Rounded up to a multiple of four.
constexpr int part_floats(const head_shape& h) {
  return static_cast<int>((h.heads / h.kv_heads * (h.head_dim + 2) + 3) / 4 * 4);
}

// The most pairs of a row and a key head whose contexts are split, and the most blocks that share them
// (attention_decode.cu).
inline std::uint32_t most_items(const cuda_facts& d) { return static_cast<std::uint32_t>(d.multiprocessors); }
inline std::uint32_t most_blocks(const cuda_facts& d) { return 4 * most_items(d); }

// The size of a split_scratch (layers.h) that is enough for every step.
struct split_room {
  std::uint64_t floats;    // in `parts`
  std::uint32_t counters;  // in `arrived`
};
split_room split_room_of(const cuda_facts& d, const head_shape& h);

// Whether the attention kernels support heads of this shape.
inline bool attention_supports(const head_shape& h) {
  return has_pages(h.pages, h.head_dim) && h.heads / h.kv_heads <= 16;
}

}  // namespace weir::kernels::cuda
