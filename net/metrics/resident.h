// resident.h — the resident memory of the process. Any thread.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace weir::net {

// Resident memory in bytes, as the kernel counts it; 0 if /proc cannot be read.
inline std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace weir::net
