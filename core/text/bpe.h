// bpe.h — the `model` of tokenizer.json where its type is BPE: a word's characters, merged pair by pair.
//
// Immutable once built: any thread, each with a workspace of its own. A word of n characters costs O(n log
// n).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/text/json_field.h"
#include "core/text/vocabulary.h"

namespace weir::core {

// Pairs of neighbouring tokens to the token they merge into and how early they do.
class merge_table {
 public:
  struct merge {
    std::uint32_t rank = 0;
    token_id becomes = -1;  // -1: the pair does not merge
  };
  explicit merge_table(std::size_t merges);
  void add(token_id left, token_id right, merge m);
  merge find(token_id left, token_id right) const noexcept;

 private:
  struct slot {
    std::uint64_t pair = ~std::uint64_t{0};
    merge what;
  };
  std::size_t home(std::uint64_t pair) const noexcept;
  std::vector<slot> slots_;  // open addressing; a power of two, half empty
};

class bpe {
 public:
  explicit bpe(const json_field& model);  // throws refusal

  // What encoding needs beside the model; reused from word to word so that words do not allocate.
  class workspace {
    friend class bpe;
    struct symbol {
      token_id id;
      std::int32_t previous, next;  // -1: none; a symbol merged away has next == itself
    };
    struct candidate {
      std::uint32_t rank;
      std::int32_t at;  // the left symbol
      token_id becomes;
    };
    std::vector<symbol> symbols;
    std::vector<candidate> heap;
  };

  // Appends the ids of one word. REQUIRES valid UTF-8.
  void encode(std::string_view word, workspace& w, std::vector<token_id>& out) const;

  const vocabulary& pieces() const noexcept { return vocabulary_; }

 private:
  void load_merges(const json_field& model);
  void load_unknown(const json_field& model);
  std::optional<token_id> character_id(std::string_view character) const noexcept;
  void split(std::string_view word, workspace& w) const;
  bool add_bytes(std::string_view character, workspace& w) const;
  void merge(workspace& w) const;
  void offer(workspace& w, std::int32_t left, std::int32_t right) const;

  vocabulary vocabulary_;
  merge_table merges_;
  std::array<token_id, 0x200> short_characters_;  // ids of the first characters, -1: none
  std::array<token_id, 256> bytes_;               // of "<0x..>" pieces, -1: none
  std::optional<token_id> unknown_;
  bool fuse_unknown_, byte_fallback_, ignore_merges_;
};

}  // namespace weir::core
