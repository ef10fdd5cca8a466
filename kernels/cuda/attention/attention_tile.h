// attention_tile.h — what attention_wgmma.cu is made of: the layout of shared memory, a block's part of a
// context, and the arithmetic of one tile.
//
// A line is one query head of one row. A block has 128 lines, 64 for each of two consumer warpgroups, which
// compute; a third warpgroup loads. A tile is 128 tokens, two pages of one key head, or for heads of 256 one
// page. Grid: x is the key head, y the prefill_block, z the part of the context; the parts of a context are
// one cluster.
//
// A consumer thread computes two lines: line 16 * warp + lane / 4 of its warpgroup, and the line 8 behind
// that. Its s[i] is the score of line i / 2 % 2 of the two and of the tile's token i / 4 * 8 + lane % 4 * 2 +
// i % 2: the order in which wgmma leaves its accumulators.
#pragma once

#include "kernels/cuda/device/barrier.h"
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/device/wgmma.h"
#include "kernels/cuda/pages/page_numbers.h"

namespace weir::kernels::cuda {

// lines: lines of a block. stages: of the ring of keys, and of the ring of values.
constexpr int lines = 128, stages = 2;
// The pages of a tile, and its tokens.
template <int head_dim>
constexpr int tile_pages = head_dim > 128 ? 1 : 2;
template <int head_dim>
constexpr int tile = tile_pages<head_dim>* page_tokens;
// consumers: threads that compute. loaders: threads that load, of which the codes of q8 need more. threads:
// all threads of a block.
constexpr int consumers = 256;
template <page_type pages, int head_dim>
constexpr int loaders = pages == page_type::q8&& head_dim <= 128 ? 256 : 128;
template <page_type pages, int head_dim>
constexpr int threads = consumers + loaders<pages, head_dim>;
// A panel is 64 columns (128 bytes) of all lines, or of the tokens of a tile.
constexpr int query_panel_bytes = lines * 128;
template <int head_dim>
constexpr int panel_bytes = tile<head_dim> * 128;

// The bytes of a block's queries, and of the keys of a tile, or of its values: all panels.
template <int head_dim>
constexpr int query_bytes = head_dim / 64 * query_panel_bytes;
template <int head_dim>
constexpr int tile_bytes = head_dim / 64 * panel_bytes<head_dim>;

// The bytes of a tile of keys, or of values, as pages of bytes have them.
template <page_type pages, int head_dim>
constexpr int stored_bytes = tile_pages<head_dim>* head_bytes(pages, head_dim, page_tokens);

// The ring of stored tiles of pages of bytes (attention_widen.h). A slot has the keys of a tile and then its
// values, or one of the two where two slots of both do not fit. slot_tiles: 2 or 1. stored_slots: how many.
template <page_type pages, int head_dim>
constexpr int slot_tiles = head_dim > 128 || (pages == page_type::q8 && head_dim == 128) ? 1 : 2;
template <page_type pages, int head_dim>
constexpr int stored_slots = number_bytes(pages) == 2 ? 0
                             : head_dim > 128         ? 2
                                                      : 4 - slot_tiles<pages, head_dim>;  // 2 or 3
template <page_type pages, int head_dim>
constexpr int slot_bytes = slot_tiles<pages, head_dim>* stored_bytes<pages, head_dim>;

// The bytes of shared memory: queries, the ring of keys, the ring of values, with pages of bytes the ring of
// stored tiles, and barriers. For the join of a cluster the sums of each line lie over queries, keys and
// values: [lines, sum_stride] floats, then each line's largest score and total.
template <page_type pages, int head_dim>
constexpr std::size_t shared_bytes = query_bytes<head_dim> + 2 * stages* tile_bytes<head_dim> +
                                     4 * stages * 8 +
                                     stored_slots<pages, head_dim>*(slot_bytes<pages, head_dim> + 8);
static_assert(shared_bytes<page_type::q8, 256> <= 227 << 10);
template <int head_dim>
constexpr int sum_stride = head_dim + 4;  // in floats; 4 of them are padding
template <int head_dim>
constexpr int sum_bytes = lines*(sum_stride<head_dim> + 2) * 4;
static_assert(sum_bytes<256> <= query_bytes<256> + 2 * stages * tile_bytes<256>);

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Shared-memory addresses: of the queries, of the rings, and of the barriers, one of 8 bytes for each stage.
// key_full and value_full: a stage is loaded. key_free and value_free: the consumers are done with a stage.
// stored: the ring of stored tiles. stored_full: the copies into one of its slots have arrived.
struct rings {
  std::uint32_t queries, keys, values, key_full, value_full, key_free, value_free, stored_full, stored;
};

// The addresses for a block whose shared memory begins at `shared`.
template <page_type pages, int head_dim>
__device__ __forceinline__ rings rings_at(std::uint32_t shared) {
  rings r;
  r.queries = shared;
  r.keys = r.queries + query_bytes<head_dim>;
  r.values = r.keys + stages * tile_bytes<head_dim>;
  r.stored = r.values + stages * tile_bytes<head_dim>;
  r.key_full = r.stored + stored_slots<pages, head_dim> * slot_bytes<pages, head_dim>;
  r.value_full = r.key_full + stages * 8;
  r.key_free = r.value_full + stages * 8;
  r.value_free = r.key_free + stages * 8;
  r.stored_full = r.value_free + stages * 8;
  return r;
}

// What a block computes: tiles [begin, end) for the rows of `b`. Tile t begins with the sequence's page
// first_page + t * tile_pages. first_page and last_page are the first and the last page that a row of `b`
// attends to.
struct part {
  prefill_block b;
  attention_rule rule;
  int group, first_page, last_page, begin, end;
  // The first position that the row at position p attends to.
  __device__ int from_of(int p) const { return rule.first_seen(p); }
};

// The part of this block, by its index in the grid.
template <int head_dim>
__device__ __forceinline__ part part_of(const rows_view& v, const attention_args& a) {
  part p;
  p.b = v.blocks[blockIdx.y];
  p.group = static_cast<int>(a.heads.heads / a.heads.kv_heads);
  p.rule = a.rule;
  p.first_page = p.from_of(p.b.position) / page_tokens;
  p.last_page = (p.b.position + p.b.rows - 1) / page_tokens;
  constexpr int of_tile = tile_pages<head_dim>;
  const int tiles = (p.last_page - p.first_page + of_tile) / of_tile, parts = static_cast<int>(gridDim.z);
  p.begin = tiles * static_cast<int>(blockIdx.z) / parts;
  p.end = tiles * (static_cast<int>(blockIdx.z) + 1) / parts;
  return p;
}

// The state of a thread's two lines: the position of their rows, the largest score so far (not multiplied by
// the scale), and the sum of the exponentials of the tokens that this thread has computed.
struct running {
  int position[2];
  float largest[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
};

// Replaces the scores `s` of tile `t` by their exponentials relative to the running maximum, which it updates
// in `w` with the totals; tokens that a line does not attend to become 0. `shrink` is set to the factor, for
// each of the two lines, by which the sums of the tiles before must be multiplied. `log2_scale` is the
// attention's scale times log2(e). `capped`: scores are bounded (attention_rule::cap); they stay in the units
// of the others.
template <int head_dim, bool capped>
__device__ __forceinline__ void take_exponentials(float (&s)[tile<head_dim> / 2], running& w, const part& p,
                                                  int t, float log2_scale, float (&shrink)[2]) {
  constexpr int tile = cuda::tile<head_dim>;
  const int lane = static_cast<int>(threadIdx.x % 32),
            token = (p.first_page + t * tile_pages<head_dim>)*page_tokens;
  if constexpr (capped) {
    const float bound = p.rule.cap / p.rule.scale, by = p.rule.scale / p.rule.cap;
#pragma unroll
    for (int i = 0; i < tile / 2; ++i) s[i] = bound * tanh_quick(s[i] * by);
  }
  // Only tiles with a token that some line does not attend to are masked token by token.
  if (token + tile - 1 > p.b.position || token < p.from_of(p.b.position + p.b.rows - 1)) {
    const int from[2] = {p.from_of(w.position[0]), p.from_of(w.position[1])};
#pragma unroll
    for (int i = 0; i < tile / 2; ++i) {
      const int at = token + i / 4 * 8 + lane % 4 * 2 + i % 2;
      if (at > w.position[i / 2 % 2] || at < from[i / 2 % 2]) s[i] = -INFINITY;
    }
  }
  float most[2] = {w.largest[0], w.largest[1]}, base[2];
#pragma unroll
  for (int i = 0; i < tile / 2; ++i) most[i / 2 % 2] = fmaxf(most[i / 2 % 2], s[i]);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    most[r] = fmaxf(most[r], __shfl_xor_sync(~0u, most[r], 1));
    most[r] = fmaxf(most[r], __shfl_xor_sync(~0u, most[r], 2));
    base[r] = most[r] == -INFINITY ? 0.0f : most[r] * log2_scale;
    shrink[r] = exp2_fast(w.largest[r] * log2_scale - base[r]);
    w.largest[r] = most[r];
    w.total[r] *= shrink[r];
  }
#pragma unroll
  for (int i = 0; i < tile / 2; ++i) {
    s[i] = exp2_fast(s[i] * log2_scale - base[i / 2 % 2]);
    w.total[i / 2 % 2] += s[i];
  }
}

// Rounds exponentials to elements, in the layout of the register operand of multiply_values.
template <dtype type, int count>
__device__ __forceinline__ void pack(const float (&s)[2 * count], std::uint32_t (&p)[count]) {
#pragma unroll
  for (int i = 0; i < count; ++i) p[i] = pair_of<type>(s[2 * i], s[2 * i + 1]);
}

// Begins s = Q · Kᵀ for the 64 lines whose queries are at `queries` and the tile whose keys are at `keys`,
// both shared-memory addresses. The products are asynchronous, as one group (wgmma.h).
template <dtype type, int head_dim>
__device__ __forceinline__ void multiply_keys(float (&s)[tile<head_dim> / 2], std::uint32_t queries,
                                              std::uint32_t keys) {
  constexpr int of_keys = panel_bytes<head_dim>;
  const std::uint64_t a = panels_at(queries, query_panel_bytes), b = panels_at(keys, of_keys);
#pragma unroll
  for (int k = 0; k < head_dim / 16; ++k)
    multiply_ss<type>(s, a + (k / 4 * (query_panel_bytes >> 4) + k % 4 * 2),
                      b + (k / 4 * (of_keys >> 4) + k % 4 * 2), k != 0);
  products_end_group();
}

// Begins o += P · V, asynchronously as one group, for the exponentials `p` of 64 lines and the tile whose
// values are at `values`.
template <dtype type, int head_dim>
__device__ __forceinline__ void multiply_values(float (&o)[head_dim / 2],
                                                const std::uint32_t (&p)[tile<head_dim> / 4],
                                                std::uint32_t values) {
  const std::uint64_t b = panels_at(values, panel_bytes<head_dim>);
#pragma unroll
  for (int k = 0; k < tile<head_dim> / 16; ++k) multiply_rs<type>(o, p + 4 * k, b + k * 128);
  products_end_group();
}

#endif

}  // namespace weir::kernels::cuda
