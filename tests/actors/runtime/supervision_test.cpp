// Children, restarts, timers and waiting senders: what an actor starts, and what becomes of it.
#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "actors/runtime/with_timeout.h"
#include "counter.h"
#include "tests/support/seeded_executor.h"
#include "tests/support/virtual_clock.h"

namespace weir::tests::supervision_test {

using namespace std::chrono_literals;

namespace {

net::awaitable<void> read_on(context<int> self) {
  while (auto m = co_await self.async_receive()) {
  }
}

restart_policy at_once(restart_when w, int max) { return {.when = w, .max = max, .first_delay = 0ms}; }

}  // namespace

TEST_CASE("children are stopped with their parent, and joined before it") {
  for_each_seed(1000, [](seeded_context& sim) {
    std::vector<std::string> ends;
    auto parent = spawn<int>(sim.get_executor(), {}, [&](context<int> self) -> net::awaitable<void> {
      const std::array<const char*, 2> names{"a", "b"};
      for (const char* name : names) {
        auto child = self.spawn<int>({.name = name}, read_on);
        child.async_join([&ends, name](error_code, exit_status how) {
          CHECK(how.reason == exit_reason::stopped);
          ends.push_back(name);
        });
      }
      co_await self.async_receive();
    });
    parent.async_join([&](error_code, exit_status how) {
      CHECK(how.reason == exit_reason::finished);
      ends.push_back("parent");
    });
    parent.tell(1);
    sim.run();
    REQUIRE(ends.size() == 3);
  });
}

TEST_CASE("a parent's exit is not heard while a child lives") {
  net::io_context io;
  ref<int> child;
  bool child_works = true, parent_ended = false;
  auto parent = spawn<int>(io.get_executor(), {}, [&](context<int> self) -> net::awaitable<void> {
    child = self.spawn<int>({}, [&](context<int> c) -> net::awaitable<void> {
      co_await read_on(c);
      for (int i = 0; i < 5; ++i) co_await net::post(net::use_awaitable);  // has something to finish
      child_works = false;
    });
    co_await net::post(net::use_awaitable);
  });
  parent.async_join([&](error_code, exit_status) {
    parent_ended = true;
    CHECK_FALSE(child_works);
  });
  io.run();
  CHECK(parent_ended);
}

TEST_CASE("killing a parent kills its children") {
  for_each_seed(1000, [](seeded_context& sim) {
    std::optional<exit_status> child_end;
    auto parent = spawn<int>(sim.get_executor(), {}, [&](context<int> self) -> net::awaitable<void> {
      self.spawn<int>({}, read_on).async_join([&](error_code, exit_status how) { child_end = how; });
      co_await read_on(self);
    });
    exit_status end;
    parent.async_join([&](error_code, exit_status how) { end = how; });
    net::post(sim.get_executor(), [&] { parent.kill(); });
    sim.run();
    REQUIRE(end.reason == exit_reason::killed);
    if (child_end) REQUIRE(child_end->reason == exit_reason::killed);
  });
}

TEST_CASE("a failed actor is called again, keeps its mail, and gives up at the limit") {
  for_each_seed(1000, [](seeded_context& sim) {
    int begun = 0;
    std::vector<int> read;
    auto a = spawn<int>(sim.get_executor(), {.restart = at_once(restart_when::on_error, 2)},
                        [&](context<int> self) -> net::awaitable<void> {
                          ++begun;
                          while (auto m = co_await self.async_receive()) {
                            read.push_back(*m);
                            if (*m % 10 == 0) throw std::runtime_error("ten");
                          }
                        });
    exit_status end;
    a.async_join([&](error_code, exit_status how) { end = how; });
    for (int m : {1, 10, 2, 20, 3, 30, 4}) a.tell(m);
    sim.run();
    REQUIRE(begun == 3);
    REQUIRE(read == std::vector<int>{1, 10, 2, 20, 3, 30});  // the 4 died unread
    REQUIRE(end.reason == exit_reason::failed);
    REQUIRE(a.tell(5) == sent::closed);
  });
}

TEST_CASE("a stop ends restarts, before, during and after a rest") {
  for_each_seed(1000, [](seeded_context& sim) {
    auto a = spawn<message>(sim.get_executor(), {.restart = at_once(restart_when::always, 1'000'000)}, count);
    bool ended = false;
    a.async_join([&](error_code, exit_status) { ended = true; });
    go(sim.get_executor(), [&]() -> net::awaitable<void> {
      for (int i = 0; i < 4; ++i) {
        a.tell(fail{});
        co_await net::post(net::use_awaitable);
      }
      a.stop();
    });
    sim.run();
    REQUIRE(ended);
  });
}

TEST_CASE("restarts wait, twice as long each time, and forget what is long ago") {
  net::io_context io;
  int begun = 0;
  options o;
  o.restart = {.when = restart_when::always, .max = 3, .within = 10'000ms, .first_delay = 100ms};
  auto a = spawn<int, virtual_clock>(io.get_executor(), o, [&](context<int>) -> net::awaitable<void> {
    ++begun;
    co_return;
  });
  io.poll();
  CHECK(begun == 1);
  virtual_clock::advance(io, 99ms);
  CHECK(begun == 1);
  virtual_clock::advance(io, 1ms);
  CHECK(begun == 2);
  virtual_clock::advance(io, 199ms);
  CHECK(begun == 2);
  virtual_clock::advance(io, 1ms);
  CHECK(begun == 3);
  virtual_clock::advance(io, 400ms);
  CHECK(begun == 4);
  CHECK(a.tell(1) == sent::closed);  // the fourth end within ten seconds is the last
}

TEST_CASE("a resting actor can be stopped or killed, and its context destroyed") {
  options o;
  o.restart = {.when = restart_when::on_error, .first_delay = 1'000'000ms};
  std::optional<exit_status> end;
  std::optional<net::io_context> io(std::in_place);
  auto a = spawn<message>(io->get_executor(), o, count);
  a.tell(fail{});
  io->poll();
  net::io_context elsewhere;
  a.async_join(net::bind_executor(elsewhere, [&](error_code, exit_status how) { end = how; }));
  SECTION("stopped") {
    a.stop();
    io->run();
    elsewhere.run();
    CHECK(end->reason == exit_reason::failed);
  }
  SECTION("killed") {
    a.kill();
    io->run();
    elsewhere.run();
    CHECK(end->reason == exit_reason::killed);
  }
  SECTION("context destroyed") {
    io.reset();
    elsewhere.run();
    CHECK(end->reason == exit_reason::abandoned);
  }
}

TEST_CASE("send_after arrives in time, full mailbox or not, and dies with the actor") {
  net::io_context io;
  std::vector<int> read;
  auto a = spawn<int>(io.get_executor(), {.mailbox = 1}, [&](context<int> self) -> net::awaitable<void> {
    self.send_after<virtual_clock>(2s, 2);
    self.send_after<virtual_clock>(1s, 1);
    self.send_after<virtual_clock>(1h, 3);
    while (auto m = co_await self.async_receive()) read.push_back(*m);
  });
  io.poll();
  CHECK(read.empty());
  virtual_clock::advance(io, 1s);
  CHECK(read == std::vector<int>{1});
  a.tell(7);
  virtual_clock::advance(io, 1s);
  CHECK(read.size() == 3);
  a.stop();
  io.restart();
  io.run();  // returns: the hour is not waited for
  CHECK(read.size() == 3);
}

TEST_CASE("async_tell waits for room, in order, and nobody overtakes") {
  for_each_seed(1000, [](seeded_context& sim) {
    std::vector<int> read;
    auto a = spawn<int>(sim.get_executor(), {.mailbox = 2}, [&](context<int> self) -> net::awaitable<void> {
      while (auto m = co_await self.async_receive()) read.push_back(*m);
    });
    go(sim.get_executor(), [&]() -> net::awaitable<void> {
      for (int i = 0; i < 20; ++i) co_await a.async_tell(i, net::use_awaitable);
      a.stop();
    });
    sim.run();
    REQUIRE(read.size() == 20);
    REQUIRE(std::is_sorted(read.begin(), read.end()));
  });
}

TEST_CASE("a waiting sender is told of the stop, and one that gives up takes its message back") {
  for_each_seed(1000, [](seeded_context& sim) {
    std::vector<int> read;
    auto a = spawn<int>(sim.get_executor(), {.mailbox = 1}, [&](context<int> self) -> net::awaitable<void> {
      while (auto m = co_await self.async_receive()) read.push_back(*m);
    });
    net::cancellation_signal cancel;
    std::vector<error_code> heard;
    const auto note = [&](error_code ec) { heard.push_back(ec); };
    a.tell(0);
    a.async_tell(1, net::bind_cancellation_slot(cancel.slot(), note));
    a.async_tell(2, note);
    CHECK(a.tell(3) == sent::full);  // not past those who wait
    cancel.emit(net::cancellation_type::total);
    a.stop();
    sim.run();
    REQUIRE(heard.size() == 2);
    REQUIRE(std::count(heard.begin(), heard.end(), error_code(net::error::operation_aborted)) == 1);
    REQUIRE(std::count(heard.begin(), heard.end(), error_code(actor_error::mailbox_closed)) == 1);
    REQUIRE(read == std::vector<int>{0});
  });
}

TEST_CASE("with_timeout gives the answer, the error, or timed_out") {
  net::io_context io;
  std::vector<reply<int>> kept;
  auto slow = spawn<message>(io.get_executor(), {}, [&](context<message> self) -> net::awaitable<void> {
    while (auto m = co_await self.async_receive()) kept.push_back(std::move(std::get<get>(*m).done));
  });
  auto quick = spawn<message>(io.get_executor(), {}, count);
  error_code late, lost;
  int answer = -1;
  go(io.get_executor(), [&]() -> net::awaitable<void> {
    answer = co_await with_timeout<virtual_clock>(1s, quick.ask<get>(net::deferred));
    try {
      co_await with_timeout<virtual_clock>(1s, quick.ask<lose>(net::deferred));
    } catch (const boost::system::system_error& e) {
      lost = e.code();
    }
    try {
      co_await with_timeout<virtual_clock>(1s, slow.ask<get>(net::deferred));
    } catch (const boost::system::system_error& e) {
      late = e.code();
    }
  });
  io.poll();
  CHECK(answer == 0);
  CHECK(lost == actor_error::no_reply);
  CHECK_FALSE(late);
  virtual_clock::advance(io, 1s);
  CHECK(late == actor_error::timed_out);
  kept.clear();
  slow.stop();
  quick.stop();
  io.restart();
  io.run();
}

TEST_CASE("an observer hears of reading, working, dead letters, restarts and the end") {
  struct log final : observer {
    void read(const std::string&, std::chrono::nanoseconds waited, std::size_t left) override {
      CHECK(waited.count() >= 0);
      reads.push_back(left);
    }
    void worked(const std::string&, std::chrono::nanoseconds) override { ++works; }
    void dead_letters(const std::string& name, std::size_t n, sent why) override {
      CHECK(name == "seen");
      (why == sent::ok ? unread : refused) += n;
    }
    void ended(const std::string&, const exit_status&, bool again) override { ++(again ? restarts : ends); }
    std::vector<std::size_t> reads;
    int works = 0, restarts = 0, ends = 0;
    std::size_t unread = 0, refused = 0;
  } seen;
  net::io_context io;
  auto a = spawn<message>(
      io.get_executor(),
      {.name = "seen", .mailbox = 4, .restart = at_once(restart_when::on_error, 1), .watch = &seen}, count);
  a.tell(add{1});
  a.tell(fail{});
  a.tell(fail{});
  a.tell(add{1});
  a.tell(add{1});  // full
  io.run();
  a.tell(add{1});  // closed
  CHECK(seen.reads == std::vector<std::size_t>{3, 2, 1});
  CHECK(seen.works == 3);
  CHECK(seen.refused == 2);
  CHECK(seen.unread == 1);
  CHECK(seen.restarts == 1);
  CHECK(seen.ends == 1);
}

}  // namespace weir::tests::supervision_test
