// checkpoint.h — the weights of a model: tensors by name, in files that stay open. Every container format
// is read into one. The names are Hugging Face's, whatever the container calls the tensors.
//
// Thread safety: immutable once filled; then any thread. Error: bad_file, with the file's name in the
// message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/model/load/opened_file.h"
#include "kernels/file_codes.h"

namespace weir::core {

class checkpoint;

// A rectangle of a converted tensor, and the bytes that read_part() makes of it.
struct tensor_part {
  std::uint32_t row = 0, rows = 0, column = 0, columns = 0;
  std::uint64_t bytes = 0;
};

// Makes the bytes of a tensor that no file contains from tensors that files contain: as blocks, or as codes
// that a device packs by itself (backend::do_begin_pack).
class converted_tensor {
 public:
  virtual ~converted_tensor() = default;
  // As checkpoint::read(). REQUIRES: `at` and the size of `to` are whole blocks of the tensor's type
  virtual result<void> read(const checkpoint& from, std::uint64_t at, std::span<std::byte> to) const = 0;

  // Parts that cover the first `rows` rows, each of about `most` bytes, or of a few rows where these are
  // more. Tensors of plain types have none: no device packs them.
  virtual std::vector<tensor_part> parts(std::uint32_t rows, std::uint64_t most) const;
  // Reads a part to part.bytes bytes at `to`, to which the result points. Errors: those of read(), and
  // bad_file for a scale that is not finite. REQUIRES: `to` begins at a multiple of 4 bytes
  virtual result<kernels::file_codes> read_part(const checkpoint& from, const tensor_part& part,
                                                std::span<std::byte> to) const;
};

struct stored_tensor {
  std::string dtype;                 // as the container names it: F32, BF16, F16, Q4_K, …
  std::vector<std::uint64_t> shape;  // outermost dimension first; empty for a scalar
  std::span<const std::byte> bytes;  // as in opened_file::bytes()
  // Not 0: the file has the rows of each of this many heads in another order, in which rows of the first half
  // and rows of the second half alternate: of all rows of a head, or of its first paired_rows where that is
  // not 0. checkpoint::read() puts them in order.
  std::uint32_t paired_heads = 0, paired_rows = 0;
  // Not null: `bytes` is empty, and `dtype` is a name of kernels::dtype.
  std::shared_ptr<const converted_tensor> made_by;
  // The input of each column of a converted matrix; null: column c is of input c. The bytes have a column for
  // each entry, which may be more columns than inputs; `shape` has the number of inputs.
  std::shared_ptr<const std::vector<std::uint32_t>> inputs;
  // shape[0] may be larger than the model's number of rows: that number is rounded up to a multiple of this.
  std::uint32_t row_unit = 1;

  std::string shape_text() const;  // "[320, 64]"
};

using tensor_map = std::map<std::string, stored_tensor, std::less<>>;

class checkpoint {
 public:
  // Adds a file and its tensors. `path`: the file's name, for errors. Error: a name that is there already.
  result<void> add(opened_file file, tensor_map tensors, std::string_view path);

  // Puts `tensor` in the place of the tensors `parts`, of which it is made and which can no longer be found.
  // Error: bad_file if another tensor has the name.
  result<void> replace(std::span<const std::string> parts, const std::string& name, stored_tensor tensor);

  // Removes tensors: find() no longer finds them.
  void remove(std::span<const std::string> names);

  // Gives every tensor the name that `name_of` makes of its name; tensors for which it is empty are removed.
  // Error: bad_file if two tensors get one name.
  result<void> rename(const std::function<std::string(std::string_view)>& name_of);

  // Says that rows of a tensor's heads alternate (stored_tensor::paired_heads). A tensor [heads, head_dim]
  // becomes the vector of its elements. Error: not_supported for a converted tensor; bad_file for a shape
  // that is no whole number of such heads. No effect if there is no tensor of this name.
  result<void> pair_rows(std::string_view name, std::uint32_t heads, std::uint32_t rows);

  // Null if there is no tensor of this name.
  const stored_tensor* find(std::string_view name) const;
  const tensor_map& tensors() const noexcept { return tensors_; }

  // Reads to.size() bytes of a tensor, from byte `at` on, from its file as it is now. `t`: a tensor of this
  // checkpoint. REQUIRES: its rows are a multiple of 2 * paired_heads
  result<void> read(const stored_tensor& t, std::uint64_t at, std::span<std::byte> to) const;

  // For errors: how the files spell a tensor's name, and the name of what describes the model. Without
  // call_by() these are the name itself and config.json.
  using spelling = std::function<std::string(std::string_view name)>;
  void call_by(spelling names, std::string_view description) noexcept {
    spelling_ = std::move(names);
    description_ = description;
  }
  // Names are put through `names` first.
  void call_also(spelling names);
  std::string spelled(std::string_view name) const { return spelling_ ? spelling_(name) : std::string(name); }
  std::string_view described_by() const noexcept { return description_; }

 private:
  result<void> read_paired(const stored_tensor& t, std::uint64_t row, std::span<std::byte> to) const;
  result<void> read_bytes(const stored_tensor& t, std::uint64_t at, std::span<std::byte> to) const;

  spelling spelling_;
  std::string_view description_ = "config.json";
  std::vector<opened_file> files_;
  tensor_map tensors_;
};

}  // namespace weir::core
