// tensor.h — what kernels compute on: the types of stored elements, and a weight matrix in memory of a
// backend or of the host. In the single operations (ops.h) activations are always f32; only weights have
// other types.
//
// A type is stored in blocks: some weights in some bytes. Plain types (f32, bf16, f16) have blocks of one
// weight. The others are quantised: a block has codes of a few bits and the scales that they share
// (blocks.h). A row is a whole number of blocks. Whatever the type, the bytes define real numbers, each
// exactly one f32. Backends compute with these numbers; cuda rounds them to bf16 for many rows
// (docs/kernels.md, «Numbers»).
//
// Thread safety: plain data and pure functions, any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace weir::kernels {

enum class dtype : std::uint8_t {
  f32,
  bf16,
  f16,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  iq4_xs,
  mxfp4,
  fp8,
  int4,
  int4_32,
  int8
};

// A type's name, and its blocks.
struct dtype_facts {
  const char* name;
  std::uint16_t block_weights, block_bytes;
};
constexpr dtype_facts all_dtypes[] = {
    {"f32", 1, 4},      {"bf16", 1, 2},     {"f16", 1, 2},      {"q4_0", 32, 18},    {"q4_1", 32, 20},
    {"q5_0", 32, 22},   {"q5_1", 32, 24},   {"q8_0", 32, 34},   {"q2_k", 256, 84},   {"q3_k", 256, 110},
    {"q4_k", 256, 144}, {"q5_k", 256, 176}, {"q6_k", 256, 210}, {"iq4_nl", 32, 18},  {"iq4_xs", 256, 136},
    {"mxfp4", 32, 17},  {"fp8", 32, 36},    {"int4", 32, 24},   {"int4_32", 32, 24}, {"int8", 32, 40},
};
constexpr std::size_t dtype_count = sizeof all_dtypes / sizeof *all_dtypes;

constexpr const dtype_facts& facts(dtype t) noexcept { return all_dtypes[static_cast<int>(t)]; }
constexpr const char* name(dtype t) noexcept { return facts(t).name; }
constexpr bool is_plain(dtype t) noexcept { return facts(t).block_weights == 1; }

// The bytes of one element.  REQUIRES: is_plain(t)
constexpr std::size_t size_of(dtype t) noexcept { return t == dtype::f32 ? 4 : 2; }

// The bytes of `elements` elements.  REQUIRES: they are whole blocks
constexpr std::uint64_t bytes_of(dtype t, std::uint64_t elements) noexcept {
  return elements / facts(t).block_weights * facts(t).block_bytes;
}

// How a matrix lies in memory: row-major without padding, or in the layout that a backend made of it
// (backend::do_pack), which only this backend can read.
enum class layout : std::uint8_t { rows, packed };

// A weight: [rows, cols]. Not owned.
//
// Column c multiplies input c of a row of x. In a matrix with `inputs` it multiplies input inputs[c] instead.
// Two kinds of formats need this: those whose groups are not consecutive inputs, and those whose groups do
// not fill whole blocks. A column of padding has weights of zero, and its entry in `inputs` is the number of
// any input.
struct matrix {
  const void* data = nullptr;
  dtype type = dtype::f32;
  std::uint32_t rows = 0, cols = 0;
  layout order = layout::rows;
  std::uint32_t input_count = 0;          // of a row of x; 0: `inputs` is null
  const std::uint32_t* inputs = nullptr;  // [cols], each below input_count; in memory of the backend

  // The bytes of its elements. A packed matrix may take more (backend::weight_bytes).
  std::uint64_t bytes() const noexcept { return bytes_of(type, std::uint64_t{rows} * cols); }
  // How many elements a row of x has.
  std::uint32_t width() const noexcept { return input_count ? input_count : cols; }
};

// The matrices of experts: `count` of one type and shape, each laid out by itself, `stride` bytes apart.
// Not owned.
// REQUIRES: stride is a multiple of 256; the matrices have no inputs of their own
struct expert_matrices {
  matrix first;
  std::uint32_t count = 0;
  std::uint64_t stride = 0;

  matrix of(std::uint32_t expert) const noexcept {
    matrix m = first;
    if (m.data) m.data = static_cast<const std::byte*>(m.data) + expert * stride;
    return m;
  }
};

constexpr float from_bf16(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Rounds to the nearest, ties to even; a NaN stays a NaN.
inline std::uint16_t to_bf16(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// Exact, as every f16 is also a float. The exponent is rebiased by a multiplication, which makes subnormals
// right, too.
constexpr float from_f16(std::uint16_t bits) noexcept {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t rest = (bits & 0x7fffu) << 13;
  if (rest >= 0x0f800000u) return std::bit_cast<float>(sign | rest | 0x7f800000u);  // infinity or NaN
  const float magnitude = std::bit_cast<float>(rest) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

// Rounds to the nearest, ties to even; a NaN stays a NaN. A number that is too small for a normal f16 becomes
// a multiple of 2^-24. Adding 0.5 rounds to these, since f32 numbers from 0.5 to 1 are 2^-24 apart.
inline std::uint16_t to_f16(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
  std::uint32_t to;
  if (rest > 0x7f800000u)
    to = 0x7e00u;
  else if (rest >= 0x477ff000u)  // 65520
    to = 0x7c00u;
  else if (rest < 0x38800000u)  // 2^-14
    to = std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) + 0.5f) - 0x3f000000u;
  else
    to = (rest + 0xfffu + (rest >> 13 & 1u) - (112u << 23)) >> 13;
  return static_cast<std::uint16_t>(sign | to);
}

// Exact: an e4m3 (fn) has a sign, four bits of exponent with bias 7 and three of mantissa; no infinity.
// REQUIRES: `bits` is no NaN: neither 0x7f nor 0xff
constexpr float from_e4m3(std::uint8_t bits) noexcept {
  const float magnitude = std::bit_cast<float>((bits & 0x7fu) << 20) * 0x1p120f;
  return std::bit_cast<float>((bits & 0x80u) << 24 | std::bit_cast<std::uint32_t>(magnitude));
}

// Rounds to the nearest, ties to even; what is above 448 becomes 448, and a NaN stays a NaN. A number that is
// too small for a normal e4m3 becomes a multiple of 2^-9: adding 2^14 rounds to these, as in to_f16().
inline std::uint8_t to_e4m3(float x) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = bits >> 24 & 0x80u, rest = bits & 0x7fffffffu;
  std::uint32_t to;
  if (rest > 0x7f800000u)
    to = 0x7fu;
  else if (rest >= 0x43e00000u)  // 448
    to = 0x7eu;
  else if (rest < 0x3c800000u)  // 2^-6
    to = std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) + 0x1p14f) - 0x46800000u;
  else
    to = (rest + 0x7ffffu + (rest >> 20 & 1u) - (120u << 23)) >> 20;
  return static_cast<std::uint8_t>(sign | to);
}

// The element at `index` of an array of `type` in memory of the host, widened.  REQUIRES: is_plain(type)
inline float load(const void* data, dtype type, std::size_t index) noexcept {
  switch (type) {
    case dtype::f32:
      return static_cast<const float*>(data)[index];
    case dtype::bf16:
      return from_bf16(static_cast<const std::uint16_t*>(data)[index]);
    case dtype::f16:
      return from_f16(static_cast<const std::uint16_t*>(data)[index]);
    default:
      return 0.0f;  // a block has no elements of its own
  }
}

}  // namespace weir::kernels
