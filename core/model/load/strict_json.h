// strict_json.h — JSON from a file that we did not write: no repeated key, bounded depth, and readable
// accessors.
//
// Pure functions: any thread. Every error names the file (`what`) and, where there is one, the key.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"

namespace weir::core {

// A document whose top level is an object.
result<boost::json::object> parse_strict_json(std::string_view text, std::string_view what);

// Reads typed members of one object. The first mistake is kept, later ones are ignored, so that a caller
// reads everything first and looks at failure() once.
class json_reader {
 public:
  json_reader(const boost::json::object& from, std::string what) : from_(from), what_(std::move(what)) {}

  // The member, or null where it is missing or JSON's null.
  const boost::json::value* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  bool mentions(std::string_view key) const { return from_.contains(key); }  // null or not

  std::optional<std::string> text(std::string_view key);
  std::optional<bool> boolean(std::string_view key);
  std::optional<double> number(std::string_view key);                             // finite
  std::optional<std::uint32_t> count(std::string_view key, std::uint32_t limit);  // 1 … limit
  std::optional<std::uint32_t> required_count(std::string_view key, std::uint32_t limit);

  void fail(errc code, std::string message);
  const std::optional<error>& failure() const { return failure_; }
  const std::string& what() const { return what_; }

 private:
  void fail_type(std::string_view key, std::string_view wanted);

  const boost::json::object& from_;
  std::string what_;
  std::optional<error> failure_;
};

}  // namespace weir::core
