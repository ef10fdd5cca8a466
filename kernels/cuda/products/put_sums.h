// put_sums.h — how a warp writes its part of a product that wgmma has computed with the weights as the
// operand of 64 rows: 16 rows of the weights by some rows of x (wgmma.h).
//
// A lane has sums of outputs that are eight apart, in neighbouring rows of x. Lanes exchange some of them
// first, so that a write has several neighbouring outputs of one row: where each output was written by
// itself, that took up to a fifth of the time of a product.
#pragma once

#include "kernels/cuda/element.h"
#include "kernels/cuda/products/gate.h"
#include "kernels/cuda/products/products.h"

namespace weir::kernels::cuda {

// Where sums go. outputs: of a row of x, a multiple of 4. m: rows of x. stride: from one row of `out` to the
// next, a multiple of 4. `out` is a multiple of 8. order: of the outputs, where `kind` is gated.
struct put_args {
  void* out;
  std::uint32_t outputs, m, stride;
  product_out kind;
  activation gate = activation::silu;
  column_order order = column_order::plain;
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
// Transposes a matrix of 8 x 8 elements of a warp: lane i holds columns 2 * (i % 4) and + 1 of row i / 4 (PTX
// ISA, «movmatrix»).
__device__ __forceinline__ std::uint32_t transposed(std::uint32_t pair) {
  std::uint32_t t;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(t) : "r"(pair));
  return t;
}

// to[0] += low and to[1] += high, each by itself. `to` is a multiple of 8.
__device__ __forceinline__ void add_pair(float* to, float low, float high) {
  asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(to), "f"(low), "f"(high) : "memory");
}

// Writes f(gate) * up of eight gates and the same eight of up, outputs `output` on: a lane writes two
// neighbouring outputs in one row of x. `first` is the first row of x here and below.
template <dtype type, int wide>
__device__ __forceinline__ void put_gated(const put_args& a, std::uint32_t output, std::uint32_t first,
                                          const float (&sums)[wide / 2]) {
  const std::uint32_t lane = threadIdx.x % 32;
  std::uint32_t row = first + lane / 4;
  element* to =
      static_cast<element*>(a.out) + std::size_t{row} * a.stride + place_in(a.order, output + lane % 4 * 2);
#pragma unroll
  for (int j = 0; j < wide / 8; ++j, row += 8, to += 8 * a.stride) {
    const float* s = sums + 4 * j;
    const std::uint32_t two =
        transposed(pair_of<type>(gated_quickly(a.gate, s[0], s[2]), gated_quickly(a.gate, s[1], s[3])));
    if (row < a.m && output < a.outputs) *reinterpret_cast<std::uint32_t*>(to) = two;
  }
}

// Writes 16 outputs as elements: a lane writes four neighbouring ones in one row of x.
template <dtype type, int wide>
__device__ __forceinline__ void put_elements(const put_args& a, std::uint32_t output, std::uint32_t first,
                                             const float (&sums)[wide / 2]) {
  const std::uint32_t lane = threadIdx.x % 32;
  const bool odd = lane % 2 != 0;
  output += odd * 8 + lane % 4 / 2 * 4;
  std::uint32_t row = first + lane / 4;
  element* to = static_cast<element*>(a.out) + std::size_t{row} * a.stride + output;
#pragma unroll
  for (int j = 0; j < wide / 8; ++j, row += 8, to += 8 * a.stride) {
    const float* s = sums + 4 * j;
    const std::uint32_t low = transposed(pair_of<type>(s[0], s[1])),
                        high = transposed(pair_of<type>(s[2], s[3])),
                        other = __shfl_xor_sync(~0u, odd ? low : high, 1);
    if (row < a.m && output < a.outputs)
      *reinterpret_cast<uint2*>(to) = odd ? make_uint2(other, high) : make_uint2(low, other);
  }
}

// Writes or adds 16 outputs in f32: a lane has two neighbouring ones in one row of x.
template <int wide>
__device__ __forceinline__ void put_floats(const put_args& a, std::uint32_t output, std::uint32_t first,
                                           const float (&sums)[wide / 2]) {
  const std::uint32_t line = threadIdx.x % 32 / 4;
  const bool odd = line % 2 != 0;
  output += line & ~1u;
  std::uint32_t row = first + threadIdx.x % 4 * 2 + odd;
  float* to = static_cast<float*>(a.out) + std::size_t{row} * a.stride + output;
#pragma unroll
  for (int j = 0; j < wide / 8; ++j, row += 8, to += 8 * a.stride)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const float even_row = sums[4 * j + 2 * i], odd_row = sums[4 * j + 2 * i + 1],
                  other = __shfl_xor_sync(~0u, odd ? even_row : odd_row, 4), low = odd ? other : even_row,
                  high = odd ? odd_row : other;
      if (row >= a.m || output + i * 8 >= a.outputs) continue;
      if (a.kind == product_out::add_f32)
        add_pair(to + i * 8, low, high);
      else
        *reinterpret_cast<float2*>(to + i * 8) = make_float2(low, high);
    }
}

// Writes the calling warp's sums of slab `slab`, 16 rows of the weights, or for gated eight of gate and the
// same eight of up; and of `wide` rows of x from `first` on. All lanes call it.
template <dtype type, int wide>
__device__ __forceinline__ void put_sums(const put_args& a, std::uint32_t slab, std::uint32_t first,
                                         const float (&sums)[wide / 2]) {
  if (a.kind == product_out::gated)
    put_gated<type, wide>(a, slab * 8, first, sums);
  else if (a.kind == product_out::element)
    put_elements<type, wide>(a, slab * 16, first, sums);
  else
    put_floats<wide>(a, slab * 16, first, sums);
}
#endif

}  // namespace weir::kernels::cuda
