// An engine's thread writes tokens to many streams, whose readers live on other threads.
#include <array>
#include <boost/asio/detached.hpp>
#include <thread>

#include "actors/runtime/actor.h"
#include "tests/bench/actors/contexts.h"
#include "tests/bench/actors/producer.h"
#include "tests/bench/actors/programs.h"

namespace bench {
namespace {

using token = std::uint64_t;

boost::asio::awaitable<void> read(weir::stream_reader<token> from, std::uint64_t expected) {
  std::array<token, 64> tokens;
  std::uint64_t n = 0;
  while (n < expected) {
    const auto some = co_await from.async_read_some(std::span(tokens));
    expect(tokens[0] == n, "a token is out of order");
    n += some;
  }
}

void write(const task& t, std::chrono::microseconds period) {
  contexts where(t.threads);
  std::vector<weir::stream_writer<token>> writers;
  for (std::uint64_t i = 0; i < t[0]; ++i) {
    auto [writer, reader] = weir::make_stream<token>(where.round_robin(i), stream_capacity);
    writers.push_back(std::move(writer));
    boost::asio::co_spawn(where.round_robin(i), read(std::move(reader), t[1]), boost::asio::detached);
  }
  if (period.count() == 0) t.watch.start();
  std::thread engine([&] {
    weir::wakes wakes;
    produce_tokens(
        t, period,
        [&](std::uint64_t s, token value) { return writers[s].try_write(std::span(&value, 1), wakes) == 1; },
        [&] { wakes.flush(); });
  });
  where.finish();
  if (period.count() == 0) t.watch.stop();
  engine.join();
}

}  // namespace

void token_streams(const task& t) { write(t, {}); }
void token_push(const task& t) { write(t, std::chrono::microseconds(t[2])); }

}  // namespace bench
