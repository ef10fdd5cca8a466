// tcp_state.h — asks the kernel for the state of a TCP connection. Thread safety: as the socket.
#pragma once

#include <cstdint>

namespace weir::net {

// Bytes that the peer's system has acknowledged since the connection began; 0 if the kernel does not report
// them.
std::uint64_t acknowledged_bytes(int socket) noexcept;
// Bytes that were written and that the peer's system has not acknowledged; 0 if the kernel does not report
// them.
std::uint64_t unacknowledged_bytes(int socket) noexcept;

}  // namespace weir::net
