// Attention of many rows of one sequence, on tensor cores (Dao 2023, «FlashAttention-2»).
//
// A block has up to 128 lines; a line is one query head of one row. The query heads of a key head are in one
// block, so that they share its pages. Eight warps have 16 lines each; for single rows a block is one warp. A
// page of keys and values is computed from shared memory while the next page is loaded.
#include <algorithm>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/pages/page_products.h"
#include "kernels/cuda/pages/page_turn.h"

namespace weir::kernels::cuda {
namespace {

// The bytes of a page of one key head: its keys and its values.
template <page_type type, int head_dim>
constexpr int page_bytes() {
  return 2 * head_bytes(type, head_dim, page_tokens);
}

// The pages that a block has in shared memory: the one that it computes, and the one that it loads meanwhile.
// Heads of 256 have one page on the general path, where a block has less shared memory.
template <page_type type, int head_dim, int pages>
constexpr std::size_t shared_bytes() {
  return static_cast<std::size_t>(pages) * page_bytes<type, head_dim>();
}

// Begins to copy page `index` of a sequence to shared memory at `to`.
template <page_type type, int head_dim, int warps>
__device__ void fetch(const rows_view& v, const attention_args& a, std::uint32_t kv_head,
                      std::int32_t pages_at, int index, std::uint32_t to) {
  const auto page = static_cast<std::size_t>(v.pages[pages_at + index]);
  constexpr int half = page_bytes<type, head_dim>() / 2;
  const std::size_t from = (page * a.heads.kv_heads + kv_head) * half;
  for (int i = static_cast<int>(threadIdx.x) * 16; i < half; i += warps * 32 * 16) {
    copy_async(to + i, a.pages.keys + from + i);
    copy_async(to + half + i, a.pages.values + from + i);
  }
}

// `capped`: scores are bounded (attention_rule::cap).
template <page_type type, int head_dim, int warps, int pages, bool capped>
__global__ void __launch_bounds__(warps * 32, 1) prefill_kernel(rows_view v, attention_args a) {
  extern __shared__ __align__(128) unsigned char shared[];
  constexpr int steps = head_dim / 16, pairs = head_dim / 8, tiles = page_tokens / 8;
  const head_shape& h = a.heads;
  let_next_start();
  wait_for_previous();
  const prefill_block b = v.blocks[blockIdx.y];
  if (b.rows == 0) return;
  const std::uint32_t kv_head = blockIdx.x;
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const int group = static_cast<int>(h.heads / h.kv_heads);

  // This lane's two lines: position, index in the output, whether the block has the line, and queries.
  int position[2];
  std::size_t out_at[2];
  bool there[2];
  std::uint32_t q[steps][4];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int line = warp * 16 + lane / 4 + r * 8, token = line / group;
    there[r] = token < b.rows;
    position[r] = b.position + min(token, b.rows - 1);
    const auto row = static_cast<std::size_t>(b.row + min(token, b.rows - 1));
    const std::size_t head = kv_head * group + line % group;
    out_at[r] = (row * h.heads + head) * head_dim;
    const element* from = a.qkv + row * h.width() + head * head_dim;
#pragma unroll
    for (int s = 0; s < steps; ++s) {
      q[s][r] = row_operand<type>(a.type, from + pair_at<type>(2 * s, lane));
      q[s][r + 2] = row_operand<type>(a.type, from + pair_at<type>(2 * s + 1, lane));
    }
  }
  const auto from_of = [&](int p) { return a.rule.first_seen(p); };
  const int first_page = from_of(b.position) / page_tokens;
  const int last_page = (b.position + b.rows - 1) / page_tokens;
  const float log2_scale = (capped ? a.rule.cap : a.rule.scale) * 1.44269504f;

