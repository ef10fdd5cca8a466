// linear.h — the product of a block of activation rows and one panel of packed weights, as outer products
// with one output in each lane.
//
// Every output has one accumulator. The products are added to it in the order of k, by one multiply_add()
// each: the same bits whatever the block of rows, the slice of k or the number of threads.
#pragma once

#include "kernels/cpu/packing.h"
#include "kernels/cpu/simd/limits.h"
#include "kernels/cpu/simd/vector.h"

namespace weir::kernels {
namespace {

constexpr std::size_t panel_vectors = panel_rows / lanes;
constexpr std::size_t most_rows = lanes == 16 ? 12 : 6;  // as many accumulators as the registers hold

// sums[r][v] += x[r] * w[v]
template <std::size_t rows, std::size_t vectors>
WEIR_INLINE void add_products(vec (&sums)[rows][vectors], const float* x, const vec (&w)[vectors]) {
  WEIR_UNROLL_BY(12)
  for (std::size_t r = 0; r < rows; ++r) {
    const vec xs = broadcast(x[r]);
    WEIR_UNROLL_BY(4)
    for (std::size_t v = 0; v < vectors; ++v) sums[r][v] = multiply_add(xs, w[v], sums[r][v]);
  }
}

// Prefetches memory while a panel is multiplied, in eight streams. The processor's own prefetcher runs only a
// little ahead of each stream, and one stream does not keep the memory busy.
struct coming {
  static constexpr std::size_t streams = 8;
  const std::byte* at;
  std::size_t part;  // bytes between streams

  coming(const std::byte* first, std::size_t bytes) : at(first), part(bytes / streams / 64 * 64) {}
  template <std::size_t lines>
  WEIR_INLINE void ask(std::size_t first) const {
    WEIR_UNROLL_BY(2)
    for (std::size_t i = 0; i < lines; ++i) __builtin_prefetch(at + (first * lines + i) * part, 0, 2);
  }
};

// Adds the products of one step: one k, or a pair of k for bf16. A step is 128 bytes of the panel, 64 for
// f16.
template <dtype type, std::size_t rows, std::size_t vectors>
WEIR_INLINE void product_step(vec (&sums)[rows][vectors], const product_tile& t, std::size_t first_vector,
                              std::size_t step) {
  const float* x = reinterpret_cast<const float*>(t.x);
  vec w[vectors];
  if constexpr (type == dtype::bf16) {
    constexpr std::size_t per_tile = 16 / lanes;
    const std::byte* tiles = t.panel + step / 16 * 2 * tile_bytes + step % 16 * 64;
    uvec pair[vectors];
    WEIR_UNROLL_BY(4)
    for (std::size_t v = 0; v < vectors; ++v) {
      const std::size_t at = first_vector + v;
      pair[v] = load_as<uvec>(tiles + at / per_tile * tile_bytes + at % per_tile * lanes * 4);
      w[v] = reinterpret_cast<vec>(pair[v] << 16);
    }
    add_products<rows, vectors>(sums, x + 2 * step * rows, w);
    WEIR_UNROLL_BY(4)
    for (std::size_t v = 0; v < vectors; ++v) w[v] = reinterpret_cast<vec>(pair[v] & 0xffff0000u);
    add_products<rows, vectors>(sums, x + (2 * step + 1) * rows, w);
  } else {
    WEIR_UNROLL_BY(4)
    for (std::size_t v = 0; v < vectors; ++v)
      w[v] = load_vec<type>(t.panel, step * panel_rows + (first_vector + v) * lanes);
    add_products<rows, vectors>(sums, x + step * rows, w);
  }
}

template <dtype type, std::size_t rows, std::size_t vectors>
WEIR_INLINE void multiply_vectors(const product_tile& t, std::size_t first_vector) {
  const std::size_t column = first_vector * lanes;
  vec sums[rows][vectors] = {};
  if (t.from)
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t v = 0; v < vectors; ++v)
        sums[r][v] = load_f32(t.from + r * t.from_stride + column + v * lanes);

  const std::size_t steps = type == dtype::bf16 ? (t.k + 1) / 2 : t.k;
  coming next(first_vector == 0 ? t.next : nullptr, panel_bytes(type, t.k));
  constexpr std::size_t lines = type == dtype::f16 ? 1 : 2;  // cache lines of weights in a step
  constexpr std::size_t round = coming::streams / lines;     // steps until every stream has a line prefetched
  std::size_t i = 0;
  if (next.at) {
    for (; i + round <= steps; i += round, next.at += 64)
      WEIR_UNROLL_BY(8)
      for (std::size_t j = 0; j < round; ++j) {
        product_step<type, rows, vectors>(sums, t, first_vector, i + j);
        next.template ask<lines>(j);
      }
  }
  for (; i < steps; ++i) product_step<type, rows, vectors>(sums, t, first_vector, i);

  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t v = 0; v < vectors; ++v)
      store_as(t.to + r * t.to_stride + column + v * lanes, sums[r][v]);
}

template <dtype type, std::size_t rows>
void multiply_rows(const product_tile& t) {
  constexpr std::size_t vectors = lanes == 16 ? 2 : rows <= 3 ? 4 : 2;
  for (std::size_t v = 0; v < panel_vectors; v += vectors) multiply_vectors<type, rows, vectors>(t, v);
}

template <dtype type, std::size_t rows = 1>
void multiply_typed(const product_tile& t) {
  if constexpr (rows <= most_rows) {
    if (t.rows == rows) return multiply_rows<type, rows>(t);
    multiply_typed<type, rows + 1>(t);
  }
}

void multiply(const product_tile& t) {
  switch (t.type) {
    case dtype::f32:
      return multiply_typed<dtype::f32>(t);
    case dtype::bf16:
      return multiply_typed<dtype::bf16>(t);
    case dtype::f16:
      return multiply_typed<dtype::f16>(t);
    default:
      return;  // blocks.h has the quantised types
  }
}

// Transposes [rows, k] to [k, rows], with zeros up to an even k, because bf16 weights come in pairs of k.
void interleave(const float* x, std::size_t rows, std::size_t k, std::byte* to) {
  auto* out = reinterpret_cast<float*>(to);
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t r = 0; r < rows; ++r) out[i * rows + r] = x[r * k + i];
  if (k % 2 != 0) std::memset(out + k * rows, 0, rows * sizeof(float));
}

std::size_t interleaved_bytes(std::size_t rows, std::size_t k) {
  return (k + k % 2) * rows * sizeof(float);
}

constexpr product_path products{
    .most_rows = most_rows,
    .slice_k = 512,
    .prepared_bytes = interleaved_bytes,
    .prepare = interleave,
    .multiply = multiply,
    .spin = spin,
};

}  // namespace
}  // namespace weir::kernels
