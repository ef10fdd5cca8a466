#include "core/model/memory_block.h"

#include <sys/mman.h>

namespace weir::core {

result<memory_block> memory_block::allocate(std::uint64_t bytes, std::string_view purpose) {
  memory_block block;
  if (bytes == 0) return block;
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return make_error(errc::does_not_fit, "no memory for {}: {} bytes", purpose, bytes);
  ::madvise(data, bytes, MADV_HUGEPAGE);
  block.data_ = static_cast<std::byte*>(data);
  block.size_ = bytes;
  return block;
}

memory_block::~memory_block() {
  if (data_) ::munmap(data_, size_);
}

void memory_block::touch() noexcept {
  constexpr std::uint64_t smallest_page = 4096;
  for (std::uint64_t at = 0; at < size_; at += smallest_page) data_[at] = std::byte{0};
}

}  // namespace weir::core
