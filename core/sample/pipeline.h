// pipeline.h — one sequence's sampler: from a row of logits to one token, in the one documented order.
//
//   penalties (repetition; frequency and presence) -> logit bias -> disallow_tokens, bad_words and
//   no_repeat_ngram_size -> mask of ending tokens (min_tokens) -> allowed_token_ids -> DRY -> mask of a
//   constraint -> top_n_sigma -> temperature (dynamic, then smoothing) -> top_k -> top_p -> min_p -> top_a
//   -> typical_p -> tfs -> mirostat -> XTC -> draw
//
// temperature_last moves temperature, with its smoothing, between XTC and the draw. Each step is defined in
// core/sample/steps.h, cuts.h, mirostat.h, recent_penalties.h, late_bans.h or dry.h. Temperature 0 skips what
// follows the masks and takes the largest logit; ties go to the lowest id, here and in every step.
//
// Thread safety: a sampler belongs to its sequence's owner; pick() changes nothing in it, so that a model may
// call different sequences' pick() from several threads, each with a scratch of its own. Nothing here
// allocates once the sampler and the scratch are built.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/sample/dry.h"
#include "core/sample/late_bans.h"
#include "core/sample/params.h"
#include "core/sample/philox.h"
#include "core/sample/recent_penalties.h"
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
  float surprise = 0;  // of the token that was drawn last, for sampler::learn()
};

class sampler {
 public:
  struct limits {
    std::uint32_t max_tokens = 1;  // most tokens that accept() will see
    std::uint32_t min_tokens = 0;  // before this many are accepted, `endings` cannot be drawn
    token_set endings;             // stop ids; a model's files may name some that it has no logits for
    bool goes_back = false;        // go_back() may be called
    // The tokens of the prompt in their order, for prompt() and for the steps that look back. They have to
    // outlive the sampler.
    std::span<const token_id> prompt = {};
  };

  // `prompt`: the tokens of the prompt, which only a repetition penalty looks at. REQUIRES: ids of both
  // prompts and of the lists in `params` are inside the vocabulary.
  sampler(const sampling_params& params, std::uint32_t vocab_size, const token_set& prompt, limits l);

  // Bytes that a sampler of these parameters has of its own, for a prompt of so many tokens and an output of
  // at most `max_tokens`.
  static std::uint64_t bytes_for(const sampling_params& params, std::uint32_t vocab_size,
                                 std::size_t prompt_tokens, std::uint32_t max_tokens) noexcept;

  // Draws the token at `position` (prompt included) from its logits [vocab]. nullopt: the logits are not
  // sound() or, if they are, nothing is left of them. `allowed`: as in keep_allowed(); empty: every token may
  // come. REQUIRES: scratch made for at least as large a vocabulary.
  std::optional<token_id> pick(std::span<const float> logits, std::uint32_t position, sample_scratch& scratch,
                               std::span<const std::uint32_t> allowed = {}) const;

  // Records the token that was chosen for the sequence, for the penalties and for min_tokens.
  void accept(token_id id);

  // Takes the last tokens back, which were accepted: `taken`, in their order. The first of them is refused
  // from now on at its place. The draw there is another attempt, with a random number of its own. Costs the
  // tokens that are taken back; with steps that look back, the whole sequence. REQUIRES: limits::goes_back;
  // `taken` is not empty.
  void go_back(std::span<const token> taken);
  // How many tokens are refused at place `at` of the output, which is 0 for the first token.
  std::uint32_t attempts(std::uint32_t at) const noexcept;
  // The number of the attempt at the next token: how many are refused there.
  std::uint32_t attempt() const noexcept { return attempt_; }
  // Whether the token is refused at the next place.
  bool refuses(token_id id) const noexcept;

  // Tells mirostat the surprise of the token that pick() drew, before its accept(). Of a token that was not
  // drawn nothing is told.
  void learn(float surprise) noexcept {
    if (steers_) steer(surprise);
  }

