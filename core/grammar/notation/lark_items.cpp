// Items of expansions: strings, expressions, tokens, names, and how often each comes.
#include <algorithm>

#include "core/grammar/notation/lark_reader.h"
#include "core/grammar/regex/regex.h"
#include "core/grammar/schema.h"
#include "core/text/tokenizer/unicode.h"

namespace weir::core::grammar {
namespace {

constexpr std::size_t most_ids = 300'000;  // of one set of tokens

}  // namespace

void lark_reader::item() {
  const bool negated = in_.peek() == '~';
  if (negated && !lexical_) in_.refuse("~ outside of terminals");
  if (in_.take('~')) in_.take_while([](char c) { return c == ' ' || c == '\t'; });
  if (in_.peek() == '(' || in_.peek() == '[') return open_group(negated);
  add(atom(), negated);
}

// Adds a part that was read to the current sequence, with the quantifiers behind it.
void lark_reader::add(part_ref p, bool negated) {
  p = with_counts(p);
  if (negated) p = draft_.complement(p);
  levels_.back().sequence.push_back(p);
}

lark_reader::part_ref lark_reader::with_counts(part_ref p) {
  for (;;) {
    const auto before = in_.offset();
    in_.take_while([](char c) { return c == ' ' || c == '\t'; });
    const auto n = quantifier();
    if (!n) {
      in_.move_to(before);
      return p;
    }
    p = draft_.repeat(p, n->min, n->max);
  }
}

// ? * + ~n ~n..m {n} {n,} {,n} {n,m}
std::optional<grammar_scanner::counts> lark_reader::quantifier() {
  using counts = grammar_scanner::counts;
  const auto at = in_.offset();
  if (in_.take('?')) return counts{0, 1};
  if (in_.take('*')) return counts{0, unbounded};
  if (in_.take('+')) return counts{1, unbounded};
  if (in_.take('{')) {
    in_.take_while([](char c) { return c == ' ' || c == '\t'; });
    if (!in_.take(',')) return in_.counts_in_braces();
    in_.take_while([](char c) { return c == ' ' || c == '\t'; });
    const auto max = in_.count();
    if (!max || !in_.take('}')) in_.refuse_at(at, "a count in braces that is not {{n}}, {{n,}} or {{n,m}}");
    return counts{0, *max};
  }
  if (!in_.take('~')) return std::nullopt;
  in_.take_while([](char c) { return c == ' ' || c == '\t'; });
  const auto min = in_.count();
  if (!min) return std::nullopt;  // ~ of a terminal that follows
  auto max = min;
  if (in_.take("..")) max = in_.count();
  if (!max || *max < *min) in_.refuse_at(at, "a count that is not ~n or ~n..m");
  return counts{*min, *max};
}

lark_reader::part_ref lark_reader::leaf(part_ref p) {
  return lexical_ ? p : draft_.sequence({p, draft_.call(ignore_)});
}

lark_reader::part_ref lark_reader::atom() {
  const char c = in_.peek();
  if (c == '"') return leaf(string_or_range());
  if (c == '/') return leaf(expression());
  if (c == '<') return leaf(token());
  if (c == '@') in_.refuse("references to other grammars (@name)");
  if (c == '%') {
    if (in_.looks_at("%json")) return leaf(json());
    const auto at = in_.offset();
    in_.take('%');
    in_.refuse_at(at, "%{}", in_.take_while(in_lark_name));
  }
  return name();
}

lark_reader::part_ref lark_reader::name() {
  const auto at = in_.offset();
  const auto text = in_.take_while(in_lark_name);
  if (text.empty() || is_decimal(text[0])) in_.refuse_at(at, "a string, a terminal or a rule was expected");
  if (in_.looks_at("::")) in_.refuse("parameters of a rule");
  const bool terminal = is_terminal_name(text);
  if (lexical_ && !terminal) in_.refuse_at(at, "the rule {} in a terminal", text);
  const auto call = draft_.call(draft_.named(text, at));
  return terminal ? leaf(call) : call;
}

// The text of a string that begins here, at its first quote.
std::string lark_reader::string_text() {
  const auto begin = in_.offset();
  in_.take('"');
  std::string out;
  while (!in_.take('"')) {
    if (!in_.more() || is_line_end(in_.peek())) in_.refuse_at(begin, "a string that is not closed");
    append_utf8(out, in_.take('\\') ? in_.escape() : in_.raw_character());
  }
  return out;
}

// Takes the flag i behind a string, if it is there.
bool lark_reader::ignores_case() { return in_.peek() == 'i' && !in_lark_name(in_.peek(1)) && in_.take('i'); }

lark_reader::part_ref lark_reader::string_or_range() {
  const auto begin = in_.offset();
  const auto text = string_text();
  const bool any_case = ignores_case();
  const bool range = in_.take("..");
  if (!range && !any_case) return draft_.text(text);
  const auto one_character = [&](std::string_view s) {
    if (s.empty() || character_size(s[0]) != s.size())
      in_.refuse_at(begin, "a range whose ends are not one character each");
    return take_character(s);
  };
  if (range) {
    if (in_.peek() != '"') in_.refuse("a range without its end");
    const auto first = one_character(text), last = one_character(string_text());
    if (last < first) in_.refuse_at(begin, "a range of characters in the wrong order");
    const code_points all(first, last);
    return draft_.one_of(any_case || ignores_case() ? all.any_case() : all);
  }
  std::vector<regex_id> letters;
  for (std::string_view rest = text; !rest.empty();) {
    const auto c = take_character(rest);
    letters.push_back(one_of(draft_.regex(), code_points(c, c).any_case()));
  }
  return draft_.language(draft_.regex().concat(letters), static_cast<std::uint32_t>(text.size()));
}

// /…/flags
lark_reader::part_ref lark_reader::expression() {
  const auto begin = in_.offset();
  in_.take('/');
  while (in_.peek() != '/') {
    if (!in_.more() || is_line_end(in_.peek())) in_.refuse_at(begin, "an expression that is not closed");
    if (in_.take('\\') && (!in_.more() || is_line_end(in_.peek())))
      in_.refuse_at(begin, "an expression that is not closed");
    in_.move_to(in_.offset() + 1);
  }
  const auto text = in_.from(begin + 1);
  in_.take('/');
  regex_options how;
  while (is_name_letter(in_.peek())) {
    const auto at = in_.offset();
    if (in_.take('i'))
      how.ignore_case = true;
    else if (in_.take('s'))
      how.dot_all = true;
    else if (!in_.take('u'))
      in_.refuse_at(at, "the flag {} of an expression", in_.peek());
  }
  const auto language = parse_regex(draft_.regex(), text, how);
  if (!language)
    in_.refuse_at(begin + 1 + std::min(language.error().offset, text.size()), "{} in an expression",
                  language.error().message);
  const bool broad = text.find_first_of("*+{") != text.npos && text.find_first_of(".^\\") != text.npos;
  return draft_.language(*language, static_cast<std::uint32_t>(text.size()), broad);
}

// <name>, <[1,5-9]>, <[^1]>, <[*]>
lark_reader::part_ref lark_reader::token() {
  const auto begin = in_.offset();
  if (lexical_) in_.refuse("a token in a terminal");
  in_.take('<');
  if (in_.take('[')) return token_ids(begin);
  in_.take_while([](char c) { return c != '>' && c != ' ' && !is_line_end(c); });
  if (!in_.take('>')) in_.refuse_at(begin, "a token's name that is not closed");
  return draft_.written(draft_.out().tokens({std::string(in_.from(begin))}));
}

lark_reader::part_ref lark_reader::token_ids(std::size_t begin) {
  std::vector<token_name> ids;
  const bool all = in_.take('*');
  const bool negated = !all && in_.take('^');
  while (!all) {
    const auto first = in_.count();
    auto last = first;
    if (first && in_.take('-')) last = in_.count();
    if (!last || *last < *first || *last > INT32_MAX)
      in_.refuse_at(begin, "ids of tokens that are not <[1,5-9]>, <[^1]> or <[*]>");
    if (*last - *first >= most_ids - ids.size())
      in_.refuse_at(begin, "a set of more than {} tokens", most_ids);
    draft_.out().burn(1 + (*last - *first) / 16);
    for (auto id = *first; id <= *last; ++id) ids.emplace_back(static_cast<token_id>(id));
    if (!in_.take(',')) break;
  }
  if (!in_.take("]>")) in_.refuse_at(begin, "ids of tokens that are not <[1,5-9]>, <[^1]> or <[*]>");
  auto& out = draft_.out();
  return draft_.written(all || negated ? out.no_token_of(std::move(ids)) : out.tokens(std::move(ids)));
}

// %json {…}: the object's text, up to its last brace.
lark_reader::part_ref lark_reader::json() {
  const auto begin = in_.offset();
  if (lexical_) in_.refuse("%json in a terminal");
  in_.take("%json");
  skip();
  const auto first = in_.offset();
  if (in_.peek() != '{') in_.refuse("%json without an object behind it");
  std::size_t depth = 0;
  do {
    if (!in_.more()) in_.refuse_at(begin, "%json whose object is not closed");
    const char c = in_.peek();
    if (c == '"') {
      in_.take('"');
      while (in_.more() && in_.peek() != '"') in_.move_to(in_.offset() + (in_.peek() == '\\' ? 2 : 1));
    }
    if (c == '{') ++depth;
    if (c == '}') --depth;
    in_.move_to(in_.offset() + 1);
  } while (depth > 0);
  if (in_.offset() > in_.source().size()) in_.refuse_at(begin, "%json whose object is not closed");
  const auto part =
      write_schema(draft_.out(), in_.from(first), {.strict = false, .space = space_}, out_.warnings, budget_);
  if (!part) in_.refuse_at(begin, "%json {}: {}", part.error().param, part.error().message);
  return draft_.written(*part);
}

}  // namespace weir::core::grammar
