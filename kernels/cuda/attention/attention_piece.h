// attention_piece.h — what one warp computes in decode attention (attention_decode.cu, attention_bulk.cu).
// The query heads of one key head are the 16 rows of a tensor-core tile, which is multiplied by keys and
// values in pieces of 16 tokens, with a running maximum (Dao et al. 2022, «FlashAttention»).
//
// The «group» is the query heads that share a key head, at most 16. Pieces are counted from the beginning of
// the sequence: piece i holds positions 16 * i to 16 * i + 15, and a page holds four.
//
// Registers follow the layout of the instructions (mma.h): a lane holds the query heads lane / 4 and lane / 4
// + 8 of the group, and of each head the pairs of page_numbers.h.
//
// Functions on the device are called by all lanes of a warp; `lane` is threadIdx.x % 32.
#pragma once

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/layers.h"
#include "kernels/cuda/pages/head_order.h"
#include "kernels/cuda/pages/page_products.h"
#include "kernels/cuda/pages/page_turn.h"

namespace weir::kernels::cuda {

// The bytes of a piece of one key head: its keys, then its values.
template <page_type pages, int head_dim>
constexpr int piece_bytes = 2 * head_bytes(pages, head_dim, piece_tokens);

// The arguments of both kernels of decode attention.
struct decode_args {
  rows_view v;
  attention_args a;
  rotary_args t;
  // Whether queries, keys and values in qkv are still as the product left them. The kernel then applies `t`,
  // and stores the row's own key and value in its page.
  bool fresh;
  split_scratch scratch;
  std::uint32_t splits;  // most blocks that share the context of a row and key head (attention_decode.cu)

  // Whether the kernels for usual models do: scores are q · k * scale, and heads turn whole.
  bool is_usual() const { return a.rule.is_plain() && t.rest == 0; }
};

// Launches the attention of rows that are listed (attention_bulk.cu). REQUIRES: bulk_blocks() > 0, g.v.listed
void bulk_attention(device& d, const decode_args& g);

// What the products of a row's queries and keys are multiplied by: scores are then in units of log2, or where
// they are bounded (attention_rule::cap) tanh of them is still to be taken (attention_sums::add). Queries
// that are not fresh have grown already (rotary_args::growth). `usual`, here and below: g.is_usual().
template <bool usual>
__device__ __forceinline__ float score_unit(const decode_args& g, int position) {
  const attention_rule& rule = g.a.rule;
  if constexpr (usual) return rule.scale * 1.44269504f;
  const float scale = g.fresh ? rule.scale_at(static_cast<std::uint32_t>(position)) : rule.scale;
  return rule.cap == 0 ? scale * 1.44269504f : scale / rule.cap;
}

// The positions that a row attends to: [from, to], `to` being its own.
struct seen_tokens {
  int from, to;
  __device__ seen_tokens(int position, std::uint32_t window)
      : from(window != 0 && position + 1 > static_cast<int>(window) ? position + 1 - static_cast<int>(window)
                                                                    : 0),
        to(position) {}
  __device__ int first_piece() const { return from / piece_tokens; }
  __device__ int last_piece() const { return to / piece_tokens; }
  __device__ int pieces() const { return last_piece() - first_piece() + 1; }
};

// The offset, in bytes from layer_pages::keys, of piece `at` of key head `kv_head` in page number `page`; it
// is the same in layer_pages::values. The offset is that of the piece's first panel; the others follow at
// distances of page_tokens rows.
template <page_type pages, int head_dim>
__device__ __forceinline__ std::size_t piece_place(const head_shape& h, std::uint32_t kv_head,
                                                   std::int32_t page, int at) {
  constexpr int wide = panel_units(row_units(pages, head_dim)) * 16;
  return (std::size_t(page) * h.kv_heads + kv_head) * head_bytes(pages, head_dim, page_tokens) +
         static_cast<std::size_t>(at * piece_tokens % page_tokens) * wide;
}

// Begins to copy keys and values of piece `at` to shared memory at `to`, each [16, head_dim] in the layout of
// unit_at(…, piece_tokens). The copies are asynchronous (cp.async); the caller closes their group. Where
// `shares` is 2, two warps call it: share 0 copies the keys, and share 1 the values.
template <page_type pages, int head_dim, int shares = 1>
__device__ __forceinline__ void fetch_piece(const attention_args& a, std::uint32_t kv_head, std::int32_t page,
                                            int at, std::uint32_t to, int lane, int share = 0) {
  constexpr int units = row_units(pages, head_dim), wide = panel_units(units), panel = piece_tokens * wide;
  const std::size_t from = piece_place<pages, head_dim>(a.heads, kv_head, page, at);
#pragma unroll
  for (int i = lane; i < piece_tokens * units; i += 32) {
    const std::size_t unit = from + (i / panel * page_tokens * wide + i % panel) * 16;
    if (shares == 1 || share == 0) copy_async(to + i * 16, a.pages.keys + unit);
    if (shares == 1 || share == 1)
      copy_async(to + piece_bytes<pages, head_dim> / 2 + i * 16, a.pages.values + unit);
  }
  if constexpr (pages == page_type::q8) {  // the scales of 16 tokens are two units for each group
    const std::size_t scales =
        (std::size_t(page) * a.heads.kv_heads + kv_head) * head_bytes(pages, head_dim, page_tokens) +
        page_tokens * head_dim + at * piece_tokens % page_tokens * 2;
    if (lane < head_dim / q8_group * 2) {
      const std::uint32_t there = to + piece_tokens * head_dim + lane * 16;
      const std::size_t unit = scales + lane / 2 * page_tokens * 2 + lane % 2 * 16;
      if (shares == 1 || share == 0) copy_async(there, a.pages.keys + unit);
      if (shares == 1 || share == 1)
        copy_async(there + piece_bytes<pages, head_dim> / 2, a.pages.values + unit);
    }
  }
}

// The queries of a group in registers, as operand A of mma, with rotary embedding applied. Rows of the tile
// behind the last head of the group are zeros.
template <page_type pages, int head_dim>
struct queries {
  static constexpr int pairs = head_dim / 8;
  // For each two pairs: the first of head lane / 4, of head lane / 4 + 8, then the second of both.
  std::uint32_t q[pairs / 2][4];

