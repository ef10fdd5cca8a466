// calls.h — the grammar of an answer that may have reasoning and calls of tools, made from the description of
// the model's format (core/text/answer/format.h), from which the reader of answers is made as well.
//
// A mark of the format that is one token of the vocabulary is written by this token alone. Other spellings
// are text. White space is what the description has; inside JSON it is as in a schema.
//
// - `automatic`: free text, and calls where their opening stands. With a constraint on the text, an answer is
//   calls, or a text that follows the constraint.
// - `none`: no opening of calls.
// - `required`: calls alone.
// - In each case reasoning may stand before. The opening of a call in reasoning ends the reasoning.
//
// The arguments of all tools follow their schemas. What cannot be enforced is refused for a strict tool, and
// relaxed for another, with a warning.
//
// Thread safety: plain data; pure functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/grammar/compile.h"
#include "core/text/answer/format.h"
#include "core/text/answer/tools.h"

namespace weir::core::grammar {

struct call_rules {
  std::string format;  // name in call_formats(); empty: no calls
  reasoning_format reasoning;
  envelope messages = envelope::none;
  tool_wishes tools;
  bool begins_in_reasoning = false;                   // the prompt ends inside reasoning
  std::optional<std::uint32_t> max_reasoning_tokens;  // between the marks; where it is reached, they close
  std::optional<constraint_text> text;                // of the answer's text; never of the kind `answer`
  // The client's names of `text`, for errors, and of the maximum. Warnings of `text` have the place in it
  // alone, as where nothing but the text has rules.
  std::string text_param, budget_param;
};

// Whether these rules ask anything of an answer.
bool needs_constraint(const call_rules&);

// `words`: the vocabulary; null: no mark is one token of it. Errors: invalid_param and not_supported. Work
// burns `budget`, which throws out_of_fuel.
result<compiled> compile_answer(const call_rules&, const tokenizer* words, fuel* budget = nullptr);

}  // namespace weir::core::grammar
