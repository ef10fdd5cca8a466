// attention_fresh.h — the key and value of a decoding row that are still in qkv, as the product left them
// (decode_args::fresh): attention itself applies rotary embedding and stores them in their page.
//
// Functions on the device are called by all lanes of a warp; `lane` is threadIdx.x % 32.
#pragma once

#include "kernels/cuda/attention_piece.h"
#include "kernels/cuda/rotary.h"

namespace weir::kernels::cuda {

// A row's own key and value of one key head as the product left them, both [head_dim], and the row's angles,
// both [head_dim / 2]. In memory of the device or in shared memory.
struct fresh_row {
  const element *key, *value;
  const float *cos, *sin;

  __device__ fresh_row(const decode_args& g, std::uint32_t row, std::uint32_t kv_head)
      : key(g.a.qkv + std::size_t{row} * g.a.heads.width() +
            (g.a.heads.heads + kv_head) * g.a.heads.head_dim),
        value(key + g.a.heads.kv_heads * g.a.heads.head_dim),
        cos(g.t.cos + std::size_t{row} * (g.a.heads.head_dim / 2)),
        sin(g.t.sin + std::size_t{row} * (g.a.heads.head_dim / 2)) {}
  __device__ fresh_row(const element* k, const element* v, const float* c, const float* s)
      : key(k), value(v), cos(c), sin(s) {}
};

// A fresh row's key and value of one key head, in the registers of a warp. All lanes call its functions.
template <page_type pages, int head_dim>
class fresh_numbers {
 public:
  // Begins to read them.
  __device__ __forceinline__ void load(const fresh_row& from, int lane) {
    key_.load(from.key, from.cos, from.sin, lane);
#pragma unroll
    for (int r = 0; r < rounds; ++r)
      if (lane * 2 + r * 64 < head_dim)
        value_[r] = *reinterpret_cast<const std::uint32_t*>(from.value + lane * 2 + r * 64);
  }

  // Applies bias, norm and rotary embedding to the key and the bias to the value, and stores both twice: at
  // their place in the page (number `page`), and in `stage`, the copy of that page or piece in shared memory,
  // which holds the keys of `tokens` tokens and then their values. The lanes of the warp must synchronise
  // before they read `stage`.
  template <int tokens = piece_tokens>
  __device__ __forceinline__ void lay(const decode_args& g, std::uint32_t kv_head, int position,
                                      std::int32_t page, unsigned char* stage, int lane) const {
    const head_shape& h = g.a.heads;
    const int token = position % page_tokens, here = token % tokens;
    constexpr int row = head_dim * number_bytes(pages);
    const std::size_t place = (static_cast<std::size_t>(page) * h.kv_heads + kv_head) * page_tokens * row;
    const float* key_bias = g.t.bias ? g.t.bias + (h.heads + kv_head) * head_dim : nullptr;
    const float* value_bias = g.t.bias ? key_bias + h.kv_heads * head_dim : nullptr;
    const auto put = [&](unsigned char* staged, unsigned char* stored, int i, float2 two) {
      put_pair<pages, head_dim>(staged, i, here, tokens, two);
      put_pair<pages, head_dim>(stored + place, i, token, page_tokens, two);
    };
    key_.turn(g.a.type, key_bias, g.t.k_norm, g.t.eps, lane, [&](int i, float2 a, float2 b) {
      put(stage, g.a.pages.keys, i, a);
      put(stage, g.a.pages.keys, head_dim / 2 + i, b);
    });
#pragma unroll
    for (int r = 0; r < rounds; ++r) {
      const int i = lane * 2 + r * 64;
      if (i >= head_dim) continue;
      float2 two = row_floats<pages>(g.a.type, reinterpret_cast<const element*>(&value_[r]));
      if (value_bias) two = make_float2(two.x + value_bias[i], two.y + value_bias[i + 1]);
      put(stage + tokens * row, g.a.pages.values, i, two);
    }
  }

 private:
  static constexpr int rounds = (head_dim + 63) / 64;
  head_to_turn<pages, head_dim> key_;
  std::uint32_t value_[rounds];  // pairs of elements
};

}  // namespace weir::kernels::cuda
