// late_bans.h — tokens that cannot come next because of those that have just come: no_repeat_ngram_size and
// words of several tokens of bad_words.
//
// no_repeat_ngram_size n: no n tokens come twice in prompt and output together. Where the last n - 1 tokens
// have come before, what followed them then is forbidden. Source: Hugging Face transformers
// (NoRepeatNGramLogitsProcessor).
//
// bad_words: the last token of a word is forbidden where those before it have just come, in the prompt or in
// the output. Source: vLLM (bad_words). One difference: there the output alone is looked at.
//
// Cost of a token: as in suffix_matches.h, and the tokens of all bad words. Nothing allocates after the
// constructor.
//
// Thread safety: the owner's thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/sample/params.h"
#include "core/sample/suffix_matches.h"
#include "core/sample/token_history.h"

namespace weir::core {

// Whether `p` asks for either.
bool has_late_bans(const sampling_params& p);

class late_bans {
 public:
  // Takes what `of` has; `most` is its length once it has all tokens.
  late_bans(const sampling_params& p, const token_history& of, std::uint32_t most, std::uint32_t vocab_size);

  static std::uint64_t bytes_for(const sampling_params& p, std::uint32_t most,
                                 std::uint32_t vocab_size) noexcept;

  // The history has one token more.
  void add(const token_history& of);

  // The tokens that cannot come next, rising, each once.
  std::span<const token_id> now() const noexcept { return now_; }

 private:
  void update(const token_history& of);

  std::uint32_t ngram_;
  shared_list<token_id> bad_words_;  // sampling_params::bad_words
  std::optional<suffix_matches> matches_;
  std::vector<token_id> now_;
};

}  // namespace weir::core
