// lark_reader.h — the reader of lark.h's grammars. For lark.cpp and lark_items.cpp alone.
//
// Groups that are open lie on a stack of their own, so that nothing recurses into the source.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/grammar/notation/draft.h"
#include "core/grammar/notation/grammar_scanner.h"
#include "core/grammar/notation/lark.h"

namespace weir::core::grammar {

// Whether a name may have this character behind its first one.
inline bool in_lark_name(char c) { return is_name_letter(c) || is_decimal(c); }

class lark_reader {
 public:
  lark_reader(std::string_view source, compiled& out, json_space space, fuel* budget);

  // Throws grammar_refusal.
  void read();

 private:
  using part_ref = draft::part_ref;
  // A group that is open, or the rule itself: alternatives of conjuncts of sequences.
  struct level {
    std::size_t opened = 0;
    char closing = '\0';
    bool negated = false;  // ~ stands before the group
    std::vector<part_ref> alternatives, conjuncts, sequence;
  };

  // Statements.
  bool skip();
  void skip_blanks();
  bool at_statement();
  void statement();
  void directive();
  void import();
  void import_one(std::string_view name, std::size_t offset, std::string_view as);
  void definition();
  void define(std::string_view name, std::size_t offset);
  void define_rule(draft::rule_ref, std::size_t offset);
  void define_ignored();

  // Expansions.
  part_ref body();
  bool at_end_of_body(bool new_line);
  void end_sequence();
  void end_alternative();
  part_ref end_level();
  void open_group(bool negated);
  void close_group();
  void alias();

  // Items.
  void item();
  void add(part_ref, bool negated);
  part_ref with_counts(part_ref);
  std::optional<grammar_scanner::counts> quantifier();
  part_ref atom();
  part_ref leaf(part_ref);  // outside of terminals: the part, and ignored text behind it
  part_ref string_or_range();
  std::string string_text();
  bool ignores_case();
  part_ref expression();
  part_ref token();
  part_ref token_ids(std::size_t begin);
  part_ref json();
  part_ref name();

  grammar_scanner in_;
  compiled& out_;
  draft draft_;
  json_space space_;
  fuel* budget_;
  std::vector<level> levels_;
  std::vector<std::string> ignored_;  // names of the rules that %ignore makes
  draft::rule_ref ignore_ = 0;
  bool lexical_ = false;  // in a terminal
};

}  // namespace weir::core::grammar
