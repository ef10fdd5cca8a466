// Bias, norm and rotary embedding of the rows of a step, and the write of their keys and values into pages.
//
// A block has one row. Neighbouring lanes share a head: each has eight elements of the head's first half and
// the eight elements of the second half that are rotated with them. All reads and writes are of 16 bytes.
#include <algorithm>
#include <bit>
#include <type_traits>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/pages/page_turn.h"

namespace weir::kernels::cuda {
namespace {

constexpr unsigned most_threads = 512;

// Eight numbers of a row, in f32.
struct eight {
  float4 a, b;
};

__device__ __forceinline__ eight eight_of(const float* from) {
  const auto* at = reinterpret_cast<const float4*>(from);
  return {at[0], at[1]};
}

// Eight elements of a row of type `rows`, and `bias`, which may be null.
template <page_type pages>
__device__ __forceinline__ eight eight_of(dtype rows, const element* from, const float* bias) {
  const uint4 v = __ldcg(reinterpret_cast<const uint4*>(from));
  const auto two = [rows](const std::uint32_t& word) {
    return row_floats<pages>(rows, reinterpret_cast<const element*>(&word));
  };
  const float2 x = two(v.x), y = two(v.y), z = two(v.z), w = two(v.w);
  eight e{make_float4(x.x, x.y, y.x, y.y), make_float4(z.x, z.y, w.x, w.y)};
  if (bias) {
    const eight more = eight_of(bias);
    e.a = make_float4(e.a.x + more.a.x, e.a.y + more.a.y, e.a.z + more.a.z, e.a.w + more.a.w);
    e.b = make_float4(e.b.x + more.b.x, e.b.y + more.b.y, e.b.z + more.b.z, e.b.w + more.b.w);
  }
  return e;
}

// The results of f for each of the eight numbers and those of the others beside it.
template <class F, class... More>
__device__ __forceinline__ eight each(const F& f, const eight& e, const More&... more) {
  return {make_float4(f(e.a.x, more.a.x...), f(e.a.y, more.a.y...), f(e.a.z, more.a.z...),
                      f(e.a.w, more.a.w...)),
          make_float4(f(e.b.x, more.b.x...), f(e.b.y, more.b.y...), f(e.b.z, more.b.z...),
                      f(e.b.w, more.b.w...))};
}

__device__ __forceinline__ float squares_of(const eight& e) {
  return e.a.x * e.a.x + e.a.y * e.a.y + e.a.z * e.a.z + e.a.w * e.a.w + e.b.x * e.b.x + e.b.y * e.b.y +
         e.b.z * e.b.z + e.b.w * e.b.w;
}

// Rounds the numbers to elements of a row of type `rows`.
template <page_type pages>
__device__ __forceinline__ void put(dtype rows, element* to, const eight& e) {
  *reinterpret_cast<uint4*>(to) =
      make_uint4(row_pair<pages>(rows, e.a.x, e.a.y), row_pair<pages>(rows, e.a.z, e.a.w),
                 row_pair<pages>(rows, e.b.x, e.b.y), row_pair<pages>(rows, e.b.z, e.b.w));
}

__device__ __forceinline__ void put(float* to, const eight& e) {
  auto* at = reinterpret_cast<float4*>(to);
  at[0] = e.a;
  at[1] = e.b;
}

// Rounds the numbers to those of pages, and stores them as numbers `i` to `i` + 7 of token `token` of a head.
template <page_type pages, int head_dim>
__device__ __forceinline__ void put_in_page(unsigned char* head, int i, int token, const eight& e) {
  const int at = i * number_bytes(pages);
  unsigned char* to =
      head + unit_at(at / 16, token, row_units(pages, head_dim), page_tokens) * 16 + at % 16;
  if constexpr (pages == page_type::fp8) {
    const auto four = [](const float4& v) {
      return e4m3_of(v.x) | e4m3_of(v.y) << 8 | e4m3_of(v.z) << 16 | e4m3_of(v.w) << 24;
    };
    *reinterpret_cast<uint2*>(to) = make_uint2(four(e.a), four(e.b));
  } else {
    put<pages>(math_type<pages>, reinterpret_cast<element*>(to), e);
  }
}

// The lanes that share a head: a power of two, so that some may have nothing.
constexpr unsigned lanes_of(unsigned head_dim) { return std::bit_ceil(head_dim / 16); }

// Turns heads whose f32 numbers are in `room` [heads, head_dim] in shared memory, of which those from `keys`
// on are keys and values. Calls put(head, i, numbers, codes) for each eight of them: numbers i to i + 7 of a
// head, and what q8 stores of a key or a value. Called by all threads of the block.
template <int head_dim, class Put>
__device__ __forceinline__ void each_turned(const float* room, int heads, int keys, const Put& put) {
  const int lane = static_cast<int>(threadIdx.x % 32), all = heads * head_dim;
  for (int first = static_cast<int>(threadIdx.x) / 32 * 256; first < all; first += blockDim.x * 8) {
    const int at = first + lane * 8;
    const auto run = [&]<class T>(T) {
      T x[8] = {};
      if (at < all) load_eight(room + at, x);
      turn(x, lane);
      q8_eight codes{};
      if constexpr (std::is_same_v<T, double>) codes = q8_of(x);
      if (at >= all) return;
      float n[8];
#pragma unroll
      for (int j = 0; j < 8; ++j) n[j] = static_cast<float>(x[j]);
      put(at / head_dim, at % head_dim,
          eight{make_float4(n[0], n[1], n[2], n[3]), make_float4(n[4], n[5], n[6], n[7])}, codes);
    };
    if (first + 256 > keys * head_dim)
      run(0.0);
    else
      run(0.0f);  // queries alone, which need no double
  }
}

template <page_type pages, int head_dim>
__global__ void __launch_bounds__(most_threads)
    rotary_kernel(rows_view v, dtype type, head_shape h, rotary_args t, element* qkv, layer_pages to) {
  constexpr int half = head_dim / 2, units = half / 8;  // units of 8 elements of half a head
  constexpr unsigned lanes = lanes_of(head_dim);
  constexpr bool turns = pages == page_type::q8;
  // The numbers of a round before they are turned.
  __shared__ __align__(16) float room[turns ? most_threads / lanes * head_dim : 1];
  let_next_start();
  wait_for_previous();
  const std::size_t row = blockIdx.x;
  if (v.pages_at[row] < 0) return;
  const std::uint32_t position = v.positions[row];
  const std::uint32_t all = h.heads + 2 * h.kv_heads, keys_end = all - h.kv_heads;  // heads of a row
  const int unit = static_cast<int>(threadIdx.x % lanes), i = unit * 8,
            token = static_cast<int>(position % page_tokens);
  const auto page = static_cast<std::size_t>(v.pages[v.pages_at[row] + position / page_tokens]);
  const auto in_page = [&](std::uint32_t head) {
    return (head < keys_end ? to.keys : to.values) +
           (page * h.kv_heads + (head - h.heads) % h.kv_heads) * h.page_bytes();
  };
  // All lanes of a warp take part in every round, for the sums of the norm.
  for (std::uint32_t first = 0; first < all; first += blockDim.x / lanes) {
    const std::uint32_t head = first + threadIdx.x / lanes;
    const bool has = head < all && unit < units;
    element* at = qkv + row * h.width() + head * head_dim + i;
    eight low{}, high{};
    if (has) {
      const float* bias = t.bias ? t.bias + head * head_dim + i : nullptr;
      low = eight_of<pages>(type, at, bias);
      high = eight_of<pages>(type, at + half, bias ? bias + half : nullptr);
    }
    float squares = squares_of(low) + squares_of(high);
    const float* weight = head < h.heads ? t.q_norm : t.k_norm;
    if (t.q_norm || t.k_norm)
#pragma unroll
      for (unsigned o = lanes / 2; o; o /= 2) squares += __shfl_xor_sync(~0u, squares, o);
    if (has && head < keys_end) {
      if (weight) {
        const float scale = rsqrtf(squares / head_dim + t.eps);
        const auto scaled = [&](float x, float w) { return x * (scale * w); };
        low = each(scaled, low, eight_of(weight + i));
        high = each(scaled, high, eight_of(weight + half + i));
      }
      const eight cos = eight_of(t.cos + row * half + i), sin = eight_of(t.sin + row * half + i);
      const eight before = low;
      low = each([](float a, float b, float c, float s) { return a * c - b * s; }, low, high, cos, sin);
      high = each([](float b, float a, float c, float s) { return b * c + a * s; }, high, before, cos, sin);
    }
    if constexpr (turns) {
      float* from = room + threadIdx.x / lanes * head_dim + i;
      if (has) {
        put(from, low);
        put(from + half, high);
      }
      __syncthreads();
      const auto heads = static_cast<int>(min(blockDim.x / lanes, all - first));
      each_turned<head_dim>(room, heads, static_cast<int>(h.heads) - static_cast<int>(first),
                            [&](int which, int number, const eight& e, const q8_eight& codes) {
                              const std::uint32_t turned = first + static_cast<std::uint32_t>(which);
                              if (turned < h.heads)
                                put<pages>(type, qkv + row * h.width() + turned * head_dim + number, e);
                              else
                                put_eight<head_dim>(in_page(turned), number, token, page_tokens, codes);
                            });
      __syncthreads();
    } else if (has && head < h.heads) {
      put<pages>(type, at, low);
      put<pages>(type, at + half, high);
    } else if (has) {
      put_in_page<pages, head_dim>(in_page(head), i, token, low);
      put_in_page<pages, head_dim>(in_page(head), half + i, token, high);
    }
  }
}

}  // namespace

void rotary_and_write(device& d, dtype type, const rows_view& v, const head_shape& h, const rotary_args& t,
                      element* qkv, layer_pages to) {
  with_heads(h, [&](auto pages, auto size) {
    const unsigned lanes = lanes_of(size);
    const unsigned threads = std::min(most_threads, ((h.heads + 2 * h.kv_heads) * lanes + 31) / 32 * 32);
    launch(d, rotary_kernel<pages, size>, dim3(v.rows), threads, 0, v, type, h, t, qkv, to);
  });
}

}  // namespace weir::kernels::cuda
