// stacks.h — what may still follow: interned sets of stacks.
//
// A stack node is a set of entries. An entry stands at a dot: the dot's symbol comes `min` to `max` times
// more, and when the dot's sequence is over, the text goes on as the node below the entry says. A set of
// stacks is one node, so ambiguous readings share it. This is Earley's algorithm with rows shared by content
// (J. Earley, «An Efficient Context-Free Parsing Algorithm», 1970) in the form of a graph of stacks (M.
// Tomita, «Efficient Parsing for Natural Language», 1986): an Earley item's origin is the node below. Two
// properties follow:
// - A call at the end of a sequence pushes nothing: it uses the node of its caller (J. Leo, «A general
//   context-free parsing algorithm running in linear time on every LR(k) grammar…», 1991). So lists that
//   recurse to the right do not grow.
// - Left recursion needs no rewriting: a rule that calls itself first makes a node that is below itself. Such
//   a node cannot be interned by content. Its name is the node whose expansion made it, and its symbol. An
//   older such node is used instead if it satisfies the equation of the new one, because the equation has
//   only one solution.
//
// Invariants:
// 1. Nodes are immutable once their id is published. Equal sets have one id, except nodes below themselves.
// 2. The expansion of a node depends on the node alone.
// 3. A node has no entry at dot_end: it has the entries of the node below instead.
//
// Thread safety: a call that writes needs the mutex of the object that owns the store. A call that reads
// needs an id that its thread got from the writer through a synchronising operation.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/grammar/id_table.h"
#include "core/grammar/stable_store.h"
#include "core/grammar/symbols.h"

namespace weir::core::grammar {

using stack_id = std::uint32_t;

struct stack_entry {
  dot_id at = dot_end;
  std::uint32_t min = 0, max = 0;  // how often the dot's symbol comes from here on
  stack_id below = 0;
  friend auto operator<=>(const stack_entry&, const stack_entry&) = default;
};

// A terminal or set of tokens that may come next, and the stack node of what follows it.
struct head {
  static constexpr std::uint32_t token_set = 0x8000'0000;
  std::uint32_t state = 0;  // regex_id; or token_set | index in symbol_table::token_sets
  stack_id next = 0;
  bool is_tokens() const { return (state & token_set) != 0; }
  std::uint32_t set() const { return state & ~token_set; }
  friend auto operator<=>(const head&, const head&) = default;
};

// What a stack node allows next: its heads, and whether the text may end.
struct expansion {
  std::vector<head> heads;
  bool may_end = false;
  bool failed = false;  // more entries than `most_entries`
};

class stack_store {
 public:
  static constexpr std::size_t most_entries = 8'192;  // of an expansion

  explicit stack_store(const symbol_table& symbols);

  // The stack of a text that has not begun.
  stack_id start() const { return start_; }
  // The node with all entries of both nodes. Writes.
  stack_id both(stack_id, stack_id);
  // The expansion of a node. Writes if it is not known yet.
  const expansion& expand(stack_id);
  // The expansion of a node; nullptr: not known yet. Reads only.
  const expansion* known_expansion(stack_id s) const {
    return nodes_[s].expanded.load(std::memory_order_acquire);
  }
  const std::vector<stack_entry>& entries(stack_id s) const { return nodes_[s].entries; }
  // A stack that allows the same next `horizon` bytes: counts above the horizon are cut. Writes.
  stack_id within(stack_id, std::uint32_t horizon);

  std::uint32_t size() const { return nodes_.size(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct node {
    std::vector<stack_entry> entries;  // sorted
    bool named = false;                // named by `origin` and `what`, because it is below itself
    bool counted = false;              // within() may change it
    stack_id origin = 0;               // named: the node whose expansion made it
    symbol_id what = 0;                // named: its symbol
    std::unique_ptr<expansion> owned;
    std::atomic<const expansion*> expanded{nullptr};

    node() = default;
    node& operator=(node&& o) noexcept {
      entries = std::move(o.entries);
      named = o.named, counted = o.counted, origin = o.origin, what = o.what;
      return *this;
    }
  };
  friend class expander;

  stack_id intern(std::vector<stack_entry> entries);  // sorts them
  static std::uint64_t hash(const std::vector<stack_entry>&);

  const symbol_table& symbols_;
  stable_store<node> nodes_;
  id_table by_content_;
  std::unordered_map<std::uint64_t, stack_id> by_name_;  // origin << 32 | symbol
  std::unordered_map<std::uint64_t, stack_id> cut_;      // horizon << 32 | node
  stack_id start_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace weir::core::grammar
