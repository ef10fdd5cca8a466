// token_history.h — the tokens of prompt and output in their order, once for all steps that look back.
//
// Thread safety: the owner's thread only.
#pragma once

#include <cassert>
#include <cstdint>
#include <span>
#include <vector>

#include "core/token.h"

namespace weir::core {

class token_history {
 public:
  // `prompt` is not copied. Adding allocates nothing up to `most_output` tokens.
  token_history(std::span<const token_id> prompt, std::uint32_t most_output) : prompt_(prompt) {
    output_.reserve(most_output);
  }

  static std::uint64_t bytes_for(std::uint32_t most_output) noexcept {
    return std::uint64_t{most_output} * sizeof(token_id);
  }

  void add(token_id id) {
    assert(output_.size() < output_.capacity());
    output_.push_back(id);
  }

  // Takes the last `count` tokens of the output back.
  void take_back(std::size_t count) {
    assert(count <= output_.size());
    output_.resize(output_.size() - count);
  }

  std::size_t prompt_size() const noexcept { return prompt_.size(); }
  std::size_t size() const noexcept { return prompt_.size() + output_.size(); }
  token_id operator[](std::size_t place) const {
    return place < prompt_.size() ? prompt_[place] : output_[place - prompt_.size()];
  }

  // Whether the tokens before place `end`, or the last tokens, are `these`.
  bool ends_with(std::span<const token_id> these, std::size_t end) const {
    if (these.size() > end) return false;
    for (std::size_t i = 0; i < these.size(); ++i)
      if ((*this)[end - these.size() + i] != these[i]) return false;
    return true;
  }
  bool ends_with(std::span<const token_id> these) const { return ends_with(these, size()); }

 private:
  std::span<const token_id> prompt_;
  std::vector<token_id> output_;
};

}  // namespace weir::core
