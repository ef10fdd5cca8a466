// block_values.h — the numbers of a quantised matrix on a device, read from its cells (block_layout.h) one
// lane's weights at a time, exactly as blocks.h defines them. For kernels that need not be the fastest:
// stream_blocks.cu has its own way.
#pragma once

#include "kernels/cuda/products/block_layout.h"

namespace weir::kernels::cuda {

// The place of a code among the eight codes of a lane in 32 columns: half `h` of the columns, `e` of its
// four. 4 bits: the nibble of the word.
__host__ __device__ constexpr std::uint32_t code_at(int h, int e) {
  return static_cast<std::uint32_t>(2 * h + e / 2 + 4 * (e % 2));
}
// 8 bits: the byte of word `h`.
__host__ __device__ constexpr std::uint32_t byte_at(int e) {
  return static_cast<std::uint32_t>(e / 2 + 2 * (e % 2));
}

// The sixteen values of a type's codes of 4 bits as signed bytes, four to a word; those of mxfp4 doubled.
constexpr std::uint32_t value_bytes(dtype type, int word) {
  std::uint32_t bits = 0;
  for (int i = 3; i >= 0; --i) {
    const float v = format_of(type).values[static_cast<std::size_t>(4 * word + i)];
    bits = bits << 8 | (static_cast<std::uint32_t>(static_cast<int>(type == dtype::mxfp4 ? 2 * v : v)) & 255);
  }
  return bits;
}

// What a code of 4 bits stands for.
template <dtype type>
__device__ __forceinline__ float value_of_nibble(std::uint32_t code) {
  constexpr std::uint32_t w0 = value_bytes(type, 0), w1 = value_bytes(type, 1), w2 = value_bytes(type, 2),
                          w3 = value_bytes(type, 3);
  const std::uint32_t word = code < 8 ? (code < 4 ? w0 : w1) : (code < 12 ? w2 : w3);
  const auto v = static_cast<float>(static_cast<std::int8_t>(word >> 8 * (code % 4)));
  if constexpr (type == dtype::mxfp4) return code == 8 ? -0.0f : 0.5f * v;
  return v;
}

// What the code of 8 bits in the lowest byte of `word` stands for.
template <dtype type>
__device__ __forceinline__ float value_of_byte(std::uint32_t word) {
  if constexpr (format_of(type).e4m3)
    return __uint_as_float((word & 0x80) << 24 | (word & 0x7f) << 20) * 0x1p120f;
  return static_cast<float>(static_cast<std::int8_t>(word));
}

template <dtype type>
__device__ __forceinline__ float wide_scale(std::uint32_t bits) {
  if constexpr (type == dtype::mxfp4) return __uint_as_float(bits << 16);
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}

// A lane's weights in one cell: `cell` is the cell's address, `lane` is 4 * (row in the cell) + q.
template <dtype type>
struct cell_reader {
  static constexpr cell_form form{type};
  static constexpr block_format format = format_of(type);
  const std::uint32_t* codes;
  const unsigned char* record;

  __device__ __forceinline__ cell_reader(const unsigned char* cell, std::uint32_t lane)
      : codes(reinterpret_cast<const std::uint32_t*>(cell + lane * 16)),
        record(cell + form.code_bytes + lane / 4 * form.words * 4) {}

  __device__ __forceinline__ std::uint32_t half_at(std::uint32_t i) const {
    return reinterpret_cast<const std::uint16_t*>(record)[i];
  }
  __device__ __forceinline__ float scale(int j, int h) const {
    if constexpr (format.wide_scales) return reinterpret_cast<const float*>(record)[format.shared ? 0 : j];
    if constexpr (!format.scaled_groups) return wide_scale<type>(half_at(static_cast<std::uint32_t>(j)));
    const unsigned char s = record[4 + (format.group == 16 ? 2 * j + h : j)];
    const float own = type == dtype::q2_k ? static_cast<float>(s & 15)
                      : type == dtype::q4_k || type == dtype::q5_k
                          ? static_cast<float>(s)
                          : static_cast<float>(static_cast<std::int8_t>(s));
    return wide_scale<type>(half_at(0)) * own;
  }
  __device__ __forceinline__ float zero(int j) const {
    if constexpr (!format.zeros) return 0;
    if constexpr (format.shared) return reinterpret_cast<const float*>(record)[1];
    return static_cast<float>(record[16 + j] - format.offset);
  }
  // What is added to every weight of the group.
  __device__ __forceinline__ float minimum(int j, int h) const {
    if constexpr (!format.minima) return 0;
    if constexpr (!format.scaled_groups) return wide_scale<type>(half_at(static_cast<std::uint32_t>(4 + j)));
    const float m = type == dtype::q2_k ? static_cast<float>(record[4 + 2 * j + h] >> 4)
                                        : static_cast<float>(record[8 + j]);
    return wide_scale<type>(half_at(1)) * m;
  }
  // The weights of columns 32 * j + 16 * h + 4 * q on.
  __device__ __forceinline__ float4 four(int j, int h) const {
    const float s = scale(j, h), m = minimum(j, h), base = zero(j);
    float v[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      float code;
      if constexpr (form.code_bits == 4)
        code = value_of_nibble<type>(codes[j] >> 4 * code_at(h, e) & 15);
      else
        code = value_of_byte<type>(codes[j / 2 * 128 + j % 2 * 2 + h] >> 8 * byte_at(e));
      if constexpr (format.zeros) code -= base;
      v[e] = format.minima ? s * code + m : s * code;
    }
    return make_float4(v[0], v[1], v[2], v[3]);
  }
};

}  // namespace weir::kernels::cuda
