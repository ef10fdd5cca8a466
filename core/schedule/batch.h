// batch.h — one step's work, as the scheduler hands it to a model: rows of tokens from many sequences.
//
// Rows of one slice are consecutive positions of one sequence: one row for a decoding sequence, many for a
// slice of a prefill. A model computes every row and keeps its keys and values in the slice's pages; it
// computes logits for the last row of each slice that asks for them.
//
// Thread safety: built and read on the owner's thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/token_sink.h"

namespace weir::core {

using page_id = std::int32_t;

// Stands in batch::tokens for what draw `i` of the step before gives, where the host does not know it yet:
// only for models that run ahead.
constexpr token_id drawn_by(std::int32_t i) { return -1 - i; }

// Tokens in a page of KV memory: one constant for every backend.
inline constexpr std::uint32_t page_tokens = 64;

struct batch_slice {
  std::uint32_t first_row = 0;      // into tokens and positions
  std::uint32_t rows = 0;           // >= 1
  std::uint32_t position = 0;       // of the first row; rows have position, position + 1, …
  std::span<const page_id> pages;   // [ceil((position + rows) / page_tokens)] the sequence's pages, in order
  std::int32_t logits_row = -1;     // where the last row's logits go, or -1: not wanted
  std::uint64_t seed = 0;           // the job's sampling seed (a simulated model makes its tokens from it)
  std::uint32_t prompt_tokens = 0;  // length of the sequence's prompt
};

// Keys and values of a page, of all layers, that another page begins with.
struct page_copy {
  page_id from = -1, to = -1;
};

struct batch {
  std::vector<page_copy> copies;         // done in this order, before any row is computed
  std::vector<token_id> tokens;          // [rows] ids, or drawn_by()
  std::vector<batch_slice> slices;       // [sequences in this step]
  std::uint32_t logits_rows = 0;  // slices with logits_row >= 0; they are numbered 0, 1, … in slice order

  // All but the copies: they are owed until a forward has made them.
  void clear() { tokens.clear(); slices.clear(); logits_rows = 0; }
  bool empty() const { return slices.empty(); }
};

}  // namespace weir::core
