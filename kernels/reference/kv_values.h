// kv_values.h — how keys and values are stored and read: the definition of every kv_type, by plain loops.
//
// Thread safety: pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kv_type.h"

namespace weir::kernels {

// One head's part of a page, of keys or of values (kv_type.h has the layout).
struct kv_head {
  std::byte* data = nullptr;
  kv_type type = kv_type::f32;
  std::uint32_t head_dim = 0, page_tokens = 0;

  std::uint32_t group() const noexcept { return kv_group(head_dim); }
  // The scale of the group that number `first` belongs to; only for types with scales.
  std::byte* scale(std::size_t token, std::size_t first) const noexcept {
    return data + std::size_t{head_dim} * page_tokens * facts(type).bytes +
           (first / group() * page_tokens + token) * facts(type).scale_bytes;
  }
  std::byte* number(std::size_t token, std::size_t i) const noexcept {
    return data + (token * head_dim + i) * facts(type).bytes;
  }
};

// Rounds one token's numbers, [head_dim], and stores them.
void store_kv(const kv_head& to, std::size_t token, const float* x);

// The numbers of a group, as attention's formula has them: turned back where the type turns them.
struct kv_numbers {
  double x[most_kv_group];
  std::size_t count;
};
kv_numbers load_kv(const kv_head& from, std::size_t token, std::size_t first);

// Multiplies by the Hadamard matrix of `count` rows, a power of two, whose entries are ±1 / sqrt(count).
void turn_group(double* x, std::size_t count) noexcept;

}  // namespace weir::kernels
