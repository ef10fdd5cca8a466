// gbnf.h — reads grammars in GBNF, the notation of llama.cpp.
//
// Supported: `name ::= …` with the rule `root`, literals and classes with \xHH \uHHHH \UHHHHHHHH and escaped
// punctuation, `.`, groups, `|`, * + ? {m} {m,} {m,n}, comments, token terminals <name>, <[id]> and !<…>. A
// rule may be called before it is defined, may call itself anywhere, and goes on over line ends until the
// next `name ::=`. Refused by name: xgrammar's options of rules, look-ahead and functions, a rule that is
// defined twice or not at all, more than 256 KiB.
//
// A grammar means the plain context-free language over Unicode text: every reading is kept.
//
// Thread safety: pure function; any thread.
#pragma once

#include <string_view>

#include "core/grammar/fuel.h"
#include "core/grammar/rules.h"

namespace weir::core::grammar {

// Errors: invalid_param; the message ends with line and column.
// Work burns `budget`, which throws out_of_fuel.
result<compiled> compile_gbnf(std::string_view source, fuel* budget = nullptr);

// Writes the grammar into rules that also have other parts, and sets their root.
result<part_id> write_gbnf(rules&, std::string_view source);

}  // namespace weir::core::grammar
