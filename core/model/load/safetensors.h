// safetensors.h — reads the format in which Hugging Face stores weights: an 8-byte length, a JSON header,
// then the tensors.
//
// The content of the files is not trusted: whatever it is, parsing ends with a result or an error.
//
// Thread safety: parse_safetensors() and parse_shard_index() are pure functions; a checkpoint is immutable
// once opened; any thread. Error: bad_file, with the file's name in the message.
//
// Invariants of a parsed file:
//   1. Every tensor's bytes are inside the file. Their number is the product of its shape and element size.
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
  std::string dtype;                 // as in the header: F32, BF16, F16, …
  std::vector<std::uint64_t> shape;  // outermost dimension first; empty for a scalar
  std::span<const std::byte> bytes;  // in the mapped file

  std::string shape_text() const;  // "[320, 64]"
};

using tensor_map = std::map<std::string, stored_tensor, std::less<>>;

// `file`: content of the whole file, to which the result refers. `what`: its name, for errors.
result<tensor_map> parse_safetensors(std::span<const std::byte> file, std::string_view what);

// Parses model.safetensors.index.json: the shard of each tensor. A shard is a file name, never a path.
result<std::map<std::string, std::string>> parse_shard_index(std::string_view text, std::string_view what);

// All tensors of a model directory: of model.safetensors if it exists, else of model.safetensors.index.json
// and its shards. The files stay mapped while the checkpoint lives.
class checkpoint {
 public:
  static result<checkpoint> open(const std::string& dir);

  // Null if there is no tensor of this name.
  const stored_tensor* find(std::string_view name) const;
  const tensor_map& tensors() const noexcept { return tensors_; }

  // Reads to.size() bytes of a tensor, from byte `at` on, from its file as it is now. `t`: a tensor of this
  // checkpoint.
  result<void> read(const stored_tensor& t, std::uint64_t at, std::span<std::byte> to) const;

 private:
  result<void> open_file(const std::string& path);
  result<void> open_shards(const std::string& dir, const std::string& index_path);

  std::vector<mapped_file> files_;
  tensor_map tensors_;
};

}  // namespace weir::core
