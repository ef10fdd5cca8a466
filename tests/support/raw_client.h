// raw_client.h — a TCP connection that sends any bytes and keeps all that comes back, over plain sockets: no
// HTTP or WebSocket library stands between a test and the wire.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <string>
#include <string_view>

namespace weir::tests {

class raw_client {
 public:
  // receive_buffer: bytes that the client's system accepts while the client does not read; 0: the system's
  // default.
  explicit raw_client(unsigned short port, int receive_buffer = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    REQUIRE(fd_ >= 0);
    if (receive_buffer) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
    const int on = 1;  // each piece is a segment of its own
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::fcntl(fd_, F_SETFL, O_NONBLOCK);
  }
  ~raw_client() { ::close(fd_); }
  raw_client(const raw_client&) = delete;
  raw_client& operator=(const raw_client&) = delete;

  // Takes in what comes meanwhile, so that two full buffers never wait for each other. A server may hang up
  // while it is being sent to: the rest is dropped then.
  void send(std::string_view bytes) {
    while (!bytes.empty() && !hung_up_) {
      wait_for(POLLOUT | (ended_ ? 0 : POLLIN));
      take_in();
      const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
      if (n < 0 && errno != EAGAIN) hung_up_ = true;
    }
  }
  void send_in_pieces(std::string_view bytes, std::size_t piece) {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) send(bytes.substr(0, piece));
  }

  // Sends FIN. A server that waits for more bytes then stops waiting, and the test with it.
  void finish() { ::shutdown(fd_, SHUT_WR); }

  // Sends what the system takes at once, and takes in nothing: a client that does not read.
  void send_without_reading(std::string_view bytes) {
    const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    REQUIRE(sent == static_cast<ssize_t>(bytes.size()));
  }
  // Whether the server has reset the connection. Takes in nothing.
  bool was_reset() const {
    pollfd p{fd_, 0, 0};
    return ::poll(&p, 1, 0) == 1 && (p.revents & (POLLERR | POLLHUP));
  }

  // Waits for more; false at the end.
  bool read_more() {
    const auto before = heard_.size();
    while (!ended_ && heard_.size() == before) {
      wait_for(POLLIN);
      take_in();
    }
    return heard_.size() > before;
  }
  const std::string& read_to_end() {
    while (read_more()) {
    }
    return heard_;
  }
  const std::string& read_until(std::string_view text) {
    while (heard_.find(text) == heard_.npos && read_more()) {
    }
    return heard_;
  }

  const std::string& heard() const { return heard_; }

 private:
  void wait_for(int events) {
    pollfd p{fd_, static_cast<short>(events), 0};
    constexpr int a_minute = 60'000;
    if (::poll(&p, 1, a_minute) == 0) FAIL("the server did nothing for a minute");
  }
  void take_in() {
    char bytes[64 * 1024];
    while (!ended_) {
      const auto n = ::recv(fd_, bytes, sizeof bytes, 0);
      if (n > 0) {
        heard_.append(bytes, static_cast<std::size_t>(n));
      } else if (n == 0 || errno != EAGAIN) {
        ended_ = true;  // by FIN or by RST: what came before it was kept
      } else {
        return;
      }
    }
  }

  int fd_;
  std::string heard_;
  bool ended_ = false, hung_up_ = false;
};

}  // namespace weir::tests
