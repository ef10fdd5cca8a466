// bpe.h — the `model` of tokenizer.json where its type is BPE: the characters of a word are merged pair by
// pair.
//
// A word of n characters costs O(n log n).
//
// Thread safety: immutable once built; any thread, each with its own workspace.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/text/json_field.h"
#include "core/text/tokenizer/vocabulary.h"
#include "core/turn.h"

namespace weir::core {

// A hash table from a pair of neighbouring tokens to the merge of that pair.
class merge_table {
 public:
  struct merge {
    std::uint32_t rank = 0;  // merges of lower rank are made first
    token_id becomes = -1;   // -1: the pair does not merge
  };
  explicit merge_table(std::size_t merges);  // the most merges that will be added
  void add(token_id left, token_id right, merge m);
  merge find(token_id left, token_id right) const noexcept;

 private:
  struct slot {
    std::uint64_t pair = ~std::uint64_t{0};
    merge what;
  };
  std::size_t home(std::uint64_t pair) const noexcept;
  // Open addressing: the size is a power of two, and at least half of the slots are empty.
  std::vector<slot> slots_;
};

class bpe {
 public:
  explicit bpe(const json_field& model);  // throws refusal

  // Buffers of encode(). One workspace is reused for many words, so that a word does not allocate.
  class workspace {
    friend class bpe;
    struct symbol {
      token_id id;
      // Indices; -1: none. `next` of a symbol that was merged away is its own index.
      std::int32_t previous, next;
    };
    // A merge to be made, unless one of its two symbols changes before.
    struct candidate {
      std::uint32_t rank;
      std::int32_t at;  // index of the left symbol
      token_id becomes;
    };
    std::vector<symbol> symbols;
    std::vector<candidate> heap;
  };

  // Appends the ids of one word to `out`. `at`: turn.h; this throws nobody_waits. REQUIRES: `word` is valid
  // UTF-8.
  void encode(std::string_view word, workspace& w, std::vector<token_id>& out, turn* at = nullptr) const;

  const vocabulary& pieces() const noexcept { return vocabulary_; }

 private:
  void load_merges(const json_field& model);
  void load_unknown(const json_field& model);
  std::optional<token_id> character_id(std::string_view character) const noexcept;
  void split(std::string_view word, workspace& w, work_steps& all) const;
  bool add_bytes(std::string_view character, workspace& w) const;
  void merge(workspace& w, work_steps& all) const;
  void offer(workspace& w, std::int32_t left, std::int32_t right) const;

  vocabulary vocabulary_;
  merge_table merges_;
  std::array<token_id, 0x200> short_characters_;  // [code point] id; -1: none
  std::array<token_id, 256> bytes_;               // [byte] id of its "<0x..>" piece; -1: none
  std::optional<token_id> unknown_;
  bool fuse_unknown_, byte_fallback_, ignore_merges_;
};

}  // namespace weir::core