  // Loads the queries of row `row` and key head `kv_head` from qkv, and applies g.t where g.fresh.
  template <bool usual>
  __device__ __forceinline__ void load(const decode_args& g, std::uint32_t row, std::uint32_t kv_head,
                                       int lane) {
    const std::size_t angles = std::size_t{row} * (head_dim / 2);
    load<usual>(g, kv_head,
                g.a.qkv + std::size_t{row} * g.a.heads.width() +
                    kv_head * (g.a.heads.heads / g.a.heads.kv_heads) * head_dim,
                g.t.cos + angles, g.t.sin + angles, lane);
  }

  // The same from `from`, the group's queries [group, head_dim], and the row's angles, both [head_dim / 2].
  // In memory of the device or in shared memory.
  template <bool usual>
  __device__ __forceinline__ void load(const decode_args& g, std::uint32_t kv_head, const element* from,
                                       const float* cos, const float* sin, int lane) {
    const int group = static_cast<int>(g.a.heads.heads / g.a.heads.kv_heads);
#pragma unroll
    for (int upper = 0; upper < 2; ++upper) {
      const int line = lane / 4 + upper * 8;
      const element* head = from + min(line, group - 1) * head_dim;
      if (upper * 8 < group && g.fresh)
        load_turned<usual>(g, kv_head * group + min(line, group - 1), head, cos, sin, upper, lane);
      else if (upper * 8 < group)
        load_plain(g.a.type, head, upper, lane);
#pragma unroll
      for (int i = 0; i < pairs; ++i)
        if (line >= group) of(i, upper) = 0;
    }
  }

 private:
  // Pair `i` of head lane / 4, or where `upper` of head lane / 4 + 8.
  __device__ __forceinline__ std::uint32_t& of(int i, int upper) { return q[i / 2][i % 2 * 2 + upper]; }

