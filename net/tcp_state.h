// tcp_state.h — what the kernel knows of a TCP connection. Any thread that may use the socket.
#pragma once

#include <cstdint>

namespace weir::net {

// Bytes that the peer's system has acknowledged since the connection began; 0 where the kernel does not say.
std::uint64_t acknowledged_bytes(int socket) noexcept;

}  // namespace weir::net
