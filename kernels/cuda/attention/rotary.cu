// Bias, norm and rotary embedding of the rows of a step, and the write of their keys and values into pages.
//
// A block has one row. Neighbouring lanes share a head: each has eight elements of the head's first half and
// the eight elements of the second half that are rotated with them. All reads and writes are of 16 bytes, but
// for heads of which a part turns (rotary_args::rest) that is no multiple of 16.
#include <algorithm>
#include <bit>
#include <type_traits>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/warp.h"
#include "kernels/cuda/pages/head_order.h"
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

// Eight elements of a row of type `rows`.
template <page_type pages>
__device__ __forceinline__ eight eight_of(dtype rows, const element* from) {
  const uint4 v = __ldcg(reinterpret_cast<const uint4*>(from));
  const auto two = [rows](const std::uint32_t& word) {
    return row_floats<pages>(rows, reinterpret_cast<const element*>(&word));
  };
  const float2 x = two(v.x), y = two(v.y), z = two(v.z), w = two(v.w);
  return {make_float4(x.x, x.y, y.x, y.y), make_float4(z.x, z.y, w.x, w.y)};
}

// The order of a head's numbers in memory (head_order.h). `whole`: heads turn whole.
template <int half, bool whole>
struct numbers_of_head {
  int pairs;  // that turn

  // Numbers i to i + 7 as the kernel has them, of `one(at)`, the number at place `at`, or of `all(at)`, which
  // are the eight from there on. REQUIRES: i is a multiple of 8
  template <class One, class All>
  __device__ __forceinline__ eight load(int i, const One& one, const All& all) const {
    if (whole || pairs == half) return all(i);
    if (pairs % 8 == 0) return all(number_at(i, half, pairs));
    float v[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) v[j] = one(number_at(i + j, half, pairs));
    return {make_float4(v[0], v[1], v[2], v[3]), make_float4(v[4], v[5], v[6], v[7])};
  }
  __device__ __forceinline__ eight load(int i, const float* from) const {
    return load(
        i, [&](int at) { return from[at]; }, [&](int at) { return eight_of(from + at); });
  }
  template <page_type pages>
  __device__ __forceinline__ eight load(int i, dtype rows, const element* from) const {
    const auto one = [&](int at) {  // of the pair that it belongs to
      const float2 two = row_floats<pages>(rows, from + (at & ~1));
      return at % 2 == 0 ? two.x : two.y;
    };
    return load(i, one, [&](int at) { return eight_of<pages>(rows, from + at); });
  }
};

// The results of f for each of the eight numbers and those of the others beside it.
template <class F, class... More>
__device__ __forceinline__ eight each(const F& f, const eight& e, const More&... more) {
  return {make_float4(f(e.a.x, more.a.x...), f(e.a.y, more.a.y...), f(e.a.z, more.a.z...),
                      f(e.a.w, more.a.w...)),
          make_float4(f(e.b.x, more.b.x...), f(e.b.y, more.b.y...), f(e.b.z, more.b.z...),
                      f(e.b.w, more.b.w...))};
}

