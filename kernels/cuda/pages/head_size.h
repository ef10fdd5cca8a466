// head_size.h — the head sizes for which there are attention kernels. A kernel has its head size as a
// template parameter.
#pragma once

#include <cstdint>
#include <type_traits>

namespace weir::kernels::cuda {

constexpr bool is_head_size(std::uint32_t n) {
  return n == 16 || n == 32 || n == 64 || n == 96 || n == 128 || n == 256;
}

// Calls f with `n` as a std::integral_constant and returns its result. REQUIRES: is_head_size(n)
template <class F>
auto with_head_size(std::uint32_t n, const F& f) {
  switch (n) {
    case 16:
      return f(std::integral_constant<int, 16>{});
    case 32:
      return f(std::integral_constant<int, 32>{});
    case 64:
      return f(std::integral_constant<int, 64>{});
    case 96:
      return f(std::integral_constant<int, 96>{});
    case 256:
      return f(std::integral_constant<int, 256>{});
    default:
      return f(std::integral_constant<int, 128>{});
  }
}

}  // namespace weir::kernels::cuda
