// simd.h — the inner loops of the cpu backend, compiled once for each instruction set and chosen at run time.
//
// Each entry works on one row, one tile or one block; pointwise.cpp, products.cpp and attention.cpp divide
// operations into these. The loops themselves are in simd/*.h, with vectors of as many lanes as the
// instruction set has.
//
// Thread safety: pure functions.
//
// Invariants:
//   1. An element's value does not depend on which rows, outputs or queries share its tile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/cpu/packing.h"
#include "kernels/logits.h"
#include "kernels/ops.h"

namespace weir::kernels {

// The product of a block of prepared activations and one panel of packed weights (packing.h), or of a slice
// of both along k: to[r, j] = from[r, j] + x[r, :] · w[j, :] for j < panel_rows. Rows of `from` and `to` are
// from_stride and to_stride floats apart.
struct product_tile {
  const std::byte* panel = nullptr;  // at the first k
  dtype type = dtype::f32;
  const std::byte* x = nullptr;  // prepared, at the first k
  std::size_t rows = 0, k = 0;
  const float* from = nullptr;  // null: zeros
  float* to = nullptr;
  std::size_t from_stride = 0, to_stride = 0;
  const std::byte* next = nullptr;  // memory to prefetch meanwhile, as many bytes as the panel; or null
};

// One way of multiplying. The order of a row's sums over k is the same in every block and with every slice.
struct product_path {
  std::size_t most_rows;  // most rows of a block
  std::size_t slice_k;    // elements of k in a slice, whose prepared activations stay in L1; whole tiles
  std::size_t (*prepared_bytes)(std::size_t rows, std::size_t k);  // also the offset of element k
  void (*prepare)(const float* x, std::size_t rows, std::size_t k, std::byte* to);
  void (*multiply)(const product_tile&);
  double (*spin)(std::size_t rounds);  // multiplies registers only; returns the flops done
  // Called before and after the products of a block of `rows` rows, on the thread that computes them; may be
  // null.
  void (*begin)(std::size_t rows) = nullptr;
  void (*end)() = nullptr;
  // How the panels' codes have to be packed. With code_order::words the path also rounds activations to 8
  // bits (simd/dots.h).
  code_order codes = code_order::columns;
};

// One query head of one row. Without initial values: tiles have room for many, and fill in a few.
struct attention_query {
  const float* q;          // [head_dim]
  float* out;              // [head_dim]
  std::uint32_t from, to;  // attends to positions [from, to)
  float scale;             // of the scores: attention_rule::scale_at
  const float* sink;       // its head's (ops.h, attention::sinks); null: none
};

// The state of attention over some pages, for `count` queries: the output is sums / total, and both are
// relative to exp(largest).
struct attention_sums {
  float* sums = nullptr;     // [count, head_dim]
  float* largest = nullptr;  // [count]
  float* total = nullptr;    // [count]
};

// Attention of queries that share a key head of one sequence, over some of its pages.
struct attention_tile {
  static constexpr std::size_t most_queries = 144;

  const attention_query* queries = nullptr;  // [count]
  std::size_t count = 0;                     // <= most_queries
  kv_pages kv;
  const std::int32_t* pages = nullptr;
  std::uint32_t head = 0, first_page = 0, last_page = 0;  // key head; pages [first_page, last_page)
  attention_rule rule;
  attention_sums into;
  float* scratch = nullptr;  // [scratch_floats(kv)]

  static std::size_t scratch_floats(const kv_pages& kv) {
    constexpr std::size_t lanes = 16, at_once = 8;  // no instruction set has more
    const std::size_t scales = kv.head_dim / kv_group(kv.head_dim);
    return most_queries * (kv.head_dim + lanes) +
           (2 * kv.head_dim + at_once + scales) * std::size_t{kv.page_tokens};
  }
};

// Products of f32 rows that lie as they are, without packing: out[r, n] = x[r, :] · w[n, :].
struct row_products {
  const float* x = nullptr;  // [rows, width]
  const float* w = nullptr;  // [outputs, width]
  float* out = nullptr;
  std::size_t rows = 0, outputs = 0, width = 0;
  std::size_t out_stride = 0;  // floats between rows of out
};

// The table of one instruction set.
struct simd_kernels {
  const char* name;
  const product_path* products;  // of plain weights
  const product_path* blocks;    // of quantised weights, with f32 activations
  // The path of weights of a type with activations rounded to 8 bits; null for types that have none.
  const product_path* (*dots)(dtype type);
  const logit_loops* logits;
  // Rounds one token's key, or value, of one head and stores it at `token` of the head's part of a page.
  void (*store_kv)(const kv_pages&, const float* x, std::byte* head, std::uint32_t token);
  void (*attend)(const attention_tile&);  // over these pages alone; overwrites `into`
  // Merges the state `part` of other pages into `into`.
  void (*merge)(const attention_sums& into, const attention_sums& part, std::size_t count,
                std::size_t head_dim);
  void (*finish)(const attention_tile&);            // writes the queries' outputs from `into`
  void (*read)(const void* at, std::size_t bytes);  // reads every byte, for benchmarks
  void (*widen)(const void* from, dtype type, float* to, std::size_t count);  // plain types alone
  // Of one row; out may be x, and bias null.
  void (*norm)(const float* x, const float* weight, const float* bias, float* out, std::size_t width,
               float eps, bool centred);
  void (*rotate)(float* x, const float* cos, const float* sin, std::size_t half);
  // Without a gate `up` is null; `limit` is activate::limit.
  void (*activate)(activation kind, const float* gate, const float* up, float* out, std::size_t count,
                   float limit);
  void (*sigmoid_mul)(float* x, const float* gate, std::size_t count);
  void (*add)(float* x, const float* y, std::size_t count, float factor);
  void (*soft_cap)(float* x, std::size_t count, float factor, float cap);
  void (*multiply_rows)(const row_products&);
  // What the products of one row's experts become: the softmax of all, or the sigmoid of each. to may be
  // products.
  void (*score)(const float* products, float* to, std::size_t count, bool sigmoid);
  // The weighted sum of what `chosen` experts made of a row, [chosen, width], in their order, and `gate`
  // times `shared`, which may be null.
  void (*mix)(const float* y, const float* weights, std::size_t chosen, const float* shared, float gate,
              float* out, std::size_t width);
};

// The tables that this machine can run, the best first; never empty.
std::span<const simd_kernels* const> simd_choices();

}  // namespace weir::kernels
