#include "core/grammar/notation/gbnf.h"

#include <array>
#include <string>
#include <vector>

#include "core/grammar/notation/draft.h"
#include "core/grammar/notation/grammar_scanner.h"
#include "core/text/tokenizer/unicode.h"

namespace weir::core::grammar {
namespace {

using part_ref = draft::part_ref;

bool in_name(char c) { return is_name_letter(c) || is_decimal(c) || c == '-'; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }

class gbnf_reader {
 public:
  gbnf_reader(std::string_view source, rules& out) : in_(source), draft_(out) {}

  void read() {
    for (skip(); in_.more(); skip()) rule();
    const auto root = draft_.find("root");
    if (!root) in_.refuse("a grammar without the rule root");
    write_draft(draft_, *root, in_.source());
  }

 private:
  // A group that is open, or the rule itself.
  struct level {
    std::size_t opened = 0;
    std::vector<part_ref> alternatives, sequence;
  };

  // Skips blanks, line ends and comments. Returns whether a line end was among them.
  bool skip() {
    bool new_line = false;
    for (;;) {
      in_.take_while(is_blank);
      if (in_.peek() == '#') in_.take_while([](char c) { return !is_line_end(c); });
      if (in_.take_while(is_line_end).empty()) return new_line;
      new_line = true;
    }
  }

  bool at_rule() {
    const auto begin = in_.offset();
    const bool named = !in_.take_while(in_name).empty();
    in_.take_while(is_blank);
    const bool out = named && in_.looks_at("::=");
    in_.move_to(begin);
    return out;
  }

  void rule() {
    const auto begin = in_.offset();
    const auto name = in_.take_while(in_name);
    if (name.empty()) in_.refuse("a rule's name was expected");
    in_.take_while(is_blank);
    if (in_.peek() == '[' || in_.peek() == '{' || in_.peek() == '(') in_.refuse("options of a rule");
    if (!in_.take("::=")) in_.refuse("::= was expected behind the rule's name {}", name);
    const auto r = draft_.named(name, begin);
    if (draft_.rule_at(r).body) in_.refuse_at(begin, "the rule {} is defined twice", name);
    draft_.begin(r, begin);
    draft_.end(r, body());
  }

  part_ref body() {
    levels_.clear();
    levels_.push_back({in_.offset(), {}, {}});
    for (;;) {
      const bool new_line = skip();
      const bool inside = levels_.size() > 1;
      if (!in_.more() || (new_line && !inside && at_rule())) break;
      if (in_.take('|')) {
        end_alternative();
      } else if (in_.peek() == '(') {
        if (in_.looks_at("(=")) in_.refuse("look-ahead (= …)");
        levels_.push_back({in_.offset(), {}, {}});
        in_.take('(');
      } else if (in_.peek() == ')') {
        if (!inside) in_.refuse("a closing parenthesis without its opening one");
        in_.take(')');
        const auto group = end_level();
        levels_.back().sequence.push_back(group);
      } else if (!quantifier()) {
        const auto p = item();
        levels_.back().sequence.push_back(p);
      }
    }
    if (levels_.size() > 1) in_.refuse_at(levels_.back().opened, "a group that is not closed");
    return end_level();
  }

  void end_alternative() {
    auto& l = levels_.back();
    l.alternatives.push_back(draft_.sequence(std::move(l.sequence)));
    l.sequence.clear();
  }

  part_ref end_level() {
    end_alternative();
    const auto out = draft_.choice(std::move(levels_.back().alternatives));
    levels_.pop_back();
    return out;
  }

  // Reads a quantifier and applies it to the part before it. Returns false if there is none here.
  bool quantifier() {
    const auto at = in_.offset();
    grammar_scanner::counts n{0, unbounded};
    if (in_.take('+'))
      n.min = 1;
    else if (in_.take('?'))
      n.max = 1;
    else if (in_.take('{'))
      n = in_.counts_in_braces();
    else if (!in_.take('*'))
      return false;
    auto& sequence = levels_.back().sequence;
    if (sequence.empty()) in_.refuse_at(at, "a quantifier with nothing to repeat");
    sequence.back() = draft_.repeat(sequence.back(), n.min, n.max);
    return true;
  }

