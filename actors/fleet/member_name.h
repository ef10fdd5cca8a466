// member_name.h — the name that a process of a fleet draws at its start: 80 random bits in base32, so that a
// name is never used twice.
#pragma once

#include <random>
#include <string>

#include "core/fleet/frame_kind.h"

namespace weir::actors::fleet {

inline std::string draw_name() {
  std::random_device device;
  std::string out;
  for (std::size_t i = 0; i < core::fleet::name_length; ++i)
    out += "abcdefghijklmnopqrstuvwxyz234567"[device() % 32];
  return out;
}

}  // namespace weir::actors::fleet
