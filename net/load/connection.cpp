#include "net/load/connection.h"

#include <algorithm>

namespace weir::load {

using boost::system::error_code;

namespace {

// Takes what comes before the session is open.
struct greeting {
  talk& from;
  happening h;
  bool heard = false;
  bool operator()(std::size_t) {
    heard = from.next(h);
    return !heard;
  }
};

}  // namespace

task<std::string> connection::open(int receive_buffer) {
  close();
  line_.emplace(shared_.io, shared_.w.tls, shared_.w.how.to.host);
  talk_.emplace(shared_.w.how, shared_.random());
  std::string why;
  endpoints to = shared_.w.to;
  if (!shared_.w.how.also.empty())
    std::ranges::rotate(to, to.begin() + static_cast<std::ptrdiff_t>(turn_++ % to.size()));
  error_code ec = co_await line_->open(to, receive_buffer);
  if (ec) {
    why = fmt::format("cannot connect: {}", ec.message());
  } else if (!talk_->opens_itself()) {
    const std::string hello = talk_->hello();
    ec = co_await line_->write(hello);
    greeting first{*talk_, {}};
    if (!ec) co_await listen(first, ec);
    if (!first.heard) {
      why = fmt::format("no answer to the upgrade: {}", ec.message());
    } else if (first.h.is != happening::kind::opened) {
      why = std::move(first.h.why);
    }
  }
  if (!why.empty()) close();
  co_return why;
}

void connection::close() {
  if (line_) line_->cut();
  line_.reset();
  talk_.reset();
}

}  // namespace weir::load
