// code_points.h — sets of Unicode code points, and the bytes that spell them.
//
// Thread safety: plain data; pure functions; any thread. Sets of properties are remembered under a mutex.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/grammar/regex/regex_pool.h"

namespace weir::core::grammar {

// A set of Unicode scalar values (surrogates are never in it): sorted ranges that do not touch.
class code_points {
 public:
  struct range {
    char32_t first = 0, last = 0;
    friend bool operator==(const range&, const range&) = default;
  };

  code_points() = default;
  code_points(char32_t first, char32_t last) { add(first, last); }
  static code_points all();
  static code_points of(std::u32string_view characters);

  void add(char32_t first, char32_t last);
  void add(const code_points&);
  code_points negated() const;
  code_points intersected(const code_points&) const;
  code_points without(const code_points& o) const { return intersected(o.negated()); }
  // The set, and every code point that differs from a member in case alone (Unicode's simple case folding).
  code_points any_case() const;

  bool contains(char32_t) const;
  bool empty() const { return ranges_.empty(); }
  std::span<const range> ranges() const& { return ranges_; }
  std::span<const range> ranges() && = delete;  // they would not outlive the set
  friend bool operator==(const code_points&, const code_points&) = default;

 private:
  std::vector<range> ranges_;
};

// \d, \w, \s and `.` of ECMA-262. The dot leaves out the line terminators.
const code_points& ecma_digits();
const code_points& ecma_word();
const code_points& ecma_space();
const code_points& ecma_dot();
// \p{…}: a general category, a script or a binary property, by the names that ECMA-262 allows ("L", "Letter",
// "gc=Nd", "Script=Greek", "Alphabetic"). nullopt: an unknown name, or a property that PCRE2 does not have.
std::optional<code_points> unicode_property(std::string_view name);

// How a character is written.
enum class spelling {
  plain,        // its UTF-8
  json_string,  // inside a JSON string, in the one way that declared names and patterns are generated: raw
                // UTF-8; a short escape where JSON demands an escape and has one; \u00xx for other control
                // characters
};

// One character of the set, in that spelling.
regex_id one_of(regex_pool&, const code_points&, spelling = spelling::plain);
// A text in that spelling; invalid UTF-8 is spelled byte by byte as it is.
std::string spelled(std::string_view utf8, spelling);

}  // namespace weir::core::grammar
