// line.h — a connection as the harness needs it: TCP, or TLS over it, opened, written, read, cut.
//
// Thread safety: one thread, that of its io_context. One read and one write at a time.
// Invariant: cut() ends whatever is pending, and nothing begins after it.
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

// The harness runs on its workers' io_contexts: naming their executor saves the copies of a type-erased one,
// at each read.
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
  // `tls`: null for plain TCP; `host`: whose certificate it has to be.
  line(boost::asio::io_context& io, boost::asio::ssl::context* tls, std::string host);

  // `receive_buffer`: the kernel's, in bytes; 0: as it comes.
  task<boost::system::error_code> open(const endpoints& to, int receive_buffer);
  task<boost::system::error_code> write(std::string_view bytes);
  task<std::size_t> read(boost::asio::mutable_buffer into, boost::system::error_code& ec);
  void cut();

 private:
  tcp_socket socket_;
  std::optional<boost::asio::ssl::stream<tcp_socket&>> tls_;
  std::string host_;
  bool cut_ = false;
};

}  // namespace weir::load
