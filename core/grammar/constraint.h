// constraint.h — a constraint over one vocabulary: what may come after a text, byte by byte and token by
// token.
//
// A `config` is an interned set of heads (stacks.h): all readings of the text so far. Walking, masks and what
// they are made of are remembered, and shared by all jobs with this constraint.
//
// Invariants:
// 1. What a config allows depends on its text alone, never on who walked before (docs/architecture.md, P1).
// 2. From every config but `dead` and `failed`, some text leads to an end. So a mask is empty only where the
//    text must end.
// 3. A config's id never changes its meaning; config 0 is dead, config 1 has failed.
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

using config_id = std::uint32_t;

class constraint {
 public:
  static constexpr config_id dead = 0;
  static constexpr config_id failed = 1;  // too ambiguous, or too much to remember

  // `ending`: the tokens that end a text. No mask has them: the caller adds them where the text may end.
  // Errors: invalid_param with an empty `param`, as make_symbols() says; those of `budget`.
  static result<std::shared_ptr<constraint>> make(compiled, std::shared_ptr<terminal_views>,
                                                  std::vector<token_id> ending = {}, fuel* budget = nullptr);

  // The same constraint with nothing remembered, for use when this one holds too much. Configs belong to one
  // object, so a cursor changes to the new constraint with cursor::move_to().
  std::shared_ptr<constraint> fresh() const;
  // Roughly the bytes that the constraint holds, those of what it remembers included.
  std::size_t bytes() const;

  config_id start() const { return start_; }
  bool may_end(config_id c) const { return configs_[c].may_end; }
  // The text is whole and nothing can follow.
  bool must_end(config_id c) const { return configs_[c].may_end && configs_[c].heads.empty(); }

  config_id step(config_id, unsigned char b);
  config_id step(config_id, std::string_view bytes);
  // A token: by its bytes where it is text, and by its id where the grammar names tokens.
  config_id accept(config_id, token_id);
  // The result of accept() if it is remembered; nullopt: call accept(). Takes no lock.
  std::optional<config_id> accept_known(config_id, token_id) const;

  // The tokens that may come, without ending ones. nullptr: the config has failed, or costs over `most_cost`.
  const token_mask* mask(config_id);
  static constexpr std::uint64_t most_cost = 8'000'000;  // token_mask::cost
  // The result of mask() if it is remembered; nullptr: call mask(), which may return nullptr. Takes no lock.
  const token_mask* mask_known(config_id) const;
  // The same by its definition: every token's bytes, one by one, from the config. For tests.
  token_mask mask_by_definition(config_id);

  // A shortest text that leads from the config to an end. nullopt: longer than `max_bytes`, or it needs a
  // token that has no text.
  std::optional<std::string> completion(config_id, std::size_t max_bytes = std::size_t{1} << 16);

  const token_trie& trie() const { return views_->trie(); }
  // Why a config is `failed`.
  std::string failure() const;
  std::size_t memo_bytes() const { return memo_bytes_.load(std::memory_order_relaxed); }
  // The only byte that can follow. nullopt: several can follow, or a token that the grammar names by its id
  // can, or the text may end, or the config is `dead` or `failed`.
  std::optional<unsigned char> only_byte(config_id);
  // The answer of may_force() (force.h), if it is remembered. Takes no lock.
  std::optional<bool> may_force_known(config_id c) const {
    const auto known = configs_[c].forces.load(std::memory_order_relaxed);
    if (known == config::forcing::unknown) return std::nullopt;
    return known == config::forcing::some;
  }
  void remember_may_force(config_id c, bool some) {
    configs_[c].forces.store(some ? config::forcing::some : config::forcing::none, std::memory_order_relaxed);
  }

  static constexpr std::size_t most_heads = 2'048;
  static constexpr std::size_t most_memo_bytes = std::size_t{64} << 20;  // of configs, stacks and terms

 private:
  struct config {
    std::vector<head> heads;  // sorted by state; each state once
    bool may_end = false;
    const regex_pool::byte_classes* classes = nullptr;  // of all heads; set before `row`
    std::atomic<std::atomic<config_id>*> row{nullptr};  // transitions, one a class of bytes
    std::atomic<config_id> near{0};                     // the config that near() gives; 0: not known yet
    std::atomic<const token_mask*> mask{nullptr};
    enum class forcing : std::uint8_t { unknown, none, some };
    std::atomic<forcing> forces{forcing::unknown};

    config() = default;
    config& operator=(config&& o) noexcept {
      heads = std::move(o.heads);
      may_end = o.may_end;
      return *this;
    }
  };
  static constexpr config_id unknown = 0xFFFF'FFFF;

  constraint(symbol_table symbols, std::shared_ptr<regex_pool>, std::shared_ptr<terminal_views>);

  config_id slow_step(config_id, unsigned char b);
  // Under mutex_.
  std::atomic<config_id>* make_row(config&);
  config_id intern(std::vector<head> heads, bool may_end);
  config_id after(stack_id);
  config_id near(config_id);
  bool over_limit();
  // Bytes of what is remembered. The terms of the grammar itself do not count.
  std::size_t remembered() const { return memo_bytes() + stacks_.bytes() + pool_->bytes() - grammar_bytes_; }

  void add_head(token_mask&, const head&);
  bool add_fixed(token_mask&, regex_id state) const;
  void walk(token_mask&, const id_tree&, config_id from);

  const symbol_table symbols_;
  std::shared_ptr<regex_pool> pool_;
  const std::size_t grammar_bytes_;  // of the pool, before any walk
  std::shared_ptr<terminal_views> views_;

  mutable std::mutex mutex_;
  stack_store stacks_;
  stable_store<config> configs_;
  id_table by_content_;
  std::vector<std::unique_ptr<std::atomic<config_id>[]>> rows_;
  std::vector<std::unique_ptr<const token_mask>> masks_;
  std::unordered_set<const token_mask*> shared_masks_;  // of masks_; their bytes are counted once
  config_id start_ = dead;
  std::atomic<std::size_t> memo_bytes_{0};
  std::string failure_;

  friend class completer;
};

}  // namespace weir::core::grammar
