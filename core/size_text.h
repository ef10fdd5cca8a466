// size_text.h — numbers of bytes for people, in three digits: 21.3 MB, 1.07 GB, 32.1 GB.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace weir::core {

inline std::string size_text(std::uint64_t bytes) {
  const auto in = [bytes](double unit, const char* name) {
    const double value = static_cast<double>(bytes) / unit;
    return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, name);
  };
  if (bytes >= 999'500'000) return in(1e9, "GB");
  return bytes >= 999'500 ? in(1e6, "MB") : in(1e3, "kB");
}

}  // namespace weir::core
