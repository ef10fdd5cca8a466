// json.h — the little JSON that both protocols share: strict readers, and a string escaper.
//
// Pure functions: any thread. What a client sends is read by core/read_json.h; what is sent for every token
// is written by hand, appending to a string that the caller reuses.
#pragma once

#include <boost/json/value.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/outside.h"
#include "core/read_json.h"

namespace weir::net {

namespace json = boost::json;

using core::json_bounds;
using core::read_json;
using core::shortened;

// What `v` is, for people: "a string", "an object", …
const char* kind_of(const json::value& v);

// Strict readers: a value of another kind is invalid_param naming `name`. An integer may be written 5 or 5.0.
core::result<std::int64_t> read_integer(std::string_view name, const json::value& v);
core::result<double> read_number(std::string_view name, const json::value& v);
core::result<bool> read_bool(std::string_view name, const json::value& v);
core::result<std::string> read_string(std::string_view name, const json::value& v);
core::result<std::vector<std::int64_t>> read_integers(std::string_view name, const json::value& v);

// `bytes` that came from outside, fit for a JSON string: what is not printable ASCII becomes '?', and what is
// longer than a name may be is cut (core/outside.h). What is known to be UTF-8 is only shortened().
std::string legible(std::string_view bytes);

// Appends `utf8` as a JSON string with its quotes; only what JSON demands is escaped.
void append_json_string(std::string& out, std::string_view utf8);
void append_number(std::string& out, std::int64_t value);
void append_number(std::string& out, std::uint64_t value);
void append_number(std::string& out, double value);  // three decimals; not finite: null

// Appends `,"key":` (without the comma after an opening bracket). REQUIRES: `key` needs no escaping.
void append_key(std::string& out, std::string_view key);

// Appends an object, whose members `members` appends; after another object, the next one of its list.
template <class Members>
void append_object(std::string& out, const Members& members) {
  if (out.ends_with('}')) out += ',';
  out += '{';
  members();
  out += '}';
}

// The same as the member `key` of what is open.
template <class Members>
void append_object(std::string& out, std::string_view key, const Members& members) {
  append_key(out, key);
  append_object(out, members);
}

}  // namespace weir::net
