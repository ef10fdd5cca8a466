// kv_type.h — the types in which keys and values are stored, and the bytes that they take.
//
// A value is rounded once, when kv_write stores it, and every later reader gets the stored number. A
// stored number is exactly one f32.
//
//   f32, bf16  plain numbers of the type.
//   fp8        e4m3 without a scale. A magnitude above 448 becomes 448.
//   q8         codes of 8 bits, times an f16 scale that `kv_group` neighbours of a head share. The numbers
//              of a group are turned before they are rounded: they are multiplied by a Hadamard matrix,
//              which spreads an outlier over all codes. The matrix is its own inverse. Attention turns
//              queries in the same way, which leaves dot products unchanged, and turns its sums of values
//              back.
//
// NaN stays NaN in every type. In q8 it spreads over its group.
//
// The tokens of one head in a page lie together: [page_tokens, head_dim] numbers, followed in q8 by [head_dim
// / kv_group, page_tokens] scales. The size of one head's part is a multiple of 16 bytes.
//
// Thread safety: pure functions, any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace weir::kernels {

enum class kv_type : std::uint8_t { f32, bf16, fp8, q8 };

// A type's name, the bytes of a number, and the bytes of a scale; 0: it has none.
struct kv_facts {
  const char* name;
  std::uint8_t bytes, scale_bytes;
};
constexpr kv_facts all_kv_types[] = {{"f32", 4, 0}, {"bf16", 2, 0}, {"fp8", 1, 0}, {"q8", 1, 2}};
constexpr std::size_t kv_type_count = sizeof all_kv_types / sizeof *all_kv_types;

constexpr const kv_facts& facts(kv_type t) noexcept { return all_kv_types[static_cast<int>(t)]; }
constexpr const char* name(kv_type t) noexcept { return facts(t).name; }

// The numbers that share a scale: the largest power of two, at most 32, that divides head_dim.
constexpr std::uint32_t most_kv_group = 32;
constexpr std::uint32_t kv_group(std::uint32_t head_dim) noexcept {
  return std::min(most_kv_group, head_dim & (~head_dim + 1));
}

// The bytes of one token's key, or value, of one head.
constexpr std::uint64_t kv_row_bytes(kv_type t, std::uint32_t head_dim) noexcept {
  return std::uint64_t{head_dim} * facts(t).bytes +
         std::uint64_t{head_dim / kv_group(head_dim)} * facts(t).scale_bytes;
}

}  // namespace weir::kernels
