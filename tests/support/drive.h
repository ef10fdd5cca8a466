// drive.h — a model driven by hand, without an engine: sequences with pages of their own, fed in chunks.
#pragma once

#include <algorithm>
#include <cassert>
#include <span>
#include <vector>

#include "core/model/model.h"

namespace weir::tests {

// One sequence and its pages. Feed it, then read logits() until the next forward of the model.
class driven_sequence {
 public:
  // The pages are `first` to `first` + count - 1, in falling order: no code may rely on neighbouring pages.
  driven_sequence(core::model& m, core::page_id first, std::uint32_t count) : model_(m) {
    for (std::uint32_t i = 0; i < count; ++i)
      pages_.push_back(first + static_cast<core::page_id>(count - 1 - i));
  }

  // The slice of the next `rows` tokens, which begin at row `row` of the batch.
  core::batch_slice slice(std::uint32_t row, std::uint32_t rows, std::int32_t logits_row) const {
    assert(position_ + rows <= pages_.size() * core::page_tokens);
    core::batch_slice s;
    s.first_row = row;
    s.rows = rows;
    s.position = position_;
    s.pages = std::span(pages_).first((position_ + rows + core::page_tokens - 1) / core::page_tokens);
    s.logits_row = logits_row;
    return s;
  }
  void advance(std::uint32_t rows) { position_ += rows; }
  std::uint32_t position() const { return position_; }

  // Feeds `ids`, `chunk` rows a step. Returns the logits after the last token.
  std::span<const float> feed(std::span<const core::token_id> ids, std::size_t chunk) {
    for (std::size_t at = 0; at < ids.size(); at += chunk) {
      const auto part = ids.subspan(at, std::min(chunk, ids.size() - at));
      core::batch b;
      b.tokens.assign(part.begin(), part.end());
      b.slices.push_back(slice(0, static_cast<std::uint32_t>(part.size()), 0));
      b.logits_rows = 1;
      model_.forward(b).value();
      advance(static_cast<std::uint32_t>(part.size()));
    }
    return model_.logits(0);
  }

 private:
  core::model& model_;
  std::vector<core::page_id> pages_;
  std::uint32_t position_ = 0;
};

inline core::token_id argmax(std::span<const float> logits) {
  return static_cast<core::token_id>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// REQUIRES: the model has pages for the whole sequence.
inline std::vector<core::token_id> greedy(core::model& m, std::span<const core::token_id> prompt,
                                          std::size_t count, std::size_t chunk) {
  const auto tokens = static_cast<std::uint32_t>(prompt.size() + count);
  driven_sequence s(m, 0, (tokens + core::page_tokens - 1) / core::page_tokens);
  std::vector<core::token_id> out;
  auto logits = s.feed(prompt, chunk);
  while (out.size() < count) {
    out.push_back(argmax(logits));
    if (out.size() < count) logits = s.feed(std::span(&out.back(), 1), 1);
  }
  return out;
}

}  // namespace weir::tests
