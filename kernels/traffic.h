// traffic.h — how many bytes an operation must move and how many flops it must do, whoever does it.
//
// Each input byte is counted as read once and each output byte as written once: the floor that a measured
// time is divided into. Pure functions: any thread.
#pragma once

#include <cstdint>

#include "kernels/ops.h"

namespace weir::kernels {

struct traffic {
  std::uint64_t bytes = 0, flops = 0;

  traffic& operator+=(const traffic& more) noexcept {
    bytes += more.bytes;
    flops += more.flops;
    return *this;
  }
  bool operator==(const traffic&) const = default;
};

traffic traffic_of(const gather&) noexcept;
traffic traffic_of(const rms_norm&) noexcept;
traffic traffic_of(const head_norm&) noexcept;
traffic traffic_of(const linear&) noexcept;
traffic traffic_of(const rotary_angles&) noexcept;
traffic traffic_of(const rotary&) noexcept;
traffic traffic_of(const kv_write&) noexcept;
traffic traffic_of(const attention&) noexcept;
traffic traffic_of(const silu_mul&) noexcept;
traffic traffic_of(const add&) noexcept;

}  // namespace weir::kernels
