#include "core/model/load/checkpoint.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

namespace weir::core {
namespace {

constexpr std::uint64_t most_paired = 1u << 16;  // bytes that are read at once, of rows that alternate

// Where the file has row `row` of a tensor of paired heads.
std::uint64_t row_in_file(const stored_tensor& t, std::uint64_t row) {
  const std::uint64_t head = t.shape[0] / t.paired_heads, in_head = row % head;
  const std::uint64_t paired = t.paired_rows ? t.paired_rows : head;
  if (in_head >= paired) return row;
  return row - in_head + 2 * (in_head % (paired / 2)) + in_head / (paired / 2);
}

// How many rows from `row` on are every second one in the file, and fit a buffer with the rows between them.
std::uint64_t run_of(const stored_tensor& t, std::uint64_t row, std::uint64_t row_bytes) {
  const std::uint64_t head = t.shape[0] / t.paired_heads, in_head = row % head;
  const std::uint64_t paired = t.paired_rows ? t.paired_rows : head;
  if (in_head >= paired) return 1;
  return std::min(paired / 2 - in_head % (paired / 2), (most_paired / row_bytes + 1) / 2);
}

}  // namespace

std::vector<tensor_part> converted_tensor::parts(std::uint32_t, std::uint64_t) const { return {}; }

result<kernels::file_codes> converted_tensor::read_part(const checkpoint&, const tensor_part&,
                                                        std::span<std::byte>) const {
  return make_error(errc::internal, "a tensor of a plain type has no parts");
}

std::string stored_tensor::shape_text() const { return fmt::format("[{}]", fmt::join(shape, ", ")); }

result<void> checkpoint::add(opened_file file, tensor_map tensors, std::string_view path) {
  for (auto& [name, tensor] : tensors)
    if (!tensors_.emplace(name, std::move(tensor)).second)
      return make_error(errc::bad_file, "{}: tensor '{}' is in another shard too", path, name);
  files_.push_back(std::move(file));
  return {};
}

result<void> checkpoint::replace(std::span<const std::string> parts, const std::string& name,
                                 stored_tensor tensor) {
  remove(parts);
  if (!tensors_.emplace(name, std::move(tensor)).second)
    return make_error(errc::bad_file, "tensor '{}' is there both plain and quantised", name);
  return {};
}

void checkpoint::remove(std::span<const std::string> names) {
  for (const std::string& name : names) tensors_.erase(name);
}

result<void> checkpoint::rename(const std::function<std::string(std::string_view)>& name_of) {
  tensor_map renamed;
  for (auto& [name, tensor] : tensors_) {
    std::string now = name_of(name);
    if (now.empty()) continue;
    if (!renamed.emplace(now, std::move(tensor)).second)
      return make_error(errc::bad_file, "tensor '{}' is there under two names", now);
  }
  tensors_ = std::move(renamed);
  return {};
}

result<void> checkpoint::pair_rows(std::string_view name, std::uint32_t heads, std::uint32_t rows) {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return {};
  stored_tensor& t = found->second;
  if (t.made_by)
    return make_error(errc::not_supported,
                      "tensor '{}': a quantised linear whose heads turn neighbours is not supported yet",
                      spelled(name));
  if (t.shape.size() == 2 && t.shape[0] == heads && t.shape[1] % 2 == 0 && t.shape[0] * t.shape[1] > heads &&
      name.ends_with("_norm.weight"))
    t.shape = {t.shape[0] * t.shape[1]};
  const std::uint64_t head = t.shape.empty() ? 0 : t.shape[0] / heads;
  if (head == 0 || t.shape[0] % heads != 0 || head % 2 != 0 || rows > head)
    return make_error(errc::bad_file, "tensor '{}' is {} in the file, which is not {} heads", spelled(name),
                      t.shape_text(), heads);
  t.paired_heads = heads;
  t.paired_rows = rows;
  return {};
}

const stored_tensor* checkpoint::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

result<void> checkpoint::read(const stored_tensor& t, std::uint64_t at, std::span<std::byte> to) const {
  if (t.made_by) return t.made_by->read(*this, at, to);
  if (t.paired_heads == 0) return read_bytes(t, at, to);
  const std::uint64_t row_bytes = t.bytes.size() / t.shape[0];
  while (!to.empty()) {
    const std::uint64_t in_row = at % row_bytes, row = at / row_bytes;
    const std::uint64_t whole = in_row ? 0 : std::min(to.size() / row_bytes, run_of(t, row, row_bytes));
    std::uint64_t count = std::min<std::uint64_t>(row_bytes - in_row, to.size());
    if (whole > 1) count = whole * row_bytes;
    const auto ok = whole > 1 ? read_paired(t, row, to.first(count))
                              : read_bytes(t, row_in_file(t, row) * row_bytes + in_row, to.first(count));
    if (!ok) return ok;
    at += count;
    to = to.subspan(count);
  }
  return {};
}

// Rows that are every second one in the file.
result<void> checkpoint::read_paired(const stored_tensor& t, std::uint64_t row,
                                     std::span<std::byte> to) const {
  const std::uint64_t row_bytes = t.bytes.size() / t.shape[0], rows = to.size() / row_bytes;
  std::array<std::byte, most_paired> both;
  const auto some = std::span(both).first((2 * rows - 1) * row_bytes);
  if (auto ok = read_bytes(t, row_in_file(t, row) * row_bytes, some); !ok) return ok;
  for (std::uint64_t i = 0; i < rows; ++i)
    std::memcpy(to.data() + i * row_bytes, some.data() + 2 * i * row_bytes, row_bytes);
  return {};
}

void checkpoint::call_also(spelling names) {
  spelling_ = [before = std::move(spelling_), names = std::move(names)](std::string_view name) {
    const std::string then = names(name);
    return before ? before(then) : then;
  };
}

result<void> checkpoint::read_bytes(const stored_tensor& t, std::uint64_t at, std::span<std::byte> to) const {
  for (const opened_file& f : files_)
    if (f.has(t.bytes)) return f.read(t.bytes, at, to);
  return make_error(errc::internal, "a tensor of another checkpoint");
}

}  // namespace weir::core
