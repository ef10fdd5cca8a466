// draft.h — a grammar as its author wrote it: named rules over texts, sets of characters, tokens and calls.
//
// Both languages of grammars, GBNF (gbnf.h) and Lark (lark.h), are read into a draft; write_draft() writes it
// as rules. What is regular becomes one terminal there: a rule for a JSON string written character by
// character costs what json_text::string() costs. A called rule that repeats many characters stays a terminal
// of its own, so that its masks are shared by all places that call it.
//
// Invariants:
// 1. The parts of a part have smaller ids than that part, and belong to the same rule.
// 2. A rule may be called before it is defined; its name is unique.
//
// Thread safety: none; one thread reads and writes a draft.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/grammar/regex/code_points.h"
#include "core/grammar/rules.h"

namespace weir::core::grammar {

// Thrown where a grammar is refused. compile_gbnf() and compile_lark() catch it.
struct grammar_refusal {
  std::size_t offset = 0;  // in bytes of the source
  std::string message;     // names the construct, without the place
};

class draft {
 public:
  using part_ref = std::uint32_t;
  using rule_ref = std::uint32_t;
  enum class kind : std::uint8_t { language, written, sequence, choice, repeat, call, both, complement };

  struct part {
    kind what = kind::language;
    std::uint32_t ref = 0;           // language: regex_id; written: part_id of rules; call: rule
    std::uint32_t size = 0;          // language: roughly the places of its automaton
    bool wide = false;               // language: a set of many characters
    bool broad = false;              // language: repeats such a set
    std::uint32_t min = 0, max = 0;  // repeat
    std::vector<part_ref> parts;     // repeat, complement: one
  };
  struct rule {
    std::string name;
    std::size_t mentioned = 0;              // offset in the source: where the name stands first
    std::size_t defined = 0;                // where it is defined
    std::optional<part_ref> body;           // unset: not defined
    part_ref first_part = 0, end_part = 0;  // its parts
    bool lexical = false;                   // a terminal of Lark: must be regular
  };

  explicit draft(rules& r) : rules_(r) {}
  rules& out() { return rules_; }
  regex_pool& regex() { return rules_.regex(); }

  part_ref text(std::string_view utf8);
  part_ref one_of(const code_points&);
  part_ref language(regex_id, std::uint32_t size, bool broad = false);
  part_ref written(part_id);  // a part of out()
  part_ref sequence(std::vector<part_ref>);
  part_ref choice(std::vector<part_ref>);
  part_ref repeat(part_ref, std::uint32_t min, std::uint32_t max);  // REQUIRES: min <= max
  part_ref call(rule_ref);
  part_ref both(std::vector<part_ref>);  // intersection; in lexical rules only
  part_ref complement(part_ref);         // in all texts of whole characters; in lexical rules only

  // The rule of that name; makes the rule if the name is new. `offset`: where the name stands.
  rule_ref named(std::string_view name, std::size_t offset);
  std::optional<rule_ref> find(std::string_view name) const;
  // Parts between begin() and end() belong to the rule. REQUIRES: no body yet.
  void begin(rule_ref, std::size_t offset);
  void end(rule_ref, part_ref body);

  const part& at(part_ref p) const { return parts_[p]; }
  const std::vector<rule>& all_rules() const { return rules_list_; }
  rule& rule_at(rule_ref r) { return rules_list_[r]; }

 private:
  part_ref push(part);

  rules& rules_;
  std::vector<part> parts_;
  std::vector<rule> rules_list_;
  std::unordered_map<std::string, rule_ref> by_name_;
};

// Writes what `root` needs and sets the root of out(). `source`: for the lines of messages. Throws
// grammar_refusal: a rule that is not defined, a lexical one that calls itself, both() or complement() of
// what is not regular.
void write_draft(draft&, draft::rule_ref root, std::string_view source);

// "line 3, column 5": both counted from 1, columns in bytes.
std::string place_in(std::string_view source, std::size_t offset);

}  // namespace weir::core::grammar
