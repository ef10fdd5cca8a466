// word_model.h — makes ids of a word, by one of the kinds of models: merges in a list (bpe.h), pieces that
// are joined by their scores (piece_bpe.h), or the best cut (unigram.h).
//
// Thread safety: immutable once built; any thread, each with its own workspace.
#pragma once

#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/text/tokenizer/bpe.h"
#include "core/text/tokenizer/piece_bpe.h"
#include "core/text/tokenizer/unigram.h"

namespace weir::core {

class word_model {
 public:
  // The `model` of tokenizer.json. `control`: spellings of control tokens, which a text has nowhere else than
  // as added tokens. Throws refusal.
  word_model(const json_field& model, const std::vector<std::string_view>& control);
  explicit word_model(piece_bpe model) : model_(std::move(model)) {}
  explicit word_model(unigram model) : model_(std::move(model)) {}

  struct workspace {
    bpe::workspace merging;
    piece_bpe::workspace joining;
    unigram::workspace cutting;
  };

  // Appends the ids of one word to `out`. `at`: turn.h; this throws nobody_waits. REQUIRES: `word` is valid
  // UTF-8.
  void encode(std::string_view word, workspace& w, std::vector<token_id>& out, turn* at = nullptr) const;

  const vocabulary& pieces() const noexcept;
  // BPE, BPE by scores (or by ranks), Unigram.
  std::string_view type() const noexcept;

 private:
  std::variant<bpe, piece_bpe, unigram> model_;
};

}  // namespace weir::core
