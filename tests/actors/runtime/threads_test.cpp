// The same promises across real threads; ThreadSanitizer runs this file.
#include <array>
#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "counter.h"

namespace weir::tests::threads_test {
namespace {
struct numbered {
  int sender, n;
};
}  // namespace

TEST_CASE("many senders: each message once, each sender's in order, none told ok is lost") {
  constexpr int senders = 4, each = 5000;
  exclusive_thread home({.name = "reader"});
  std::array<int, senders> next{};
  auto a = spawn<numbered>(home.get_executor(), {.mailbox = 256},
                           [&](context<numbered> self) -> net::awaitable<void> {
                             while (auto m = co_await self.async_receive()) {
                               if (m->n != next[m->sender]++) throw std::runtime_error("out of order");
                             }
                           });
  std::vector<std::thread> threads;
  for (int s = 0; s < senders; ++s) {
    threads.emplace_back([&, s] {
      for (int n = 0; n < each; ++n) {
        while (a.tell(numbered{s, n}) != sent::ok) std::this_thread::yield();
      }
    });
  }
  for (auto& t : threads) t.join();
  a.stop();
  CHECK(a.async_join(net::use_future).get().reason == exit_reason::stopped);
  for (const int n : next) CHECK(n == each);
}

TEST_CASE("every question asked while the actor is being stopped or killed is answered") {
  for (int round = 0; round < 200; ++round) {
    exclusive_thread home({.name = "answers"});
    auto a = spawn<message>(home.get_executor(), {.mailbox = 8}, count);
    std::atomic<int> heard{0};
    std::thread asker([&] {
      std::vector<std::future<int>> answers;
      for (int i = 0; i < 50; ++i) answers.push_back(a.ask<get>(net::use_future));
      for (auto& f : answers) {
        f.wait();
        ++heard;
      }
    });
    std::thread stopper([&] { round % 2 ? a.stop() : a.kill(); });
    asker.join();
    stopper.join();
    REQUIRE(heard == 50);
    REQUIRE(a.async_join(net::use_future).get().reason ==
            (round % 2 ? exit_reason::stopped : exit_reason::killed));
  }
}

TEST_CASE("refs may be used while the actor's context is being destroyed") {
  for (int round = 0; round < 200; ++round) {
    std::optional<exclusive_thread> home(std::in_place, exclusive_thread::options{.name = "short"});
    auto a = spawn<message>(home->get_executor(), {}, count);
    std::thread teller([&] {
      while (a.tell(add{1}) != sent::closed) {
      }
      a.stop();
    });
    home.reset();
    teller.join();
    CHECK(a.tell(add{1}) == sent::closed);
  }
}

TEST_CASE("an owner thread steps many streams and each reader gets every token, then the end") {
  constexpr int streams = 50, tokens = 400;
  net::io_context io(1);
  std::atomic<int> done{0};
  std::vector<stream_writer<int>> writers;
  for (int i = 0; i < streams; ++i) {
    auto [w, r] = make_stream<int>(io.get_executor(), 15);
    writers.push_back(std::move(w));
    go(io.get_executor(), [&, r = std::move(r)]() mutable -> net::awaitable<void> {
      std::array<int, 8> some;
      for (int next = 0;;) {
        auto [ec, n] = co_await r.async_read_some(some, net::as_tuple(net::use_awaitable));
        for (std::size_t k = 0; k < n; ++k) {
          if (some[k] != next++) throw std::runtime_error("out of order");
        }
        if (!ec) continue;
        if (ec != net::error::eof || next != tokens) throw std::runtime_error("wrong end");
        ++done;
        co_return;
      }
    });
  }
  std::thread owner([writers = std::move(writers)]() mutable {
    wakes batch;
    std::vector<int> next(writers.size(), 0);
    for (std::size_t open = writers.size(); open > 0;) {
      for (std::size_t i = 0; i < writers.size(); ++i) {
        if (next[i] > tokens) continue;
        if (next[i] == tokens) {
          writers[i].close(net::error::eof, batch);
          ++next[i];
          --open;
        } else {
          next[i] += static_cast<int>(writers[i].try_write(std::span<const int>(&next[i], 1), batch));
        }
      }
      batch.flush();
    }
  });
  io.run();
  owner.join();
  CHECK(done == streams);
}

TEST_CASE("a reader's context may be destroyed while the owner goes on writing") {
  for (int round = 0; round < 100; ++round) {
    std::optional<exclusive_thread> shard(std::in_place, exclusive_thread::options{.name = "shard"});
    auto [w, r] = make_stream<int>(shard->get_executor(), 7);
    go(shard->get_executor(), [r = std::move(r)]() mutable -> net::awaitable<void> {
      std::array<int, 4> some;
      for (;;) co_await r.async_read_some(some);
    });
    std::atomic<bool> leave{false};
    std::thread owner([&, w = std::move(w)]() mutable {
      wakes batch;
      for (int i = 0; !leave; ++i) {
        w.try_write(std::span<const int>(&i, 1), batch);
        batch.flush();
      }
    });
    shard.reset();
    leave = true;
    owner.join();
  }
}

TEST_CASE("an asker's context may be destroyed while its question is being answered") {
  for (int round = 0; round < 100; ++round) {
    exclusive_thread home({.name = "answers"});
    auto a = spawn<message>(home.get_executor(), {}, count);
    {
      exclusive_thread asker({.name = "asks"});
      for (int i = 0; i < 20; ++i) {
        net::post(asker.get_executor(), [&a] { a.ask<get>([](error_code, int) {}); });
        go(asker.get_executor(), [a]() -> net::awaitable<void> { co_await a.ask<get>(net::use_awaitable); });
      }
    }
    a.stop();
  }
}

TEST_CASE("senders who wait, joins and a stop from several threads: everybody hears once") {
  for (int round = 0; round < 200; ++round) {
    exclusive_thread home({.name = "hears"});
    int read = 0;
    auto a = spawn<int>(home.get_executor(), {.mailbox = 2}, [&](context<int> self) -> net::awaitable<void> {
      while (auto m = co_await self.async_receive()) ++read;
    });
    // By callbacks: ThreadSanitizer does not see how libstdc++ counts the exceptions that futures carry.
    int taken = 0, refused = 0, other = 0;
    std::atomic<int> heard{0};
    std::thread sender([&] {
      for (int i = 0; i < 30; ++i) {
        a.async_tell(i, [&](error_code ec) {
          ++(!ec ? taken : ec == actor_error::mailbox_closed ? refused : other);
          ++heard;
        });
      }
      while (heard < 30) std::this_thread::yield();
    });
    std::thread joiner([&] {
      std::vector<std::future<exit_status>> joins;
      for (int i = 0; i < 30; ++i) joins.push_back(a.async_join(net::use_future));
      for (auto& f : joins) {
        if (f.get().reason != exit_reason::stopped) throw std::runtime_error("how?");
      }
    });
    std::thread stopper([&] {
      for (int i = 0; i < round; ++i) std::this_thread::yield();
      a.stop();
    });
    sender.join();
    joiner.join();
    stopper.join();
    REQUIRE(heard == 30);
    REQUIRE(other == 0);
    REQUIRE(read == taken);
  }
}

}  // namespace weir::tests::threads_test
