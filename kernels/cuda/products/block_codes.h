// block_codes.h — codes and scales of a cell (block_layout.h) in registers, on their way into mma(). Codes
// become small whole numbers, which bf16 holds exactly; scales and minima are for the sums of a group.
//
// A pair of codes is converted in two steps. The codes are put into the mantissas of two bf16 that would
// otherwise be 128; then the excess is subtracted, which is exact.
#pragma once

#include <cuda_bf16.h>

#include "kernels/cuda/device/mma.h"
#include "kernels/cuda/products/block_values.h"

namespace weir::kernels::cuda {

// c = a · b + from, and c += a · b, in the layout of mma(). The compiler may move these between other
// instructions, which hides their latency.
__device__ __forceinline__ void mma_from(float (&c)[4], const std::uint32_t (&a)[4], const uint2& b, float f0,
                                         float f1, float f2, float f3) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%10,%11,%12,%13};"
      : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y), "f"(f0), "f"(f1), "f"(f2), "f"(f3));
}
__device__ __forceinline__ void mma_more(float (&c)[4], const std::uint32_t (&a)[4], const uint2& b) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
}
// c = the sums of b's columns, in every row of c.
__device__ __forceinline__ void mma_ones(float (&c)[4], const uint2& b) {
  constexpr std::uint32_t ones = 0x3f803f80;
  mma_from(c, {ones, ones, ones, ones}, b, 0, 0, 0, 0);
}
__device__ __forceinline__ void mma_more_ones(float (&c)[4], const uint2& b) {
  constexpr std::uint32_t ones = 0x3f803f80;
  mma_more(c, {ones, ones, ones, ones}, b);
}

// a - b of two bf16 each.
__device__ __forceinline__ std::uint32_t subtract_pairs(std::uint32_t a, std::uint32_t b) {
  const __nv_bfloat162 v =
      __hsub2(*reinterpret_cast<const __nv_bfloat162*>(&a), *reinterpret_cast<const __nv_bfloat162*>(&b));
  return *reinterpret_cast<const std::uint32_t*>(&v);
}

// (a & b) | c
__device__ __forceinline__ std::uint32_t and_or(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t v;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(v) : "r"(a), "r"(b), "r"(c));
  return v;
}

// The signed bytes 0 and 2 of `w`.
__device__ __forceinline__ std::uint32_t pair_of_bytes(std::uint32_t w) {
  return subtract_pairs(and_or(w, 0x007f007f, 0x43004300), and_or(w, 0x00800080, 0x43004300));
}

// The values of four codes of 4 bits, the low half of `codes`: signed bytes from a table.
template <dtype type>
__device__ __forceinline__ std::uint32_t look_up(std::uint32_t codes, std::uint32_t high) {
  const std::uint32_t at = codes & 0x7777;
  return __byte_perm(__byte_perm(value_bytes(type, 0), value_bytes(type, 1), at),
                     __byte_perm(value_bytes(type, 2), value_bytes(type, 3), at), high);
}

constexpr bool is_table(dtype type) {
  return type == dtype::iq4_nl || type == dtype::iq4_xs || type == dtype::mxfp4;
}

// A lane's codes of 32 columns as four pairs of bf16: two of the first half of the columns, two of the
// second.
template <dtype type>
__device__ __forceinline__ void expand_nibbles(std::uint32_t w, std::uint32_t (&pairs)[4]) {
  if constexpr (is_table(type)) {
    const std::uint32_t high = 0x32103210 | (w & 0x88888888) >> 1;  // picks the upper half of the table
    const std::uint32_t low_codes = look_up<type>(w, high), high_codes = look_up<type>(w >> 16, high >> 16);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      pairs[i] = pair_of_bytes(__byte_perm(low_codes, high_codes, (4 + i) << 8 | i));
  } else {
    // 128, less the value of code 0.
    constexpr std::uint32_t zero = 0x4300 - static_cast<int>(format_of(type).values[0]);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      pairs[i] = subtract_pairs(and_or(w >> 4 * i, 0x000f000f, 0x43004300), zero << 16 | zero);
  }
}
// Converts the e4m3 in bytes 1 and 3 of `w`: moves their bits to the places that they have in a bf16, then
// corrects the exponent's bias. Exact, as bf16 products keep subnormals.
__device__ __forceinline__ std::uint32_t pair_of_e4m3(std::uint32_t w) {
  const std::uint32_t bits = and_or(w, 0x80008000, w >> 4 & 0x07f007f0), bias = 0x7b807b80;  // 2^120
  const __nv_bfloat162 v = __hmul2(*reinterpret_cast<const __nv_bfloat162*>(&bits),
                                   *reinterpret_cast<const __nv_bfloat162*>(&bias));
  return *reinterpret_cast<const std::uint32_t*>(&v);
}
__device__ __forceinline__ void expand_e4m3(std::uint32_t first, std::uint32_t second,
                                            std::uint32_t (&pairs)[4]) {
  pairs[0] = pair_of_e4m3(first << 8);
  pairs[1] = pair_of_e4m3(first);
  pairs[2] = pair_of_e4m3(second << 8);
  pairs[3] = pair_of_e4m3(second);
}
__device__ __forceinline__ void expand_bytes(std::uint32_t first, std::uint32_t second,
                                             std::uint32_t (&pairs)[4]) {
  pairs[0] = pair_of_bytes(first);
  pairs[1] = pair_of_bytes(first >> 8);
  pairs[2] = pair_of_bytes(second);
  pairs[3] = pair_of_bytes(second >> 8);
}

