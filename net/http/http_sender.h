// http_sender.h — writes to the socket of one HTTP connection, and cuts off a client that does not read.
//
// The messages come from http_answer.h. A client is slow as send_progress.h says; a stream of events is shown
// to be alive as stream_silence.h says. What waits for the client is counted in its account: it cannot be
// refused any more.
//
// Thread safety: everything on the connection's shard. One write at a time.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <memory>
#include <string_view>
#include <utility>

#include "core/memory/account.h"
#include "net/http/http_answer.h"
#include "net/http/send_progress.h"
#include "net/http/stream_silence.h"
#include "net/limits.h"

namespace weir::net {

// What a client that waits is told while there is no answer yet. Only for HTTP/1.1.
inline constexpr std::string_view continue_line = "HTTP/1.1 100 Continue\r\n\r\n";

class http_sender {
 public:
  // `stream` must outlive the sender. `account`: of the memory of clients.
  http_sender(boost::beast::tcp_stream& stream, const server_limits& limits,
              std::shared_ptr<core::memory_account> account)
      : stream_(stream),
        progress_(limits.write_time),
        keep_alive_(limits.sse_keep_alive),
        waiting_(std::move(account)) {}

  boost::asio::awaitable<void> write(whole_answer m);
  boost::asio::awaitable<void> write_bytes(std::string_view data);

  // ---- a body in pieces: its header, chunks, and the last chunk

  boost::asio::awaitable<void> begin(pieces_header m);
  boost::asio::awaitable<void> write_chunk(std::string_view data, bool last);
  // The pieces are events, from now to end_events().
  void begin_events() { silence_.emplace(keep_alive_); }
  // No stream is silent for longer than this from now on.
  void speak_every(std::chrono::milliseconds most) {
    if (keep_alive_.count() == 0 || most < keep_alive_) keep_alive_ = most;
    if (silence_) begin_events();
  }
  // Whether the stream has been silent for so long that something has to be sent. Says so once.
  bool silent_too_long() noexcept { return silence_ && silence_->take(); }
  void end_events() noexcept { silence_.reset(); }

  // Time has passed. A client that does not read is cut off. True: silent_too_long() will say so.
  bool tick(std::chrono::steady_clock::time_point now);

 private:
  void cut_off_stalled_reader();

  boost::beast::tcp_stream& stream_;
  send_progress progress_;
  std::chrono::milliseconds keep_alive_;   // longest silence of a stream; 0: any
  std::optional<stream_silence> silence_;  // while events are streamed
  bool chunked_ = true;                    // the pieces; else the connection's end is their end
  core::memory_hold waiting_;              // of the bytes that are being written
};

}  // namespace weir::net
