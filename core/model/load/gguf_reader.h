// gguf_reader.h — reads typed values of a GGUF file's keys.
//
// Thread safety: one owner.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/load/gguf.h"

namespace weir::core {

// Only the first error is kept, so a caller can read all values and then check failure() once. `from` must
// outlive the reader; `what`: name of the file, for errors.
class gguf_reader {
 public:
  gguf_reader(const gguf_keys& from, std::string what) : from_(from), what_(std::move(what)) {}

  const gguf_value* find(std::string_view key) const;

  // The value of a key; nullopt if it is missing or wrong. A wrong type or range is an error.
  std::optional<std::string_view> text(std::string_view key);
  std::optional<bool> boolean(std::string_view key);
  std::optional<double> number(std::string_view key);  // finite
  // 0 to limit. An array, one item for each layer, counts as one number if all items are equal.
  std::optional<std::uint32_t> count(std::string_view key, std::uint32_t limit);
  const std::vector<std::string_view>* texts(std::string_view key);  // null: missing or wrong
  const gguf_array* numbers(std::string_view key);                   // null: missing or wrong

  // Records an error, unless there is one already.
  void fail(errc code, std::string message);
  void missing(std::string_view key);
  const std::optional<error>& failure() const { return failure_; }
  const std::string& what() const { return what_; }
  const gguf_keys& keys() const { return from_; }

 private:
  void fail_type(std::string_view key, std::string_view wanted);

  const gguf_keys& from_;
  std::string what_;
  std::optional<error> failure_;
};

// The keys of one architecture, "NAME.…", without the name. `in` must outlive them.
class architecture_keys {
 public:
  architecture_keys(gguf_reader& in, std::string_view name) : in_(in), prefix_(std::string(name) + ".") {}

  const std::string& prefix() const { return prefix_; }
  std::string full(std::string_view key) const { return prefix_ + std::string(key); }

  const gguf_value* find(std::string_view key) const { return in_.find(full(key)); }
  std::optional<std::string_view> text(std::string_view key) { return in_.text(full(key)); }
  std::optional<bool> boolean(std::string_view key) { return in_.boolean(full(key)); }
  std::optional<double> number(std::string_view key) { return in_.number(full(key)); }
  std::optional<std::uint32_t> count(std::string_view key, std::uint32_t limit) {
    return in_.count(full(key), limit);
  }
  void missing(std::string_view key) { in_.missing(full(key)); }
  // Records that this value of a key is not supported. `value`: behind the key, in words.
  void refuse(std::string_view key, std::string_view value);

  gguf_reader& reader() { return in_; }

 private:
  gguf_reader& in_;
  std::string prefix_;
};

}  // namespace weir::core
