#include "tests/stranger/socket.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace weir::stranger {
namespace {

sockaddr_in loopback_address(std::uint32_t address, std::uint16_t port) {
  if (address >> 24 != 127) {
    std::fprintf(stderr, "stranger: %08x is not in 127.0.0.0/8\n", address);
    std::abort();
  }
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(address);
  at.sin_port = htons(port);
  return at;
}

socket::moved moved_by(ssize_t n) {
  if (n >= 0) return {static_cast<std::size_t>(n), socket::state::fine};
  const bool later = errno == EAGAIN || errno == EINTR || errno == ENOTCONN;
  return {0, later ? socket::state::full : socket::state::over};
}

}  // namespace

socket::socket(std::uint32_t from, std::uint16_t port, bool small_window) {
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return;
  const int on = 1, window = 4096;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (small_window) setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &window, sizeof window);
  setsockopt(fd_, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
  const sockaddr_in here = loopback_address(from, 0), there = loopback_address(loopback, port);
  const bool bound = bind(fd_, reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0;
  const int done = bound ? connect(fd_, reinterpret_cast<const sockaddr*>(&there), sizeof there) : -1;
  if (!bound || (done != 0 && errno != EINPROGRESS)) close();
}

socket::moved socket::send(std::string_view bytes) {
  return moved_by(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
}

socket::moved socket::receive(std::span<char> into) {
  moved got = moved_by(::recv(fd_, into.data(), into.size(), MSG_DONTWAIT));
  if (got.now == state::fine && got.bytes == 0) got.now = state::over;
  return got;
}

void socket::finish() { shutdown(fd_, SHUT_WR); }

void socket::reset() {
  const linger at_once{1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  close();
}

void socket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace weir::stranger
