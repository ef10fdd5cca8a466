// line.h — a connection to a server: TCP, or TLS over TCP.
//
// Thread safety: the thread of its io_context. At most one read and one write are pending at a time.
// Invariant: cut() ends all pending operations, and an operation after cut() fails.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace weir::load {

using endpoints = std::vector<boost::asio::ip::tcp::endpoint>;

// The executor of the workers' io_contexts. With this type instead of a type-erased executor, a read does not
// copy a type-erased one.
using executor = boost::asio::io_context::executor_type;
template <class T>
using task = boost::asio::awaitable<T, executor>;
inline constexpr boost::asio::use_awaitable_t<executor> use_task;
using tcp_socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, executor>;
using timer =
    boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                      boost::asio::wait_traits<std::chrono::steady_clock>, executor>;

class line {
 public:
  // `tls`: null for plain TCP. `host`: name that the server's certificate must have.
  line(boost::asio::io_context& io, boost::asio::ssl::context* tls, std::string host);

  // Connects to the first endpoint that accepts. `receive_buffer`: size of the kernel's buffer in bytes; 0:
  // the default.
  task<boost::system::error_code> open(const endpoints& to, int receive_buffer);
  task<boost::system::error_code> write(std::string_view bytes);
  task<std::size_t> read(boost::asio::mutable_buffer into, boost::system::error_code& ec);
  // The same for a handler with (error_code, std::size_t): a coroutine would cost as much as the read.
  template <class Handler>
  void start_read(boost::asio::mutable_buffer into, Handler&& handler) {
    if (tls_) return tls_->async_read_some(into, std::forward<Handler>(handler));
    socket_.async_read_some(into, std::forward<Handler>(handler));
  }
  void interrupt();  // ends the pending operations; the connection stays
  void cut();

 private:
  tcp_socket socket_;
  std::optional<boost::asio::ssl::stream<tcp_socket&>> tls_;
  std::string host_;
  bool cut_ = false;
};

}  // namespace weir::load
