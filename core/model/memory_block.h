// memory_block.h — one large zeroed allocation for weights or pages, on huge pages where the system has them.
//
// Thread safety: none needed; one owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace weir::core {

class memory_block {
 public:
  memory_block() = default;
  // `purpose` is named in the error when the memory is not there.
  static result<memory_block> allocate(std::uint64_t bytes, std::string_view purpose);

  memory_block(memory_block&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  memory_block& operator=(memory_block&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~memory_block();

  std::byte* data() const noexcept { return data_; }
  std::uint64_t size() const noexcept { return size_; }

  // Makes the system hand over every page now, not in the middle of a step.
  void touch() noexcept;

 private:
  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
};

}  // namespace weir::core
