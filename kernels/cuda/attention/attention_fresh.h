// attention_fresh.h — the key and value of a decoding row that are still in qkv, as the product left them
// (decode_args::fresh): attention itself applies rotary embedding and stores them in their page.
//
// Functions on the device are called by all lanes of a warp; `lane` is threadIdx.x % 32.
#pragma once

#include "kernels/cuda/attention/attention_piece.h"
#include "kernels/cuda/attention/rotary.h"
#include "kernels/cuda/pages/page_turn.h"

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

// The floats of shared memory that fresh_numbers::lay() needs, for each warp that may run it at once.
template <page_type pages, int head_dim>
constexpr int fresh_room = fresh_floats(pages, head_dim);

// A fresh row's key and value of one key head, in the registers of a warp. All lanes call its functions.
template <page_type pages, int head_dim>
class fresh_numbers {
 public:
  // Begins to read them.
  template <bool usual>
  __device__ __forceinline__ void load(const decode_args& g, const fresh_row& from, int lane) {
    key_.load(from.key, from.cos, from.sin, usual ? 0 : g.t.rest, lane);
#pragma unroll
    for (int r = 0; r < rounds; ++r)
      if (lane * 2 + r * 64 < head_dim)
        value_[r] = *reinterpret_cast<const std::uint32_t*>(from.value + lane * 2 + r * 64);
  }

  // Applies bias, norm and rotary embedding to the key and the bias to the value, and stores both twice: at
  // their place in the page (number `page`), and in `stage`, the copy of that page or piece in shared memory,
  // which holds the keys of `tokens` tokens and then their values (head_bytes). The lanes of the warp must
  // synchronise before they read `stage`. `room` is [fresh_room] in shared memory.
  template <bool usual, int tokens = piece_tokens>
  __device__ __forceinline__ void lay(const decode_args& g, std::uint32_t kv_head, int position,
                                      std::int32_t page, unsigned char* stage, float* room, int lane) const {
    const int token = position % page_tokens, here = token % tokens;
    const std::size_t place = (static_cast<std::size_t>(page) * g.a.heads.kv_heads + kv_head) *
                              head_bytes(pages, head_dim, page_tokens);
    const auto staged = [&](bool of_value) {
      return stage + (of_value ? head_bytes(pages, head_dim, tokens) : 0);
    };
    const auto stored = [&](bool of_value) { return (of_value ? g.a.pages.values : g.a.pages.keys) + place; };
    if constexpr (pages != page_type::q8) {
      each<usual>(g, kv_head, lane, [&](bool of_value, int i, float2 two) {
        put_pair<pages, head_dim>(staged(of_value), i, here, tokens, two);
        put_pair<pages, head_dim>(stored(of_value), i, token, page_tokens, two);
      });
    } else {
      each<usual>(g, kv_head, lane, [&](bool of_value, int i, float2 two) {
        *reinterpret_cast<float2*>(room + of_value * head_dim + i) = two;
      });
      __syncwarp();
      for (int first = 0; first < 2 * head_dim; first += 256) {  // eight numbers a lane
        // Lanes that are left over compute what others do: zeros would make their divisions slow.
        const int at = (first + lane * 8) % (2 * head_dim), i = at % head_dim;
        const bool of_value = at >= head_dim;
        double x[8];
        load_eight(room + at, x);
        turn(x, lane);
        const q8_eight e = q8_of(x);
        if (first + lane * 8 >= 2 * head_dim) continue;
        put_eight<head_dim>(staged(of_value), i, here, tokens, e);
        put_eight<head_dim>(stored(of_value), i, token, page_tokens, e);
      }
    }
  }

 private:
  static constexpr int rounds = (head_dim + 63) / 64;

  // Calls put(of_value, i, two) by one lane for each even i < head_dim: `two` are numbers i and i + 1 of the
  // key, or of the value, with bias, norm and rotary embedding applied, not rounded yet.
  template <bool usual, class Put>
  __device__ __forceinline__ void each(const decode_args& g, std::uint32_t kv_head, int lane,
                                       const Put& put) const {
    const head_shape& h = g.a.heads;
    const float* key_bias = g.t.bias ? g.t.bias + (h.heads + kv_head) * head_dim : nullptr;
    const float* value_bias = g.t.bias ? key_bias + h.kv_heads * head_dim : nullptr;
    key_.turn(g.a.type, key_bias, g.t.k_norm, g.t.eps, usual ? 0 : g.t.rest, lane,
              [&](int i, float2 a, float2 b) {
                put(false, i, a);
                put(false, head_dim / 2 + i, b);
              });
#pragma unroll
    for (int r = 0; r < rounds; ++r) {
      const int i = lane * 2 + r * 64;
      if (i >= head_dim) continue;
      float2 two = row_floats<pages>(g.a.type, reinterpret_cast<const element*>(&value_[r]));
      if (value_bias) two = make_float2(two.x + value_bias[i], two.y + value_bias[i + 1]);
      put(true, i, two);
    }
  }

  head_to_turn<pages, head_dim> key_;
  std::uint32_t value_[rounds];  // pairs of elements
};

}  // namespace weir::kernels::cuda
