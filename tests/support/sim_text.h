// sim_text.h — what the simulated device writes for a seed, so that tests know every byte beforehand.
#pragma once

#include <fmt/format.h>

#include <string>

#include "core/model/sim.h"

namespace weir::tests {

inline std::string sim_text(std::uint64_t seed, std::uint32_t tokens) {
  std::string out;
  for (std::uint32_t i = 0; i < tokens; ++i) out += fmt::format("w{:03d} ", core::sim_token(seed, i));
  return out;
}

}  // namespace weir::tests
