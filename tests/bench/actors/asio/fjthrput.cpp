#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <memory>

#include "tests/bench/actors/asio/channel.h"
#include "tests/bench/actors/contexts.h"
#include "tests/bench/actors/programs.h"
#include "tests/bench/actors/work.h"

namespace bench {
namespace {

using boxes = std::vector<std::unique_ptr<channel<>>>;

boost::asio::awaitable<void> work(channel<>& from, std::uint64_t messages) {
  for (; messages > 0; --messages) {
    if (!from.try_receive([](boost::system::error_code) {})) {
      co_await from.async_receive(boost::asio::use_awaitable);
    }
    expect(compute(37.2) > 0, "unrealistic");
  }
}

boost::asio::awaitable<void> give(boxes& to, std::uint64_t messages) {
  for (; messages > 0; --messages) {
    for (auto& box : to) {
      if (box->try_send(boost::system::error_code())) continue;
      co_await box->async_send(boost::system::error_code(), boost::asio::use_awaitable);
    }
  }
}

}  // namespace

void fjthrput(const task& t) {
  contexts where(t.threads);
  boxes to;
  t.watch.start();
  for (std::uint64_t i = 0; i < t[1]; ++i) {
    to.push_back(std::make_unique<channel<>>(where.round_robin(i), mailbox));
    boost::asio::co_spawn(where.round_robin(i), work(*to.back(), t[0]), boost::asio::detached);
  }
  boost::asio::co_spawn(where.round_robin(t[1]), give(to, t[0]), boost::asio::detached);
  where.finish();
  t.watch.stop();
}

}  // namespace bench
