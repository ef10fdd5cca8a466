#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <memory>
#include <thread>

#include "tests/bench/actors/asio/channel.h"
#include "tests/bench/actors/contexts.h"
#include "tests/bench/actors/producer.h"
#include "tests/bench/actors/programs.h"

namespace bench {
namespace {

using token = std::uint64_t;
using stream = channel<token>;

boost::asio::awaitable<void> read(stream& from, std::uint64_t expected) {
  for (std::uint64_t n = 0; n < expected; ++n) {
    token got = expected;
    if (!from.try_receive([&](boost::system::error_code, token value) { got = value; })) {
      got = co_await from.async_receive(boost::asio::use_awaitable);
    }
    expect(got == n, "a token is out of order");
  }
}

void write(const task& t, std::chrono::microseconds period) {
  contexts where(t.threads);
  std::vector<std::unique_ptr<stream>> streams;
  for (std::uint64_t i = 0; i < t[0]; ++i) {
    streams.push_back(std::make_unique<stream>(where.round_robin(i), stream_capacity));
    boost::asio::co_spawn(where.round_robin(i), read(*streams.back(), t[1]), boost::asio::detached);
  }
  if (period.count() == 0) t.watch.start();
  std::thread engine([&] {
    const auto send = [&](std::uint64_t s, token value) {
      return streams[s]->try_send(boost::system::error_code(), value);
    };
    produce_tokens(t, period, send, [] {});
  });
  where.finish();
  if (period.count() == 0) t.watch.stop();
  engine.join();
}

}  // namespace

void token_streams(const task& t) { write(t, {}); }
void token_push(const task& t) { write(t, std::chrono::microseconds(t[2])); }

}  // namespace bench
