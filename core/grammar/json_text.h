// json_text.h — the pieces of JSON texts that constraints generate: white space, strings, numbers, any value.
//
// Strings: raw UTF-8, short escapes, \/, \u00XX for control characters, any \uXXXX that is no surrogate, and
// pairs of surrogates. Numbers: at most 64 digits before and after the point, 5 in the exponent. No white
// space before and after the text.
//
// Thread safety: none; one thread builds, as rules.h says.
#pragma once

#include <cstdint>
#include <span>

#include "core/grammar/rules.h"

namespace weir::core::grammar {

enum class json_space {
  bounded,  // at each place nothing, one space, or a line end with up to 64 spaces or tabs
  compact,  // none
  any,      // as JSON allows
};

// Builds parts of JSON texts into `rules`. A json_text makes each language and each rule once.
class json_text {
 public:
  json_text(rules& r, json_space space) : rules_(r), space_(space) {}

  // Languages (of rules.regex()).
  regex_id space();                                       // white space at one place; compact: the empty text
  regex_id string_character();                            // one character of a free string, in any spelling
  regex_id string();                                      // a free string with its quotes
  regex_id string(std::uint32_t min, std::uint32_t max);  // the same with a counted number of characters
  // A string whose content is a text of `content`, a language in spelling::json_string.
  regex_id string_of(regex_id content);
  regex_id number();   // any
  regex_id integer();  // without fraction and exponent, no -0
  regex_id boolean();
  regex_id comma_text();  // a comma with the white space around it

  // Parts. They do not include the white space around them, except where the comment says so.
  part_id value(std::uint32_t depth = 64);   // any value; `depth`: deepest nesting of arrays and objects
  part_id object(std::uint32_t depth = 64);  // any object
  part_id array(std::uint32_t depth = 64);
  // A member's name with its colon: `"` content `"` space `:` space, as one terminal.
  part_id name(regex_id content);
  part_id any_name() { return name_of_string(string()); }
  // Punctuation with the white space behind or before it: "{" space, space "}", space "," space, …
  part_id open(char bracket);
  part_id comma();
  part_id close(char bracket);

 private:
  part_id name_of_string(regex_id string);
  regex_id make_space();
  struct level {
    part_id value = rules::nothing, object = rules::nothing, array = rules::nothing;
  };
  const level& at_depth(std::uint32_t depth);

  rules& rules_;
  json_space space_;
  regex_id space_language_ = regex_pool::nothing, character_ = regex_pool::nothing;  // made once
  std::vector<level> levels_;                                                        // index: depth
};

}  // namespace weir::core::grammar
