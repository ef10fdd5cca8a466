// Destruction in any order: contexts with actors, questions and reads still pending, and refs that outlive
// them all.
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <thread>

#include "counter.h"
#include "tests/support/seeded_executor.h"

namespace weir::tests::lifetime_test {

TEST_CASE("a context destroyed under an idle actor takes the actor with it, and its refs stay safe") {
  const auto alive = std::make_shared<int>();
  std::optional<net::io_context> io(std::in_place);
  auto a = spawn<message>(io->get_executor(), {}, [alive](context<message> self) { return count(self); });
  io->poll();
  std::optional<error_code> question;
  net::io_context elsewhere;
  a.ask<get>(net::bind_executor(elsewhere, [&](error_code ec, int) { question = ec; }));
  exit_status how;
  a.async_join(net::bind_executor(elsewhere, [&](error_code, exit_status s) { how = s; }));
  io.reset();
  elsewhere.run();
  CHECK(question == error_code(actor_error::no_reply));
  CHECK(how.reason == exit_reason::abandoned);
  CHECK(a.tell(add{1}) == sent::closed);
  a.stop();
  a.kill();
  a = {};
  CHECK(alive.use_count() == 1);
}

TEST_CASE("without its context a ref still refuses, and a handler that would run there is destroyed unrun") {
  const auto alive = std::make_shared<int>();
  ref<message> a;
  {
    net::io_context io;
    a = spawn<message>(io.get_executor(), {}, count);
    io.poll();
  }
  a.ask<get>([alive](error_code, int) { FAIL("nowhere to run"); });
  a.async_join([alive](error_code, exit_status) { FAIL("nowhere to run"); });
  a.async_tell(add{1}, [alive](error_code) { FAIL("nowhere to run"); });
  CHECK(alive.use_count() == 1);
  CHECK_THROWS_AS(a.ask<get>(net::use_future).get(), std::exception);
}

TEST_CASE("a new context at a dead one's address is not taken for it") {
  std::optional<net::io_context> io(std::in_place);
  auto a = spawn<message>(io->get_executor(), {}, count);
  io->poll();
  io.emplace();
  error_code heard;
  a.ask<get>(net::bind_executor(*io, [&](error_code ec, int) { heard = ec; }));
  io->run();
  CHECK(heard == actor_error::mailbox_closed);
}

TEST_CASE("a context destroyed before its actor began, or while it waits for a timer, abandons it") {
  const bool begun = GENERATE(false, true);
  std::optional<net::io_context> io(std::in_place);
  auto a = spawn<int>(io->get_executor(), {}, [](context<int> self) -> net::awaitable<void> {
    net::steady_timer never(self.get_executor(), net::steady_timer::time_point::max());
    co_await never.async_wait(net::use_awaitable);
  });
  if (begun) io->poll();
  net::io_context elsewhere;
  exit_status how;
  a.async_join(net::bind_executor(elsewhere, [&](error_code, exit_status s) { how = s; }));
  io.reset();
  elsewhere.run();
  CHECK(how.reason == exit_reason::abandoned);
}

TEST_CASE("an asker's context may die before the answer comes") {
  net::io_context io;
  std::optional<reply<int>> kept;
  auto a = spawn<message>(io.get_executor(), {}, [&](context<message> self) -> net::awaitable<void> {
    while (auto m = co_await self.async_receive()) kept.emplace(std::move(std::get<get>(*m).done));
  });
  const auto alive = std::make_shared<int>();
  {
    net::io_context asker;
    a.ask<get>(net::bind_executor(asker, [alive](error_code, int) { FAIL("its context is gone"); }));
    io.poll();
    REQUIRE(kept);
  }
  CHECK(alive.use_count() == 1);
  (*kept)(1);
  a.stop();
  io.run();
}

TEST_CASE("spawning on a context whose services are gone, and asking from one, is harmless") {
  std::optional<ref<message>> late;
  struct spawns_at_the_end {
    net::io_context& io;
    std::optional<ref<message>>& out;
    ~spawns_at_the_end() { out = spawn<message>(io.get_executor(), {}, count); }
  };
  {
    net::io_context io;
    (void)detail::lifeline::of(io.get_executor());
    const auto at_end = std::make_shared<spawns_at_the_end>(spawns_at_the_end{io, late});
    net::post(io, [at_end] {});
  }
  REQUIRE(late);
  CHECK(late->tell(add{1}) == sent::closed);
}

TEST_CASE("a stream's reader and writer may each lose the other's context") {
  wakes batch;
  std::array<int, 4> out;
  const std::array<int, 2> in{1, 2};
  std::optional<stream_writer<int>> w;
  const auto alive = std::make_shared<int>();
  {
    net::io_context io;
    auto [writer, reader] = make_stream<int>(io.get_executor(), 7);
    w.emplace(std::move(writer));
    go(io.get_executor(), [&, alive, r = std::move(reader)]() mutable -> net::awaitable<void> {
      co_await r.async_read_some(out);
    });
    io.poll();
    w->try_write(in, batch);  // collected, not flushed
  }
  CHECK(alive.use_count() == 1);
  CHECK(w->abandoned());
  batch.flush();
  w->try_write(in, batch);
  w->close(net::error::eof, batch);
}

TEST_CASE("actors on a strand of a pool are abandoned with the pool") {
  const auto alive = std::make_shared<int>();
  ref<message> a;
  {
    net::thread_pool pool(1);
    a = spawn<message>(net::make_strand(pool), {}, [alive](context<message> self) { return count(self); });
    a.tell(add{1});
    CHECK(a.ask<get>(net::use_future).get() == 1);
  }
  CHECK(a.tell(add{1}) == sent::closed);
  a = {};
  CHECK(alive.use_count() == 1);
}

TEST_CASE("actors end with their context even where they hold refs to each other") {
  const auto alive = std::make_shared<int>();
  for_each_seed(1000, [&](seeded_context& sim) {
    const auto partner = std::make_shared<ref<message>>();
    auto a = spawn<message>(sim.get_executor(), {},
                            [alive, partner](context<message> self) { return count(self); });
    *partner =
        spawn<message>(sim.get_executor(), {}, [alive, a](context<message> self) { return count(self); });
    a.tell(add{1});
    for (int i = 0; i < 5; ++i) sim.run_one();
  });
  CHECK(alive.use_count() == 1);
}

TEST_CASE("an exclusive thread destroys what was pending on itself") {
  struct noted {
    std::thread::id* where;
    explicit noted(std::thread::id* w) : where(w) {}
    noted(noted&& o) noexcept : where(std::exchange(o.where, nullptr)) {}
    ~noted() {
      if (where) *where = std::this_thread::get_id();
    }
  };
  std::thread::id destroyed, home;
  {
    exclusive_thread t({.name = "home"});
    spawn<int>(t.get_executor(), {}, [&](context<int> self) -> net::awaitable<void> {
      home = std::this_thread::get_id();
      const noted on_stack(&destroyed);
      while (auto m = co_await self.async_receive()) {
      }
    });
    net::post(t.get_executor(), net::use_future).get();
    net::post(t.get_executor(), net::use_future).get();
  }
  CHECK(home != std::thread::id());
  CHECK(destroyed == home);
}

}  // namespace weir::tests::lifetime_test
