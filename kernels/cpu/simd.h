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

#include "kernels/logits.h"
#include "kernels/ops.h"

namespace weir::kernels {

// A block of prepared activations against one panel of packed weights (packing.h), or a slice of both along
// k: to[r, j] = from[r, j] + x[r, :] · w[j, :]. Rows of panel_rows sums lie `stride` floats apart.
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

struct attention_query {
  const float* q = nullptr;        // [head_dim]
  float* out = nullptr;            // [head_dim]
  std::uint32_t from = 0, to = 0;  // positions [from, to)
};

// Attention so far: outputs are sums / total, and weights are relative to exp(largest).
struct attention_sums {
  float* sums = nullptr;     // [count, head_dim]
  float* largest = nullptr;  // [count]
  float* total = nullptr;    // [count]
};

// Queries that share a key head of one sequence, over some of its pages.
struct attention_tile {
  static constexpr std::size_t most_queries = 144;

  const attention_query* queries = nullptr;  // [count]
  std::size_t count = 0;                     // <= most_queries
  kv_pages kv;
  const std::int32_t* pages = nullptr;
  std::uint32_t head = 0, first_page = 0, last_page = 0;  // indices into pages, [first, last)
  float scale = 1;
  attention_sums into;
  float* scratch = nullptr;  // [scratch_floats(kv)]

  static std::size_t scratch_floats(const kv_pages& kv) {
    constexpr std::size_t lanes = 16, at_once = 8;  // no instruction set has more
    return most_queries * (kv.head_dim + lanes) + (kv.head_dim + at_once) * std::size_t{kv.page_tokens};
  }
};

struct simd_kernels {
  const char* name;
  const product_path* products;
  const logit_loops* logits;
  void (*attend)(const attention_tile&);  // over these pages alone: `into` is begun anew
  void (*merge)(const attention_sums& into, const attention_sums& part, std::size_t count,
                std::size_t head_dim);
  void (*finish)(const attention_tile&);            // from `into` to the queries' outputs
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
