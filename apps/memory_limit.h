// memory_limit.h — how much memory this process may take, and how much its clients may make it hold.
#pragma once

#include <cstdint>

#include "core/error.h"

namespace weir::apps {

// What --max-memory says, in bytes; 0: what the process's cgroup allows, or what the machine has, if that is
// less.
std::uint64_t process_limit(std::uint64_t max_memory);

// What clients may make the process hold, once the models are loaded and `resident` bytes are taken: three
// quarters of what is left, since parsing, threads and the allocator's own use are not counted one by one. At
// least `least_for_clients` where the limit is the machine's own; less than that under a limit that was asked
// for is an error (does_not_fit).
inline constexpr std::uint64_t least_for_clients = 64 << 20;
core::result<std::uint64_t> clients_limit(std::uint64_t process, std::uint64_t resident, bool asked_for);

}  // namespace weir::apps
