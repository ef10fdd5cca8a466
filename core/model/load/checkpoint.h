// checkpoint.h — the weights of a model directory: tensors by name, in files that stay mapped. Every
// container format is read into one.
//
// Thread safety: immutable once filled; then any thread. Error: bad_file, with the file's name in the
// message.
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
  std::string dtype;                 // as safetensors names it: F32, BF16, F16, …
  std::vector<std::uint64_t> shape;  // outermost dimension first; empty for a scalar
  std::span<const std::byte> bytes;  // in the mapped file

  std::string shape_text() const;  // "[320, 64]"
};

using tensor_map = std::map<std::string, stored_tensor, std::less<>>;

class checkpoint {
 public:
  // Adds a file and its tensors. `path`: the file's name, for errors. Error: a tensor of that name is there.
  result<void> add(mapped_file file, tensor_map tensors, std::string_view path);

  // Null if there is no tensor of this name.
  const stored_tensor* find(std::string_view name) const;
  const tensor_map& tensors() const noexcept { return tensors_; }

  // Reads to.size() bytes of a tensor, from byte `at` on, from its file as it is now. `t`: a tensor of this
  // checkpoint.
  result<void> read(const stored_tensor& t, std::uint64_t at, std::span<std::byte> to) const;

 private:
  std::vector<mapped_file> files_;
  tensor_map tensors_;
};

}  // namespace weir::core
