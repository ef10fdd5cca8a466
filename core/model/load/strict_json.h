// strict_json.h — reads JSON files that others wrote. A repeated key is an error, and so is nesting deeper
// than 32.
//
// Every error names the file (`what`) and, if it concerns a key, the key.
//
// Thread safety: parse_strict_json() is a pure function; any thread. A json_reader has one owner.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"

namespace weir::core {

// Parses a document whose top level is an object. Error: bad_file.
result<boost::json::object> parse_strict_json(std::string_view text, std::string_view what);

// Reads typed members of one object, which must outlive the reader. Only the first error is kept, so a caller
// can read all members and then check failure() once.
class json_reader {
 public:
  json_reader(const boost::json::object& from, std::string what) : from_(from), what_(std::move(what)) {}

  // A member; a null pointer if it is missing or null.
  const boost::json::value* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  bool mentions(std::string_view key) const { return from_.contains(key); }  // true for null too

  // The value of a member; nullopt if it is missing, null or wrong. A wrong type or range is an error, and so
  // is a missing or null member in required_count().
  std::optional<std::string> text(std::string_view key);
  std::optional<bool> boolean(std::string_view key);
  std::optional<double> number(std::string_view key);                             // finite
  std::optional<std::uint32_t> count(std::string_view key, std::uint32_t limit);  // 1 to limit
  std::optional<std::uint32_t> required_count(std::string_view key, std::uint32_t limit);

  // Records an error, unless there is one already.
  void fail(errc code, std::string message);
  const std::optional<error>& failure() const { return failure_; }
  const std::string& what() const { return what_; }

 private:
  void fail_type(std::string_view key, std::string_view wanted);

  const boost::json::object& from_;
  std::string what_;
  std::optional<error> failure_;
};

// Record an error that begins with the file's name: `thing` is not supported yet; the file is wrong in the
// way that `what` says.
void not_supported(json_reader& in, std::string_view thing);
void bad(json_reader& in, std::string_view what);

}  // namespace weir::core
