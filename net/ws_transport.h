// ws_transport.h — the way of a WebSocket's bytes: the socket under Beast's stream, with a short way for our own frames.
//
// Beast's stream shakes hands, reads, and answers pings and closes through it. Text frames do not pass through Beast:
// try_write() hands one to the kernel in the same call, and most often that is all; only what a full send buffer leaves
// behind becomes an operation. So a token costs one system call, with no completion to queue and to fetch.
//
// Thread safety: everything on the socket's executor.
//
// Invariants:
//   1. A frame's bytes are never mixed with another's, whoever writes it: Beast's writes wait while a frame of ours is
//      on its way, and ours while one of Beast's is.
//   2. One frame of ours at a time, and one of Beast's: neither side begins another before it was told of the last.
#pragma once

#include <boost/asio/compose.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/role.hpp>
#include <boost/beast/websocket/teardown.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace weir::net {

// A text frame in the making: room for its head (RFC 6455, section 5.2), then its payload, which callers append.
class text_frame {
 public:
  text_frame() { clear(); }
  void clear() { bytes_.assign(room, '\0'); }
  std::string& payload() noexcept { return bytes_; }  // append to it, and to it alone
  // The whole frame: final, unmasked. Valid until it is touched again.
  std::string_view finish() noexcept;

 private:
  static constexpr std::size_t room = 10;
  std::string bytes_;
};

class ws_transport {
 public:
  using socket = boost::asio::ip::tcp::socket;
  using error_code = boost::system::error_code;
  using executor_type = socket::executor_type;

  explicit ws_transport(socket s);

  // Sends what the kernel takes of a frame now, and returns the rest.
  std::string_view try_write(std::string_view frame) { return s_->try_write(frame); }
  // Sends the rest, where there is one, as soon as there is room; done(ec) follows, not from inside this call. The bytes
  // have to stay until then.
  void write(std::string_view rest, std::function<void(error_code)> done) { s_->write(rest, std::move(done)); }

  socket& get_socket() noexcept { return s_->socket; }
  void close();  // what is under way fails

  // What Beast asks of the layer below it.
  executor_type get_executor() noexcept { return s_->socket.get_executor(); }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& to, Token&& token) {
    return s_->socket.async_read_some(to, std::forward<Token>(token));
  }

  template <class Buffers, class Token>
  auto async_write_some(const Buffers& from, Token&& token) {
    return boost::asio::async_compose<Token, void(error_code, std::size_t)>(beast_write<Buffers>{s_, from}, token, s_->socket);
  }

  friend void beast_close_socket(ws_transport& w) { w.close(); }
  friend void teardown(boost::beast::role_type role, ws_transport& w, error_code& ec) {
    boost::beast::websocket::teardown(role, w.s_->socket, ec);
  }
  template <class Handler>
  friend void async_teardown(boost::beast::role_type role, ws_transport& w, Handler&& handler) {
    boost::beast::websocket::async_teardown(role, w.s_->socket, std::forward<Handler>(handler));
  }

 private:
  // Shared with what is under way: operations outlive the stream.
  struct state : std::enable_shared_from_this<state> {
    explicit state(ws_transport::socket s) : socket(std::move(s)), turn(socket.get_executor(), boost::asio::steady_timer::time_point::max()) {}
    std::string_view try_write(std::string_view frame);
    void write(std::string_view rest_of_frame, std::function<void(error_code)> done);
    void write_rest();
    void beast_is_done();
    void let_beast_write();

    ws_transport::socket socket;
    boost::asio::steady_timer turn;  // never expires: cancelled when Beast may write
    bool beast_writes = false;  // in the middle of a frame of its own
    std::string_view rest;      // of ours; not empty: on its way, or waiting for Beast's
    std::function<void(error_code)> told;
    bool beast_waits = false;
  };

  template <class Buffers>
  struct beast_write {
    std::shared_ptr<state> way;
    Buffers from;
    enum { begins, has_its_turn, wrote } at = begins;

    template <class Self>
    void operator()(Self& self, error_code ec = {}, std::size_t n = 0) {
      const auto w = way;  // self is moved, and this with it
      if (at == begins && !w->rest.empty()) {
        at = has_its_turn;
        w->beast_waits = true;
        return w->turn.async_wait(std::move(self));
      }
      if (at != wrote) {
        at = wrote;
        w->beast_writes = true;
        const Buffers data = from;
        return w->socket.async_write_some(data, std::move(self));
      }
      if (ec || n == boost::asio::buffer_size(from)) w->beast_is_done();
      self.complete(ec, n);
    }
  };

  std::shared_ptr<state> s_;
};

}  // namespace weir::net
