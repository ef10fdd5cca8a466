// json_field.h — a value of a JSON file and where it stands, so that every complaint names its field.
//
// For the loaders of this room only: what is wrong leaves as a `refusal`, which each of the room's doors
// turns into a result. Views a parsed document that must outlive it.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace weir::core {

struct refusal {
  error why;
};

class json_field {
 public:
  json_field(const boost::json::value& value, std::string path) : value_(&value), path_(std::move(path)) {}

  // An object's member; find gives nothing where it is absent or null.
  json_field at(std::string_view key) const;
  std::optional<json_field> find(std::string_view key) const;

  std::string_view text() const;
  bool boolean() const;
  std::int64_t integer(std::int64_t lowest, std::int64_t highest) const;
  std::vector<json_field> items() const;
  const boost::json::array& array() const;
  const boost::json::object& object() const;
  bool is_text() const noexcept { return value_->is_string(); }
  bool is_object() const noexcept { return value_->is_object(); }
  bool is_array() const noexcept { return value_->is_array(); }

  // A member with the value that stands for its absence.
  bool boolean_or(std::string_view key, bool absent) const;

  const std::string& path() const noexcept { return path_; }

  [[noreturn]] void bad(std::string_view what) const;     // not what the format says
  [[noreturn]] void refuse(std::string_view what) const;  // "<what> is not supported yet"

 private:
  const boost::json::value* value_;
  std::string path_;
};

// The whole document, kept by the caller; `file` starts every path.
boost::json::value parse_json(std::string_view text, const std::string& file, boost::json::storage_ptr where);

}  // namespace weir::core
