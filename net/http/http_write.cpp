// How an HTTP connection sends whole answers and chunks of a stream, and what it does with a client that does
// not read.
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/write.hpp>

#include "net/http/http_session.h"
#include "net/protocol/anthropic.h"
#include "net/submit.h"

namespace weir::net {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

asio::awaitable<bool> http_session::write(reply r) {
  http::response<http::string_body> m{static_cast<http::status>(r.status), version_};
  if (!r.code.empty()) hub_.counts().rejected.add(r.code);
  if (r.close) state_.end_after_answer();
  m.keep_alive(state_.goes_on());
  if (!r.content_type.empty()) m.set(http::field::content_type, r.content_type);
  for (const auto& [name, value] : r.headers) m.set(name, value);
  add_common_headers(m);
  if (anthropic_ && !r.problem.empty()) r.body = anthropic::error_body(r.status, r.problem, request_id_);
  if (m.result() != http::status::no_content) m.content_length(r.body.size());
  if (!head_only_) m.body() = std::move(r.body);
  const write_under_way here(sending_);
  co_await http::async_write(stream_.socket(), m, asio::use_awaitable);
  co_return state_.goes_on();
}

// Adds the headers that every answer has. A reply may have its own Access-Control-Allow-Origin.
void http_session::add_common_headers(http::fields& m) const {
  m.set(http::field::server, "weir");
  m.set("x-request-id", request_id_);
  for (const auto& [name, value] : rate_limit_headers(from_, hub_.server().service.now())) m.set(name, value);
  if (anthropic_) m.set("request-id", request_id_);
  if (cors_.varies) m.insert(http::field::vary, "Origin");
  if (cors_.origin.empty() || m.count(http::field::access_control_allow_origin) > 0) return;
  m.set(http::field::access_control_allow_origin, cors_.origin);
  m.set(http::field::access_control_expose_headers, "*");
}

asio::awaitable<void> http_session::write_bytes(std::string_view data) {
  const write_under_way here(sending_);
  co_await asio::async_write(stream_.socket(), asio::buffer(data), asio::use_awaitable);
}

asio::awaitable<void> http_session::write_chunk(std::string_view data, bool last) {
  if (silence_) silence_->sent();
  if (version_ < 11) co_return co_await write_bytes(data);
  const write_under_way here(sending_);
  const auto chunk = http::make_chunk(asio::const_buffer(data.data(), data.size()));
  co_await asio::async_write(stream_.socket(), chunk, asio::use_awaitable);
  if (!last) co_return;
  const auto end = http::make_chunk_last();
  co_await asio::async_write(stream_.socket(), end, asio::use_awaitable);
}

// Reads and drops what the client still sends. A client that is still sending does not read the answer yet,
// and would lose it if the connection were closed now.
asio::awaitable<void> http_session::read_away_the_rest() {
  error_code ec;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ec);
  std::size_t read = buffer_.size();
  buffer_.clear();
  const auto into = buffer_.prepare(buffer_.max_size());
  stream_.expires_after(hub_.limits().handshake);
  while (read < hub_.limits().drained_bytes()) {
    const std::size_t n =
        co_await stream_.async_read_some(into, asio::redirect_error(asio::use_awaitable, ec));
    if (ec) co_return;
    read += n;
  }
}

// Resets the connection, so that the kernel drops what it still holds for the reader.
void http_session::cut_off_stalled_reader() {
  error_code ignored;
  stream_.socket().set_option(asio::socket_base::linger(true, 0), ignored);
  stream_.socket().close(ignored);
}

}  // namespace weir::net
