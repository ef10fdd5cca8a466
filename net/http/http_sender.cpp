#include "net/http/http_sender.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/write.hpp>

#include "net/tcp_state.h"

namespace weir::net {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

// Counts bytes in a hold until it is destroyed.
class counted_bytes {
 public:
  counted_bytes(core::memory_hold& in, std::size_t bytes) : in_(in) { in_.force(bytes); }
  counted_bytes(const counted_bytes&) = delete;
  counted_bytes& operator=(const counted_bytes&) = delete;
  ~counted_bytes() { in_.force(0); }

 private:
  core::memory_hold& in_;
};

}  // namespace

asio::awaitable<void> http_sender::write(whole_answer m) {
  const counted_bytes counted(waiting_, m.body().capacity());
  const write_under_way here(progress_);
  co_await http::async_write(stream_.socket(), m, asio::use_awaitable);
}

asio::awaitable<void> http_sender::write_bytes(std::string_view data) {
  const counted_bytes counted(waiting_, data.size());
  const write_under_way here(progress_);
  co_await asio::async_write(stream_.socket(), asio::buffer(data), asio::use_awaitable);
}

asio::awaitable<void> http_sender::begin(pieces_header m) {
  chunked_ = m.chunked();
  http::response_serializer<http::empty_body> serializer(m);
  const write_under_way here(progress_);
  co_await http::async_write_header(stream_.socket(), serializer, asio::use_awaitable);
}

asio::awaitable<void> http_sender::write_chunk(std::string_view data, bool last) {
  if (silence_) silence_->sent();
  if (!chunked_) co_return co_await write_bytes(data);
  const counted_bytes counted(waiting_, data.size());
  const write_under_way here(progress_);
  const auto chunk = http::make_chunk(asio::const_buffer(data.data(), data.size()));
  co_await asio::async_write(stream_.socket(), chunk, asio::use_awaitable);
  if (!last) co_return;
  const auto end = http::make_chunk_last();
  co_await asio::async_write(stream_.socket(), end, asio::use_awaitable);
}

bool http_sender::tick(std::chrono::steady_clock::time_point now) {
  if (progress_.writing() && progress_.stalled(now, acknowledged_bytes(stream_.socket().native_handle())))
    cut_off_stalled_reader();
  return silence_ && silence_->tick(now);
}

// Resets the connection, so that the kernel drops what it still holds for the reader.
void http_sender::cut_off_stalled_reader() {
  error_code ignored;
  stream_.socket().set_option(asio::socket_base::linger(true, 0), ignored);
  stream_.socket().close(ignored);
}

}  // namespace weir::net
