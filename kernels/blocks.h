// blocks.h — what the bytes of a quantised block mean: the one definition of each format, for the reference
// backend, the packing of the cpu backend and the tests.
//
// A block is taken apart into codes and scales. A weight is
//   (scale * scales[g]) * (value(code) - zero), plus minimum * minima[g] where the type has minima
// with g the number of its group. All but the last operation are exact in f32, so the weight is one f32
// however it is computed. The layouts are those of ggml's file format (GGUF), except for the last four types,
// which no file contains. The loader makes these four from the formats of Hugging Face directories
// (core/model/load/quantised.h), whose scales may be f32. All four begin with the scale, an f32.
//
//   fp8            32 codes of 8 bits: e4m3, without its NaN
//   int4, int4_32  the zero, three bytes of padding, 16 bytes with two codes each: weights 0 to 15 in the low
//                  halves, 16 to 31 in the high ones
//   int8           the zero, three bytes of padding, 32 codes of 8 bits
//
// In fp8 and int4 all blocks of the same 128 columns of a row have one scale and one zero.
//
// To add a format: its row in all_dtypes (tensor.h), its row in block_formats, and its function in
// block_readers.h.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/tensor.h"

namespace weir::kernels {

struct block_parts {
  static constexpr std::size_t most_weights = 256, most_groups = 16;

  float scale = 0, minimum = 0, zero = 0;
  std::array<std::int8_t, most_groups> scales{};   // [group] a factor of `scale`
  std::array<std::uint8_t, most_groups> minima{};  // [group] a factor of `minimum`
  std::array<std::uint8_t, most_weights> codes{};  // [weight]
};

// How the parts of a type's blocks are to be read.
struct block_format {
  std::uint16_t group = 0;         // weights that share a scale; 0: a plain type
  std::uint8_t code_bits = 0;      // 4: the value is values[code]; 8: it is code - offset, or the e4m3
  bool minima = false;             // groups have a minimum each
  bool scaled_groups = false;      // the groups have scales of their own, below that of the block
  std::int16_t offset = 0;         // subtracted from 8-bit codes
  std::array<float, 16> values{};  // of 4-bit codes
  bool wide_scales = false;        // scales are f32; otherwise 16 bits hold them
  bool zeros = false;              // groups have a zero each: a code, whose value is subtracted
  bool shared = false;             // the blocks of 128 columns have one scale and one zero
  bool e4m3 = false;               // 8-bit codes are floats

  constexpr float value(std::uint8_t code) const noexcept {
    if (e4m3) return from_e4m3(code);
    return code_bits == 4 ? values[code] : static_cast<float>(code - offset);
  }
};

namespace block_values {

constexpr std::array<float, 16> counted_from(int first) noexcept {
  std::array<float, 16> out{};
  for (int i = 0; i < 16; ++i) out[static_cast<std::size_t>(i)] = static_cast<float>(first + i);
  return out;
}
constexpr std::array<float, 16> uneven{-127, -104, -83, -65, -49, -35, -22, -10,
                                       1,    13,   25,  38,  53,  69,  89,  113};
constexpr std::array<float, 16> e2m1{0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6};

}  // namespace block_values

constexpr block_format block_formats[dtype_count] = {
    {},                                                                                 // f32
    {},                                                                                 // bf16
    {},                                                                                 // f16
    {32, 4, false, false, 0, block_values::counted_from(-8)},                           // q4_0
    {32, 4, true, false, 0, block_values::counted_from(0)},                             // q4_1
    {32, 8, false, false, 16, {}},                                                      // q5_0
    {32, 8, true, false, 0, {}},                                                        // q5_1
    {32, 8, false, false, 128, {}},                                                     // q8_0
    {16, 4, true, true, 0, block_values::counted_from(0)},                              // q2_k
    {16, 4, false, true, 0, block_values::counted_from(-4)},                            // q3_k
    {32, 4, true, true, 0, block_values::counted_from(0)},                              // q4_k
    {32, 8, true, true, 0, {}},                                                         // q5_k
    {16, 8, false, true, 32, {}},                                                       // q6_k
    {32, 4, false, false, 0, block_values::uneven},                                     // iq4_nl
    {32, 4, false, true, 0, block_values::uneven},                                      // iq4_xs
    {32, 4, false, false, 0, block_values::e2m1},                                       // mxfp4
    {32, 8, false, false, 0, {}, true, false, true, true},                              // fp8
    {32, 4, false, false, 0, block_values::counted_from(0), true, true, true, false},   // int4
    {32, 4, false, false, 0, block_values::counted_from(0), true, true, false, false},  // int4_32
    {32, 8, false, false, 128, {}, true, true, false, false},                           // int8
};

constexpr const block_format& format_of(dtype type) noexcept {
  return block_formats[static_cast<std::size_t>(type)];
}

// Takes one block apart. REQUIRES: !is_plain(type); `from` has the bytes of a block
void take_apart(dtype type, const std::byte* from, block_parts& to) noexcept;

// Writes the weights of `elements` elements, from the first on. REQUIRES: they are whole blocks. Plain types
// are widened.
void dequantise(dtype type, const void* from, std::uint64_t elements, float* to) noexcept;

// The index of the first block whose scale or minimum is not finite; `blocks`, the number of blocks, if there
// is none. REQUIRES: !is_plain(type)
std::uint64_t first_not_finite(dtype type, const void* from, std::uint64_t blocks) noexcept;

// Random blocks: random codes, and scales that make weights of about 1/32. REQUIRES: !is_plain(type);
// `elements` are whole blocks
void fill_random_blocks(void* to, dtype type, std::uint64_t elements, std::uint64_t seed) noexcept;

}  // namespace weir::kernels
