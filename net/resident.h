// resident.h — how much memory the process has now. Any thread.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace weir::net {

// Bytes resident in memory, as the kernel counts them; 0 where /proc cannot be read.
inline std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace weir::net
