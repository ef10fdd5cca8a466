// head_shape.h — the heads of a model and the bytes of their pages on a CUDA device. Plain C++, for the
// device and for plans that are made without one.
#pragma once

#include <cstdint>

#include "kernels/cuda/pages/head_size.h"
#include "kernels/page.h"
#include "kernels/tensor.h"

namespace weir::kernels::cuda {

constexpr int page_tokens = kernels::page_tokens;

// The numbers that pages store. bf16 and f16 are elements, of the type that the rows have. fp8 and q8 are
// those of kernels/kv_type.h beside rows of either type, q8 in groups of 32. Attention widens bytes to f16,
// which is exact, and rounds queries and the weights of tokens to f16 (for q8 see page_products.h).
enum class page_type : std::uint8_t { bf16, f16, fp8, q8 };

// Whether a type is one of elements (element.h).
constexpr bool is_element(dtype type) { return type == dtype::bf16 || type == dtype::f16; }
// The type of pages of elements, for rows of `type`.
constexpr page_type elements_of(dtype type) { return type == dtype::f16 ? page_type::f16 : page_type::bf16; }
// The bytes of a number.
constexpr int number_bytes(page_type t) { return t == page_type::fp8 || t == page_type::q8 ? 1 : 2; }

// The bytes of the keys, or of the values, of one head of `tokens` tokens. With q8 its numbers are followed
// by the scales, [head_dim / q8_group, tokens].
constexpr int q8_group = 32;
constexpr int head_bytes(page_type t, int head_dim, int tokens) {
  return tokens * (head_dim * number_bytes(t) + (t == page_type::q8 ? head_dim / q8_group * 2 : 0));
}

// Whether there are kernels for pages of this type with heads of this size. A group of q8 is never smaller
// than q8_group here.
constexpr bool has_pages(page_type t, std::uint32_t head_dim) {
  return is_head_size(head_dim) && (t != page_type::q8 || head_dim % q8_group == 0);
}

// The heads of a model: query heads, key heads, numbers of a head, and how pages store them.
struct head_shape {
  std::uint32_t heads, kv_heads, head_dim;
  page_type pages = page_type::bf16;
  std::uint32_t gates = 0;  // elements of a row of qkv behind the values (attention_mixer::gated)
  // The bytes of one head's keys, or values, in a page.
  constexpr std::uint32_t page_bytes() const {
    return static_cast<std::uint32_t>(head_bytes(pages, static_cast<int>(head_dim), page_tokens));
  }
  // Elements in a row of qkv: the queries of all heads, then the keys, then the values, then the gates where
  // there are any.
  constexpr std::uint32_t width() const { return (heads + 2 * kv_heads) * head_dim + gates; }
};

}  // namespace weir::kernels::cuda
