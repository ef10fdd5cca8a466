#include "net/load/line.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/write.hpp>

namespace weir::load {

namespace asio = boost::asio;
using boost::system::error_code;

line::line(asio::io_context& io, asio::ssl::context* tls, std::string host)
    : socket_(io), host_(std::move(host)) {
  if (tls) tls_.emplace(socket_, *tls);
}

task<error_code> line::open(const endpoints& to, int receive_buffer) {
  error_code ec = asio::error::host_not_found;
  for (const auto& place : to) {
    if (cut_) co_return asio::error::operation_aborted;
    error_code ignored;
    socket_.close(ignored);
    socket_.open(place.protocol(), ec);
    if (ec) continue;
    if (receive_buffer) socket_.set_option(asio::socket_base::receive_buffer_size(receive_buffer), ignored);
    co_await socket_.async_connect(place, asio::redirect_error(use_task, ec));
    if (!ec) break;
  }
  if (ec) co_return ec;
  if (cut_) co_return asio::error::operation_aborted;
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  if (!tls_) co_return ec;
  if (!SSL_set_tlsext_host_name(tls_->native_handle(), host_.c_str())) co_return asio::error::no_memory;
  tls_->set_verify_callback(asio::ssl::host_name_verification(host_));
  co_await tls_->async_handshake(asio::ssl::stream_base::client, asio::redirect_error(use_task, ec));
  co_return ec;
}

task<error_code> line::write(std::string_view bytes) {
  error_code ec;
  const auto from = asio::buffer(bytes);
  if (cut_) {
    ec = asio::error::operation_aborted;
  } else if (tls_) {
    co_await asio::async_write(*tls_, from, asio::redirect_error(use_task, ec));
  } else {
    co_await asio::async_write(socket_, from, asio::redirect_error(use_task, ec));
  }
  co_return ec;
}

task<std::size_t> line::read(asio::mutable_buffer into, error_code& ec) {
  if (tls_) return tls_->async_read_some(into, asio::redirect_error(use_task, ec));
  return socket_.async_read_some(into, asio::redirect_error(use_task, ec));
}

void line::interrupt() {
  error_code ignored;
  socket_.cancel(ignored);
}

void line::cut() {
  cut_ = true;
  error_code ignored;
  socket_.close(ignored);
}

}  // namespace weir::load