__device__ __forceinline__ std::uint32_t word_of(const uint4& v, int i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// A lane's codes of one row of a cell, and the row's record.
template <dtype type>
struct cell_row {
  static constexpr cell_form form{type};
  static constexpr block_format format = format_of(type);
  static constexpr int units = static_cast<int>(form.code_bits / 4), words = static_cast<int>(form.words);
  uint4 codes[units];
  std::uint32_t record[words];

  // Loads from a cell in memory of the device. Codes are not kept in the L1 cache, as they are read only
  // once.
  __device__ __forceinline__ void load(const unsigned char* cell, std::uint32_t lane) {
#pragma unroll
    for (int u = 0; u < units; ++u)
      asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0,%1,%2,%3}, [%4];"
                   : "=r"(codes[u].x), "=r"(codes[u].y), "=r"(codes[u].z), "=r"(codes[u].w)
                   : "l"(cell + u * 512 + lane * 16));
    const unsigned char* at = cell + form.code_bytes + lane / 4 * (words * 4);
    if constexpr (words == 2) {
      asm volatile("ld.global.nc.v2.u32 {%0,%1}, [%2];" : "=r"(record[0]), "=r"(record[1]) : "l"(at));
    } else if constexpr (words == 4) {
      asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];"
                   : "=r"(record[0]), "=r"(record[1]), "=r"(record[2]), "=r"(record[3])
                   : "l"(at));
    } else {
#pragma unroll
      for (int i = 0; i < words; ++i)
        asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(record[i]) : "l"(at + 4 * i));
    }
  }

  // The same from a cell in shared memory, and its two parts: codes[u] and the record.
  __device__ __forceinline__ void load_shared(const unsigned char* cell, std::uint32_t lane) {
#pragma unroll
    for (int u = 0; u < units; ++u) load_shared_codes(cell, lane, u);
    load_shared_record(cell, lane);
  }
  __device__ __forceinline__ void load_shared_codes(const unsigned char* cell, std::uint32_t lane, int u) {
    codes[u] = *reinterpret_cast<const uint4*>(cell + u * 512 + lane * 16);
  }
  __device__ __forceinline__ void load_shared_record(const unsigned char* cell, std::uint32_t lane) {
    const auto* at = reinterpret_cast<const std::uint32_t*>(cell + form.code_bytes) + lane / 4 * words;
#pragma unroll
    for (int i = 0; i < words; ++i) record[i] = at[i];
  }

  __device__ __forceinline__ void expand(int j, std::uint32_t (&pairs)[4]) const {
    if constexpr (units == 1 && format.zeros)
      expand_raw(j, pairs);
    else
      expand_codes(j, pairs);
    if constexpr (format.zeros) {  // exact: codes and zeros have 8 bits, as a bf16's significand
      const std::uint32_t bits = __float_as_uint(units == 1 ? 128 + zero(j) : zero(j)),
                          both = __byte_perm(bits, bits, 0x3232);
#pragma unroll
      for (int i = 0; i < 4; ++i) pairs[i] = subtract_pairs(pairs[i], both);
    }
  }

  // The same where zeros are not subtracted yet.
  __device__ __forceinline__ void expand_codes(int j, std::uint32_t (&pairs)[4]) const {
    if constexpr (units == 1)
      expand_nibbles<type>(word_of(codes[0], j), pairs);
    else if constexpr (format.e4m3)
      expand_e4m3(word_of(codes[j / 2], j % 2 * 2), word_of(codes[j / 2], j % 2 * 2 + 1), pairs);
    else
      expand_bytes(word_of(codes[j / 2], j % 2 * 2), word_of(codes[j / 2], j % 2 * 2 + 1), pairs);
  }

  // The same without the last step, for codes that are counted: each number is too large by `excess`.
  static constexpr bool counted = units == 1 && !is_table(type) && !format.zeros;
  static constexpr float excess = 128 - format.values[0];
  __device__ __forceinline__ void expand_raw(int j, std::uint32_t (&pairs)[4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) pairs[i] = and_or(word_of(codes[0], j) >> 4 * i, 0x000f000f, 0x43004300);
  }

  // Groups' scales and minima are bytes below 128.
  static constexpr bool small_scales = format.scaled_groups && format.minima;

  // The scale of columns 32 * j + 16 * h on, for sums of what expand() gives, is own_scale() * whole_scale().
  __device__ __forceinline__ float whole_scale() const {
    if constexpr (format.shared) return __uint_as_float(record[0]);
    return format.scaled_groups ? half_of(record[0], 0) : type == dtype::mxfp4 ? 0.5f : 1.0f;
  }
  __device__ __forceinline__ float own_scale(int j, int h) const {
    if constexpr (format.shared) {
      return 1;
    } else if constexpr (format.wide_scales) {
      return __uint_as_float(record[j]);
    } else if constexpr (!format.scaled_groups) {
      return half_of(record[j / 2], j % 2);
    } else {
      constexpr bool is_signed = type == dtype::q3_k || type == dtype::q6_k || type == dtype::iq4_xs;
      const int g = format.group == 16 ? 2 * j + h : j;
      std::uint32_t w = record[1 + g / 4];
      if (type == dtype::q2_k) w &= 0x0f0f0f0f;
      return is_signed ? byte_of(w ^ 0x80808080, g % 4, 128) : byte_of(w, g % 4);
    }
  }
  __device__ __forceinline__ float scale(int j, int h) const {
    if constexpr (format.shared) return whole_scale();
    if constexpr (small_scales) {
      const int g = format.group == 16 ? 2 * j + h : j;
      return times_byte(whole_scale(), type == dtype::q2_k ? record[1 + g / 4] & 0x0f0f0f0f : record[1],
                        g % 4);
    }
    return format.scaled_groups || type == dtype::mxfp4 ? whole_scale() * own_scale(j, h) : own_scale(j, h);
  }
  // The zero of columns 32 * j on.
  __device__ __forceinline__ float zero(int j) const {
    if constexpr (!format.zeros)
      return 0;
    else if constexpr (format.shared)
      return __uint_as_float(record[1]);
    else
      return byte_of(record[4], j, format.offset);
  }
  // What the sum of x over these columns is multiplied by, in the same two parts. REQUIRES: format.minima
  __device__ __forceinline__ float whole_minimum() const {
    return format.scaled_groups ? half_of(record[0], 1) : 1.0f;
  }
  __device__ __forceinline__ float own_minimum(int j, int h) const {
    if constexpr (!format.scaled_groups) {
      return half_of(record[2 + j / 2], j % 2);
    } else {
      const int g = format.group == 16 ? 2 * j + h : j;
      const std::uint32_t w = type == dtype::q2_k ? record[1 + g / 4] >> 4 & 0x0f0f0f0f : record[2];
      return byte_of(w, g % 4);
    }
  }
  __device__ __forceinline__ float minimum(int j, int h) const {
    if constexpr (small_scales) {
      const int g = format.group == 16 ? 2 * j + h : j;
      return times_byte(whole_minimum(),
                        type == dtype::q2_k ? record[1 + g / 4] >> 4 & 0x0f0f0f0f : record[2], g % 4);
    }
    return own_minimum(j, h);
  }

  static __device__ __forceinline__ float half_of(std::uint32_t word, int i) {
    return wide_scale<type>(i ? word >> 16 : word & 0xffff);
  }
  // d times byte i, which is below 128: exact, as d has 11 bits.
  static __device__ __forceinline__ float times_byte(float d, std::uint32_t word, int i) {
    return fmaf(__uint_as_float(__byte_perm(word, 0x43000000, 0x7044 | i << 8)), d, -128.0f * d);
  }
  // Byte i as a number, less `less`: as the last bits of 2^23, which is then subtracted.
  static __device__ __forceinline__ float byte_of(std::uint32_t word, int i, float less = 0) {
    return __uint_as_float(__byte_perm(word, 0x4b000000, 0x7540 | i)) - (8388608.0f + less);
  }
};

}  // namespace weir::kernels::cuda
