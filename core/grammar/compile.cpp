#include "core/grammar/compile.h"

#include <vector>

#include "core/grammar/notation/gbnf.h"
#include "core/grammar/notation/lark.h"
#include "core/grammar/regex/regex.h"
#include "core/grammar/schema.h"

namespace weir::core::grammar {
namespace {

constexpr std::size_t most_choices = 10'000, most_choice_bytes = std::size_t{1} << 20;

bool looks_like_gbnf(std::string_view source) { return source.find("::=") != source.npos; }

result<compiled> compile_kind(const constraint_text& c, fuel* budget) {
  switch (c.what) {
    case constraint_text::kind::regex:
      return compile_regex(c.text, budget);
    case constraint_text::kind::choice:
      return compile_choice(c.choices, budget);
    case constraint_text::kind::json_object:
      return compile_json_object(c.space);
    case constraint_text::kind::json_schema:
      return compile_schema(c.text, {.strict = c.strict, .space = c.space}, budget);
    case constraint_text::kind::grammar:
      break;
  }
  if (!c.syntax.empty() && c.syntax != "gbnf" && c.syntax != "lark")
    return bad_param("", "the syntax of a grammar is gbnf or lark, not {}", c.syntax);
  const bool gbnf = c.syntax == "gbnf" || (c.syntax.empty() && looks_like_gbnf(c.text));
  if (gbnf) return compile_gbnf(c.text, budget);
  return compile_lark(c.text, c.space, budget);
}

}  // namespace

result<compiled> compile(const constraint_text& c) { return compile_kind(c, nullptr); }

result<compiled> compile(const constraint_text& c, fuel& budget) {
  try {
    return compile_kind(c, &budget);
  } catch (const out_of_fuel& stop) {
    return stop.why;
  }
}

result<compiled> compile_regex(std::string_view expression, fuel* budget) {
  compiled out{std::make_unique<rules>(), {}};
  const burning burns(*out.grammar, budget);
  const auto language = parse_regex(out.grammar->regex(), expression);
  if (!language) {
    const auto& e = language.error();
    return bad_param("", "not a supported regular expression: {}, at byte {}", e.message, e.offset);
  }
  out.grammar->set_root(out.grammar->named("", out.grammar->terminal(*language)));
  return out;
}

result<compiled> compile_choice(std::span<const std::string> choices, fuel* budget) {
  if (choices.empty()) return bad_param("", "there must be at least one choice");
  if (choices.size() > most_choices)
    return bad_param("", "{} choices are more than {}", choices.size(), most_choices);
  std::size_t bytes = 0;
  for (const auto& c : choices) bytes += c.size();
  if (bytes > most_choice_bytes)
    return bad_param("", "the choices have {} bytes, which is more than {}", bytes, most_choice_bytes);
  // A node for each byte of the tree, and a few.
  compiled out{std::make_unique<rules>(static_cast<std::uint32_t>(2 * most_choice_bytes + 2'000)), {}};
  auto& r = *out.grammar;
  const burning burns(r, budget);
  r.set_root(r.named("", r.terminal(r.regex().literals({choices.begin(), choices.end()}))));
  return out;
}

result<compiled> compile_json_object(json_space space) {
  compiled out{std::make_unique<rules>(), {}};
  json_text json(*out.grammar, space);
  out.grammar->set_root(json.object());
  out.grammar->allow_leading_space();
  return out;
}

}  // namespace weir::core::grammar
