#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

#include "tests/bench/actors/asio/channel.h"
#include "tests/bench/actors/contexts.h"
#include "tests/bench/actors/programs.h"
#include "tests/bench/actors/work.h"

namespace bench {
namespace {

// A channel is a bounded buffer: producers wait for room in it, consumers for items, and nobody manages it.
struct buffer {
  channel<double> items;
  std::atomic<std::int64_t> wanted;
};

boost::asio::awaitable<void> produce(buffer& to, std::uint64_t items, std::uint64_t cost) {
  double value = 0;
  for (; items > 0; --items) {
    value = process_item(value, cost);
    co_await to.items.async_send(boost::system::error_code(), value, boost::asio::use_awaitable);
  }
}

boost::asio::awaitable<void> consume(buffer& from, std::uint64_t cost) {
  double value = 0;
  while (from.wanted-- > 0) {
    const double item = co_await from.items.async_receive(boost::asio::use_awaitable);
    value = process_item(value + item, cost);
  }
}

}  // namespace

void bndbuffer(const task& t) {
  expect(t[0] > t[1], "BUFFER must be larger than PRODUCERS");
  contexts where(t.threads);
  buffer b{{where.round_robin(0), t[0] - t[1]}, std::int64_t(t[1] * t[3])};
  t.watch.start();
  for (std::uint64_t i = 0; i < t[2]; ++i) {
    boost::asio::co_spawn(where.round_robin(i), consume(b, t[5]), boost::asio::detached);
  }
  for (std::uint64_t i = 0; i < t[1]; ++i) {
    boost::asio::co_spawn(where.round_robin(i), produce(b, t[3], t[4]), boost::asio::detached);
  }
  where.finish();
  t.watch.stop();
}

}  // namespace bench
