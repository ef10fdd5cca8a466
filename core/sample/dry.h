// dry.h — DRY, «don't repeat yourself»: a penalty for tokens that would make a repetition longer.
//
// Where the last n tokens have come before, in prompt and output together, the token that followed them then
// has a repetition of n. A token with n >= dry_allowed_length gets, for its longest repetition,
//   l_i := l_i - min(1e30, dry_multiplier * dry_base^(n - dry_allowed_length)).
// Repetitions do not reach over a breaker, and lie in the dry_range latest tokens. A token that is a breaker
// by itself gets no penalty. A breaker is a text; the tokens whose bytes have it, or that begin it, are found
// once (actors/breakers.h).
//
// Source: p-e-w's DRY of text-generation-webui, with breakers of several tokens as pi6am's in koboldcpp and
// llama.cpp have them. One difference: llama.cpp finds one of two breakers that overlap; here the one that
// ends last counts.
//
// Cost of a token: as in suffix_matches.h, and the sorting of the repetitions that are long enough. Nothing
// allocates after the constructor.
//
// Thread safety: the owner's thread only; dry_breakers is immutable.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/sample/params.h"
#include "core/sample/suffix_matches.h"
#include "core/sample/token_history.h"
#include "core/token_set.h"

namespace weir::core {

// The tokens at which repetitions end.
struct dry_breakers {
  // A text that begins in one of `heads` and ends with `tail`.
  struct text {
    token_set heads;
    std::vector<token_id> tail;  // at least one
  };
  token_set single;
  std::vector<text> longer;
  std::vector<std::string> texts;  // of which all of these were made

  // Whether a breaker ends with the token before place `end`.
  bool end_at(const token_history& of, std::size_t end) const;
};

class dry_penalties {
 public:
  struct penalty {
    token_id id = 0;
    float minus = 0;
  };

  // REQUIRES: p.dry_multiplier > 0. Takes what `of` has; `most` is its
  // length once it has all tokens.
  dry_penalties(const sampling_params& p, const token_history& of, std::uint32_t most,
                std::uint32_t vocab_size);

  static std::uint64_t bytes_for(std::uint32_t most, std::uint32_t vocab_size) noexcept;

  // The history has one token more.
  void add(const token_history& of);

  // What is subtracted from logits now, each token once.
  std::span<const penalty> now() const noexcept { return now_; }

 private:
  void update(const token_history& of);

  double multiplier_, base_;
  std::uint32_t allowed_, range_;
  std::shared_ptr<const dry_breakers> breakers_;  // null: none
  suffix_matches matches_;
  std::vector<penalty> now_;  // while it is made, `minus` is the length of a repetition
};

}  // namespace weir::core
