// compile.h — makes rules of a constraint as a client sends it, whatever its kind.
//
// Errors: invalid_param or not_supported. `param` says where in the constraint, as a JSON pointer, or is
// empty: the caller knows the field's name and puts it in front. A regular expression's message ends with the
// offset.
//
// With a budget, work burns fuel (fuel.h). Two errors of fuel say nothing about the constraint:
// errc::overloaded and errc::unavailable.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/grammar/fuel.h"
#include "core/grammar/json_text.h"
#include "core/grammar/rules.h"
#include "core/text/tokenizer/tokenizer.h"

namespace weir::core::grammar {

struct call_rules;  // calls.h

struct constraint_text {
  enum class kind { json_schema, regex, grammar, choice, json_object, answer } what = kind::json_object;
  std::string text;                  // json_schema: JSON as it was sent; regex, grammar: the source
  std::vector<std::string> choices;  // choice
  std::string syntax;                // grammar: "gbnf", "lark"; empty: GBNF where a line has `::=`, else Lark
  json_space space = json_space::bounded;
  bool strict = false;  // json_schema: what cannot be enforced is refused, not relaxed
  // answer: an answer with calls of tools and reasoning. `param` of its errors, and `where` of warnings of
  // tools, begin with the client's name of what is to blame.
  std::shared_ptr<const call_rules> answer = {};
};
// `words`: the vocabulary, in which marks of an answer may be one token; null: none is.
result<compiled> compile(const constraint_text&, const tokenizer* words = nullptr);
result<compiled> compile(const constraint_text&, fuel& budget, const tokenizer* words = nullptr);

// Writes a constraint as a part of rules that also have other parts, whose root means nothing then. Burns
// `budget`, which throws out_of_fuel. REQUIRES: its kind is not `answer`.
result<part_id> write_constraint(compiled& to, const constraint_text&, fuel* budget);
// Most nodes that the rules of these choices need.
std::uint32_t most_parts_of(const constraint_text&);

// The text is matched from beginning to end.
result<compiled> compile_regex(std::string_view expression, fuel* budget = nullptr);
// The text is one of 1 to 10,000 strings, together at most 1 MiB. Equal ones are one.
result<compiled> compile_choice(std::span<const std::string> choices, fuel* budget = nullptr);
// The text is any JSON object.
result<compiled> compile_json_object(json_space space = json_space::bounded);

}  // namespace weir::core::grammar
