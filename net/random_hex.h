// random_hex.h — ids for requests and sessions: 32 random hex digits, which are not secret. Any thread.
#pragma once

#include <fmt/format.h>

#include <random>
#include <string>

namespace weir::net {

inline std::string random_hex() {
  thread_local std::mt19937_64 engine{std::random_device{}() | std::uint64_t{std::random_device{}()} << 32};
  const std::uint64_t high = engine(), low = engine();
  return fmt::format("{:016x}{:016x}", high, low);
}

}  // namespace weir::net
