// connection.h — a client's connection and the protocol spoken on it.
//
// Thread safety: the worker's thread. At most one of open(), write() and listen() is pending at a time; cut()
// and interrupt() end it.
#pragma once

#include <boost/asio/async_result.hpp>
#include <boost/asio/redirect_error.hpp>
#include <optional>

#include "net/load/line.h"
#include "net/load/talk.h"
#include "net/load/worker_state.h"

namespace weir::load {

class connection {
 public:
  // `turn`: of several servers, which one is tried first.
  explicit connection(worker_state& shared, std::size_t turn = 0) : shared_(shared), turn_(turn) {}

  // Whether a request can be sent on it.
  bool ready() const { return line_ && talk_->reusable(); }
  bool exists() const { return line_.has_value(); }
  talk& speech() { return *talk_; }  // REQUIRES: exists()

  // Connects anew, and opens the session; of several servers with the next one that can be reached. Returns
  // an error message, which is empty on success; on failure the connection is closed. `receive_buffer`:
  // bytes; 0: the default.
  task<std::string> open(int receive_buffer);
  task<boost::system::error_code> write(std::string_view bytes) { return line_->write(bytes); }

  // Reads until `take` returns false (without an error), or the connection ends. After each read speech() has
  // the bytes, and `take` is called: bool take(std::size_t bytes). `take` must stay valid until the end.
  // `at_once`: most bytes of one read. All reads share one handler, and a read allocates nothing.
  template <class Take>
  task<void> listen(Take& take, boost::system::error_code& ec, std::size_t at_once = SIZE_MAX) {
    auto token = boost::asio::redirect_error(use_task, ec);
    return boost::asio::async_initiate<decltype(token), void(boost::system::error_code)>(
        begin_reading<Take>{this, &take, at_once}, token);
  }

  void interrupt() {
    if (line_) line_->interrupt();
  }
  void cut() {
    if (line_) line_->cut();
  }
  void close();  // REQUIRES: nothing is pending

 private:
  template <class Take, class Handler>
  struct reading {
    connection* self;
    Take* take;
    std::size_t at_once;
    Handler handler;

    void next() {
      const std::span<char> room = self->talk_->room();
      const auto into = boost::asio::buffer(room.data(), std::min(room.size(), at_once));
      line& from = *self->line_;
      from.start_read(into, std::move(*this));
    }
    void operator()(boost::system::error_code ec, std::size_t n) {
      if (n > 0) {
        self->talk_->took(n);
        if (!(*take)(n)) return handler(boost::system::error_code());
      }
      if (ec) return handler(ec);
      next();
    }
  };
  template <class Take>
  struct begin_reading {
    connection* self;
    Take* take;
    std::size_t at_once;
    template <class Handler>
    void operator()(Handler&& handler) const {
      reading<Take, std::decay_t<Handler>>{self, take, at_once, std::forward<Handler>(handler)}.next();
    }
  };

  worker_state& shared_;
  std::size_t turn_;
  std::optional<line> line_;
  std::optional<talk> talk_;
};

}  // namespace weir::load
