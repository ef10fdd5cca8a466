// piece_bpe.h — byte pair encoding without a list of merges: two neighbours are joined if together they are a
// piece, the piece of the highest score first and of equal ones the leftmost. So do SentencePiece's models of
// type BPE, GGUF files with scores, and tiktoken, whose scores are ranks.
//
// A word of n characters costs O(n log n + n * longest piece).
//
// Thread safety: immutable once built; any thread, each with its own workspace.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/text/tokenizer/byte_pieces.h"
#include "core/text/tokenizer/piece_trie.h"
#include "core/text/tokenizer/scored_pieces.h"
#include "core/text/tokenizer/vocabulary.h"
#include "core/turn.h"

namespace weir::core {

class piece_bpe {
 public:
  // Normal, user-defined and unused pieces are joined. A user-defined piece in a word stands for itself and is
  // joined with nothing; an unused one is split again into what it was joined of. `whole_words`: a word that
  // is a piece is that piece, whatever its parts. An id whose text is empty has no piece. REQUIRES: no two
  // texts are equal.
  explicit piece_bpe(const scored_pieces& pieces, bool whole_words = false);

  // Buffers of encode(), which are reused for many words.
  class workspace {
    friend class piece_bpe;
    struct symbol {
      std::uint32_t begin, size;    // bytes of the word; size 0: joined to the symbol before it
      std::int32_t previous, next;  // indices; -1: none
      bool frozen;
    };
    struct candidate {
      std::uint32_t order;
      std::int32_t at;     // index of the left symbol
      std::uint32_t size;  // of the two together, when they were neighbours
    };
    std::vector<symbol> symbols;
    std::vector<candidate> heap;
    std::unordered_map<std::string_view, std::uint32_t> cuts;  // unused pieces: bytes of the left part
    std::vector<std::string_view> parts;
  };

  // Appends the ids of one word to `out`. `at`: turn.h; this throws nobody_waits. REQUIRES: `word` is valid
  // UTF-8.
  void encode(std::string_view word, workspace& w, std::vector<token_id>& out, turn* at = nullptr) const;

  const vocabulary& pieces() const noexcept { return vocabulary_; }

 private:
  static constexpr std::uint32_t not_joined = ~std::uint32_t{0};
  struct entry {
    std::uint32_t order = not_joined;  // pieces of lower order are joined first
    bool unused = false;
  };

  std::optional<token_id> find(std::string_view text) const noexcept;
  void split(std::string_view word, workspace& w, work_steps& all) const;
  void offer(std::string_view word, std::int32_t left, std::int32_t right, workspace& w,
             work_steps& all) const;
  void join(std::string_view word, workspace& w, work_steps& all) const;
  void append(std::string_view part, workspace& w, std::vector<token_id>& out, bool& after_unknown) const;

  vocabulary vocabulary_;
  std::vector<entry> entries_;  // [id]
  piece_trie user_defined_;
  byte_pieces bytes_;
  std::optional<token_id> unknown_;
  std::size_t longest_ = 0;
  bool byte_fallback_, whole_words_, has_unused_ = false;
};

}  // namespace weir::core
