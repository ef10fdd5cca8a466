// lark.h — reads grammars in Lark's notation: the part of it that has a meaning without a parse tree.
//
// Supported: rules and TERMINALS, `start`; "…" and "…"i, /…/ with the flags i s u, "a".."z", groups, [x],
// ? * + ~n ~n..m {n} {n,} {,n} {n,m}, `|`, comments, `%ignore`, `%import common.X`, %json {…}, the tokens
// <name>, <[1,5-9]>, <[^1]> and <[*]>; in terminals also & (both) and ~ (none of). Priorities, aliases and
// the signs ! and ? before a rule change nothing. Refused by name: attributes, parameters and templates of
// rules, %regex, %declare, %override, %extend, other imports, the regular expression flags l m x.
//
// A grammar means the plain context-free language over Unicode text: every reading is kept, no terminal is
// matched longest, and a lazy quantifier means the same as a greedy one. Ignored text may stand before the
// text and behind every terminal.
//
// Thread safety: pure function; any thread.
#pragma once

#include <string_view>

#include "core/grammar/fuel.h"
#include "core/grammar/json_text.h"
#include "core/grammar/rules.h"

namespace weir::core::grammar {

// `space`: of %json. Errors: invalid_param; the message ends with line and column. Work burns `budget`, which
// throws out_of_fuel.
result<compiled> compile_lark(std::string_view source, json_space space = json_space::bounded,
                              fuel* budget = nullptr);

// Writes the grammar into rules that also have other parts, and sets their root.
result<part_id> write_lark(compiled& to, std::string_view source, json_space space, fuel* budget);

// A terminal of `%import common.NAME`, as a regular expression; empty: there is none.
std::string_view lark_common(std::string_view name);

}  // namespace weir::core::grammar
