// safetensors.h — the format that Hugging Face stores weights in: an 8-byte length, a JSON header, then the
// tensors.
//
// parse_safetensors and parse_shard_index are pure functions over foreign bytes; checkpoint keeps the files
// of one model directory mapped. Thread safety: immutable once opened; any thread.
//
// Invariants of a parsed file:
//   1. Every tensor's bytes lie inside the file, and their number is its shape times its element's size.
//   2. Tensors do not overlap and leave no gap: together they are all of the file after the header.
//   3. No name occurs twice, in one file or in two shards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/model/load/mapped_file.h"

namespace weir::core {

struct stored_tensor {
  std::string dtype;                 // as the header spells it: F32, BF16, F16, …
  std::vector<std::uint64_t> shape;  // outermost first; empty for a scalar
  std::span<const std::byte> bytes;  // inside the file

  std::string shape_text() const;  // "[320, 64]"
};

using tensor_map = std::map<std::string, stored_tensor, std::less<>>;

// `file` is the whole file; `what` names it in errors.
result<tensor_map> parse_safetensors(std::span<const std::byte> file, std::string_view what);

// model.safetensors.index.json: which shard holds which tensor. A shard is a plain file name, never a path.
result<std::map<std::string, std::string>> parse_shard_index(std::string_view text, std::string_view what);

// All tensors of a model directory: model.safetensors, or model.safetensors.index.json and its shards.
class checkpoint {
 public:
  static result<checkpoint> open(const std::string& dir);

  const stored_tensor* find(std::string_view name) const;
  const tensor_map& tensors() const noexcept { return tensors_; }

  // Bytes `at` and on of one of these tensors, read from its file now; the error names the file. Any thread.
  result<void> read(const stored_tensor& t, std::uint64_t at, std::span<std::byte> to) const;

 private:
  result<void> open_file(const std::string& path);
  result<void> open_shards(const std::string& dir, const std::string& index_path);

  std::vector<mapped_file> files_;
  tensor_map tensors_;
};

}  // namespace weir::core
