// Bias, norm and rotary embedding of the rows of a step, and the write of their keys and values into pages.
//
// A block has one row. Neighbouring lanes share a head: each has eight elements of the head's first half and
// the eight elements of the second half that are rotated with them. All reads and writes are of 16 bytes.
#include <algorithm>
#include <bit>

#include "kernels/cuda/launch.h"
#include "kernels/cuda/page_numbers.h"

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

template <page_type pages, int head_dim>
__global__ void __launch_bounds__(most_threads)
    rotary_kernel(rows_view v, dtype type, head_shape h, rotary_args t, element* qkv, layer_pages to) {
  constexpr int half = head_dim / 2, units = half / 8;  // units of 8 elements of half a head
  constexpr unsigned lanes = std::bit_ceil(static_cast<unsigned>(units));  // of a head; some may have nothing
  let_next_start();
  wait_for_previous();
  const std::size_t row = blockIdx.x;
  if (v.pages_at[row] < 0) return;
  const std::uint32_t position = v.positions[row];
  const std::uint32_t all = h.heads + 2 * h.kv_heads, keys_end = all - h.kv_heads;  // heads of a row
  const int unit = static_cast<int>(threadIdx.x % lanes), i = unit * 8,
            token = static_cast<int>(position % page_tokens);
  const auto page = static_cast<std::size_t>(v.pages[v.pages_at[row] + position / page_tokens]);
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
    if (!has) continue;
    if (head < keys_end) {
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
    if (head < h.heads) {
      put<pages>(type, at, low);
      put<pages>(type, at + half, high);
      continue;
    }
    const std::uint32_t kv_head = (head - h.heads) % h.kv_heads;
    unsigned char* there =
        (head < keys_end ? to.keys : to.values) + (page * h.kv_heads + kv_head) * h.page_bytes();
    put_in_page<pages, head_dim>(there, i, token, low);
    put_in_page<pages, head_dim>(there, half + i, token, high);
  }
}

}  // namespace

void rotary_and_write(device& d, dtype type, const rows_view& v, const head_shape& h, const rotary_args& t,
                      element* qkv, layer_pages to) {
  with_heads(h, [&](auto pages, auto size) {
    const unsigned lanes = std::bit_ceil(static_cast<unsigned>(size) / 16);
    const unsigned threads = std::min(most_threads, ((h.heads + 2 * h.kv_heads) * lanes + 31) / 32 * 32);
    launch(d, rotary_kernel<pages, size>, dim3(v.rows), threads, 0, v, type, h, t, qkv, to);
  });
}

}  // namespace weir::kernels::cuda
