// json_field.h — a value of a JSON file with its path, so that every error names the field.
//
// Only for core/text, where loaders throw `refusal`. The public functions (load_tokenizer(),
// parse_tokenizer(), chat_template::load()) catch it and return its error. A json_field refers to the parsed
// document, which must outlive it.
//
// Thread safety: const; any thread.
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

// The exception of the loaders. `why.code` is bad_file or not_supported.
struct refusal {
  error why;
};

// Throw refusal. bad_field(): bad_file, "<path>: <what>". unsupported(): not_supported, "<path>: <what> is not
// supported yet".
[[noreturn]] void bad_field(std::string_view path, std::string_view what);
[[noreturn]] void unsupported(std::string_view path, std::string_view what);

class json_field {
 public:
  json_field(const boost::json::value& value, std::string path) : value_(&value), path_(std::move(path)) {}

  // A member of an object. Throws refusal if it is missing.
  json_field at(std::string_view key) const;
  // A member of an object; nullopt if it is missing or null.
  std::optional<json_field> find(std::string_view key) const;

  // The value. All throw refusal if it has another type, or for integer() another range.
  std::string_view text() const;
  bool boolean() const;
  std::int64_t integer(std::int64_t lowest, std::int64_t highest) const;
  double number() const;  // finite
  std::vector<json_field> items() const;
  const boost::json::array& array() const;
  const boost::json::object& object() const;
  bool is_text() const noexcept { return value_->is_string(); }
  bool is_object() const noexcept { return value_->is_object(); }
  bool is_array() const noexcept { return value_->is_array(); }

  // A member of an object; `absent` if it is missing or null.
  bool boolean_or(std::string_view key, bool absent) const;

  const std::string& path() const noexcept { return path_; }

  // The field is not what the format allows: bad_field(). It is not supported: unsupported().
  [[noreturn]] void bad(std::string_view what) const { bad_field(path_, what); }
  [[noreturn]] void refuse(std::string_view what) const { unsupported(path_, what); }

 private:
  const boost::json::value* value_;
  std::string path_;
};

// Parses a document; throws refusal if `text` is not JSON. `file`: name of the file, for the error. `where`:
// memory of the document.
boost::json::value parse_json(std::string_view text, const std::string& file, boost::json::storage_ptr where);

}  // namespace weir::core
