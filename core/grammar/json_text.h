// json_text.h — the pieces of JSON texts that constraints generate: white space, strings, numbers, any value.
//
// Other notations spell strings, names and words differently (value_notation), and the rest alike.
//
// Strings: raw UTF-8, short escapes, \/, \u00XX for control characters, any \uXXXX that is no surrogate, and
// pairs of surrogates. Numbers: at most 64 digits before and after the point, 5 in the exponent. No white
// space before and after the text.
//
// Thread safety: none; one thread builds, as rules.h says.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/grammar/regex/code_points.h"
#include "core/grammar/rules.h"

namespace weir::core::grammar {

enum class json_space {
  bounded,  // at each place nothing, one space, or a line end with up to 64 spaces or tabs
  compact,  // none
  any,      // as JSON allows
};

// How values are spelled. What models write beside JSON has the same values, numbers and brackets.
struct value_notation {
  enum class kind : std::uint8_t {
    json,
    python,  // True, False, None; in strings no \/ and no pairs of \u
    quoted,  // strings are plain text between two of `quote`; names that are plain words have no quotes
  } what = kind::json;
  part_id quote = rules::nothing;  // quoted
  std::string never = {};          // bytes that no string has, but constants; empty: strings have any

  bool quotes() const noexcept { return what == kind::quoted; }
  // How declared names, constants, and strings with a pattern are spelled.
  spelling text() const noexcept { return quotes() ? spelling::plain : spelling::json_string; }
};

// Builds parts of JSON texts into `rules`. A json_text makes each language and each rule once.
class json_text {
 public:
  json_text(rules& r, json_space space, value_notation how = {})
      : rules_(r), space_(space), how_(std::move(how)) {}

  // Languages (of rules.regex()).
  regex_id space();                                       // white space at one place; compact: the empty text
  regex_id string_character();                            // one character of a free string, in any spelling
  regex_id string();                                      // a free string with its quotes
  regex_id string(std::uint32_t min, std::uint32_t max);  // the same with a counted number of characters
  // A string whose content is a text of `content`, a language in spelling::json_string. Not of `quoted`, like
  // string(), whose strings are parts.
  regex_id string_of(regex_id content);
  regex_id number();   // any
  regex_id integer();  // without fraction and exponent, no -0
  regex_id boolean();
  std::string_view word(bool truth) const;
  std::string_view null() const;
  regex_id comma_text();  // a comma with the white space around it

  // Parts. They do not include the white space around them, except where the comment says so.
  part_id value(std::uint32_t depth = 64);   // any value; `depth`: deepest nesting of arrays and objects
  part_id object(std::uint32_t depth = 64);  // any object
  part_id array(std::uint32_t depth = 64);
  // A string whose content is a text of `content`, a language in the notation's spelling.
  part_id string_part(regex_id content);
  // A free string with a counted number of characters.
  part_id string_of_length(std::uint32_t min, std::uint32_t max);
  // A member's name with its colon: `"` content `"` space `:` space, as one terminal where strings are.
  // `quoted`: of infinitely many names those of at most 64 characters, without < and [.
  part_id name(regex_id content);
  part_id name_of(std::string_view utf8);
  part_id any_name();
  // Punctuation with the white space behind or before it: "{" space, space "}", space "," space, …
  part_id open(char bracket);
  part_id comma();
  part_id close(char bracket);

 private:
  part_id name_of_string(regex_id string);
  part_id colon();
  regex_id plain_names();
  regex_id escaped_character();
  regex_id allowed(regex_id content);
  part_id scalar();
  regex_id make_space();
  struct level {
    part_id value = rules::nothing, object = rules::nothing, array = rules::nothing;
  };
  const level& at_depth(std::uint32_t depth);

  rules& rules_;
  json_space space_;
  const value_notation how_;
  regex_id space_language_ = regex_pool::nothing, character_ = regex_pool::nothing;  // made once
  std::vector<level> levels_;                                                        // index: depth
};

}  // namespace weir::core::grammar
