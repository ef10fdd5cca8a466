// Statements and expansions. Items are in lark_items.cpp.
#include "core/grammar/notation/lark.h"

#include <algorithm>

#include "core/grammar/notation/lark_reader.h"
#include "core/grammar/regex/regex.h"

namespace weir::core::grammar {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

}  // namespace

lark_reader::lark_reader(std::string_view source, compiled& out, json_space space, fuel* budget)
    : in_(source), out_(out), draft_(*out.grammar), space_(space), budget_(budget) {
  ignore_ = draft_.named("%ignore", 0);  // no rule has such a name
}

void lark_reader::read() {
  for (skip(); in_.more(); skip()) statement();
  const auto start = draft_.find("start");
  if (!start) in_.refuse("a grammar without the rule start");
  define_ignored();
  const auto whole = draft_.named("%start", draft_.rule_at(*start).defined);
  draft_.begin(whole, draft_.rule_at(*start).defined);
  const auto before = draft_.call(ignore_), text = draft_.call(*start);
  draft_.end(whole, draft_.sequence({before, text}));
  write_draft(draft_, whole, in_.source());
}

// Skips blanks, line ends and comments. Returns whether a line end was among them.
bool lark_reader::skip() {
  bool new_line = false;
  for (;;) {
    skip_blanks();
    if (in_.take_while(is_line_end).empty()) return new_line;
    new_line = true;
  }
}

void lark_reader::skip_blanks() {
  in_.take_while(is_blank);
  if (in_.peek() == '#' || in_.looks_at("//")) in_.take_while([](char c) { return !is_line_end(c); });
}

// Whether a statement begins here: only asked behind a line end.
bool lark_reader::at_statement() {
  for (const auto* word : {"%ignore", "%import", "%declare", "%override", "%extend", "%llguidance"})
    if (in_.looks_at(word)) return true;
  const auto begin = in_.offset();
  in_.take_while([](char c) { return c == '!' || c == '?'; });
  bool out = !in_.take_while(in_lark_name).empty();
  if (out && in_.take('.')) in_.take_while([](char c) { return is_decimal(c) || c == '-'; });
  if (out && (in_.peek() == '[' || in_.peek() == '{'))
    in_.take_while([](char c) { return c != ':' && c != '"' && c != '/' && !is_line_end(c); });
  in_.take_while(is_blank);
  out = out && in_.peek() == ':';
  in_.move_to(begin);
  return out;
}

void lark_reader::statement() {
  if (in_.peek() == '%')
    directive();
  else
    definition();
}

void lark_reader::directive() {
  const auto begin = in_.offset();
  in_.take('%');
  const auto word = in_.take_while(in_lark_name);
  skip_blanks();
  if (word == "import") return import();
  if (word == "ignore") {
    ignored_.push_back(fmt::format("%ignore {}", ignored_.size() + 1));
    lexical_ = true;
    return define_rule(draft_.named(ignored_.back(), begin), begin);
  }
  in_.refuse_at(begin, "%{}", word);
}

void lark_reader::import() {
  const auto begin = in_.offset();
  if (!in_.take("common")) in_.refuse_at(begin, "an import of anything but common");
  in_.take_while(is_blank);
  if (in_.take('.')) {
    const auto at = in_.offset();
    const auto name = in_.take_while(in_lark_name);
    auto as = name;
    in_.take_while(is_blank);
    if (in_.take("->")) {
      in_.take_while(is_blank);
      as = in_.take_while(in_lark_name);
    }
    return import_one(name, at, as);
  }
  if (!in_.take('(')) in_.refuse_at(begin, "an import that is not common.NAME or common (NAMES)");
  for (;;) {
    skip();
    const auto at = in_.offset();
    const auto name = in_.take_while(in_lark_name);
    import_one(name, at, name);
    skip();
    if (in_.take(')')) return;
    if (!in_.take(',')) in_.refuse("a list of imports that is not closed");
  }
}

void lark_reader::import_one(std::string_view name, std::size_t offset, std::string_view as) {
  const auto text = lark_common(name);
  if (text.empty()) in_.refuse_at(offset, "common has no terminal \"{}\"", name);
  if (!is_terminal_name(as)) in_.refuse_at(offset, "a terminal's name, {}, that is not in capitals", as);
  const auto r = draft_.named(as, offset);
  if (draft_.rule_at(r).body) in_.refuse_at(offset, "{} is defined twice", as);
  draft_.begin(r, offset);
  draft_.rule_at(r).lexical = true;
  const auto language = parse_regex(draft_.regex(), text);
  draft_.end(r, draft_.language(*language, static_cast<std::uint32_t>(text.size())));
}

