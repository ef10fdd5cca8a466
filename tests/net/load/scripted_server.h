// scripted_server.h — a server that says what a test tells it to say: weir.v1 or server-sent events, on a
// loopback port.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <functional>
#include <list>
#include <string>
#include <thread>

#include "net/load/http_wire.h"
#include "net/load/ws_wire.h"

namespace weir::tests {

inline std::string server_frame(const std::string& text, int op = 1) {
  std::string out(1, static_cast<char>(0x80 | op));
  if (text.size() < 126) return out.append(1, static_cast<char>(text.size())).append(text);
  out += static_cast<char>(126);
  out += static_cast<char>(text.size() >> 8);
  out += static_cast<char>(text.size());
  return out + text;
}

class scripted_server {
 public:
  // Given a client's message (a frame's text, or an HTTP request with its body), the bytes to answer with.
  // `hang_up` may be set to end the connection after them. Called on one thread.
  using script = std::function<std::string(const std::string& said, bool& hang_up)>;

  explicit scripted_server(script s) : script_(std::move(s)) {
    accept();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~scripted_server() {
    io_.stop();
    thread_.join();
  }

  std::string url(const char* scheme) const {
    return std::string(scheme) + "://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }
  std::atomic<int> connections{0}, hung_up{0};  // by clients

 private:
  using tcp = boost::asio::ip::tcp;
  struct caller {
    explicit caller(tcp::socket s) : socket(std::move(s)) {}
    tcp::socket socket;
    std::string heard;
    bool upgraded = false;
    char bytes[4096];
  };

  void accept() {
    acceptor_.async_accept([this](boost::system::error_code ec, tcp::socket s) {
      if (ec) return;
      ++connections;
      callers_.emplace_back(std::move(s));
      read(callers_.back());
      accept();
    });
  }

  void read(caller& c) {
    c.socket.async_read_some(boost::asio::buffer(c.bytes),
                             [this, &c](boost::system::error_code ec, std::size_t n) {
                               if (ec) {
                                 ++hung_up;
                                 c.socket.close(ec);
                                 return;
                               }
                               c.heard.append(c.bytes, n);
                               std::string said;
                               while (c.socket.is_open() && next(c, said)) answer(c, said);
                               if (c.socket.is_open()) read(c);
                             });
  }

  void answer(caller& c, const std::string& said) {
    boost::system::error_code ec;
    bool hang_up = false;
    std::string out;
    if (const auto nonce = load::http_header(said, "sec-websocket-key"); !c.upgraded && !nonce.empty()) {
      c.upgraded = true;
      out = "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: " + load::ws_accept(nonce) +
            "\r\n\r\n" + server_frame(R"({"type":"session.created"})");
    } else if (said.starts_with("GET ")) {  // no statistics
      out = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}";
    } else {
      out = script_(said, hang_up);
    }
    boost::asio::write(c.socket, boost::asio::buffer(out), ec);
    if (ec || hang_up) c.socket.close(ec);
  }

  // A whole request, or a whole frame of an upgraded connection.
  static bool next(caller& c, std::string& said) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(c.heard[i]); };
    if (c.upgraded) {
      if (c.heard.size() < 6) return false;
      std::size_t length = byte(1) & 0x7F, at = 2;
      if (length == 126) length = static_cast<std::size_t>(byte(2) << 8 | byte(3)), at = 4;
      if (c.heard.size() < at + 4 + length) return false;
      said.clear();
      for (std::size_t i = 0; i < length; ++i) said += static_cast<char>(byte(at + 4 + i) ^ byte(at + i % 4));
      c.heard.erase(0, at + 4 + length);
      return true;
    }
    const auto end = c.heard.find("\r\n\r\n");
    if (end == c.heard.npos) return false;
    std::size_t length = 0;
    const auto head = std::string_view(c.heard).substr(0, end + 2);
    if (const auto l = load::http_header(head, "content-length"); !l.empty())
      length = std::stoul(std::string(l));
    if (c.heard.size() < end + 4 + length) return false;
    said = c.heard.substr(0, end + 4 + length);
    c.heard.erase(0, said.size());
    return true;
  }

  script script_;
  boost::asio::io_context io_{1};
  tcp::acceptor acceptor_{io_, {boost::asio::ip::make_address("127.0.0.1"), 0}};
  std::list<caller> callers_;
  std::thread thread_;
};

}  // namespace weir::tests
