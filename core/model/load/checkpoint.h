// checkpoint.h — the weights of a model: tensors by name, in files that stay mapped. Every container format
// is read into one. The names are Hugging Face's, whatever the container calls the tensors.
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
  std::string dtype;                 // as the container names it: F32, BF16, F16, Q4_K, …
  std::vector<std::uint64_t> shape;  // outermost dimension first; empty for a scalar
  std::span<const std::byte> bytes;  // in the mapped file
  // Where it is not 0, the file has the rows of each of this many heads in another order: first half and
  // second half of a head's rows alternate. checkpoint::read() puts them in order.
  std::uint32_t paired_heads = 0;

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
  // checkpoint. REQUIRES: its rows are a multiple of 2 * paired_heads
  result<void> read(const stored_tensor& t, std::uint64_t at, std::span<std::byte> to) const;

  // For errors: how the files spell a name, and what describes the model. Without call_by() that is the name
  // itself, and config.json.
  using spelling = std::string (*)(std::string_view name);
  void call_by(spelling names, std::string_view description) noexcept {
    spelling_ = names;
    description_ = description;
  }
  std::string spelled(std::string_view name) const { return spelling_ ? spelling_(name) : std::string(name); }
  std::string_view described_by() const noexcept { return description_; }

 private:
  result<void> read_bytes(const stored_tensor& t, std::uint64_t at, std::span<std::byte> to) const;

  spelling spelling_ = nullptr;
  std::string_view description_ = "config.json";
  std::vector<mapped_file> files_;
  tensor_map tensors_;
};

}  // namespace weir::core