  float result[pairs][4] = {};
  float largest[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
  fetch<type, head_dim, warps>(v, a, kv_head, b.pages_at, first_page, shared_address(shared));
  copies_end_group();
  for (int page = first_page; page <= last_page; ++page) {
    const int stage = (page - first_page) % pages;
    if (pages == 2 && page < last_page)
      fetch<type, head_dim, warps>(v, a, kv_head, b.pages_at, page + 1,
                                   shared_address(shared + (1 - stage) * page_bytes<type, head_dim>()));
    copies_end_group();
    copies_wait<pages - 1>();
    __syncthreads();
    const std::uint32_t key_at = shared_address(shared + stage * page_bytes<type, head_dim>());
    const std::uint32_t value_at = key_at + page_bytes<type, head_dim>() / 2;

    float scores[tiles][4] = {};
    multiply_keys<type, head_dim, page_tokens>(scores, q, key_at, key_at + page_tokens * head_dim, lane);
    if constexpr (capped) {
      const float by = a.rule.scale / a.rule.cap;
#pragma unroll
      for (int n = 0; n < tiles; ++n)
#pragma unroll
        for (int j = 0; j < 4; ++j) scores[n][j] = tanh_quick(scores[n][j] * by);
    }
    // Only pages with a token that some line does not attend to are masked token by token.
    const bool edge =
        (page + 1) * page_tokens - 1 > b.position || page * page_tokens < from_of(b.position + b.rows - 1);
    float most[2] = {largest[0], largest[1]};
#pragma unroll
    for (int n = 0; n < tiles; ++n)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        scores[n][j] *= log2_scale;
        if (edge) {
          const int token = page * page_tokens + n * 8 + lane % 4 * 2 + j % 2;
          if (token > position[j / 2] || token < from_of(position[j / 2])) scores[n][j] = -INFINITY;
        }
        most[j / 2] = fmaxf(most[j / 2], scores[n][j]);
      }
    float shrink[2], base[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      most[r] = fmaxf(most[r], __shfl_xor_sync(~0u, most[r], 1));
      most[r] = fmaxf(most[r], __shfl_xor_sync(~0u, most[r], 2));
      base[r] = most[r] == -INFINITY ? 0.0f : most[r];
      shrink[r] = exp2f(largest[r] - base[r]);
      largest[r] = most[r];
      total[r] *= shrink[r];
      base[r] -= weight_power<type>;
    }
#pragma unroll
    for (int n = 0; n < tiles; ++n)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        scores[n][j] = exp2f(scores[n][j] - base[j / 2]);
        total[j / 2] += scores[n][j];
      }
#pragma unroll
    for (int u = 0; u < pairs; ++u) {
      result[u][0] *= shrink[0];
      result[u][1] *= shrink[0];
      result[u][2] *= shrink[1];
      result[u][3] *= shrink[1];
    }
#pragma unroll
    for (int n = 0; n < tiles; n += 2)
      multiply_values<type, head_dim, page_tokens>(result, weights_of<type>(scores + n), value_at,
                                                   value_at + page_tokens * head_dim, n * 8, lane);
    __syncthreads();
    if (pages == 1 && page < last_page)
      fetch<type, head_dim, warps>(v, a, kv_head, b.pages_at, page + 1, shared_address(shared));
  }
  if constexpr (type == page_type::q8) turn_sums(reinterpret_cast<float(&)[pairs * 4]>(result), lane);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    total[r] += __shfl_xor_sync(~0u, total[r], 1);
    total[r] += __shfl_xor_sync(~0u, total[r], 2);
    if (!there[r]) continue;
    float inverse = 1.0f / total[r];
    if (a.sinks) {
      const float sink = a.sinks[kv_head * group + (warp * 16 + lane / 4 + r * 8) % group] * 1.44269504f;
      const float top = fmaxf(largest[r], sink), by = exp2f(largest[r] - top);
      inverse = by / (total[r] * by + exp2f(sink - top + weight_power<type>));
    }
#pragma unroll
    for (int i = 0; i < pairs; ++i) {
      const float2 two = pair_of_sums<type>(result, i, r);
      *reinterpret_cast<std::uint32_t*>(a.out + out_at[r] + place_in(a.out_order, pair_at<type>(i, lane))) =
          row_pair<type>(a.type, two.x * inverse, two.y * inverse);
    }
  }
}

template <page_type type, int head_dim, int warps, int pages>
void start(device& d, const rows_view& v, const attention_args& a) {
  constexpr std::size_t shared = shared_bytes<type, head_dim, pages>();
  const auto kernel = a.rule.cap == 0 ? prefill_kernel<type, head_dim, warps, pages, false>
                                      : prefill_kernel<type, head_dim, warps, pages, true>;
  allow_shared(d, kernel, shared);
  launch(d, kernel, dim3(a.heads.kv_heads, v.block_count), warps * 32, shared, v, a);
}

template <page_type type, int head_dim, int warps>
void start(device& d, const rows_view& v, const attention_args& a) {
  if constexpr (shared_bytes<type, head_dim, 2>() > general_shared) {
    static_assert(shared_bytes<type, head_dim, 1>() <= general_shared);
    if (shared_bytes<type, head_dim, 2>() > d.shared_per_block)
      return start<type, head_dim, warps, 1>(d, v, a);
  }
  start<type, head_dim, warps, 2>(d, v, a);
}

template <page_type type, int head_dim>
void start(device& d, const rows_view& v, const attention_args& a) {
  if (v.block_lines == 16) return start<type, head_dim, 1>(d, v, a);
  start<type, head_dim, 8>(d, v, a);
}

}  // namespace

std::uint32_t prefill_tokens(const head_shape& h, std::uint32_t block_lines) {
  return block_lines / (h.heads / h.kv_heads);
}

void prefill_attention(device& d, const rows_view& v, const attention_args& a) {
  if (v.block_count == 0) return;
  if (can_use_wgmma(d, v, a.heads)) return wgmma_attention(d, v, a);
  with_heads(a.heads, [&](auto type, auto size) { start<type, size>(d, v, a); });
}

}  // namespace weir::kernels::cuda
