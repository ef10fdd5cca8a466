// attacker.h — a client over a blocking socket, which says anything and reads when it likes.
//
// Thread safety: none.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace weir::bench {

[[noreturn]] inline void give_up(const char* what) {
  std::perror(what);
  std::exit(1);
}

class attacker {
 public:
  explicit attacker(unsigned short port, int receive_buffer = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) give_up("connect");
  }
  attacker(attacker&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
  attacker(const attacker&) = delete;
  attacker& operator=(const attacker&) = delete;
  ~attacker() {
    if (fd_ >= 0) ::close(fd_);
  }

  // A server may have hung up: the rest is dropped then.
  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  void post(std::string_view target, std::string_view body) {
    send(
        fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                    "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                    target, body.size()));
    send(body);
  }
  void get(std::string_view target) {
    send(fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", target));
  }

  // ---- a WebSocket

  void open_stream() {
    send(
        "GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        "Sec-WebSocket-Protocol: weir.v1\r\n\r\n");
    read_until("session.created");
  }
  // A text frame, under a mask of zeros.
  void say(std::string_view text) {
    constexpr char final_text = static_cast<char>(0x81);
    const int bytes = text.size() < 126 ? 0 : text.size() < 65536 ? 2 : 8;  // as few as the length takes
    const std::size_t first = bytes == 0 ? text.size() : bytes == 2 ? 126 : 127;
    std::string frame{final_text, static_cast<char>(0x80 | first)};
    for (int i = bytes - 1; i >= 0; --i) frame += static_cast<char>(std::uint64_t{text.size()} >> 8 * i);
    frame.append(4, '\0').append(text);
    send(frame);
  }

  // What has come since the last call; empty at the end.
  std::string read_some() {
    std::string out(64 * 1024, '\0');
    const auto n = ::recv(fd_, out.data(), out.size(), 0);
    out.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return out;
  }
  std::size_t read_to_end() {
    std::size_t all = 0;
    for (auto n = read_some().size(); n > 0; n = read_some().size()) all += n;
    return all;
  }
  // Reads past `text`, and returns what was read.
  std::string read_until(std::string_view text) {
    std::string heard;
    while (heard.find(text) == heard.npos) {
      const auto more = read_some();
      if (more.empty()) break;
      heard += more;
    }
    return heard;
  }

 private:
  int fd_;
};

}  // namespace weir::bench
