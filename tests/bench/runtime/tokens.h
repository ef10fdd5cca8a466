// tokens.h — what a producer pays to push tokens to readers on another thread.
#pragma once

#include <readerwriterqueue/readerwriterqueue.h>

#include <array>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/concurrent_channel.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "actors/runtime/actor.h"
#include "tests/bench/runtime/figures.h"

namespace weir::bench {

namespace net = boost::asio;
using boost::system::error_code;

// A step writes one token to each stream and flushes; all readers are asleep when it begins. Measured is what
// the producer pays.

constexpr int steps = 300;

struct readers {
  explicit readers(int streams) : shard("shard") {
    for (int i = 0; i < streams; ++i) {
      auto [w, r] = make_stream<int>(shard.get_executor(), 127);
      writers.push_back(std::move(w));
      net::co_spawn(shard.get_executor(), read(std::move(r)), net::detached);
    }
    net::post(shard.get_executor(), net::use_future).get();
  }
  net::awaitable<void> read(stream_reader<int> r) {
    std::array<int, 8> some;
    for (;;) {
      const auto n = co_await r.async_read_some(some, net::use_awaitable);
      got.fetch_add(static_cast<long>(n), std::memory_order_relaxed);
    }
  }
  void wait_for(long n) const {
    while (got.load(std::memory_order_relaxed) < n) {
    }
  }
  std::atomic<long> got{0};
  std::vector<stream_writer<int>> writers;
  exclusive_thread shard;
};

template <int Streams>
double push_tokens() {
  readers all(Streams);
  wakes batch;
  double ns = 0;
  for (int step = 0; step < steps; ++step) {
    const auto start = clock_type::now();
    for (auto& w : all.writers) w.try_write(std::span<const int>(&step, 1), batch);
    batch.flush();
    ns += ns_since(start, Streams);
    all.wait_for(static_cast<long>(step + 1) * Streams);
  }
  return ns / steps;
}

template <int Streams>
double push_tokens_by_channel() {
  using channel = net::experimental::concurrent_channel<void(error_code, int)>;
  exclusive_thread shard("shard");
  std::atomic<long> got{0};
  std::vector<std::unique_ptr<channel>> all;
  const auto read = [&got](channel& c) -> net::awaitable<void> {
    for (;;) {
      co_await c.async_receive(net::use_awaitable);
      got.fetch_add(1, std::memory_order_relaxed);
    }
  };
  for (int i = 0; i < Streams; ++i) {
    all.push_back(std::make_unique<channel>(shard.get_executor(), 127));
    net::co_spawn(shard.get_executor(), read(*all.back()), net::detached);
  }
  net::post(shard.get_executor(), net::use_future).get();
  double ns = 0;
  for (int step = 0; step < steps; ++step) {
    const auto start = clock_type::now();
    for (auto& c : all) c->try_send(error_code(), step);
    ns += ns_since(start, Streams);
    while (got.load(std::memory_order_relaxed) < static_cast<long>(step + 1) * Streams) {
    }
  }
  net::post(shard.get_executor(), net::use_future([&] { all.clear(); })).get();
  return ns / steps;
}

// The queues alone, read by a thread that never sleeps: what crossing between two cores costs without a wake.
inline double push_tokens_without_wakes() {
  constexpr int streams = 512;
  using queue = moodycamel::ReaderWriterQueue<int>;
  std::vector<std::unique_ptr<queue>> all;
  for (int i = 0; i < streams; ++i) all.push_back(std::make_unique<queue>(127));
  std::atomic<long> got{0};
  std::thread reader([&] {
    for (int into; got.load(std::memory_order_relaxed) < static_cast<long>(steps) * streams;) {
      for (auto& q : all) {
        while (q->try_dequeue(into)) got.fetch_add(1, std::memory_order_relaxed);
      }
    }
  });
  double ns = 0;
  for (int step = 0; step < steps; ++step) {
    const auto start = clock_type::now();
    for (auto& q : all) q->try_enqueue(step);
    ns += ns_since(start, streams);
    while (got.load(std::memory_order_relaxed) < static_cast<long>(step + 1) * streams) {
    }
  }
  reader.join();
  return ns / steps;
}

// What one wake of a sleeping context costs by itself: it bounds every figure with threads in it.
inline double wake_a_sleeper() {
  exclusive_thread there("sleeper");
  std::atomic<int> ran{0};
  double ns = 0;
  for (int i = 0; i < steps; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    const auto start = clock_type::now();
    net::post(there.get_executor(), [&ran] { ran.fetch_add(1); });
    ns += ns_since(start, 1);
    while (ran.load() <= i) {
    }
  }
  return ns / steps;
}

}  // namespace weir::bench
