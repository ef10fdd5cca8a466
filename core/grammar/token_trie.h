// token_trie.h — the tokens of a vocabulary in the order of their bytes, as a tree.
//
// In it are the tokens that are text: neither special tokens nor ids without bytes. Tokens with equal bytes
// share a node.
//
// Thread safety: immutable once built; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/grammar/code_points.h"
#include "core/grammar/token_mask.h"
#include "core/text/tokenizer.h"

namespace weir::core::grammar {

// A tree of byte strings with ids, in depth-first order. Node 0 is the root.
class id_tree {
 public:
  struct node {
    std::uint32_t end = 0;       // index behind the last node below this one
    std::uint32_t first_id = 0;  // its ids are [first_id, first_id of the next node)
    std::uint16_t depth = 0;
    unsigned char byte = 0;  // from its parent; the root's means nothing
  };

  id_tree() : nodes_{{1, 0, 0, 0}} {}
  // REQUIRES: `texts` is sorted by text.
  explicit id_tree(std::span<const std::pair<std::string_view, token_id>> texts);

  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
  const node& operator[](std::uint32_t i) const { return nodes_[i]; }
  // Ids of one node; of a node and all below it.
  std::span<const token_id> ids(std::uint32_t i) const { return ids_between(i, i + 1); }
  std::span<const token_id> ids_below(std::uint32_t i) const { return ids_between(i, nodes_[i].end); }
  bool has_children(std::uint32_t i) const { return nodes_[i].end > i + 1; }
  std::uint32_t max_depth() const { return max_depth_; }
  std::size_t bytes() const { return nodes_.size() * sizeof(node) + ids_.size() * sizeof(token_id); }

  // What stands below the given nodes of another tree, as one tree; with `first`, only what begins with one
  // of these bytes. nullopt: more than `most` nodes would have to be looked at.
  static std::optional<id_tree> below(const id_tree& from, std::span<const std::uint32_t> nodes,
                                      std::size_t most, const byte_set* first = nullptr);

 private:
  std::span<const token_id> ids_between(std::uint32_t first, std::uint32_t end) const {
    const std::size_t a = nodes_[first].first_id;
    const std::size_t b = end < nodes_.size() ? nodes_[end].first_id : ids_.size();
    return std::span(ids_).subspan(a, b - a);
  }
  std::vector<node> nodes_;
  std::vector<token_id> ids_;
  std::uint32_t max_depth_ = 0;
};

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
  // Tokens of whole characters that stand for themselves in a JSON string: most of a vocabulary.
  // plain_upto(n): those with at most n characters. others(): the tree of all other tokens.
  static code_points plain();
  token_mask plain_upto(std::uint32_t characters) const;
  const id_tree& others() const { return others_; }
  // Whether a text that begins with a letter is spelled with a space before it.
  bool leading_space() const { return leading_space_; }
  // Every byte of UTF-8 is a token of its own, so that each text can be spelled.
  bool complete() const { return complete_; }
  // The characters that can be spelled by single tokens, for vocabularies that are not complete.
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
