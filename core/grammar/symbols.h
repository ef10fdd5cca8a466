// symbols.h — the compiled form of rules, which the walk over stacks reads: symbols and dots.
//
// A `dot` is a place in a sequence: the symbol that comes there, how often, and the dot behind it. Sequences
// with equal ends share the dots of these ends. Symbols that no text satisfies are left out, and so are the
// alternatives that contain them.
//
// Thread safety: immutable once made; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/grammar/masks/token_trie.h"
#include "core/grammar/rules.h"

namespace weir::core::grammar {

using symbol_id = std::uint32_t;
using dot_id = std::uint32_t;

inline constexpr dot_id dot_end = 0;     // the sequence is over
inline constexpr dot_id dot_accept = 1;  // the text may end

struct symbol {
  enum class kind : std::uint8_t { rule, terminal, tokens } what = kind::rule;
  bool nullable = false;
  regex_id language = 0;             // terminal
  std::uint32_t set = 0;             // tokens: index in token_sets
  std::vector<dot_id> alternatives;  // rule: first dot of each
};

struct dot {
  symbol_id what = 0;
  std::uint32_t min = 1, max = 1;  // how often; min is 0 where the symbol is nullable
  dot_id next = dot_end;
};

struct symbol_table {
  std::vector<symbol> symbols;
  std::vector<dot> dots;                          // the first two are dot_end and dot_accept
  dot_id start = dot_end;                         // of the root's sequence
  std::vector<std::vector<token_id>> token_sets;  // sorted ids that are allowed
};

// Which parts some text satisfies, by part, whatever the vocabulary. Burns the fuel of the rules.
std::vector<bool> satisfiable_parts(const rules&);

// `ending`: tokens that end a text; no negated set of tokens has them.
// Errors: invalid_param: no text satisfies the root (the message names the place of the cause), a token that
// the vocabulary does not have, or too many parts. Burns the fuel of the rules.
result<symbol_table> make_symbols(const rules&, const token_trie&, const std::vector<token_id>& ending);

}  // namespace weir::core::grammar
