// attention_tile.h — what the parts of attention_wgmma.cu work on: shared memory, a block's part of a
// context, and the arithmetic of a tile: 64 lines a warpgroup by 128 tokens.
#pragma once

#include "kernels/cuda/barrier.h"
#include "kernels/cuda/layers.h"
#include "kernels/cuda/mma.h"
#include "kernels/cuda/wgmma.h"

namespace weir::kernels::cuda {

constexpr int lines = 128, tile = 2 * page_tokens, stages = 2;
constexpr int consumers = 256, threads = consumers + 128;
constexpr int panel_bytes = lines * 128;  // 64 columns of 128 lines, or of 128 tokens
static_assert(tile == lines);

template <int head_dim>
constexpr int tile_bytes = head_dim / 64 * panel_bytes;

// Shared memory: queries, then keys, then values, then barriers. The join lays sums over the rings.
template <int head_dim>
constexpr std::size_t shared_bytes = (1 + 2 * stages) * tile_bytes<head_dim> + 4 * stages * 8;
template <int head_dim>
constexpr int sum_stride = head_dim + 4;  // floats
static_assert(lines * (sum_stride<128> + 2) * 4 <= 2 * stages * tile_bytes<128>);
static_assert(lines * (sum_stride<64> + 2) * 4 <= 2 * stages * tile_bytes<64>);

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

__device__ __forceinline__ void cluster_meet() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

struct rings {
  std::uint32_t queries, keys, values, key_full, value_full, key_free, value_free;
};

template <int head_dim>
__device__ __forceinline__ rings rings_at(std::uint32_t shared) {
  rings r;
  r.queries = shared;
  r.keys = r.queries + tile_bytes<head_dim>;
  r.values = r.keys + stages * tile_bytes<head_dim>;
  r.key_full = r.values + stages * tile_bytes<head_dim>;
  r.value_full = r.key_full + stages * 8;
  r.key_free = r.value_full + stages * 8;
  r.value_free = r.key_free + stages * 8;
  return r;
}

// What a block does: tiles [begin, end) of its lines' pages, counted from `first_page`.
struct part {
  prefill_block b;
  int group, window, first_page, last_page, begin, end;
  __device__ int from_of(int p) const { return window != 0 && p + 1 > window ? p + 1 - window : 0; }
};

__device__ __forceinline__ part part_of(const rows_view& v, const attention_args& a) {
  part p;
  p.b = v.blocks[blockIdx.y];
  p.group = static_cast<int>(a.heads.heads / a.heads.kv_heads);
  p.window = static_cast<int>(a.window);
  p.first_page = p.from_of(p.b.position) / page_tokens;
  p.last_page = (p.b.position + p.b.rows - 1) / page_tokens;
  const int tiles = (p.last_page - p.first_page + 2) / 2, parts = static_cast<int>(gridDim.z);
  p.begin = tiles * static_cast<int>(blockIdx.z) / parts;
  p.end = tiles * (static_cast<int>(blockIdx.z) + 1) / parts;
  return p;
}

// A thread's two lines: running maxima and its share of the totals.
struct running {
  int position[2];
  float largest[2] = {-INFINITY, -INFINITY}, total[2] = {0, 0};
};

// Scores become exponentials; `shrink` is what came before in units of the new maximum.
__device__ __forceinline__ void take_exponentials(float (&s)[tile / 2], running& w, const part& p, int t,
                                                  float log2_scale, float (&shrink)[2]) {
  const int lane = static_cast<int>(threadIdx.x % 32), token = (p.first_page + t * 2) * page_tokens;
  // Only tiles at an edge of what some line sees are looked at token by token.
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

template <dtype type>
__device__ __forceinline__ void pack(const float (&s)[tile / 2], std::uint32_t (&p)[tile / 4]) {
#pragma unroll
  for (int i = 0; i < tile / 4; ++i) p[i] = pair_of<type>(s[2 * i], s[2 * i + 1]);
}

template <dtype type, int head_dim>
__device__ __forceinline__ void multiply_keys(float (&s)[tile / 2], std::uint32_t queries,
                                              std::uint32_t keys) {
  const std::uint64_t a = panels_at(queries, panel_bytes), b = panels_at(keys, panel_bytes);
#pragma unroll
  for (int k = 0; k < head_dim / 16; ++k) {
    const std::uint64_t step = k / 4 * (panel_bytes >> 4) + k % 4 * 2;
    multiply_ss<type>(s, a + step, b + step, k != 0);
  }
  products_end_group();
}

template <dtype type, int head_dim>
__device__ __forceinline__ void multiply_values(float (&o)[head_dim / 2], const std::uint32_t (&p)[tile / 4],
                                                std::uint32_t values) {
  const std::uint64_t b = panels_at(values, panel_bytes);
#pragma unroll
  for (int k = 0; k < tile / 16; ++k) multiply_rs<type>(o, p + 4 * k, b + k * 128);
  products_end_group();
}

#endif

}  // namespace weir::kernels::cuda
