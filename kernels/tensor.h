// tensor.h — what kernels compute on: the types of stored elements, and a weight matrix in memory of a
// backend or of the host. In the single operations (ops.h) activations are always f32; only weights have
// other types.
//
// Thread safety: plain data and pure functions, any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace weir::kernels {

enum class dtype : std::uint8_t { f32, bf16, f16 };

// The bytes of one element.
constexpr std::size_t size_of(dtype t) noexcept { return t == dtype::f32 ? 4 : 2; }

constexpr const char* name(dtype t) noexcept {
  constexpr const char* names[] = {"f32", "bf16", "f16"};
  return names[static_cast<int>(t)];
}

// How a matrix lies in memory: row-major without padding, or in the layout that a backend made of it
// (backend::do_pack), which nobody else can read.
enum class layout : std::uint8_t { rows, packed };

// A weight: [rows, cols]. Not owned.
struct matrix {
  const void* data = nullptr;
  dtype type = dtype::f32;
  std::uint32_t rows = 0, cols = 0;
  layout order = layout::rows;

  // The bytes of its elements. A packed matrix may take more (backend::weight_bytes).
  std::uint64_t bytes() const noexcept { return std::uint64_t{rows} * cols * size_of(type); }
};

inline float from_bf16(std::uint16_t bits) noexcept {
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
inline float from_f16(std::uint16_t bits) noexcept {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t rest = (bits & 0x7fffu) << 13;
  if (rest >= 0x0f800000u) return std::bit_cast<float>(sign | rest | 0x7f800000u);  // infinity or NaN
  const float magnitude = std::bit_cast<float>(rest) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

// The element at `index` of an array of `type` in memory of the host, widened.
inline float load(const void* data, dtype type, std::size_t index) noexcept {
  switch (type) {
    case dtype::f32:
      return static_cast<const float*>(data)[index];
    case dtype::bf16:
      return from_bf16(static_cast<const std::uint16_t*>(data)[index]);
    case dtype::f16:
      return from_f16(static_cast<const std::uint16_t*>(data)[index]);
  }
  return 0.0f;
}

}  // namespace weir::kernels