  // Loads one head's queries as they are.
  __device__ __forceinline__ void load_plain(dtype rows, const element* from, int upper, int lane) {
#pragma unroll
    for (int i = 0; i < pairs; ++i) of(i, upper) = row_operand<pages>(rows, from + pair_at<pages>(i, lane));
  }

  // Loads one head's queries and applies bias, norm and rotary embedding, as rotary.h does. The four lanes
  // of a head share its norm; elements i and i + head_dim / 2, which are rotated together, are in the same
  // lane (takes_fresh).
  template <bool usual>
  __device__ __forceinline__ void load_turned(const decode_args& g, std::uint32_t head, const element* from,
                                              const float* cos, const float* sin, int upper, int lane) {
    constexpr int half = pairs / 2;
    // Where pair u is in memory.
    const auto at = [&](int u) {
      const int i = pair_at<pages>(u, lane);
      return usual ? i : number_at(i, head_dim / 2, head_dim / 2 - static_cast<int>(g.t.rest));
    };
    // All reads begin before the first branch, which would hold up those behind it; those of angles only
    // where there are registers for them.
    std::uint32_t raw[pairs];
    float2 c[half], s[half], v[pairs];
    const auto load_angles = [&] {
#pragma unroll
      for (int u = 0; u < half; ++u) {
        c[u] = *reinterpret_cast<const float2*>(cos + pair_at<pages>(u, lane));
        s[u] = *reinterpret_cast<const float2*>(sin + pair_at<pages>(u, lane));
      }
    };
#pragma unroll
    for (int u = 0; u < pairs; ++u) raw[u] = *reinterpret_cast<const std::uint32_t*>(from + at(u));
    if constexpr (head_dim <= 128) load_angles();
#pragma unroll
    for (int u = 0; u < pairs; ++u)
      v[u] = row_floats<pages>(g.a.type, reinterpret_cast<const element*>(&raw[u]));
    if (g.t.bias) {
      const float* bias = g.t.bias + head * head_dim;
#pragma unroll
      for (int u = 0; u < pairs; ++u) {
        v[u].x += bias[at(u)];
        v[u].y += bias[at(u) + 1];
      }
    }
    if (g.t.q_norm) {
      float squares = 0;
#pragma unroll
      for (int u = 0; u < pairs; ++u) squares += v[u].x * v[u].x + v[u].y * v[u].y;
      squares += __shfl_xor_sync(~0u, squares, 1);
      squares += __shfl_xor_sync(~0u, squares, 2);
      const float scale = rsqrtf(squares / head_dim + g.t.eps);
#pragma unroll
      for (int u = 0; u < pairs; ++u) {
        v[u].x *= scale * g.t.q_norm[at(u)];
        v[u].y *= scale * g.t.q_norm[at(u) + 1];
      }
    }
    if constexpr (head_dim > 128) load_angles();
#pragma unroll
    for (int u = 0; u < half; ++u) {
      const float2 a = v[u], b = v[u + half];
      v[u] = make_float2(a.x * c[u].x - b.x * s[u].x, a.y * c[u].y - b.y * s[u].y);
      v[u + half] = make_float2(b.x * c[u].x + a.x * s[u].x, b.y * c[u].y + a.y * s[u].y);
    }
    if constexpr (pages == page_type::q8) turn_pairs(v, lane);
#pragma unroll
    for (int i = 0; i < pairs; ++i) of(i, upper) = pair_of<math_type<pages>>(v[i].x, v[i].y);
  }
};

// The attention of a group over the pieces so far: sums of values weighted by exponentials [group, columns],
// in registers as the accumulators of mma. They are not divided by the totals yet. `columns`: of the values'
// head_dim, those that the warp adds up.
template <page_type pages, int head_dim, int columns = head_dim>
struct attention_sums {
  static constexpr int units = columns / 8;
  float result[units][4];  // pair_of_sums() tells which columns they are
  // Of the same two heads: the largest score so far, in units of log2, and the sum of exp2(score - largest).
  // Until sum_totals() `total` covers only the tokens that this lane has computed.
  float largest[2], total[2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int u = 0; u < units; ++u) result[u][0] = result[u][1] = result[u][2] = result[u][3] = 0;
    largest[0] = largest[1] = -INFINITY;
    total[0] = total[1] = 0;
  }

