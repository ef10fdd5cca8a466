// rules.h — the one form of a constraint that every front end writes: JSON Schema, regular expressions, lists
// of choices, grammars.
//
// A constraint is a context-free grammar. Its terminals are regular languages of bytes (regex_pool.h) and
// sets of token ids. A text is allowed if some derivation spells it: every reading is kept, and no terminal
// is matched longest. So a grammar may be ambiguous, left-recursive, and nullable anywhere.
//
// What front ends may assume:
// - Two equal parts have one id. Parts and rules belong to their `rules` object.
// - Nothing here fails. If a limit was exceeded, failure() says which: call it once, at the end.
// - A count of repeat() is a counter: {0,1000000} costs what {0,1} costs. The same holds for
//   regex_pool::repeat().
// - What a vocabulary can do inside a terminal is remembered for each terminal, and shared between jobs and
//   constraints. So make one terminal of what belongs together and occurs everywhere: a whole JSON string
//   with its quotes, a number, `"name":` with its space. Do not make one terminal of a whole object.
// - Rules that no text can satisfy may be written: compilation removes them. If no text can satisfy the root,
//   compilation fails with an error that names the place (`where`) of the cause.
// - A rule may be called before it is defined. Recursion needs a rule; anything else may be a part.
//
// Thread safety: none; one thread builds it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.h"
#include "core/grammar/id_table.h"
#include "core/grammar/regex/regex_pool.h"
#include "core/token.h"

namespace weir::core::grammar {

using part_id = std::uint32_t;
using rule_id = std::uint32_t;

// One token by its id, or by what the vocabulary calls it ("<|python_tag|>").
using token_name = std::variant<token_id, std::string>;

class rules {
 public:
  static constexpr part_id nothing = 0;  // matches no text
  static constexpr part_id empty = 1;    // matches the empty text

  // At most `max_parts` parts and as many nodes of regular languages.
  explicit rules(std::uint32_t max_parts = 500'000);

  regex_pool& regex() { return *pool_; }
  // From now on, making parts and terms burns this fuel, which throws out_of_fuel; nullptr: it burns nothing.
  void use(fuel* budget) {
    pool_->use(budget);
    budget_ = budget;
  }
  void burn(std::uint64_t units = 1) const {
    if (budget_) budget_->burn(units);
  }
  const regex_pool& regex() const { return *pool_; }

  // Parts.
  part_id terminal(regex_id language);                 // of regex()
  part_id literal(std::string_view bytes);             // terminal(regex().literal(bytes))
  part_id tokens(std::vector<token_name> which);       // exactly one token, one of these
  part_id no_token_of(std::vector<token_name> which);  // exactly one token, none of these and no ending token
  part_id sequence(std::span<const part_id> parts);
  part_id sequence(std::initializer_list<part_id> parts) { return sequence(std::span(parts)); }
  part_id choice(std::span<const part_id> parts);  // of none: nothing
  part_id choice(std::initializer_list<part_id> parts) { return choice(std::span(parts)); }
  part_id repeat(part_id, std::uint32_t min, std::uint32_t max);  // `unbounded` as max; REQUIRES: min <= max
  part_id maybe(part_id p) { return repeat(p, 0, 1); }
  part_id any_number(part_id p) { return repeat(p, 0, unbounded); }
  part_id call(rule_id);

  // Rules. `where`: the place in the client's constraint, for messages, such as a JSON pointer or "line 3,
  // column 5".
  rule_id declare(std::string where);
  void define(rule_id, part_id);  // REQUIRES: not defined yet
  bool defined(rule_id r) const { return rules_[r].defined; }
  const std::string& where(rule_id r) const { return rules_[r].where; }
  // declare() and define() in one; for a place that messages may name.
  part_id named(std::string where, part_id);

  void set_root(part_id p) { root_ = p; }
  // For JSON: one space may stand before the root if the tokenizer puts a space before a text, as those with
  // a metaspace vocabulary do.
  void allow_leading_space() { leading_space_ = true; }
  bool leading_space() const { return leading_space_; }

  // Which limit was exceeded, for a message; empty: none.
  std::string failure() const;

  // What compilation reads.
  enum class kind : std::uint8_t { nothing, empty, terminal, tokens, sequence, choice, repeat, call };
  struct part {
    kind what = kind::nothing;
    std::uint32_t ref = 0;  // terminal: regex_id; tokens: index for token_set(); call: rule_id; repeat: part
    std::uint32_t min = 0, max = 0;  // repeat
    std::vector<part_id> parts;      // sequence, choice
    friend bool operator==(const part&, const part&) = default;
  };
  struct token_set_names {
    std::vector<token_name> names;
    bool negated = false;
    friend bool operator==(const token_set_names&, const token_set_names&) = default;
    friend auto operator<=>(const token_set_names&, const token_set_names&) = default;
  };
  struct rule {
    std::string where;
    part_id body = nothing;
    bool defined = false;
  };
  const part& at(part_id p) const { return parts_[p]; }
  const rule& rule_at(rule_id r) const { return rules_[r]; }
  const token_set_names& token_set(std::uint32_t i) const { return token_sets_[i]; }
  std::uint32_t part_count() const { return static_cast<std::uint32_t>(parts_.size()); }
  std::uint32_t rule_count() const { return static_cast<std::uint32_t>(rules_.size()); }
  part_id root() const { return root_; }
  // The pool of regex(), which the compiled grammar keeps.
  std::shared_ptr<regex_pool> share_regex() const { return pool_; }

 private:
  part_id intern(part);
  part_id token_part(std::vector<token_name> which, bool negated);

  std::shared_ptr<regex_pool> pool_;
  std::vector<part> parts_;
  std::vector<rule> rules_;
  std::vector<token_set_names> token_sets_;
  id_table known_;  // parts, by content
  std::map<token_set_names, std::uint32_t> known_sets_;
  part_id root_ = nothing;
  fuel* budget_ = nullptr;
  std::uint32_t max_parts_;
  bool too_many_ = false, leading_space_ = false;
};

// While this object lives, work on the rules burns a budget: rules::use().
class burning {
 public:
  burning(rules& r, fuel* budget) : rules_(r) { rules_.use(budget); }
  ~burning() { rules_.use(nullptr); }
  burning(const burning&) = delete;
  burning& operator=(const burning&) = delete;

 private:
  rules& rules_;
};

// A part of a schema that was relaxed to a superset, for `warnings` of the answer.
struct warning {
  std::string where;    // JSON pointer
  std::string message;  // names the keyword and what is not enforced
};

// The result of a front end.
struct compiled {
  std::unique_ptr<rules> grammar;
  std::vector<warning> warnings;
};

}  // namespace weir::core::grammar
