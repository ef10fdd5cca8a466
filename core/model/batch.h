// batch.h — the work of one step, as the scheduler gives it to a model: rows of tokens of many sequences.
//
// The rows of a slice are consecutive positions of one sequence: one row for a decoding sequence, many for a
// slice of a prompt. A model computes every row and stores its keys and values in the slice's pages. It
// computes logits for the last row of each slice that asks for them, and for rows of a prompt whose logprobs
// are asked.
//
// Thread safety: built and read on the owner's thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/cache/page.h"
#include "core/token.h"

namespace weir::core {

// Value in batch::tokens for a token that the host does not know yet: the result of draw `i` of the previous
// step. Only for models that run ahead.
constexpr token_id drawn_by(std::uint32_t i) { return -1 - static_cast<token_id>(i); }

// Consecutive rows of one sequence.
struct batch_slice {
  std::uint32_t first_row = 0;     // index into batch::tokens
  std::uint32_t rows = 0;          // >= 1
  std::uint32_t position = 0;      // of the first row; rows have position, position + 1, …
  std::span<const page_id> pages;  // the sequence's first ceil((position + rows) / page_tokens) pages
  std::int32_t logits_row = -1;    // index among the rows of logits, for the last row; -1: no logits
  // Rows whose logits are for the logprobs of the prompt, and not drawn from: `scored` of them, from row
  // `first_scored` of the slice on. Their rows of logits begin at scored_logits.
  std::uint32_t first_scored = 0, scored = 0, scored_logits = 0;
};

// A copy of the keys and values of one page, all layers, to another page.
struct page_copy {
  page_id from = -1, to = -1;
};

struct batch {
  std::vector<page_copy> copies;    // made in this order, before any row is computed
  std::vector<token_id> tokens;     // [rows] ids, or drawn_by()
  std::vector<batch_slice> slices;  // [sequences in this step]
  std::uint32_t logits_rows = 0;    // slices with logits_row >= 0, and scored rows
  std::uint32_t scored = 0;         // scored rows of all slices

  // Clears everything but the copies, which stay until a forward has made them.
  void clear() {
    tokens.clear();
    slices.clear();
    logits_rows = scored = 0;
  }
  // No row is to be computed; there may be copies.
  bool empty() const { return slices.empty(); }
};

}  // namespace weir::core
