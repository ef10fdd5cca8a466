// Guarantees of docs/actors.md that no other file here tests: bursts of messages, interruption, exceptions,
// the end of an actor.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <catch2/catch.hpp>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <vector>

#include "counter.h"
#include "tests/support/seeded_executor.h"
#include "tests/support/virtual_clock.h"

namespace weir::tests::guarantees_test {

using namespace std::chrono_literals;

namespace {

// Adds its number to a list when it is destroyed.
struct mortal {
  mortal(int n, std::vector<int>* d) : no(n), deaths(d) {}
  mortal(mortal&& o) noexcept : no(o.no), deaths(std::exchange(o.deaths, nullptr)) {}
  mortal& operator=(mortal&& o) noexcept {
    mortal old(std::move(*this));
    no = o.no;
    deaths = std::exchange(o.deaths, nullptr);
    return *this;
  }
  ~mortal() {
    if (deaths) deaths->push_back(no);
  }
  int no;
  std::vector<int>* deaths;
};

net::awaitable<void> read_on(context<int> self) {
  while (auto m = co_await self.async_receive()) {
  }
}

}  // namespace

TEST_CASE("an actor is outstanding work on its executor until it has ended") {
  net::io_context io;
  auto a = spawn<int>(io.get_executor(), {}, read_on);
  io.poll();
  CHECK_FALSE(io.stopped());
  a.stop();
  io.run();
  CHECK(io.stopped());
}

TEST_CASE("async_receive hands over at most 16 messages before other handlers run") {
  net::io_context io;
  int read = 0, most = 0;
  auto a = spawn<int>(io.get_executor(), {}, [&](context<int> self) -> net::awaitable<void> {
    while (auto m = co_await self.async_receive()) ++read;
  });
  for (int i = 0; i < 100; ++i) a.tell(i);
  int before = 0;
  std::function<void()> handler = [&] {
    most = std::max(most, read - std::exchange(before, read));
    if (read < 100) net::post(io, handler);
  };
  net::post(io, handler);
  a.stop();
  io.run();
  CHECK(read == 100);
  CHECK(most == 16);
}

TEST_CASE("a timer's message joins the order of mail when it is due") {
  net::io_context io;
  std::vector<int> read;
  auto a = spawn<int>(io.get_executor(), {}, [&](context<int> self) -> net::awaitable<void> {
    self.send_after<virtual_clock>(1s, 2);
    while (auto m = co_await self.async_receive()) read.push_back(*m);
  });
  io.poll();
  a.tell(1);
  virtual_clock::advance(io, 1s);
  a.tell(3);
  a.stop();
  io.restart();
  io.run();
  CHECK(read == std::vector<int>{1, 2, 3});
}

TEST_CASE("a refused message is destroyed, and nothing accepted is dropped to make room") {
  for_each_seed(1000, [](seeded_context& sim) {
    std::vector<int> deaths, read;
    auto a =
        spawn<mortal>(sim.get_executor(), {.mailbox = 2}, [&](context<mortal> self) -> net::awaitable<void> {
          while (auto m = co_await self.async_receive()) read.push_back(m->no);
        });
    CHECK(a.tell(mortal(1, &deaths)) == sent::ok);
    CHECK(a.tell(mortal(2, &deaths)) == sent::ok);
    CHECK(a.tell(mortal(3, &deaths)) == sent::full);
    REQUIRE(deaths == std::vector<int>{3});
    a.stop();
    CHECK(a.tell(mortal(4, &deaths)) == sent::closed);
    REQUIRE(deaths == std::vector<int>{3, 4});
    sim.run();
    REQUIRE(read == std::vector<int>{1, 2});
  });
}

TEST_CASE("a stop does not interrupt what the body awaits") {
  net::io_context io;
  bool waited = false;
  auto a = spawn<int>(io.get_executor(), {}, [&](context<int> self) -> net::awaitable<void> {
    net::basic_waitable_timer<virtual_clock> timer(self.get_executor(), 1s);
    co_await timer.async_wait(net::use_awaitable);
    waited = true;
    CHECK(self.stopping());
    CHECK_FALSE(co_await self.async_receive());
  });
  io.poll();
  a.stop();
  io.poll();
  CHECK_FALSE(waited);
  virtual_clock::advance(io, 1s);
  CHECK(waited);
}

TEST_CASE("a kill waits for an operation that cannot be cancelled") {
  net::io_context io;
  bool through = false;
  auto a = spawn<int>(io.get_executor(), {}, [&](context<int> self) -> net::awaitable<void> {
    co_await net::post(self.get_executor(), net::use_awaitable);
    through = true;
    co_await self.async_receive();
    FAIL("killed");
  });
  exit_status how;
  a.async_join([&](error_code, exit_status s) { how = s; });
  io.poll_one();  // it begins, and posts
  a.kill();
  io.restart();
  io.run();
  CHECK(through);
  CHECK(how.reason == exit_reason::killed);
}

TEST_CASE("an exception that leaves the body ends the actor and goes no further") {
  net::io_context io;
  auto a = spawn<message>(io.get_executor(), {}, count);
  exit_status how;
  a.async_join([&](error_code, exit_status s) { how = s; });
  a.tell(fail{});
  CHECK_NOTHROW(io.run());
  CHECK(how.reason == exit_reason::failed);
}

TEST_CASE("an exception that leaves a completion handler goes where Asio sends it, and the actor lives on") {
  net::io_context io;
  auto a = spawn<message>(io.get_executor(), {}, count);
  a.ask<get>([](error_code, int) { throw std::runtime_error("asker's own"); });
  CHECK_THROWS_WITH(io.run(), "asker's own");
  int sum = 0;
  a.tell(add{3});
  a.ask<get>([&](error_code, int n) { sum = n; });
  io.restart();
  io.poll();
  CHECK(sum == 3);
  a.stop();
  io.restart();
  io.run();
}

TEST_CASE("unread mail is destroyed at the end, oldest first") {
  for_each_seed(1000, [](seeded_context& sim) {
    std::vector<int> deaths;
    auto a =
        spawn<mortal>(sim.get_executor(), {}, [](context<mortal>) -> net::awaitable<void> { co_return; });
    std::vector<int> numbers(8);
    std::iota(numbers.begin(), numbers.end(), 0);
    for (int n : numbers) CHECK(a.tell(mortal(n, &deaths)) == sent::ok);
    sim.run();
    REQUIRE(deaths == numbers);
  });
}

TEST_CASE("the message a body failed on is gone, and its question is answered no_reply") {
  for_each_seed(1000, [](seeded_context& sim) {
    int begun = 0;
    auto a =
        spawn<message>(sim.get_executor(), {.restart = {.when = restart_when::on_error, .first_delay = 0ms}},
                       [&](context<message> self) -> net::awaitable<void> {
                         ++begun;
                         while (auto m = co_await self.async_receive()) {
                           if (auto* g = std::get_if<get>(&*m)) g->done(7);
                           if (std::holds_alternative<lose>(*m)) throw std::runtime_error("on this");
                         }
                       });
    std::vector<error_code> heard;
    a.ask<lose>([&](error_code ec) { heard.push_back(ec); });
    a.ask<get>([&](error_code ec, int n) {
      heard.push_back(ec);
      REQUIRE(n == 7);
    });
    sim.run();
    REQUIRE(begun == 2);
    REQUIRE(std::count(heard.begin(), heard.end(), error_code(actor_error::no_reply)) == 1);
    REQUIRE(std::count(heard.begin(), heard.end(), error_code()) == 1);
    a.stop();
    sim.run();
  });
}

TEST_CASE("a child's end does nothing to its parent") {
  for_each_seed(1000, [](seeded_context& sim) {
    std::vector<exit_reason> child_ends;
    auto parent = spawn<message>(sim.get_executor(), {}, [&](context<message> self) -> net::awaitable<void> {
      const auto note = [&](error_code, exit_status how) { child_ends.push_back(how.reason); };
      auto failing = self.spawn<message>({}, count), killed = self.spawn<message>({}, count);
      failing.async_join(note);
      killed.async_join(note);
      failing.tell(fail{});
      killed.kill();
      co_await count(self);
    });
    sim.run();
    REQUIRE(child_ends.size() == 2);
    int sum = -1;
    parent.ask<get>([&](error_code, int n) { sum = n; });
    sim.run();
    REQUIRE(sum == 0);
    parent.stop();
    sim.run();
  });
}

TEST_CASE("a receive that races a timer loses no mail") {
  // Where dispatches are queued, Asio throws out of a coroutine that is cancelled before it began.
  for_each_seed(1000, dispatches::inside, [](seeded_context& sim) {
    using namespace net::experimental::awaitable_operators;
    std::vector<int> read;
    int late = 0;
    const auto a_while = []() -> net::awaitable<void> {
      for (int i = 0; i < 3; ++i) co_await net::post(net::use_awaitable);
    };
    auto a = spawn<int>(sim.get_executor(), {}, [&](context<int> self) -> net::awaitable<void> {
      for (;;) {
        auto first = co_await (self.async_receive() || a_while());
        if (first.index() == 1) {
          ++late;
        } else if (auto& m = std::get<0>(first)) {
          read.push_back(*m);
        } else {
          co_return;
        }
      }
    });
    go(sim.get_executor(), [&]() -> net::awaitable<void> {
      for (int i = 0; i < 20; ++i) {
        a.tell(i);
        for (int k = 0; k < i % 7; ++k) co_await net::post(net::use_awaitable);
      }
      a.stop();
    });
    sim.run();
    std::vector<int> all(20);
    std::iota(all.begin(), all.end(), 0);
    REQUIRE(read == all);
  });
}

TEST_CASE("a race that both sides lose throws, and one that the timer wins leaves the mail") {
  net::io_context io;
  std::optional<int> read;
  bool threw = false;
  auto a = spawn<int>(io.get_executor(), {}, [&](context<int> self) -> net::awaitable<void> {
    const auto at_once = []() -> net::awaitable<void> { co_return; };
    const auto first = co_await (self.async_receive() || at_once());
    CHECK(first.index() == 1);
    read = co_await self.async_receive();
    const auto never = [](net::any_io_executor ex) -> net::awaitable<void> {
      net::steady_timer timer(ex, net::steady_timer::time_point::max());
      co_await timer.async_wait(net::use_awaitable);
    };
    try {
      co_await (self.async_receive() || never(self.get_executor()));
    } catch (const boost::system::system_error& e) {
      threw = e.code() == net::error::operation_aborted;
      throw;
    }
  });
  io.poll();
  a.tell(5);
  io.restart();
  io.poll();
  CHECK(read == 5);
  a.kill();
  io.restart();
  io.run();
  CHECK(threw);
}

}  // namespace weir::tests::guarantees_test
