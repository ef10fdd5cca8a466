// attention_rule.h — the positions that a row attends to, and the scale of its scores.
//
// The attention of every backend takes a rule. A variant of attention is one more member here.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define WEIR_HOST_DEVICE __host__ __device__
#else
#define WEIR_HOST_DEVICE
#endif

namespace weir::kernels {

struct attention_rule {
  std::uint32_t window = 0;  // positions that a row attends to, its own included; 0: all up to its own
  float scale = 1;           // factor of every score

  // The first position that the row at position `p` attends to. The last one is `p`.
  template <class Position>
  WEIR_HOST_DEVICE constexpr Position first_seen(Position p) const noexcept {
    return window != 0 && p + 1 > static_cast<Position>(window) ? p + 1 - static_cast<Position>(window) : 0;
  }
};

}  // namespace weir::kernels
