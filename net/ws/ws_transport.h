// ws_transport.h — the socket below Beast's WebSocket stream, with a shorter path for the session's frames.
//
// Beast does the handshake, reads, and answers pings and closes through the transport. The session's text
// frames do not pass through Beast: try_write() hands a frame to the kernel in the same call. Only the bytes
// for which the send buffer has no room need an asynchronous operation. So a token costs one system call, and
// usually no completion handler.
//
// Received bytes pass a ws_frame_watch before Beast sees them. When a frame is refused, the session is told.
// say_last() sends a close frame and shuts down the sending side. After a refusal or say_last(), Beast
// receives no more bytes: they are read and dropped, up to a bound, so that the peer can still read what was
// sent. Beast's async_close is not used. If the peer breaks the protocol while async_close waits for the
// peer's close frame, Beast's read and its close wait for each other for ever.
//
// Thread safety: everything on the socket's executor.
//
// Invariants:
//   1. Bytes of two frames are never mixed. A write of Beast's waits while a frame of the session is being
//      sent, and a frame of the session waits while Beast writes one.
//   2. The session sends one frame at a time, and so does Beast: each begins a frame after the previous one
//      has completed.
//   3. A refusal is reported once, after Beast has received every byte before the refused frame.
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

#include "net/ws/ws_frame_watch.h"

namespace weir::net {

// A buffer for one text frame: room for the header (RFC 6455, section 5.2), then the payload.
class text_frame {
 public:
  text_frame() { clear(); }
  void clear() { bytes_.assign(room, '\0'); }
  // The string to which the payload is appended. The bytes that it has already must not be changed.
  std::string& payload() noexcept { return bytes_; }
  // Writes the header of a final, unmasked frame and returns the whole frame. Valid until the next call of
  // another member.
  std::string_view finish() noexcept;

 private:
  static constexpr std::size_t room = 10;  // bytes of the longest header
  std::string bytes_;
};

class ws_transport {
 public:
  using socket = boost::asio::ip::tcp::socket;
  using error_code = boost::system::error_code;
  using executor_type = socket::executor_type;

  // `most_dropped`: most bytes that are read and dropped after a refusal or say_last(). Reads then report
  // the end of the connection.
  ws_transport(socket s, ws_frame_watch incoming, std::size_t most_dropped);

  // Calls told(why) once when a frame is refused, from inside a read of Beast's.
  void on_refusal(std::function<void(ws_frame_watch::verdict)> told) { s_->refusal_told = std::move(told); }
  ws_frame_watch& incoming() noexcept { return s_->incoming; }

  // Sends as much of a frame as the kernel takes now, and returns the rest.
  std::string_view try_write(std::string_view frame) { return s_->try_write(frame); }
  // Sends the rest of a frame as soon as there is room, and then calls done(ec), but not from inside this
  // call. The bytes must stay valid until done() is called. REQUIRES: `rest` is not empty.
  void write(std::string_view rest, std::function<void(error_code)> done) {
    s_->write(rest, std::move(done));
  }

  // Sends a close frame with this code and shuts down the sending side. REQUIRES: no frame of the session is
  // being sent, and none follows.
  void say_last(std::uint16_t code) { s_->say_last(code); }

  socket& get_socket() noexcept { return s_->socket; }
  void close();  // closes the socket; pending operations fail

  // The members that Beast requires of the layer below it.
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
  // Called by Beast when it has sent its last frame. Reads and drops what the peer still sends, up to the
  // bound, so that the peer can read what was sent. Then closes the socket.
  template <class Handler>
  friend void async_teardown(boost::beast::role_type, ws_transport& w, Handler&& handler) {
    boost::asio::async_compose<Handler, void(error_code)>(last_read{w.s_}, handler, w.s_->socket);
  }

 private:
  // Shared with pending operations, which may outlive the stream.
  struct state : std::enable_shared_from_this<state> {
    state(ws_transport::socket s, ws_frame_watch in, std::size_t most)
        : socket(std::move(s)),
          beast_may_write(socket.get_executor(), boost::asio::steady_timer::time_point::max()),
          incoming(std::move(in)),
          most_dropped(most) {}
    // Returns how many of the `n` bytes that were read into `to` Beast may have.
    template <class Buffers>
    std::size_t admit(const Buffers& to, std::size_t n);
    std::size_t admit(std::span<const unsigned char> bytes);
    // Received bytes are dropped from now on.
    bool deaf() const noexcept { return said_last || incoming.found() != ws_frame_watch::verdict::fine; }
    void say_last(std::uint16_t code);
    void tell_refusal();
    std::string_view try_write(std::string_view frame);
    void write(std::string_view rest_of_frame, std::function<void(error_code)> done);
    void write_rest();
    void beast_is_done();
    void let_beast_write();

    ws_transport::socket socket;
    boost::asio::steady_timer beast_may_write;  // never expires; it is cancelled when Beast may write
    bool beast_writes = false;                  // Beast is sending a frame
    std::string_view rest;  // unsent bytes of the session's frame; empty: no frame is being sent
    std::function<void(error_code)> told;  // called when `rest` is sent
    bool beast_waits = false;              // Beast waits for beast_may_write

    ws_frame_watch incoming;
    std::function<void(ws_frame_watch::verdict)> refusal_told;  // empty after the call
    bool said_last = false;                                     // say_last() was called
    std::array<char, 4> last_frame{};                           // the close frame of say_last()
    const std::size_t most_dropped;
    std::size_t dropped = 0;  // bytes dropped so far
    std::array<char, 512> dropped_bytes;
  };

  template <class Buffers>
  struct beast_read {
    std::shared_ptr<state> way;
    Buffers to;
    bool begun = false;

    template <class Self>
    void operator()(Self& self, error_code ec = {}, std::size_t n = 0) {
      const auto w = way;  // a copy, because moving `self` moves this object too
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
      const auto w = way;  // a copy, because moving `self` moves this object too
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
    enum { begins, may_write, wrote } at = begins;

    template <class Self>
    void operator()(Self& self, error_code ec = {}, std::size_t n = 0) {
      const auto w = way;  // a copy, because moving `self` moves this object too
      if (at == begins && !w->rest.empty()) {
        at = may_write;
        w->beast_waits = true;
        return w->beast_may_write.async_wait(std::move(self));
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
