// recent_penalties.h — penalties of the latest tokens alone: repetition_range and repetition_decay.
//
// The distance d of a token of prompt and output is the number of tokens behind it: 0 for the latest. Its
// share s is 1 where d < range, falls as s = 1 - (d - range) / decay over the `decay` tokens before these,
// and is 0 before them. So each of range + decay tokens has a share, and a decay alone begins with 1. For a
// token of the vocabulary that has a share:
//   factor = 1 + (repetition_penalty - 1) * s of its latest place
//   minus  = presence_penalty * s of its latest place, where that is in the output
//          + frequency_penalty * the sum of s over its places in the output
//   l_i := (l_i / factor where l_i > 0, l_i * factor where not) - minus
//
// Source: exllamav2 (apply_rep_penalty_cpu). One difference: there, and in llama.cpp's penalty_last_n, which
// has no decay, frequency and presence look at the prompt too; here at the output, as without a range.
//
// Adding a token costs the same whatever the range. for_each() visits the different tokens of the output and
// of the prompt's last range + decay tokens. Nothing allocates after the constructor.
//
// Thread safety: the owner's thread only.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/sample/params.h"
#include "core/sample/token_history.h"
#include "core/sample/token_index.h"

namespace weir::core {

// Whether `p` has penalties that a range limits.
bool has_recent_penalties(const sampling_params& p);

class recent_penalties {
 public:
  // Takes what `of` has. REQUIRES: has_recent_penalties(p); the output gets at most max_output tokens.
  recent_penalties(const sampling_params& p, std::uint32_t vocab_size, const token_history& of,
                   std::uint32_t max_output);

  static std::uint64_t bytes_for(const sampling_params& p, std::uint32_t vocab_size,
                                 std::size_t prompt_tokens, std::uint32_t max_output) noexcept;

  // The history has one token more.
  void add(const token_history& of);

  // Most tokens that for_each() visits now.
  std::size_t most() const noexcept { return entries_.size(); }
  // Calls f(id, factor, minus) for each token that has a share.
  template <class F>
  void for_each(F&& f) const {
    for (const entry& e : entries_)
      if (const double s = share(size_ - e.end); s > 0) f(e.id, factor(s), minus(e, s));
  }

 private:
  struct entry {
    token_id id = 0;
    std::uint32_t whole = 0, falling = 0;  // places in the output: how many have share 1, and a falling one
    std::uint64_t end = 0;                 // one past its latest place, in prompt and output together
    std::uint64_t falling_places = 0;      // the sum of the falling places
  };

  entry& find(token_id id);
  double share(std::uint64_t distance) const;
  float factor(double share) const;
  float minus(const entry& e, double share) const;

  std::uint64_t range_, decay_;
  double repetition_, frequency_, presence_;
  std::uint64_t prompt_size_, size_;  // tokens of the prompt; of prompt and output
  token_index tokens_;
  std::vector<entry> entries_;  // [tokens_]
};

// The penalties of `seen`, as above.
void apply_penalties(std::span<float> logits, const recent_penalties& seen);

}  // namespace weir::core
