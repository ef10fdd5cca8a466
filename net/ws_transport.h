// ws_transport.h — the way of a WebSocket's bytes: the socket under Beast's stream, with a short way for our
// own frames.
//
// Beast's stream shakes hands, reads, and answers pings and closes through it. Text frames do not pass
// through Beast: try_write() hands one to the kernel in the same call, and most often that is all; only what
// a full send buffer leaves behind becomes an operation. So a token costs one system call, with no completion
// to queue and to fetch.
//
// What arrives passes a ws_frame_watch first; at the first frame that is refused the owner of the transport
// is told. say_last() ends the conversation from our side: a close frame, then the end of what we send. From
// a refusal or the last word on Beast is given no byte more. Whatever still comes is read and dropped, up to
// a bound, so that the peer can read what was said. Beast's own async_close is not used: where the peer
// breaks the protocol while it waits for the peer's answer, Beast's reader and its closer wait for each other
// for ever.
//
// Thread safety: everything on the socket's executor.
//
// Invariants:
//   1. A frame's bytes are never mixed with another's, whoever writes it: Beast's writes wait while a frame
//   of ours is
//      on its way, and ours while one of Beast's is.
//   2. One frame of ours at a time, and one of Beast's: neither side begins another before it was told of the
//   last.
//   3. The refusal is told once, after Beast has had every byte before the refused frame.
#pragma once

#include <array>
#include <boost/asio/compose.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/role.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "net/ws_frame_watch.h"

namespace weir::net {

// A text frame in the making: room for its head (RFC 6455, section 5.2), then its payload, which callers
// append.
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

  // `most_dropped`: bytes that are read and dropped after a refusal before the connection counts as ended.
  ws_transport(socket s, ws_frame_watch incoming, std::size_t most_dropped);

  // told(why) is called once, from inside a read of Beast's, where a frame is refused.
  void on_refusal(std::function<void(ws_frame_watch::verdict)> told) { s_->refusal_told = std::move(told); }
  ws_frame_watch& incoming() noexcept { return s_->incoming; }

  // Sends what the kernel takes of a frame now, and returns the rest.
  std::string_view try_write(std::string_view frame) { return s_->try_write(frame); }
  // Sends the rest, where there is one, as soon as there is room; done(ec) follows, not from inside this
  // call. The bytes have to stay until then.
  void write(std::string_view rest, std::function<void(error_code)> done) {
    s_->write(rest, std::move(done));
  }

  // Sends a close frame of this code and shuts our side of the connection. REQUIRES: no frame of ours is on
  // its way; none follows.
  void say_last(std::uint16_t code) { s_->say_last(code); }

  socket& get_socket() noexcept { return s_->socket; }
  void close();  // what is under way fails

  // What Beast asks of the layer below it.
  executor_type get_executor() noexcept { return s_->socket.get_executor(); }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& to, Token&& token) {
    return boost::asio::async_compose<Token, void(error_code, std::size_t)>(beast_read<Buffers>{s_, to},
                                                                            token, s_->socket);
  }

  template <class Buffers, class Token>
  auto async_write_some(const Buffers& from, Token&& token) {
    return boost::asio::async_compose<Token, void(error_code, std::size_t)>(beast_write<Buffers>{s_, from},
                                                                            token, s_->socket);
  }

  friend void beast_close_socket(ws_transport& w) { w.close(); }
  // Beast calls this once it has said its last: the peer's bytes are read and dropped, up to the bound, so
  // that the peer can read what was said; then the socket is closed.
  template <class Handler>
  friend void async_teardown(boost::beast::role_type, ws_transport& w, Handler&& handler) {
    boost::asio::async_compose<Handler, void(error_code)>(last_read{w.s_}, handler, w.s_->socket);
  }

 private:
  // Shared with what is under way: operations outlive the stream.
  struct state : std::enable_shared_from_this<state> {
    state(ws_transport::socket s, ws_frame_watch in, std::size_t most)
        : socket(std::move(s)),
          turn(socket.get_executor(), boost::asio::steady_timer::time_point::max()),
          incoming(std::move(in)),
          most_dropped(most) {}
    // How many of the `n` bytes that arrived in `to` are for Beast.
    template <class Buffers>
    std::size_t admit(const Buffers& to, std::size_t n);
    std::size_t admit(std::span<const unsigned char> bytes);
    bool deaf() const noexcept { return said_last || incoming.found() != ws_frame_watch::verdict::fine; }
    void say_last(std::uint16_t code);
    void tell_refusal();
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

    ws_frame_watch incoming;
    std::function<void(ws_frame_watch::verdict)> refusal_told;  // empty once it has been told
    bool said_last = false;
    std::array<char, 4> last_frame{};
    const std::size_t most_dropped;
    std::size_t dropped = 0;
    std::array<char, 512> dropped_bytes;
  };

  template <class Buffers>
  struct beast_read {
    std::shared_ptr<state> way;
    Buffers to;
    bool begun = false;

    template <class Self>
    void operator()(Self& self, error_code ec = {}, std::size_t n = 0) {
      const auto w = way;  // self is moved, and this with it
      if (begun) {
        const std::size_t passed = ec ? 0 : w->admit(to, n);
        if (ec || passed > 0 || n == 0) return self.complete(ec, passed);
        if (w->dropped > w->most_dropped) return self.complete(boost::asio::error::eof, 0);
      }
      begun = true;
      w->tell_refusal();
      const Buffers into = to;
      w->socket.async_read_some(into, std::move(self));
    }
  };

  struct last_read {
    std::shared_ptr<state> way;
    bool begun = false;

    template <class Self>
    void operator()(Self& self, error_code ec = {}, std::size_t n = 0) {
      const auto w = way;  // self is moved, and this with it
      error_code ignored;
      if (!std::exchange(begun, true)) w->socket.shutdown(socket::shutdown_send, ignored);
      w->dropped += n;
      if (!ec && w->dropped <= w->most_dropped)
        return w->socket.async_read_some(boost::asio::buffer(w->dropped_bytes), std::move(self));
      w->socket.close(ignored);
      self.complete(ec == boost::asio::error::eof ? error_code() : ec);
    }
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

template <class Buffers>
std::size_t ws_transport::state::admit(const Buffers& to, std::size_t n) {
  std::size_t passed = 0;
  for (auto at = boost::asio::buffer_sequence_begin(to); at != boost::asio::buffer_sequence_end(to) && n > 0;
       ++at) {
    const boost::asio::mutable_buffer part = boost::asio::buffer(*at, n);
    passed += admit({static_cast<const unsigned char*>(part.data()), part.size()});
    n -= part.size();
  }
  return passed;
}

}  // namespace weir::net
