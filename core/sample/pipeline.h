// pipeline.h — one sequence's sampler: from a row of logits to one token, in the one documented order.
//
//   penalties (repetition; frequency and presence) -> logit bias -> mask of ending tokens (min_tokens)
//   -> mask of a constraint -> temperature -> top_k -> top_p -> min_p -> draw
//
// Each step is defined in core/sample/steps.h. Temperature 0 skips what follows it and takes the largest
// logit; ties go to the lowest id, here and in every step.
//
// Thread safety: a sampler belongs to its sequence's owner; pick() changes nothing in it, so that a model may
// call different sequences' pick() from several threads, each with a scratch of its own. Nothing here
// allocates once the sampler and the scratch are built.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/sample/params.h"
#include "core/sample/steps.h"
#include "core/sample/token_counts.h"
#include "core/token_set.h"

namespace weir::core {

// What one thread needs to draw: room for a copy of a row, and for the candidates of a cut.
struct sample_scratch {
  explicit sample_scratch(std::uint32_t vocab_size) : values(vocab_size), weights(vocab_size) {
    candidates.reserve(vocab_size);
  }
  std::vector<float> values;   // [vocab]
  std::vector<float> weights;  // [vocab]
  std::vector<candidate> candidates;
};

class sampler {
 public:
  struct limits {
    std::uint32_t max_tokens = 1;  // most tokens that accept() will see
    std::uint32_t min_tokens = 0;  // before this many are accepted, `endings` cannot be drawn
    token_set endings;             // stop ids; a model's files may name some that it has no logits for
    // The tokens of the prompt in their order, for prompt(). They have to outlive the sampler's draws.
    std::span<const token_id> prompt = {};
  };

  // `prompt`: the tokens of the prompt, which only a repetition penalty looks at. REQUIRES: ids of `prompt`
  // and the bias are inside the vocabulary.
  sampler(const sampling_params& params, std::uint32_t vocab_size, const token_set& prompt, limits l);

  // Bytes that a sampler of these parameters has of its own, for an output of at most `max_tokens`.
  static std::uint64_t bytes_for(const sampling_params& params, std::uint32_t vocab_size,
                                 std::uint32_t max_tokens) noexcept {
    return has_penalties(params) ? token_counts::bytes_for(std::min(max_tokens, vocab_size)) : 0;
  }

  // Draws the token at `position` (prompt included) from its logits [vocab]. nullopt: the logits are not
  // sound() or, if they are, nothing is left of them. `allowed`: as in keep_allowed(); empty: every token may
  // come. REQUIRES: scratch made for at least as large a vocabulary.
  std::optional<token_id> pick(std::span<const float> logits, std::uint32_t position, sample_scratch& scratch,
                               std::span<const std::uint32_t> allowed = {}) const;

  // Records the token that was chosen for the sequence, for the penalties and for min_tokens.
  void accept(token_id id);

  const sampling_params& params() const noexcept { return params_; }

  // Whether pick() would change a logit now, apart from `allowed`. If not, there is no bias, and seen() and
  // masked() are empty.
  bool changes_logits() const noexcept { return lists_ || (accepted_ < min_tokens_ && !masked_.empty()); }

  // The tokens that penalties apply to now, and the tokens that cannot be drawn now; for models that draw
  // elsewhere.
  const token_counts& seen() const noexcept { return seen_; }
  std::span<const token_id> masked() const noexcept {
    return accepted_ < min_tokens_ ? masked_ : std::span<const token_id>();
  }

  // limits::prompt, for models that answer by it. Here and not in the draws: a step would write it for every
  // sequence, and next to no model reads it.
  std::span<const token_id> prompt() const noexcept { return prompt_; }

 private:
  void reshape(std::span<float> values) const;

  // The members that a plain draw reads come first, in one cache line.
  std::uint32_t min_tokens_ = 0, accepted_ = 0;
  bool lists_ = false;  // there are penalties or biases
  sampling_params params_;
  token_counts seen_;  // empty where no penalty is set
  token_set endings_;
  std::span<const token_id> masked_;  // of endings_
  std::span<const token_id> prompt_;
};

}  // namespace weir::core
