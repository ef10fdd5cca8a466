// memory_limit.h — the memory that this process may use, and the part of it that is for clients.
#pragma once

#include <cstdint>

#include "core/error.h"

namespace weir::apps {

// Most bytes that the process may use: `max_memory`, or, if it is 0, the limit of the process's cgroup or the
// machine's memory, whichever is less.
std::uint64_t process_limit(std::uint64_t max_memory);

// Most bytes that the memory account of clients allows. `resident`: resident memory of the process after the
// models are loaded. The result is three quarters of what is left, since memory for parsing, threads and the
// allocator itself is not counted. If this is less than `least_for_clients`, the result is
// `least_for_clients`; but it is an error (does_not_fit) if `asked_for`: the user set --max-memory.
inline constexpr std::uint64_t least_for_clients = 64 << 20;
core::result<std::uint64_t> clients_limit(std::uint64_t process, std::uint64_t resident, bool asked_for);

}  // namespace weir::apps