__device__ __forceinline__ eight plus(const eight& a, const eight& b) {
  return {make_float4(a.a.x + b.a.x, a.a.y + b.a.y, a.a.z + b.a.z, a.a.w + b.a.w),
          make_float4(a.b.x + b.b.x, a.b.y + b.b.y, a.b.z + b.b.z, a.b.w + b.b.w)};
}
__device__ __forceinline__ float sum_of(const eight& e) {
  return e.a.x + e.a.y + e.a.z + e.a.w + e.b.x + e.b.y + e.b.z + e.b.w;
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

// `usual`: heads turn whole, are normed by root mean square if at all, with one weight, and do not grow.
template <page_type pages, int head_dim, bool usual>
__global__ void __launch_bounds__(most_threads)
    rotary_kernel(rows_view v, dtype type, head_shape h, rotary_args t, element* qkv, layer_pages to) {
  constexpr int half = head_dim / 2, units = half / 8;  // units of 8 elements of half a head
  constexpr unsigned lanes = lanes_of(head_dim);
  constexpr bool turns = pages == page_type::q8;
  // The numbers of a round before they are turned.
  __shared__ __align__(16) float room[turns ? most_threads / lanes * head_dim : 1];
  __shared__ float warps_room[usual ? 1 : 32];
  let_next_start();
  wait_for_previous();
  const std::size_t row = blockIdx.x;
  if (v.pages_at[row] < 0) return;
  const std::uint32_t position = v.positions[row];
  const std::uint32_t all = h.heads + 2 * h.kv_heads, keys_end = all - h.kv_heads;  // heads of a row
  const bool normed = t.q_norm || t.k_norm, of_row = !usual && normed && t.norms == head_norms::row,
             centred = !usual && normed && t.centred, apart = !usual && t.norms != head_norms::each;
  const int pairs = half - static_cast<int>(t.rest);
  float growth = 1;
  if (!usual && t.growth != 0) growth += t.growth * logf(static_cast<float>(1 + position / t.growth_unit));
  const int unit = static_cast<int>(threadIdx.x % lanes), i = unit * 8,
            token = static_cast<int>(position % page_tokens);
  const auto page = static_cast<std::size_t>(v.pages[v.pages_at[row] + position / page_tokens]);
  const auto in_page = [&](std::uint32_t head) {
    return (head < keys_end ? to.keys : to.values) +
           (page * h.kv_heads + (head - h.heads) % h.kv_heads) * h.page_bytes();
  };
  // Eight numbers of a head from number `at` on, with their bias.
  const auto numbers = [&](std::uint32_t head, int at) {
    const numbers_of_head<half, usual> in{head < keys_end ? pairs : half};
    eight e = in.template load<pages>(at, type, qkv + row * h.width() + head * head_dim);
    if (t.bias) e = plus(e, in.load(at, t.bias + head * head_dim));
    return e;
  };
  // All lanes of a warp take part in every round, for the sums of the norm.
  const std::uint32_t together = blockDim.x / lanes;  // heads of a round
  float all_queries = 0, all_keys = 0;                // sums of squares
  if (of_row) {
    const auto sum_over = [&](std::uint32_t begin, std::uint32_t end) {
      float mine = 0;
      for (std::uint32_t head = begin + threadIdx.x / lanes; head < end; head += together)
        if (unit < units) mine += squares_of(numbers(head, i)) + squares_of(numbers(head, half + i));
      return block_sum(mine, warps_room);
    };
    all_queries = sum_over(0, h.heads);
    all_keys = sum_over(h.heads, keys_end);
    __syncthreads();  // the row has been read, and may be written
  }
  const numbers_of_head<half, usual> order{pairs};
  for (std::uint32_t first = 0; first < all; first += together) {
    const std::uint32_t head = first + threadIdx.x / lanes;
    const bool has = head < all && unit < units;
    element* at = qkv + row * h.width() + head * head_dim + i;
    eight low{}, high{};
    if (has) {
      low = numbers(head, i);
      high = numbers(head, half + i);
    }
    const float* weight = head < h.heads ? t.q_norm : t.k_norm;
    // The sum over the lanes of a head.
    const auto of_head = [](float v) {
#pragma unroll
      for (unsigned o = lanes / 2; o; o /= 2) v += __shfl_xor_sync(~0u, v, o);
      return v;
    };
    if (centred) {
      const float mean = of_head(sum_of(low) + sum_of(high)) / head_dim;
      const auto off = [&](float x) { return x - mean; };
      if (has && head < keys_end && weight) {
        low = each(off, low);
        high = each(off, high);
      }
    }
    float squares = squares_of(low) + squares_of(high), count = head_dim;
    if (normed) squares = of_head(squares);
    if (of_row) {
      squares = head < h.heads ? all_queries : all_keys;
      count *= static_cast<float>(head < h.heads ? h.heads : h.kv_heads);
    }
    if (!usual)
      __syncwarp();  // queries are stored in another order than they are read, if only a part of a head turns
    if (has && head < keys_end) {
      if (weight) {
        if (apart) weight += (head < h.heads ? head : head - h.heads) * head_dim;
        const float scale = rsqrtf(squares / count + t.eps);
        const auto scaled = [&](float x, float w) { return x * (scale * w); };
        low = each(scaled, low, order.load(i, weight));
        high = each(scaled, high, order.load(half + i, weight));
      }
      const eight cos = eight_of(t.cos + row * half + i), sin = eight_of(t.sin + row * half + i);
      const eight before = low;
      low = each([](float a, float b, float c, float s) { return a * c - b * s; }, low, high, cos, sin);
      high = each([](float b, float a, float c, float s) { return b * c + a * s; }, high, before, cos, sin);
      if (!usual && head < h.heads) {
        const auto grown = [&](float x) { return x * growth; };
        low = each(grown, low);
        high = each(grown, high);
      }
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
    const bool usual = t.is_simple() && t.rest == 0 && t.growth == 0;
    launch(d, usual ? rotary_kernel<pages, size, true> : rotary_kernel<pages, size, false>, dim3(v.rows),
           threads, 0, v, type, h, t, qkv, to);
  });
}

}  // namespace weir::kernels::cuda