  part_ref item() {
    const auto begin = in_.offset();
    if (in_.take('"')) return literal(begin);
    if (in_.take('[')) return draft_.one_of(character_class(begin));
    if (in_.take('.')) return draft_.one_of(code_points::all());
    if (in_.peek() == '<' || (in_.peek() == '!' && in_.peek(1) == '<')) return token();
    const auto name = in_.take_while(in_name);
    if (name.empty()) in_.refuse("a literal, a class, a token, a group or a rule's name was expected");
    if (in_.peek() == '(' && is_function(name)) in_.refuse_at(begin, "xgrammar's function {}", name);
    return draft_.call(draft_.named(name, begin));
  }

  static bool is_function(std::string_view name) {
    return name == "TagDispatch" || name == "TokenTagDispatch" || name == "Token" || name == "ExcludeToken";
  }

  part_ref literal(std::size_t begin) {
    std::string text;
    while (!in_.take('"')) {
      if (!in_.more() || is_line_end(in_.peek())) in_.refuse_at(begin, "a literal that is not closed");
      append_utf8(text, in_.take('\\') ? in_.escape() : in_.raw_character());
    }
    return draft_.text(text);
  }

  code_points character_class(std::size_t begin) {
    const bool negated = in_.take('^');
    code_points set;
    const auto one = [&] { return in_.take('\\') ? in_.escape() : in_.raw_character(); };
    while (!in_.take(']')) {
      if (!in_.more() || is_line_end(in_.peek())) in_.refuse_at(begin, "a class that is not closed");
      draft_.out().burn(1 + set.ranges().size() / 1'024);
      const auto at = in_.offset();
      const auto first = one();
      if (in_.peek() != '-' || in_.peek(1) == ']') {
        set.add(first, first);
        continue;
      }
      in_.take('-');
      if (!in_.more()) in_.refuse_at(begin, "a class that is not closed");
      const auto last = one();
      if (last < first) in_.refuse_at(at, "a range of characters in the wrong order");
      set.add(first, last);
    }
    return negated ? set.negated() : set;
  }

  // <name>, <[id]>, and the same with ! before it.
  part_ref token() {
    const bool negated = in_.take('!');
    const auto begin = in_.offset();
    in_.take('<');
    token_name name;
    if (in_.take('[')) {
      const auto id = in_.count();
      if (!id || *id > INT32_MAX || !in_.take("]>")) in_.refuse_at(begin, "a token that is not <[id]>");
      name = static_cast<token_id>(*id);
    } else {
      in_.take_while([](char c) { return c != '>' && !is_line_end(c); });
      if (!in_.take('>')) in_.refuse_at(begin, "a token's name that is not closed");
      name = std::string(in_.from(begin));
    }
    auto& out = draft_.out();
    return draft_.written(negated ? out.no_token_of({name}) : out.tokens({name}));
  }

  grammar_scanner in_;
  draft draft_;
  std::vector<level> levels_;
};

}  // namespace

result<compiled> compile_gbnf(std::string_view source, fuel* budget) {
  compiled out{std::make_unique<rules>(), {}};
  const burning burns(*out.grammar, budget);
  const auto root = write_gbnf(*out.grammar, source);
  if (!root) return root.error();
  return out;
}

result<part_id> write_gbnf(rules& out, std::string_view source) {
  try {
    gbnf_reader(source, out).read();
  } catch (const grammar_refusal& r) {
    return bad_param("", "not a supported grammar: {}, at {}", r.message, place_in(source, r.offset));
  }
  return out.root();
}

}  // namespace weir::core::grammar
