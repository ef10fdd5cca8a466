// regex.h — reads regular expressions: the regular part of ECMA-262 with the flag u.
//
// Supported: literals, `.`, classes, \d \w \s and capitals, \xHH \uHHHH \u{…} \cX \t \n \r \f \v \0, \p{…}
// for general categories and scripts, groups of every spelling, (?i) and (?s) also for a group, * + ? {m,n}
// greedy or lazy, ^ and $ anywhere, \b \B, and look-ahead at the start of an anchored branch. Also supported
// are escapes that the flag u forbids but people write: an escaped punctuation character, and \a \e \A \z \Z
// as other engines read them. Refused by name, with the offset: back-references, look-behind, look-ahead
// elsewhere, (?m), recursion, atomic groups and possessive quantifiers, nesting over 200.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <boost/system/result.hpp>

#include "core/grammar/regex/code_points.h"
#include "core/grammar/regex/regex_pool.h"

namespace weir::core::grammar {

struct regex_options {
  // search: the language of all texts in which the expression matches somewhere (JSON Schema's `pattern`).
  // whole: the language of the texts that it matches from beginning to end (field `regex`, Lark's terminals).
  enum class match { search, whole } how = match::whole;
  spelling as = spelling::plain;  // how the language spells characters
  bool ignore_case = false;       // as (?i) before the whole expression
  bool dot_all = false;           // as (?s)
  std::size_t max_bytes = 64 * 1024;
};

struct regex_error {
  std::size_t offset = 0;  // in bytes of the expression
  std::string message;     // names the construct, without the offset
};

// The language of an expression, as a term of the pool. It holds whole characters alone, never half of one.
boost::system::result<regex_id, regex_error> parse_regex(regex_pool&, std::string_view expression,
                                                         const regex_options& = {});

// Every text of whole characters in a spelling: what a complement is intersected with.
regex_id any_text(regex_pool&, spelling = spelling::plain);
// The texts of `min` to `max` characters. REQUIRES: min <= max; `max` may be `unbounded`.
regex_id text_of_length(regex_pool&, std::uint32_t min, std::uint32_t max, spelling = spelling::plain);

}  // namespace weir::core::grammar

namespace boost::system {
[[noreturn]] inline void throw_exception_from_error(const weir::core::grammar::regex_error& e,
                                                    const boost::source_location&) {
  throw std::runtime_error(e.message);
}
}  // namespace boost::system
