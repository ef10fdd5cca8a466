// foreign_value.h — JSON of values that a model wrote in another notation: literals of Python, Gemma's
// values, and texts of parameters.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::core {

// Makes text of the inside of a JSON string that comes character by character. The escapes are those of JSON;
// half of a surrogate pair alone becomes U+FFFD.
class string_reader {
 public:
  void take(char c, std::string& out);

 private:
  enum class place : std::uint8_t { plain, escape, hex } at_ = place::plain;
  void give(char c, std::string& out);
  void give_unit(std::string& out);
  std::uint32_t code_ = 0, digits_ = 0, high_ = 0;  // high_: the first half of a pair; 0: none
};

// Appends the inside of a JSON string: `utf8` with what JSON asks to be escaped.
void append_escaped(std::string& out, std::string_view utf8);
// Appends a code point as UTF-8. REQUIRES: it is a character's.
void append_code_point(std::string& out, std::uint32_t code);
// The text of the inside of a JSON string, as string_reader makes it.
std::string unescaped(std::string_view inside);
// `utf8` as a JSON string.
std::string json_string(std::string_view utf8);

// The JSON of a literal of Python: a string, a number, True, False, None, a list, a tuple or a dict.
// nullopt: the text is no such literal, or is nested deeper than 64.
std::optional<std::string> json_of_python(std::string_view literal);
// The JSON of a value as Gemma 4 writes it, in which strings stand between two of `quote`.
std::optional<std::string> json_of_gemma(std::string_view value, std::string_view quote);

// The types that a schema names, as bits; 0: it names none, so that any is one of them.
using json_types = unsigned;
inline constexpr json_types json_text_type = 1;

// The types of a tool's parameters.
class parameter_types {
 public:
  // `schema`: of the object of all parameters, as JSON; empty: any.
  explicit parameter_types(std::string_view schema);
  json_types of(std::string_view parameter) const;

 private:
  boost::json::value properties_;
};

// The JSON of the text of a parameter: the text itself where it is JSON of one of these types, else a string.
std::string json_of_parameter(std::string_view text, json_types wanted);

}  // namespace weir::core
