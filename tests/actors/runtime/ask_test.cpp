// Questions: every asker hears exactly once, whatever becomes of the question.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <catch2/catch.hpp>
#include <optional>
#include <vector>

#include "counter.h"
#include "tests/support/seeded_executor.h"

namespace weir::tests::ask_test {

TEST_CASE("an answer, an error of the actor's own, and a dropped question all reach the asker") {
  for_each_seed(1000, [](seeded_context& sim) {
    auto a = spawn<message>(sim.get_executor(), {}, count);
    bool done = false;
    go(sim.get_executor(), [&]() -> net::awaitable<void> {
      a.tell(add{20});
      a.tell(add{1});
      REQUIRE(co_await a.ask<get>(net::use_awaitable) == 21);
      REQUIRE(co_await a.ask<scale>(net::use_awaitable, 2) == 42);
      auto [refused, v] = co_await a.ask<scale>(net::as_tuple(net::use_awaitable), 0);
      REQUIRE(refused == net::error::invalid_argument);
      auto [lost] = co_await a.ask<lose>(net::as_tuple(net::use_awaitable));
      REQUIRE(lost == actor_error::no_reply);
      a.stop();
      done = true;
    });
    sim.run();
    REQUIRE(done);
  });
}

TEST_CASE("a refused question says why") {
  net::io_context io;
  auto a = spawn<message>(io.get_executor(), {.mailbox = 1}, count);
  std::vector<error_code> heard;
  const auto note = [&](error_code ec, int) { heard.push_back(ec); };
  a.ask<get>(note);
  a.ask<get>(note);
  CHECK(heard.empty());  // never inside the call
  io.poll();
  a.stop();
  a.ask<get>(note);
  io.run();
  REQUIRE(heard.size() == 3);
  CHECK(heard[0] == actor_error::mailbox_full);  // known before the actor ran
  CHECK(heard[1] == error_code());
  CHECK(heard[2] == actor_error::mailbox_closed);
}

TEST_CASE("a question that dies unread, with the actor, is answered no_reply") {
  for_each_seed(1000, [](seeded_context& sim) {
    auto a = spawn<message>(sim.get_executor(), {}, count);
    int heard = 0;
    a.tell(fail{});
    for (int i = 0; i < 3; ++i) {
      a.ask<get>([&](error_code ec, int) {
        REQUIRE(ec == actor_error::no_reply);
        ++heard;
      });
    }
    sim.run();
    REQUIRE(heard == 3);
  });
}

TEST_CASE("a cancelled question completes at once, and its late answer goes nowhere") {
  for_each_seed(1000, [](seeded_context& sim) {
    std::optional<reply<int>> kept;
    auto a = spawn<message>(sim.get_executor(), {}, [&](context<message> self) -> net::awaitable<void> {
      while (auto m = co_await self.async_receive()) kept.emplace(std::move(std::get<get>(*m).done));
    });
    net::cancellation_signal cancel;
    int heard = 0;
    a.ask<get>(net::bind_cancellation_slot(cancel.slot(), [&](error_code ec, int) {
      ++heard;
      REQUIRE(ec == net::error::operation_aborted);
    }));
    net::post(sim.get_executor(), [&] { cancel.emit(net::cancellation_type::terminal); });
    sim.run();
    REQUIRE(heard == 1);
    (*kept)(7);
    a.stop();
    sim.run();
    REQUIRE(heard == 1);
  });
}

TEST_CASE("actors run on strands of a pool as well") {
  net::thread_pool pool(2);
  std::vector<ref<message>> all;
  for (int i = 0; i < 16; ++i) all.push_back(spawn<message>(net::make_strand(pool), {}, count));
  for (int round = 0; round < 100; ++round) {
    for (auto& a : all) a.tell(add{1});
  }
  for (auto& a : all) {
    CHECK(a.ask<get>(net::use_future).get() == 100);
    a.stop();
  }
  pool.join();
}

}  // namespace weir::tests::ask_test
