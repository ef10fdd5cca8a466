// json.h — functions for JSON that both protocols use: strict readers, and functions that append.
//
// Pure functions: any thread. core/read_json.h parses what a client sends. JSON that is sent for every token
// is appended to a string that the caller reuses.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "core/read_json.h"
#include "core/shortened.h"

namespace weir::net {

namespace json = boost::json;

using core::json_bounds;
using core::read_json;
using core::shortened;

// The kind of a value, for messages: "a string", "an object", …
const char* kind_of(const json::value& v);

// Strict readers. Error: invalid_param with `name`, if the value is of another kind. An integer may be
// written 5 or 5.0.
core::result<std::int64_t> read_integer(std::string_view name, const json::value& v);
core::result<double> read_number(std::string_view name, const json::value& v);
core::result<bool> read_bool(std::string_view name, const json::value& v);
core::result<std::string> read_string(std::string_view name, const json::value& v);
core::result<std::vector<std::int64_t>> read_integers(std::string_view name, const json::value& v);

// Makes bytes from outside fit for a JSON string: each byte that is not printable ASCII becomes '?', and a
// long text is cut (core/shortened.h). Text that is known to be UTF-8 needs only shortened().
std::string legible(std::string_view bytes);

// Appends `utf8` as a JSON string in quotes. Only characters that JSON demands to be escaped are escaped.
void append_json_string(std::string& out, std::string_view utf8);
// The same without the quotes: the pieces of a text, one after the other, make a string of the text. A piece
// may end inside a character.
void append_json_text(std::string& out, std::string_view utf8);
void append_number(std::string& out, std::int64_t value);
void append_number(std::string& out, std::uint64_t value);
void append_number(std::string& out, double value);  // three decimals; not finite: null

// Appends `,"key":` (without the comma after an opening bracket). REQUIRES: `key` needs no escaping.
void append_key(std::string& out, std::string_view key);
// Append a member of an object.
inline void append_text(std::string& out, std::string_view key, std::string_view utf8) {
  append_key(out, key);
  append_json_string(out, utf8);
}
inline void append_int(std::string& out, std::string_view key, std::int64_t value) {
  append_key(out, key);
  append_number(out, value);
}

// A number that is not negative.
template <class T>
void append_count(std::string& out, std::string_view key, T value) {
  append_key(out, key);
  if constexpr (std::is_floating_point_v<T>) {
    append_number(out, static_cast<double>(value));
  } else {
    append_number(out, static_cast<std::uint64_t>(value));
  }
}

// Appends an object. `members` appends its members. If the text ends with an object, the new one is the next
// element of the same list.
template <class Members>
void append_object(std::string& out, const Members& members) {
  if (out.ends_with('}')) out += ',';
  out += '{';
  members();
  out += '}';
}

// Appends an object as the member `key` of the object that is open.
template <class Members>
void append_object(std::string& out, std::string_view key, const Members& members) {
  append_key(out, key);
  append_object(out, members);
}

}  // namespace weir::net
