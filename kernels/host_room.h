// host_room.h — how much memory of the host this process may still take. The system ends a process that
// touches more, so large allocations ask first.
//
// Source: Linux, «Control Group v2» (memory.max, memory.current, memory.stat), and the memory controller of
// version 1.
//
// Thread safety: any thread. The functions read files of the system.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string_view>

namespace weir::kernels {

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

// What the system reports as available, but at most what the limits of the process's cgroups leave. no_limit:
// neither is known.
std::uint64_t host_room();

// What the limits of a cgroup, and of those that contain it, leave; files that are cached do not count as
// used. no_limit: there are no limits. `membership`: the text of /proc/self/cgroup. `root`: /sys/fs/cgroup.
std::uint64_t cgroup_room(const std::filesystem::path& root, std::string_view membership);

}  // namespace weir::kernels
