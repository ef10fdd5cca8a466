// unigram.h — the model of tokenizer.json and of SentencePiece whose type is Unigram: of all ways to cut a
// word into pieces it takes the one with the highest sum of scores.
//
// A word of n bytes costs O(n * longest piece).
//
// Thread safety: immutable once built; any thread, each with its own workspace.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/text/json_field.h"
#include "core/text/tokenizer/byte_pieces.h"
#include "core/text/tokenizer/piece_trie.h"
#include "core/text/tokenizer/scored_pieces.h"
#include "core/text/tokenizer/vocabulary.h"
#include "core/turn.h"

namespace weir::core {

class unigram {
 public:
  // `model`: of tokenizer.json. The pieces `hidden` are found in no text: control tokens, which are cut out of
  // it before. Throws refusal.
  unigram(const json_field& model, const std::vector<std::string_view>& hidden);
  // As the sentencepiece library computes: sums are rounded to single precision, and a user-defined piece is
  // always taken. REQUIRES: `pieces.unknown` is set; all scores are finite.
  explicit unigram(const scored_pieces& pieces);

  // Buffers of encode(), which are reused for many words.
  class workspace {
    friend class unigram;
    // The best way to cut the text up to a place, by its last piece.
    struct way {
      double score = 0;
      std::int32_t begin = -1;  // of the last piece; -1: there is no way yet
      token_id id = 0;
    };
    struct cut {
      std::uint32_t begin, end;
      token_id id;
    };
    std::vector<way> ways;  // [place]
    std::vector<cut> cuts;  // from the last to the first
  };

  // Appends the ids of one word to `out`. `at`: turn.h; this throws nobody_waits. REQUIRES: `word` is valid
  // UTF-8.
  void encode(std::string_view word, workspace& w, std::vector<token_id>& out, turn* at = nullptr) const;

  const vocabulary& pieces() const noexcept { return vocabulary_; }

 private:
  unigram(const scored_pieces& pieces, const std::vector<std::string_view>& hidden, bool from_json);

  void find_ways(std::string_view word, workspace& w, work_steps& all) const;
  void find_cuts(std::size_t size, workspace& w) const;
  // What is offered as the last piece of the text up to `end`.
  void offer(workspace::way& end, std::size_t begin, token_id id, double score) const;
  double rounded(double score) const noexcept;
  void append_unknown(std::string_view text, std::vector<token_id>& out) const;

  vocabulary vocabulary_;
  piece_trie trie_;             // of the pieces that a text can have; values are ids
  std::vector<double> scores_;  // [id]
  byte_pieces bytes_;
  token_id unknown_;
  double unknown_score_ = 0, best_score_ = 0;
  std::vector<bool> user_defined_;  // [id]; empty: none is
  bool byte_fallback_, single_precision_;
};

}  // namespace weir::core
