#include "net/bus/nats_asks.h"

#include <boost/asio/post.hpp>
#include <utility>

namespace weir::net {

void nats_asks::add(std::uint64_t number, core::duration patience, actors::bus::executor ex, done what) {
  auto& w =
      waiting_.emplace(number, waiting{std::move(ex), std::move(what), boost::asio::steady_timer(here_)})
          .first->second;
  w.timer.expires_after(patience);
  w.timer.async_wait([this, number](boost::system::error_code ec) {
    if (!ec) finish(number, {answer::how::too_late, {}});
  });
}

void nats_asks::finish(std::uint64_t number, answer a) {
  const auto at = waiting_.find(number);
  if (at == waiting_.end()) return;
  boost::asio::post(at->second.ex,
                    [what = std::move(at->second.what), a = std::move(a)]() mutable { what(std::move(a)); });
  waiting_.erase(at);
}

}  // namespace weir::net
