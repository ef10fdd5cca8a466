// simd.h — the inner loops of the cpu backend, compiled once for each instruction set and chosen at run time.
//
// Each entry works on one row, one tile or one block; pointwise.cpp, linear.cpp and attention.cpp cut
// operations into those. The loops themselves are in simd/*.h, on vectors of as many lanes as the instruction
// set has.
//
// Thread safety: pure functions.
//
// Invariants:
//   1. An element's value does not depend on which rows, outputs or queries share its tile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/ops.h"

namespace weir::kernels {

// A block of prepared activations against one panel of packed weights (packing.h), or a slice of both along k:
// to[r, j] = from[r, j] + x[r, :] · w[j, :]. Rows of panel_rows sums lie `stride` floats apart.
struct product_tile {
  const std::byte* panel = nullptr;  // at the first k
  dtype type = dtype::f32;
  const std::byte* x = nullptr;  // prepared, at the first k
  std::size_t rows = 0, k = 0;
  const float* from = nullptr;  // null: zeros
  float* to = nullptr;
  std::size_t from_stride = 0, to_stride = 0;
  const std::byte* next = nullptr;  // as many bytes as the panel's, to be brought near meanwhile; or nothing
};

// One way of multiplying. Each row's sums are made in one order of k, whatever the block and the slice.
struct product_path {
  std::size_t most_rows;  // of a block
  std::size_t slice_k;    // so much of a block's prepared activations stays in the nearest cache; whole tiles
  std::size_t (*prepared_bytes)(std::size_t rows, std::size_t k);  // also where element k of a block starts
  void (*prepare)(const float* x, std::size_t rows, std::size_t k, std::byte* to);
  void (*multiply)(const product_tile&);
  double (*spin)(std::size_t rounds);  // multiplies in registers alone; returns the flops done
  // Around the products of blocks of `rows` rows, on the thread that computes them; or nothing.
  void (*begin)(std::size_t rows) = nullptr;
  void (*end)() = nullptr;
};

// Queries that share a key head of one sequence.
struct attention_tile {
  static constexpr std::size_t most_queries = 4;

  struct query {
    const float* q = nullptr;        // [head_dim]
    float* out = nullptr;            // [head_dim]
    std::uint32_t from = 0, to = 0;  // positions [from, to)
  };
  query queries[most_queries];
  std::size_t count = 0;
  kv_pages kv;
  const std::int32_t* pages = nullptr;
  std::uint32_t head = 0;
  float scale = 1;
  float* scratch = nullptr;  // [scratch_floats(kv)]

  static std::size_t scratch_floats(const kv_pages& kv) {
    return most_queries * (2 * std::size_t{kv.head_dim} + kv.page_tokens);
  }
};

struct simd_kernels {
  const char* name;
  const product_path* products;
  void (*attend)(const attention_tile&);
  void (*read)(const void* at, std::size_t bytes);  // and nothing else
  void (*widen)(const void* from, dtype type, float* to, std::size_t count);
  void (*rms_norm)(const float* x, const float* weight, float* out, std::size_t width,
                   float eps);  // out may be x
  void (*rotate)(float* x, const float* cos, const float* sin, std::size_t half);
  void (*silu_mul)(const float* gate, const float* up, float* out, std::size_t count);
  void (*add)(float* x, const float* y, std::size_t count);
};

// What this machine can run, the best first; never empty.
std::span<const simd_kernels* const> simd_choices();

}  // namespace weir::kernels
