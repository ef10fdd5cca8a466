// scratch.h — a buffer that grows to the largest size asked for and never shrinks. Growing loses its
// contents.
//
// Thread safety: one owner.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace weir::kernels {

template <class T>
class scratch {
 public:
  // Returns memory for at least `count` elements, aligned to a cache line. Throws std::bad_alloc where memory
  // is short.
  T* room_for(std::size_t count) {
    if (count > count_) {
      constexpr std::size_t line = 64;
      memory_.reset();
      memory_.reset(static_cast<T*>(std::aligned_alloc(line, (count * sizeof(T) + line - 1) / line * line)));
      if (!memory_) throw std::bad_alloc();
      count_ = count;
    }
    return memory_.get();
  }
  T* data() const noexcept { return memory_.get(); }

 private:
  struct release {
    void operator()(T* p) const noexcept { std::free(p); }
  };
  std::unique_ptr<T[], release> memory_;
  std::size_t count_ = 0;
};

}  // namespace weir::kernels
