// compile.h — the front ends that need no language of their own: a regular expression, a list of choices, any
// JSON object.
//
// Errors: invalid_param; `param` is empty, for the caller knows the field's name; a regular expression's
// message ends with the offset.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/grammar/json_text.h"
#include "core/grammar/rules.h"

namespace weir::core::grammar {

// The text is matched from beginning to end.
result<compiled> compile_regex(std::string_view expression);
// The text is one of 1 to 10,000 strings, together at most 1 MiB. Equal ones are one.
result<compiled> compile_choice(std::span<const std::string> choices);
// The text is any JSON object.
result<compiled> compile_json_object(json_space space = json_space::bounded);

}  // namespace weir::core::grammar
