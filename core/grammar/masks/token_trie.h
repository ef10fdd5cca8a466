// token_trie.h — the tokens of a vocabulary in the order of their bytes, as a tree.
//
// It has the tokens that are text: neither special tokens nor ids without bytes. Tokens with equal bytes
// share a node.
//
// Thread safety: immutable once built; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/grammar/masks/id_tree.h"
#include "core/grammar/masks/token_mask.h"
#include "core/grammar/regex/code_points.h"
#include "core/text/tokenizer/tokenizer.h"

namespace weir::core::grammar {

class token_trie {
 public:
  explicit token_trie(std::shared_ptr<const tokenizer>);

  const id_tree& tree() const { return tree_; }
  std::uint32_t vocab_size() const { return vocab_size_; }
  std::uint32_t longest() const { return tree_.max_depth(); }  // bytes of the longest token
  // Bytes of a token that is text; empty for any other id.
  std::string_view text(token_id) const;
  bool known(token_id id) const { return id >= 0 && static_cast<std::uint32_t>(id) < vocab_size_; }
  const tokenizer& words() const { return *tokenizer_; }
  // The characters that stand for themselves in a JSON string. Most tokens of a vocabulary have no others.
  static code_points plain();
  // The tokens of at most `characters` whole characters, all of them in plain().
  token_mask plain_upto(std::uint32_t characters) const;
  // The tree of the tokens that are not whole characters of plain().
  const id_tree& others() const { return others_; }
  // Whether a text that begins with a letter is spelled with a space before it.
  bool leading_space() const { return leading_space_; }
  // Every byte of UTF-8 is a token of its own, so that each text can be spelled.
  bool complete() const { return complete_; }
  // The characters that can be spelled, as one token or as one token a byte; empty if complete().
  const code_points& alphabet() const { return alphabet_; }

 private:
  void find_alphabet();
  void part_plain(std::span<const std::pair<std::string_view, token_id>> texts);

  std::shared_ptr<const tokenizer> tokenizer_;
  std::uint32_t vocab_size_ = 0;
  std::string bytes_;
  std::vector<std::size_t> starts_;  // [vocab_size + 1] offsets in bytes_
  id_tree tree_, others_;
  std::vector<std::pair<std::uint32_t, token_id>> plain_;  // characters and id, sorted
  token_mask all_plain_;
  bool leading_space_ = false, complete_ = false;
  code_points alphabet_;
};

}  // namespace weir::core::grammar
