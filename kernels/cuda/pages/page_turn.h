// page_turn.h — the Hadamard matrix of q8 (kernels/kv_type.h) and the rounding behind it. Keys and values
// are turned before they are rounded, queries before they are multiplied, sums of values at the end. The
// matrix of q8_group = 32 numbers is a product of five steps, one for each bit of a number's index; a step
// replaces the two numbers a and b whose indices differ in that bit by a + b and a - b.
//
// Functions are called by all lanes of a warp; `lane` is threadIdx.x % 32.
#pragma once

#include "kernels/cuda/pages/page_numbers.h"

namespace weir::kernels::cuda {

// Turns a group of which each of 32 / n neighbouring lanes has n numbers. Bits of an index tell the numbers
// of a lane apart, and the other bits the lanes, in any order. In double, and where a lane has neighbours,
// the sums have the order and the bits of turn_group() (kernels/reference/kv_values.h). The lanes in `mask`
// call it together.
template <class T, int n>
__device__ __forceinline__ void turn(T (&v)[n], int lane, unsigned mask = ~0u) {
#pragma unroll
  for (int half = 1; half < n; half *= 2)
#pragma unroll
    for (int i = 0; i < n; ++i) {
      if (i & half) continue;
      const T a = v[i], b = v[i + half];
      v[i] = a + b;
      v[i + half] = a - b;
    }
#pragma unroll
  for (int half = 1; half < q8_group / n; half *= 2) {
    const T sign = lane & half ? -1 : 1;
#pragma unroll
    for (T& x : v) x = fma(x, sign, __shfl_xor_sync(mask, x, half));
  }
#pragma unroll
  for (T& x : v) x *= static_cast<T>(0.17677669529663687);  // 1 / sqrt(32)
}

// The same for two neighbours a lane. Sixteen neighbouring lanes, those of a group, call it together.
__device__ __forceinline__ float2 turned(float2 x, int lane) {
  float v[2] = {x.x, x.y};
  turn(v, lane, 0xffffu << (lane & 16));
  return make_float2(v[0], v[1]);
}

// Turns pairs of a head of which a lane has those of pair_at().
template <int pairs>
__device__ __forceinline__ void turn_pairs(float2 (&v)[pairs], int lane) {
#pragma unroll
  for (int i = 0; i < pairs; i += 4) {
    float x[8] = {v[i].x, v[i].y, v[i + 1].x, v[i + 1].y, v[i + 2].x, v[i + 2].y, v[i + 3].x, v[i + 3].y};
    turn(x, lane);
#pragma unroll
    for (int j = 0; j < 4; ++j) v[i + j] = make_float2(x[2 * j], x[2 * j + 1]);
  }
}

// Turns the sums of values of a tile, as mma() or wgmma left them: for each eight columns of the product two
// numbers of an upper and two of a lower line.
template <int count>
__device__ __forceinline__ void turn_sums(float (&sums)[count], int lane) {
#pragma unroll
  for (int group = 0; group < count; group += 16)
#pragma unroll
    for (int line = 0; line < 4; line += 2) {
      float x[8];
#pragma unroll
      for (int i = 0; i < 8; ++i) x[i] = sums[group + i / 2 * 4 + line + i % 2];
      turn(x, lane);
#pragma unroll
      for (int i = 0; i < 8; ++i) sums[group + i / 2 * 4 + line + i % 2] = x[i];
    }
}

// Eight codes, and the scale of their group.
struct q8_eight {
  uint2 codes;
  __half scale;
};

// Rounds a turned group, of which each of four lanes has eight neighbours, to the bits of store_kv()
// (kernels/reference/kv_values.h).
__device__ __forceinline__ q8_eight q8_of(const double (&turned)[8]) {
  float x[8];
  std::uint32_t most = 0;  // the largest magnitude, whose bits are ordered as numbers are, NaN last
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    x[i] = static_cast<float>(turned[i]);
    most = max(most, __float_as_uint(x[i]) & 0x7fffffffu);
  }
  most = max(most, __shfl_xor_sync(~0u, most, 1));
  most = max(most, __shfl_xor_sync(~0u, most, 2));
  const bool finite = most < 0x7f800000u;
  q8_eight e{{0, 0}, __float2half_rn(finite ? __fdiv_rn(__uint_as_float(most), 127.0f) : NAN)};
  const float scale = __half2float(e.scale);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const float code = scale > 0 ? rintf(__fdiv_rn(x[i], scale)) : 0.0f;
    const auto bits = static_cast<std::uint32_t>(static_cast<int>(fminf(fmaxf(code, -127.0f), 127.0f)));
    (i < 4 ? e.codes.x : e.codes.y) |= (bits & 0xff) << i % 4 * 8;
  }
  return e;
}

// Stores numbers `first` to `first` + 7 of token `token` in a head of `tokens` tokens (head_bytes), and where
// they are the first of their group, its scale.
template <int head_dim>
__device__ __forceinline__ void put_eight(unsigned char* head, int first, int token, int tokens,
                                          const q8_eight& e) {
  const int unit = unit_at(first / 16, token, row_units(page_type::q8, head_dim), tokens);
  *reinterpret_cast<uint2*>(head + unit * 16 + first % 16) = e.codes;
  if (first % q8_group == 0)
    *reinterpret_cast<__half*>(head + tokens * head_dim + (first / q8_group * tokens + token) * 2) = e.scale;
}

// Eight neighbours in shared memory.
template <class T>
__device__ __forceinline__ void load_eight(const float* from, T (&x)[8]) {
#pragma unroll
  for (int i = 0; i < 8; i += 4) {
    const float4 v = *reinterpret_cast<const float4*>(from + i);
    x[i] = v.x;
    x[i + 1] = v.y;
    x[i + 2] = v.z;
    x[i + 3] = v.w;
  }
}

}  // namespace weir::kernels::cuda
