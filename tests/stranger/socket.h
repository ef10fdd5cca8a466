// socket.h — one TCP connection to a server on this machine. Nothing here leaves 127.0.0.0/8.
//
// Never blocks. Thread safety: one thread.
//
// Invariant: the descriptor is this object's alone, and closed with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace weir::stranger {

inline constexpr std::uint32_t loopback = 0x7F000001;  // 127.0.0.1, in the host's byte order

class socket {
 public:
  enum class state { fine, full, over };  // full: nothing goes now; over: the peer is gone
  struct moved {
    std::size_t bytes = 0;
    state now = state::fine;
  };

  socket() = default;
  // Begins to connect. If no descriptor or no port is left, is_open() is false.
  socket(std::uint32_t from, std::uint16_t port, bool small_window);
  socket(socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  socket& operator=(socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~socket() { close(); }

  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  moved send(std::string_view bytes);
  moved receive(std::span<char> into);
  void finish();  // sends FIN, and goes on reading
  void reset();   // sends RST
  void close();

 private:
  int fd_ = -1;
};

}  // namespace weir::stranger
