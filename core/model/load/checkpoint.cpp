#include "core/model/load/checkpoint.h"

#include <functional>

namespace weir::core {

std::string stored_tensor::shape_text() const { return fmt::format("[{}]", fmt::join(shape, ", ")); }

result<void> checkpoint::add(mapped_file file, tensor_map tensors, std::string_view path) {
  for (auto& [name, tensor] : tensors)
    if (!tensors_.emplace(name, std::move(tensor)).second)
      return make_error(errc::bad_file, "{}: tensor '{}' is in another shard too", path, name);
  files_.push_back(std::move(file));
  return {};
}

const stored_tensor* checkpoint::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

result<void> checkpoint::read(const stored_tensor& t, std::uint64_t at, std::span<std::byte> to) const {
  for (const mapped_file& f : files_) {
    const std::less_equal<const std::byte*> before;
    const auto all = f.bytes();
    if (before(all.data(), t.bytes.data()) &&
        before(t.bytes.data() + t.bytes.size(), all.data() + all.size()))
      return f.read(static_cast<std::uint64_t>(t.bytes.data() - all.data()) + at, to);
  }
  return make_error(errc::internal, "a tensor of another checkpoint");
}

}  // namespace weir::core
