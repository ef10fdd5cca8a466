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

// out[r, j] = x[r, :] · w[j, :] + bias[j] for j in [first, last); rows of x are k apart, of out `out_stride`.
struct linear_tile {
  matrix w;
  const float* bias = nullptr;
  const float* x = nullptr;
  float* out = nullptr;
  std::size_t rows = 0, first = 0, last = 0, out_stride = 0;
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
  void (*multiply)(const linear_tile&);
  void (*attend)(const attention_tile&);
  void (*widen)(const void* from, dtype type, float* to, std::size_t count);
  // x = high + low up to 2^-16 of x, both bf16.
  void (*split)(const float* x, std::uint16_t* high, std::uint16_t* low, std::size_t count);
  void (*rms_norm)(const float* x, const float* weight, float* out, std::size_t width,
                   float eps);  // out may be x
  void (*rotate)(float* x, const float* cos, const float* sin, std::size_t half);
  void (*silu_mul)(const float* gate, const float* up, float* out, std::size_t count);
  void (*add)(float* x, const float* y, std::size_t count);
};

// What this machine can run, the best first; never empty.
std::span<const simd_kernels* const> simd_choices();

}  // namespace weir::kernels