  // Adds piece `at`, of which positions outside `seen` are masked. `stage` is the shared-memory address of a
  // stage that holds the keys of `tokens` tokens and then their values (head_bytes); the piece begins at its
  // token `first`. `unit` is score_unit(), and `cap` attention_rule::cap. `column`: the first of `columns`, a
  // multiple of them.
  template <int tokens = piece_tokens>
  __device__ __forceinline__ void add(const queries<pages, head_dim>& of, std::uint32_t stage, int first,
                                      int at, const seen_tokens& seen, float unit, float cap, int lane,
                                      int column = 0) {
    float scores[2][4] = {};
    const std::uint32_t keys = stage + first * panel_units(row_units(pages, head_dim)) * 16;
    const std::uint32_t scales = stage + tokens * head_dim + first * 2;  // of q8
    multiply_keys<pages, head_dim, tokens>(scores, of.q, keys, scales, lane);
    if (cap != 0) {
#pragma unroll
      for (int n = 0; n < 2; ++n)
#pragma unroll
        for (int j = 0; j < 4; ++j) scores[n][j] = cap * tanh_quick(scores[n][j] * unit);
      unit = 1.44269504f;
    }
    // Only the first and the last piece may have tokens that the row does not attend to.
    const bool edge = at * piece_tokens < seen.from || (at + 1) * piece_tokens - 1 > seen.to;
    float most[2] = {largest[0], largest[1]};
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        scores[n][j] *= unit;
        if (edge) {
          const int token = at * piece_tokens + n * 8 + lane % 4 * 2 + j % 2;
          if (token < seen.from || token > seen.to) scores[n][j] = -INFINITY;
        }
        most[j / 2] = fmaxf(most[j / 2], scores[n][j]);
      }
    float sums[2] = {0, 0}, shrink[2], base[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      most[r] = fmaxf(most[r], __shfl_xor_sync(~0u, most[r], 1));
      most[r] = fmaxf(most[r], __shfl_xor_sync(~0u, most[r], 2));
      base[r] = most[r] == -INFINITY ? 0.0f : most[r];
      shrink[r] = largest[r] == most[r] ? 1.0f : exp2_fast(largest[r] - base[r]);
      largest[r] = most[r];
      base[r] -= weight_power<pages>;
    }
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        scores[n][j] = exp2_fast(scores[n][j] - base[j / 2]);
        sums[j / 2] += scores[n][j];
      }
    total[0] = total[0] * shrink[0] + sums[0];
    total[1] = total[1] * shrink[1] + sums[1];
    const token_weights weights = weights_of<pages>(scores);
    if (__any_sync(~0u, shrink[0] != 1.0f || shrink[1] != 1.0f)) {
#pragma unroll
      for (int u = 0; u < units; ++u) {
        result[u][0] *= shrink[0];
        result[u][1] *= shrink[0];
        result[u][2] *= shrink[1];
        result[u][3] *= shrink[1];
      }
    }
    constexpr int bytes = head_bytes(pages, head_dim, tokens);
    std::uint32_t values = keys + bytes, value_scales = scales + bytes;
    if constexpr (columns < head_dim) {  // whole panels, and whole groups of q8
      static_assert(row_units(pages, columns) % 8 == 0);
      values += column * number_bytes(pages) * tokens;
      value_scales += column / q8_group * tokens * 2;
    }
    multiply_values<pages, columns, tokens>(result, weights, values, value_scales, 0, lane);
  }

  // Sums the totals over the lanes of each head, so that every lane has the total of all tokens.
  __device__ __forceinline__ void sum_totals() {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      total[r] += __shfl_xor_sync(~0u, total[r], 1);
      total[r] += __shfl_xor_sync(~0u, total[r], 2);
    }
  }
};

}  // namespace weir::kernels::cuda