void lark_reader::definition() {
  const auto begin = in_.offset();
  in_.take_while([](char c) { return c == '!' || c == '?'; });
  const auto name = in_.take_while(in_lark_name);
  if (name.empty()) in_.refuse("a rule, a terminal or a directive was expected");
  if (in_.take('.')) {  // priority
    in_.take('-');
    if (!in_.count()) in_.refuse("a priority that is not a number");
  }
  in_.take_while(is_blank);
  if (in_.peek() == '[') in_.refuse("attributes of a rule");
  if (in_.peek() == '{') in_.refuse("templates");
  if (in_.looks_at("::")) in_.refuse("parameters of a rule");
  if (!in_.take(':')) in_.refuse("a colon was expected behind {}", name);
  define(name, begin);
}

void lark_reader::define(std::string_view name, std::size_t offset) {
  const auto r = draft_.named(name, offset);
  if (draft_.rule_at(r).body) in_.refuse_at(offset, "{} is defined twice", name);
  lexical_ = is_terminal_name(name);
  define_rule(r, offset);
}

void lark_reader::define_rule(draft::rule_ref r, std::size_t offset) {
  draft_.begin(r, offset);
  draft_.rule_at(r).lexical = lexical_;
  draft_.end(r, body());
}

// Defines the rule ignore_: any number of ignored texts.
void lark_reader::define_ignored() {
  draft_.begin(ignore_, 0);
  draft_.rule_at(ignore_).lexical = true;
  std::vector<part_ref> all;
  for (const auto& name : ignored_) all.push_back(draft_.call(draft_.named(name, 0)));
  const auto one = draft_.choice(std::move(all));
  draft_.end(ignore_, draft_.repeat(one, 0, unbounded));
}

lark_reader::part_ref lark_reader::body() {
  levels_.clear();
  levels_.push_back({in_.offset(), '\0', false, {}, {}, {}});
  for (;;) {
    if (at_end_of_body(skip())) break;
    const char c = in_.peek();
    if (in_.looks_at("->")) {
      alias();
    } else if (in_.take('|')) {
      end_alternative();
    } else if (c == '&') {
      if (!lexical_) in_.refuse("& outside of terminals");
      in_.take('&');
      end_sequence();
    } else if (c == '(' || c == '[') {
      open_group(false);
    } else if (c == ')' || c == ']') {
      close_group();
    } else {
      item();
    }
  }
  if (levels_.size() > 1) in_.refuse_at(levels_.back().opened, "a group that is not closed");
  return end_level();
}

bool lark_reader::at_end_of_body(bool new_line) {
  return !in_.more() || (new_line && levels_.size() == 1 && at_statement());
}

void lark_reader::alias() {
  in_.take("->");
  in_.take_while(is_blank);
  if (in_.take_while(in_lark_name).empty()) in_.refuse("an alias without a name");
}

void lark_reader::end_sequence() {
  auto& l = levels_.back();
  l.conjuncts.push_back(draft_.sequence(std::move(l.sequence)));
  l.sequence.clear();
}

void lark_reader::end_alternative() {
  end_sequence();
  auto& l = levels_.back();
  l.alternatives.push_back(draft_.both(std::move(l.conjuncts)));
  l.conjuncts.clear();
}

lark_reader::part_ref lark_reader::end_level() {
  end_alternative();
  const auto out = draft_.choice(std::move(levels_.back().alternatives));
  levels_.pop_back();
  return out;
}

void lark_reader::open_group(bool negated) {
  const auto at = in_.offset();
  const char closing = in_.take('(') ? ')' : (in_.take('['), ']');
  levels_.push_back({at, closing, negated, {}, {}, {}});
}

void lark_reader::close_group() {
  const char c = in_.peek();
  if (levels_.size() == 1 || levels_.back().closing != c)
    in_.refuse("{} without its opening one", c == ')' ? "a closing parenthesis" : "a closing bracket");
  in_.take(c);
  const bool negated = levels_.back().negated;
  auto group = end_level();
  if (c == ']') group = draft_.repeat(group, 0, 1);
  add(group, negated);
}

result<compiled> compile_lark(std::string_view source, json_space space, fuel* budget) {
  compiled out{std::make_unique<rules>(), {}};
  const burning burns(*out.grammar, budget);
  const auto root = write_lark(out, source, space, budget);
  if (!root) return root.error();
  return out;
}

result<part_id> write_lark(compiled& out, std::string_view source, json_space space, fuel* budget) {
  try {
    lark_reader(source, out, space, budget).read();
  } catch (const grammar_refusal& r) {
    return bad_param("", "not a supported grammar: {}, at {}", r.message, place_in(source, r.offset));
  }
  return out.grammar->root();
}

}  // namespace weir::core::grammar
