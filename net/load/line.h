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
#include <optional>
#include <string>
#include <vector>

namespace weir::load {

using endpoints = std::vector<boost::asio::ip::tcp::endpoint>;

class line {
 public:
  // `tls`: null for plain TCP; `host`: whose certificate it has to be.
  line(boost::asio::io_context& io, boost::asio::ssl::context* tls, std::string host);

  // `receive_buffer`: the kernel's, in bytes; 0: as it comes.
  boost::asio::awaitable<boost::system::error_code> open(const endpoints& to, int receive_buffer);
  boost::asio::awaitable<boost::system::error_code> write(std::string_view bytes);
  boost::asio::awaitable<std::size_t> read(boost::asio::mutable_buffer into, boost::system::error_code& ec);
  void cut();

 private:
  boost::asio::ip::tcp::socket socket_;
  std::optional<boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>> tls_;
  std::string host_;
  bool cut_ = false;
};

}  // namespace weir::load
