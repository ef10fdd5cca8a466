// rare_sort.h — the weights of a row in falling order, for the cut that looks at all of them. All threads of
// a block call a function.
#pragma once

#include "kernels/cuda/draws/rare_row.h"

namespace weir::kernels::cuda::sampling {

// Digits of a key. Keys have 28 bits: by how much the bits of a weight are below those of the largest one,
// which is at most 1e8 times as large.
constexpr std::uint32_t digit_bits = 7, sort_passes = 4;

// One pass of a stable sort by digits: from `from` to `to`, [count], by the digit at bit `shift`. Each warp
// has a stretch of the keys, and for each digit the place where its next key goes.
inline __device__ void sort_by_digit(const std::uint32_t* from, std::uint32_t* to, std::uint32_t count,
                                     std::uint32_t shift, room& s) {
  constexpr int digits = 1 << digit_bits, warps = threads / 32, each = digits * warps / threads;
  static_assert(sizeof(s.candidates) == sizeof(std::uint32_t) * digits * warps);
  auto* places = reinterpret_cast<std::uint32_t*>(s.candidates);  // [digit][warp]
  const int warp = static_cast<int>(threadIdx.x / 32), lane = static_cast<int>(threadIdx.x % 32);
  const std::uint32_t stretch = (count + threads - 1) / threads * 32;
  const std::uint32_t begin = min(count, warp * stretch), end = min(count, begin + stretch);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < digits * warps; i += threads) places[i] = 0;
  __syncthreads();
  for (std::uint32_t i = begin + lane; i < end; i += 32)
    atomicAdd(&places[(from[i] >> shift & (digits - 1)) * warps + warp], 1u);
  __syncthreads();
  // The counts become the sums of those before.
  std::uint32_t own[each], sum = 0;
  for (int j = 0; j < each; ++j) {
    own[j] = sum;
    sum += places[threadIdx.x * each + j];
  }
  std::uint32_t running = sum;
  for (int o = 1; o < 32; o *= 2) {
    const std::uint32_t below = __shfl_up_sync(~0u, running, o);
    if (lane >= o) running += below;
  }
  if (lane == 31) s.counts[warp] = running;
  __syncthreads();
  std::uint32_t before = running - sum;
  for (int w = 0; w < warp; ++w) before += s.counts[w];
  for (int j = 0; j < each; ++j) places[threadIdx.x * each + j] = before + own[j];
  __syncthreads();
  for (std::uint32_t base = begin; base < end; base += 32) {
    const bool in = base + lane < end;
    const std::uint32_t key = in ? from[base + lane] : 0;
    const std::uint32_t digit = in ? key >> shift & (digits - 1) : digits;
    const unsigned same = __match_any_sync(~0u, digit);
    const unsigned earlier = same & ((1u << lane) - 1);
    std::uint32_t at = 0;
    if (in) at = places[digit * warps + warp];
    __syncwarp();
    if (in && earlier == 0) places[digit * warps + warp] = at + __popc(same);
    __syncwarp();
    if (in) to[at + __popc(earlier)] = key;
  }
  __syncthreads();
}

// Writes the weights of the row to r.spare, in falling order, as keys that rise: the bits of a weight are
// `largest` minus its key. Returns their number. r.other is overwritten. REQUIRES: `largest` are the bits of
// the largest weight; each weight is 0 or at least 1e-8 of it.
inline __device__ std::uint32_t sort_weights(const rare_row& r, std::uint32_t largest, room& s) {
  auto *keys = reinterpret_cast<std::uint32_t*>(r.spare), *others = reinterpret_cast<std::uint32_t*>(r.other);
  __syncthreads();
  if (threadIdx.x == 0) s.found = 0;
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < r.count; i += threads) {
    const float w = r.weight(i);
    if (w > 0) keys[atomicAdd(&s.found, 1u)] = largest - __float_as_uint(w);
  }
  __syncthreads();
  const std::uint32_t count = s.found;
  for (std::uint32_t pass = 0; pass < sort_passes; ++pass) {
    sort_by_digit(keys, others, count, pass * digit_bits, s);
    auto* const held = keys;
    keys = others;
    others = held;
  }
  return count;
}

}  // namespace weir::kernels::cuda::sampling
