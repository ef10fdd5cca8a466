// What an actor promises about its mail and its end, whatever order its executor runs things in.
#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <catch2/catch.hpp>
#include <memory>
#include <stdexcept>
#include <vector>

#include "counter.h"
#include "tests/support/seeded_executor.h"

namespace weir::tests::actor_test {

TEST_CASE("nothing of the body runs inside spawn") {
  net::io_context io;
  bool ran = false;
  const auto body = [&](context<int>) -> net::awaitable<void> {
    ran = true;
    co_return;
  };
  net::post(io, [&] {
    spawn<int>(io.get_executor(), {}, body);
    CHECK_FALSE(ran);
  });
  io.run();
  CHECK(ran);
}

TEST_CASE("mail from one sender is read in the order it was sent") {
  for_each_seed(1000, [](seeded_context& sim) {
    std::vector<int> got;
    auto a = spawn<int>(sim.get_executor(), {}, [&](context<int> self) -> net::awaitable<void> {
      while (auto m = co_await self.async_receive()) {
        got.push_back(*m);
        while (auto more = self.try_receive()) got.push_back(*more);
      }
    });
    go(sim.get_executor(), [&]() -> net::awaitable<void> {
      for (int i = 0; i < 20; ++i) {
        a.tell(i);
        if (i % 3 == 0) co_await net::post(net::use_awaitable);
      }
      a.stop();
    });
    sim.run();
    REQUIRE(got.size() == 20);
    for (int i = 0; i < 20; ++i) REQUIRE(got[i] == i);
  });
}

TEST_CASE("a send that happened before another, from elsewhere, is read before it") {
  for_each_seed(1000, [](seeded_context& sim) {
    std::vector<int> got;
    auto a = spawn<int>(sim.get_executor(), {}, [&](context<int> self) -> net::awaitable<void> {
      while (auto m = co_await self.async_receive()) got.push_back(*m);
    });
    auto second = spawn<int>(sim.get_executor(), {}, [&](context<int> self) -> net::awaitable<void> {
      while (auto m = co_await self.async_receive()) a.tell(*m + 1);
      a.stop();
    });
    go(sim.get_executor(), [&]() -> net::awaitable<void> {
      for (int i = 0; i < 10; i += 2) {
        a.tell(i);
        second.tell(i);  // caused by the first
        co_await net::post(net::use_awaitable);
      }
      second.stop();
    });
    sim.run();
    REQUIRE(got.size() == 10);
    for (int i = 0; i < 10; i += 2) {
      const auto cause = std::find(got.begin(), got.end(), i),
                 effect = std::find(got.begin(), got.end(), i + 1);
      REQUIRE(cause < effect);
    }
  });
}

TEST_CASE("unread mail is bounded, and what is refused is said so") {
  net::io_context io;
  auto a = spawn<message>(io.get_executor(), {.mailbox = 4}, count);
  for (int i = 0; i < 4; ++i) CHECK(a.tell(add{1}) == sent::ok);
  CHECK(a.tell(add{1}) == sent::full);
  CHECK(a.backlog() == 4);
  io.poll();
  CHECK(a.backlog() == 0);
  CHECK(a.tell(add{1}) == sent::ok);
}

TEST_CASE("a stop is never refused, by a full mailbox least of all") {
  for_each_seed(1000, [](seeded_context& sim) {
    auto a = spawn<message>(sim.get_executor(), {.mailbox = 1}, count);
    CHECK(a.tell(add{1}) == sent::ok);
    a.stop();
    bool ended = false;
    a.async_join([&](error_code, exit_status how) { ended = how.reason == exit_reason::stopped; });
    sim.run();
    REQUIRE(ended);
  });
}

TEST_CASE("a stop is seen before mail, and mail in front of it is read after") {
  for_each_seed(1000, [](seeded_context& sim) {
    int read = 0;
    bool all_while_stopping = true;
    auto a = spawn<int>(sim.get_executor(), {}, [&](context<int> self) -> net::awaitable<void> {
      while (auto m = co_await self.async_receive()) {
        ++read;
        all_while_stopping &= self.stopping();
      }
    });
    for (int i = 0; i < 5; ++i) a.tell(i);
    a.stop();
    CHECK(a.tell(5) == sent::closed);
    sim.run();
    REQUIRE(read == 5);
    REQUIRE(all_while_stopping);
  });
}

TEST_CASE("kill cancels what the body awaits and drops unread mail") {
  for_each_seed(1000, [](seeded_context& sim) {
    int read = 0;
    auto a = spawn<message>(sim.get_executor(), {}, [&](context<message> self) -> net::awaitable<void> {
      while (auto m = co_await self.async_receive()) ++read;
    });
    exit_status how;
    error_code asked;
    a.async_join([&](error_code, exit_status s) { how = s; });
    go(sim.get_executor(), [&]() -> net::awaitable<void> {
      a.tell(add{1});
      co_await net::post(net::use_awaitable);
      a.kill();
      CHECK(a.tell(add{1}) == sent::closed);
      auto [ec] = co_await a.ask<lose>(net::as_tuple(net::use_awaitable));
      asked = ec;
    });
    sim.run();
    REQUIRE(how.reason == exit_reason::killed);
    REQUIRE(asked == actor_error::mailbox_closed);
    REQUIRE(read <= 1);
  });
}

TEST_CASE("kill reaches an actor that waits for something else than mail") {
  net::io_context io;
  auto a = spawn<int>(io.get_executor(), {}, [](context<int> self) -> net::awaitable<void> {
    net::steady_timer never(self.get_executor(), net::steady_timer::time_point::max());
    co_await never.async_wait(net::use_awaitable);
  });
  exit_status how;
  a.async_join([&](error_code, exit_status s) { how = s; });
  net::post(io, [&] { a.kill(); });
  io.run();
  CHECK(how.reason == exit_reason::killed);
}

TEST_CASE("an actor killed before it began never begins") {
  for_each_seed(1000, [](seeded_context& sim) {
    bool began = false;
    auto a = spawn<int>(sim.get_executor(), {}, [&](context<int>) -> net::awaitable<void> {
      began = true;
      co_return;
    });
    a.kill();
    exit_status how;
    a.async_join([&](error_code, exit_status s) { how = s; });
    sim.run();
    REQUIRE_FALSE(began);
    REQUIRE(how.reason == exit_reason::killed);
  });
}

TEST_CASE("a join tells how the actor ended, whether it came before or after") {
  for_each_seed(1000, [](seeded_context& sim) {
    auto a = spawn<message>(sim.get_executor(), {}, count);
    std::vector<exit_status> heard;
    const auto note = [&](error_code ec, exit_status s) {
      CHECK_FALSE(ec);
      heard.push_back(s);
    };
    a.async_join(note);
    a.tell(fail{});
    sim.run();
    a.async_join(note);
    sim.run();
    REQUIRE(heard.size() == 2);
    for (const auto& s : heard) {
      REQUIRE(s.reason == exit_reason::failed);
      REQUIRE_THROWS_WITH(std::rethrow_exception(s.error), "told to");
    }
  });
}

TEST_CASE("a body that returns by itself has finished, and takes no more mail") {
  net::io_context io;
  auto a = spawn<int>(io.get_executor(), {}, [](context<int>) -> net::awaitable<void> { co_return; });
  exit_status how{exit_reason::failed, nullptr};
  a.async_join([&](error_code, exit_status s) { how = s; });
  io.run();
  CHECK(how.reason == exit_reason::finished);
  CHECK(a.tell(1) == sent::closed);
}

TEST_CASE("a cancelled receive loses no mail") {
  for_each_seed(1000, [](seeded_context& sim) {
    int read = 0;
    net::cancellation_signal cancel;
    auto a = spawn<int>(sim.get_executor(), {}, [&](context<int> self) -> net::awaitable<void> {
      for (;;) {
        auto [ec, m] = co_await self.async_receive(
            net::bind_cancellation_slot(cancel.slot(), net::as_tuple(net::use_awaitable)));
        if (ec) continue;
        if (!m) co_return;
        REQUIRE(*m == read);
        ++read;
      }
    });
    go(sim.get_executor(), [&]() -> net::awaitable<void> {
      for (int i = 0; i < 10; ++i) {
        a.tell(i);
        co_await net::post(net::use_awaitable);
        cancel.emit(net::cancellation_type::total);
        co_await net::post(net::use_awaitable);
      }
      a.stop();
    });
    sim.run();
    REQUIRE(read == 10);
  });
}

}  // namespace weir::tests::actor_test
