// stable_store.h — a growing array whose elements stay where they are, so that one thread may append while
// others read.
//
// Thread safety: push() by one thread at a time (the caller's mutex). operator[] by any thread, for an index
// that the thread learned from the writer through a synchronising operation.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace weir::core::grammar {

template <class T>
class stable_store {
 public:
  // Moves or copies by assignment. Returns the element's index.
  template <class U = T>
  std::uint32_t push(U&& value) {
    const auto [chunk, offset] = place(size_);
    if (!chunks_[chunk]) chunks_[chunk] = std::make_unique<T[]>(first << chunk);
    chunks_[chunk][offset] = std::forward<U>(value);
    return size_++;
  }

  T& operator[](std::uint32_t i) {
    const auto [chunk, offset] = place(i);
    return chunks_[chunk][offset];
  }
  const T& operator[](std::uint32_t i) const {
    const auto [chunk, offset] = place(i);
    return chunks_[chunk][offset];
  }

  std::uint32_t size() const { return size_; }  // the writer's thread alone

 private:
  static constexpr std::size_t first = 64;  // elements of chunk 0; each chunk is twice the one before it
  struct where {
    std::size_t chunk, offset;
  };
  static where place(std::uint32_t i) {
    const std::size_t n = std::size_t{i} + first;
    const auto chunk = static_cast<std::size_t>(std::bit_width(n) - std::bit_width(first));
    return {chunk, n - (first << chunk)};
  }

  std::array<std::unique_ptr<T[]>, 27> chunks_;
  std::uint32_t size_ = 0;
};

}  // namespace weir::core::grammar