  const sampling_params& params() const noexcept { return params_; }
  // Where the random number of the next draw, at `position` of prompt and output, is used.
  draw_site site_of(std::uint32_t position) const noexcept {
    return {.position = position, .choice = params_.choice, .attempt = attempt_};
  }

  // Whether pick() would change a logit now, apart from `allowed`. If not, there is no bias, and seen() and
  // masked() are empty.
  bool changes_logits() const noexcept {
    return lists_ || attempt_ > 0 || (accepted_ < min_tokens_ && !masked_.empty());
  }

  // For models that draw elsewhere: the tokens that penalties apply to now, where the penalties have no range
  // and where they have one (null: they have none); what DRY subtracts now; the tokens that cannot be drawn
  // now; and those of allowed_token_ids, as in keep_allowed() (empty: all). Each has a token once.
  const token_counts& seen() const noexcept { return seen_; }
  const recent_penalties* recent() const noexcept { return recent_ ? &*recent_ : nullptr; }
  std::span<const dry_penalties::penalty> dry() const noexcept {
    if (!dry_) return {};
    return dry_->now();
  }
  std::span<const std::uint32_t> allowed() const noexcept { return allowed_; }
  std::span<const token_id> masked() const noexcept {
    return bans_ || attempt_ > 0 ? std::span<const token_id>(banned_) : fixed_bans();
  }

  // Whether pick() does a step of core/sample/cuts.h, and mirostat's mu for the next draw; for models that
  // draw elsewhere.
  bool rare_cuts() const noexcept { return rare_cuts_; }
  double mu() const noexcept { return mu_; }

  // limits::prompt, for models that answer by it. Here and not in the draws: a step would write it for every
  // sequence, and next to no model reads it.
  std::span<const token_id> prompt() const noexcept { return prompt_; }

 private:
  // The masked tokens that do not depend on which tokens came before.
  std::span<const token_id> fixed_bans() const noexcept {
    return accepted_ < min_tokens_ ? masked_ : params_.disallow_tokens.ids();
  }
  void look_back(token_id id);
  // Makes the steps that look back as they are behind history_.
  void prepare_to_look_back();
  void steer(float surprise) noexcept;
  void update_bans();
  void reshape(std::span<float> values) const;
  token_id pick_rarely(std::span<const float> logits, std::uint32_t position, sample_scratch& scratch) const;

  // The members that a plain draw reads come first, in one cache line.
  std::uint32_t min_tokens_ = 0, accepted_ = 0, attempt_ = 0;
  bool lists_ = false;      // there are penalties, biases or tokens that a request allows or forbids
  bool rare_cuts_ = false;  // has_rare_cuts()
  bool steers_ = false;     // there is mirostat
  bool keeps_mu_ = false;   // steers_, and go_back() may be called
  sampling_params params_;
  token_counts seen_;                 // empty where no penalty is set
  token_set before_min_;              // what cannot be drawn before min_tokens: endings and disallow_tokens
  std::span<const token_id> masked_;  // of before_min_
  std::optional<token_history> history_;  // where a step looks back: one of these three
  std::optional<recent_penalties> recent_;
  std::optional<late_bans> bans_;
  std::optional<dry_penalties> dry_;
  std::vector<token_id> banned_;        // fixed_bans(), those of bans_ and the refused, rising, each once
  std::vector<std::uint32_t> allowed_;  // allowed_token_ids, as in keep_allowed(); empty: all
  std::span<const token_id> prompt_;
  double mu_ = 0;            // of mirostat
  std::vector<double> mus_;  // mu_ behind each accepted token, if keeps_mu_
  struct refusal {
    std::uint32_t place;  // of the output
    token_id id;
  };
  std::vector<refusal> refused_;     // rising by place
  std::uint32_t vocab_size_, most_;  // most_: tokens of prompt and output together
};

}  // namespace weir::core
