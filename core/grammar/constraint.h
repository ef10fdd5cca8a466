// constraint.h — a constraint over one vocabulary: what may come after a text, byte by byte and token by
// token.
//
// A `parse` is an interned set of heads (stacks.h): all readings of the text so far. Walking, masks and what
// they are made of are remembered, and shared by all jobs with this constraint.
//
// Invariants:
// 1. What a parse allows depends on its text alone, never on who walked before (docs/architecture.md, P1).
// 2. From every parse but `dead` and `failed`, some text leads to an end. So a mask is empty only where the
//    text must end.
// 3. A parse's id never changes its meaning; parse 0 is dead, parse 1 has failed.
//
// Thread safety: any thread. A step that is remembered takes no lock; a step that is not remembered is made
// under a mutex. The walk that makes a mask holds the mutex for single steps only.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/grammar/id_table.h"
#include "core/grammar/masks/terminal_views.h"
#include "core/grammar/masks/token_mask.h"
#include "core/grammar/stable_store.h"
#include "core/grammar/stacks.h"
#include "core/grammar/symbols.h"

namespace weir::core::grammar {

using parse_id = std::uint32_t;

class constraint {
 public:
  static constexpr parse_id dead = 0;
  static constexpr parse_id failed = 1;  // too ambiguous, or too much to remember

  // `ending`: the tokens that end a text. No mask has them: the caller adds them where the text may end.
  // Errors: invalid_param with an empty `param`, as make_symbols() says; those of `budget`.
  static result<std::shared_ptr<constraint>> make(compiled, std::shared_ptr<terminal_views>,
                                                  std::vector<token_id> ending = {}, fuel* budget = nullptr);

  // The same constraint with nothing remembered, for use when this one holds too much. Parses belong to one
  // object, so a cursor changes to the new constraint with cursor::move_to().
  std::shared_ptr<constraint> fresh() const;
  // Roughly the bytes that the constraint holds, those of what it remembers included.
  std::size_t bytes() const;

  parse_id start() const { return start_; }
  bool may_end(parse_id c) const { return parses_[c].may_end; }
  // The text is whole and nothing can follow.
  bool must_end(parse_id c) const { return parses_[c].may_end && parses_[c].heads.empty(); }

  parse_id step(parse_id, unsigned char b);
  parse_id step(parse_id, std::string_view bytes);
  // A token: by its bytes where it is text, and by its id where the grammar names tokens.
  parse_id accept(parse_id, token_id);
  // The result of accept() if it is remembered; nullopt: call accept(). Takes no lock.
  std::optional<parse_id> accept_known(parse_id, token_id) const;

  // The tokens that may come, without ending ones. nullptr: the parse has failed, or costs over `most_cost`.
  const token_mask* mask(parse_id);
  static constexpr std::uint64_t most_cost = 8'000'000;  // token_mask::cost
  // The result of mask() if it is remembered; nullptr: call mask(), which may return nullptr. Takes no lock.
  const token_mask* mask_known(parse_id) const;
  // The same by its definition: every token's bytes, one by one, from the parse. For tests.
  token_mask mask_by_definition(parse_id);

  // A shortest text that leads from the parse to an end. nullopt: longer than `max_bytes`, or it needs a
  // token that has no text.
  std::optional<std::string> completion(parse_id, std::size_t max_bytes = std::size_t{1} << 16);

  const token_trie& trie() const { return views_->trie(); }
  // Why a parse is `failed`.
  std::string failure() const;
  std::size_t memo_bytes() const { return memo_bytes_.load(std::memory_order_relaxed); }
  // The only byte that can follow. nullopt: several can follow, or a token that the grammar names by its id
  // can, or the text may end, or the parse is `dead` or `failed`.
  std::optional<unsigned char> only_byte(parse_id);
  // The answer of may_force() (forced_tokens.h), if it is remembered. Takes no lock.
  std::optional<bool> may_force_known(parse_id c) const {
    const auto known = parses_[c].forces.load(std::memory_order_relaxed);
    if (known == parse::forcing::unknown) return std::nullopt;
    return known == parse::forcing::some;
  }
  void remember_may_force(parse_id c, bool some) {
    parses_[c].forces.store(some ? parse::forcing::some : parse::forcing::none, std::memory_order_relaxed);
  }

  static constexpr std::size_t most_heads = 2'048;
  static constexpr std::size_t most_memo_bytes = std::size_t{64} << 20;  // of parses, stacks and terms

 private:
  struct parse {
    std::vector<head> heads;  // sorted by state; each state once
    bool may_end = false;
    const regex_pool::byte_classes* classes = nullptr;  // of all heads; set before `row`
    std::atomic<std::atomic<parse_id>*> row{nullptr};   // transitions, one a class of bytes
    std::atomic<std::atomic<parse_id>*> by_id{nullptr};  // of place_by_id(), one a head
    std::atomic<parse_id> near{0};                      // the parse that near() gives; 0: not known yet
    std::atomic<const token_mask*> mask{nullptr};
    enum class forcing : std::uint8_t { unknown, none, some };
    std::atomic<forcing> forces{forcing::unknown};

    parse() = default;
    parse& operator=(parse&& o) noexcept {
      heads = std::move(o.heads);
      may_end = o.may_end;
      return *this;
    }
  };
  static constexpr parse_id unknown = 0xFFFF'FFFF;

  constraint(symbol_table symbols, std::shared_ptr<regex_pool>, std::shared_ptr<terminal_views>);

  parse_id slow_step(parse_id, unsigned char b);
  // Where what follows a token is remembered, which one head names and no other head allows; null: nowhere.
  std::atomic<parse_id>* place_by_id(const parse&, token_id) const;
  // Under mutex_.
  void make_ids_row(parse&);
  std::atomic<parse_id>* make_row(parse&);
  parse_id intern(std::vector<head> heads, bool may_end);
  parse_id after(stack_id);
  parse_id near(parse_id);
  bool over_limit();
  // Bytes of what is remembered. The terms of the grammar itself do not count.
  std::size_t remembered() const { return memo_bytes() + stacks_.bytes() + pool_->bytes() - grammar_bytes_; }

  void add_head(token_mask&, const head&);
  bool add_fixed(token_mask&, regex_id state) const;
  void walk(token_mask&, const id_tree&, parse_id from);

  const symbol_table symbols_;
  std::shared_ptr<regex_pool> pool_;
  const std::size_t grammar_bytes_;  // of the pool, before any walk
  std::shared_ptr<terminal_views> views_;

  mutable std::mutex mutex_;
  stack_store stacks_;
  stable_store<parse> parses_;
  id_table by_content_;
  std::vector<std::unique_ptr<std::atomic<parse_id>[]>> rows_;
  std::vector<std::unique_ptr<const token_mask>> masks_;
  std::unordered_set<const token_mask*> shared_masks_;  // of masks_; their bytes are counted once
  parse_id start_ = dead;
  std::atomic<std::size_t> memo_bytes_{0};
  std::string failure_;

  friend class completer;
};

}  // namespace weir::core::grammar
