// terminal_views.h — what a vocabulary can do inside a terminal, remembered for all grammars of a tokenizer.
//
// From a state of a terminal some tokens stay inside: after all their bytes the terminal may still go on, or
// be over. Others leave it: the terminal may be over after some of their bytes, and what is left of the token
// belongs to what follows in the grammar. Both depend on the state and the vocabulary alone, so they are made
// once and named by the state's print.
//
// Thread safety: any thread. Views are immutable. Two threads that miss the same view both make it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/grammar/masks/token_mask.h"
#include "core/grammar/masks/token_trie.h"
#include "core/grammar/regex/regex_pool.h"

namespace weir::core::grammar {

struct terminal_view {
  std::shared_ptr<const token_mask> inside;  // the tokens that stay inside
  // The rests of the tokens that leave, with the ids of these tokens. nullopt: the rests are too many; call
  // leftovers() for those that begin with certain bytes.
  std::optional<id_tree> leave;
  std::vector<std::uint32_t> leaves;  // nodes at which tokens leave; empty if `leave` is not set
  bool of_others = false;             // `leaves` are nodes of token_trie::others(), not tree()
  std::uint64_t cost = 0;             // nodes that were looked at
  std::size_t bytes() const {
    return sizeof *this + (inside ? inside->bytes() : 0) + 4 * leaves.size() + (leave ? leave->bytes() : 0);
  }
};

class terminal_views {
 public:
  // At most `max_bytes` of views are kept; the least recently used are dropped first.
  explicit terminal_views(std::shared_ptr<const token_trie>, std::size_t max_bytes = std::size_t{64} << 20);

  const token_trie& trie() const { return *trie_; }
  // The view of a state of `pool`.
  std::shared_ptr<const terminal_view> view(regex_pool& pool, regex_id state);
  // The rests that begin with a byte of `first`, of the tokens that leave the state. Only `leave`, `cost` and
  // `of_others` of the result are filled. `leave` is nullopt if there are still too many rests.
  std::shared_ptr<const terminal_view> leftovers(regex_pool& pool, regex_id state, const byte_set& first);

 private:
  struct key {
    regex_print state;
    byte_set first;  // no byte: the view itself
    friend bool operator==(const key&, const key&) = default;
  };
  struct hash_key {
    std::size_t operator()(const key& k) const noexcept {
      return k.state.low ^ std::hash<byte_set>{}(k.first);
    }
  };
  struct kept {
    std::shared_ptr<const terminal_view> view;
    std::uint64_t used = 0;
  };
  std::shared_ptr<const terminal_view> find(const key&);
  std::shared_ptr<const terminal_view> keep(const regex_pool&, const key&, terminal_view);
  terminal_view make(regex_pool&, regex_id state, const byte_set* first) const;
  terminal_view make_excepted(regex_pool&, regex_id state, const terminal_view& base,
                              const regex_pool::exception&) const;

  std::shared_ptr<const token_trie> trie_;
  const std::size_t max_bytes_;
  std::mutex mutex_;
  std::unordered_map<key, kept, hash_key> known_;
  std::size_t bytes_ = 0;
  std::uint64_t uses_ = 0;
};

}  // namespace weir::core::grammar
