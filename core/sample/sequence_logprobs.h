// sequence_logprobs.h — the logprobs that a job has asked for: those of its output, until its sink has taken
// them, and those of its prompt.
//
// Thread safety: the owner's thread only. add() does not allocate while no more tokens wait for the sink than
// reserve() made room for.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/logprobs.h"

namespace weir::core {

// Logprobs of the tokens of an output that its sink has not taken, in order.
class untaken_logprobs {
 public:
  void reserve(std::uint32_t max_output) { all_.reserve(std::min(max_output, usual)); }
  void add(const kernels::draw_logprobs& of) { all_.push_back(of); }
  // Those of the next `count` tokens. REQUIRES: so many were added and not taken.
  std::span<const kernels::draw_logprobs> first(std::size_t count) const {
    assert(count <= all_.size());
    return std::span(all_).first(count);
  }
  // The output has lost its last `count` tokens.
  void drop(std::size_t count) { all_.resize(all_.size() - count); }
  // The sink has taken the next `count` tokens.
  void take(std::size_t count) {
    all_.erase(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(count));
  }

 private:
  static constexpr std::uint32_t usual = 128;  // as many tokens as a sink's queue takes at least
  std::vector<kernels::draw_logprobs> all_;
};

// Logprobs of the tokens of a prompt, from the second on, in the order in which they are scored.
class prompt_logprobs {
 public:
  void reserve(std::uint32_t tokens) {
    all_ = std::make_shared<std::vector<kernels::scored_token>>();
    all_->reserve(tokens);
  }
  std::uint32_t count() const noexcept { return all_ ? static_cast<std::uint32_t>(all_->size()) : 0; }
  // REQUIRES: reserve() was called, for more tokens than were added.
  void add(const kernels::scored_token& t) { all_->push_back(t); }
  // Forgets all, to be scored again.
  void clear() noexcept {
    if (all_) all_->clear();
  }
  // Null before reserve().
  std::shared_ptr<const std::vector<kernels::scored_token>> all() const noexcept { return all_; }

 private:
  std::shared_ptr<std::vector<kernels::scored_token>> all_;
};

}  // namespace weir::core
