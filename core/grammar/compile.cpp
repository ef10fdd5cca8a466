#include "core/grammar/compile.h"

#include <vector>

#include "core/grammar/calls.h"
#include "core/grammar/notation/gbnf.h"
#include "core/grammar/notation/lark.h"
#include "core/grammar/regex/regex.h"
#include "core/grammar/schema.h"

namespace weir::core::grammar {
namespace {

constexpr std::size_t most_choices = 10'000, most_choice_bytes = std::size_t{1} << 20;

bool looks_like_gbnf(std::string_view source) { return source.find("::=") != source.npos; }

result<part_id> write_regex(rules& r, std::string_view expression) {
  const auto language = parse_regex(r.regex(), expression);
  if (!language) {
    const auto& e = language.error();
    return bad_param("", "not a supported regular expression: {}, at byte {}", e.message, e.offset);
  }
  return r.named("", r.terminal(*language));
}

result<part_id> write_choice(rules& r, std::span<const std::string> choices) {
  if (choices.empty()) return bad_param("", "there must be at least one choice");
  if (choices.size() > most_choices)
    return bad_param("", "{} choices are more than {}", choices.size(), most_choices);
  std::size_t bytes = 0;
  for (const auto& c : choices) bytes += c.size();
  if (bytes > most_choice_bytes)
    return bad_param("", "the choices have {} bytes, which is more than {}", bytes, most_choice_bytes);
  return r.named("", r.terminal(r.regex().literals({choices.begin(), choices.end()})));
}

result<part_id> write_grammar(compiled& to, const constraint_text& c, fuel* budget) {
  if (!c.syntax.empty() && c.syntax != "gbnf" && c.syntax != "lark")
    return bad_param("", "the syntax of a grammar is gbnf or lark, not {}", c.syntax);
  const bool gbnf = c.syntax == "gbnf" || (c.syntax.empty() && looks_like_gbnf(c.text));
  return gbnf ? write_gbnf(*to.grammar, c.text) : write_lark(to, c.text, c.space, budget);
}

result<compiled> compile_kind(const constraint_text& c, fuel* budget, const tokenizer* words) {
  if (c.what == constraint_text::kind::answer) return compile_answer(*c.answer, words, budget);
  compiled out{std::make_unique<rules>(most_parts_of(c)), {}};
  const burning burns(*out.grammar, budget);
  const auto root = write_constraint(out, c, budget);
  if (!root) return root.error();
  out.grammar->set_root(*root);
  if (c.what == constraint_text::kind::json_object) out.grammar->allow_leading_space();
  return out;
}

}  // namespace

std::uint32_t most_parts_of(const constraint_text& c) {
  constexpr std::uint32_t most = 500'000;
  // A node for each byte of the tree, and a few.
  const bool choice = c.what == constraint_text::kind::choice;
  return choice ? most + static_cast<std::uint32_t>(2 * most_choice_bytes) : most;
}

result<part_id> write_constraint(compiled& to, const constraint_text& c, fuel* budget) {
  switch (c.what) {
    case constraint_text::kind::regex:
      return write_regex(*to.grammar, c.text);
    case constraint_text::kind::choice:
      return write_choice(*to.grammar, c.choices);
    case constraint_text::kind::json_object:
      return json_text(*to.grammar, c.space).object();
    case constraint_text::kind::json_schema:
      return write_schema(*to.grammar, c.text, {.strict = c.strict, .space = c.space}, to.warnings, budget);
    case constraint_text::kind::grammar:
      return write_grammar(to, c, budget);
    case constraint_text::kind::answer:
      break;
  }
  return make_error(errc::not_supported, "a constraint inside a constraint");
}

result<compiled> compile(const constraint_text& c, const tokenizer* words) {
  return compile_kind(c, nullptr, words);
}

result<compiled> compile(const constraint_text& c, fuel& budget, const tokenizer* words) {
  try {
    return compile_kind(c, &budget, words);
  } catch (const out_of_fuel& stop) {
    return stop.why;
  }
}

result<compiled> compile_regex(std::string_view expression, fuel* budget) {
  return compile_kind({.what = constraint_text::kind::regex, .text = std::string(expression)}, budget,
                      nullptr);
}

result<compiled> compile_choice(std::span<const std::string> choices, fuel* budget) {
  return compile_kind({.what = constraint_text::kind::choice, .choices = {choices.begin(), choices.end()}},
                      budget, nullptr);
}

result<compiled> compile_json_object(json_space space) {
  return compile_kind({.what = constraint_text::kind::json_object, .space = space}, nullptr, nullptr);
}

}  // namespace weir::core::grammar
