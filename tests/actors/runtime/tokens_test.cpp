// Every asynchronous call is an Asio operation: any completion token, any executor that runs one handler at a
// time, per-operation cancellation, associated allocators.
#include <array>
#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "actors/runtime/with_timeout.h"
#include "counter.h"

namespace weir::tests::tokens_test {

using namespace std::chrono_literals;

namespace {

// Starts `operation` (called with a token) with one kind of token after the other; `good` judges the value.
template <class Value, class Operation, class Good>
void with_every_token(net::io_context& io, Operation operation, Good good) {
  int heard = 0;
  const auto check = [&](error_code ec, const Value& v) {
    CHECK_FALSE(ec);
    CHECK(good(v));
    ++heard;
  };
  const auto run = [&io] {
    io.restart();
    io.poll();
  };

  operation([&](error_code ec, Value v) { check(ec, v); });
  run();
  CHECK(heard == 1);

  auto future = operation(net::use_future);
  run();
  check({}, future.get());

  auto later = operation(net::deferred);
  run();
  CHECK(heard == 2);  // nothing happens before it is started
  std::move(later)([&](error_code ec, Value v) { check(ec, v); });
  run();
  CHECK(heard == 3);

  operation(
      net::as_tuple([&](std::tuple<error_code, Value> all) { check(std::get<0>(all), std::get<1>(all)); }));
  run();
  CHECK(heard == 4);

  go(io.get_executor(), [&]() -> net::awaitable<void> {
    Value v = co_await operation(net::use_awaitable);
    check({}, v);
    Value without_frame = co_await operation(net::deferred);
    check({}, without_frame);
    auto [ec, w] = co_await operation(net::as_tuple(net::use_awaitable));
    check(ec, w);
  });
  run();
  CHECK(heard == 7);
}

}  // namespace

TEST_CASE("ask takes any completion token") {
  net::io_context io;
  auto a = spawn<message>(io.get_executor(), {}, count);
  a.tell(add{5});
  with_every_token<int>(
      io, [&](auto&& token) { return a.ask<get>(std::forward<decltype(token)>(token)); },
      [](int n) { return n == 5; });
  a.stop();
  io.run();
}

TEST_CASE("async_join takes any completion token") {
  net::io_context io;
  auto a = spawn<message>(io.get_executor(), {}, count);
  a.stop();
  with_every_token<exit_status>(
      io, [&](auto&& token) { return a.async_join(std::forward<decltype(token)>(token)); },
      [](const exit_status& how) { return how.reason == exit_reason::stopped; });
}

TEST_CASE("async_read_some takes any completion token") {
  net::io_context io;
  auto [w, r] = make_stream<int>(io.get_executor(), 127);
  wakes batch;
  const std::array<int, 7> in{1, 2, 3, 4, 5, 6, 7};
  w.try_write(in, batch);
  int one = 0;
  int last = 0;
  with_every_token<std::size_t>(
      io,
      [&, &r = r](auto&& token) {
        return r.async_read_some(std::span<int>(&one, 1), std::forward<decltype(token)>(token));
      },
      [&](std::size_t n) { return n == 1 && one == ++last; });
}

TEST_CASE("async_receive takes any completion token") {
  net::io_context io;
  std::optional<context<int>> inside;
  auto a = spawn<int>(io.get_executor(), {}, [&](context<int> self) -> net::awaitable<void> {
    inside.emplace(self);
    net::steady_timer never(self.get_executor(), net::steady_timer::time_point::max());
    co_await never.async_wait(net::as_tuple(net::use_awaitable));
    inside.reset();
  });
  io.poll();
  REQUIRE(inside);
  for (int i = 1; i <= 7; ++i) a.tell(i);
  int last = 0;
  with_every_token<std::optional<int>>(
      io, [&](auto&& token) { return inside->async_receive(std::forward<decltype(token)>(token)); },
      [&](std::optional<int> m) { return m == ++last; });
  a.kill();
  io.restart();
  io.run();
}

TEST_CASE("async_tell takes any completion token") {
  net::io_context io;
  int read = 0;
  auto a = spawn<int>(io.get_executor(), {.mailbox = 1}, [&](context<int> self) -> net::awaitable<void> {
    while (auto m = co_await self.async_receive()) ++read;
  });
  int heard = 0;
  const auto note = [&](error_code ec) {
    CHECK_FALSE(ec);
    ++heard;
  };
  a.async_tell(1, note);
  a.async_tell(2, net::as_tuple([&](std::tuple<error_code> all) { note(std::get<0>(all)); }));
  auto future = a.async_tell(3, net::use_future);
  auto later = a.async_tell(4, net::deferred);
  std::move(later)(note);
  go(io.get_executor(), [&]() -> net::awaitable<void> {
    co_await a.async_tell(5, net::use_awaitable);
    auto [ec] = co_await a.async_tell(6, net::as_tuple(net::use_awaitable));
    note(ec);
    a.stop();
  });
  io.run();
  future.get();
  CHECK(heard == 4);
  CHECK(read == 6);
}

TEST_CASE("with_timeout takes any operation that lacks its token") {
  net::io_context io;
  int answer = 0;
  std::size_t items = 0;
  std::optional<int> mail;
  exit_reason end{};
  auto [w, r] = make_stream<int>(io.get_executor(), 7);
  auto a = spawn<message>(io.get_executor(), {}, count);
  auto reads = spawn<int>(io.get_executor(), {}, [&](context<int> self) -> net::awaitable<void> {
    mail = co_await with_timeout(1h, self.async_receive());
  });
  go(io.get_executor(), [&, w = std::move(w), r = std::move(r)]() mutable -> net::awaitable<void> {
    answer = co_await with_timeout(1h, a.ask<scale>(net::deferred, 3));
    co_await with_timeout(1h, reads.async_tell(8, net::deferred));
    a.stop();
    const exit_status how = co_await with_timeout(1h, a.async_join(net::deferred));
    end = how.reason;
    wakes batch;
    std::array<int, 4> some{1, 2, 3, 4};
    w.try_write(some, batch);
    items = co_await with_timeout(1h, r.async_read_some(some));
  });
  a.tell(add{5});
  io.run();
  CHECK(answer == 15);
  CHECK(mail == 8);
  CHECK(end == exit_reason::stopped);
  CHECK(items == 4);
}

TEST_CASE("an error through use_future is an exception") {
  exclusive_thread home("home");
  auto a = spawn<message>(home.get_executor(), {}, count);
  CHECK_THROWS_AS(a.ask<lose>(net::use_future).get(), boost::system::system_error);
}

TEST_CASE("a handler runs on its own executor, whose context waits for it") {
  exclusive_thread home("home");
  auto a = spawn<message>(home.get_executor(), {}, count);
  auto [w, r] = make_stream<int>(home.get_executor(), 7);
  wakes batch;
  const int five = 5;
  w.try_write(std::span<const int>(&five, 1), batch);
  net::io_context io;
  int got = 0, read = 0;
  const auto at_home = [&] { CHECK(io.get_executor().running_in_this_thread()); };
  a.tell(add{5});
  a.ask<get>(net::bind_executor(io, [&](error_code, int v) {
    at_home();
    got = v;
  }));
  net::post(home.get_executor(), [&, &r = r] {
    r.async_read_some(std::span<int>(&read, 1),
                      net::bind_executor(io, [&](error_code, std::size_t) { at_home(); }));
  });
  net::post(home.get_executor(), net::use_future).get();
  io.run();  // returns once both have run
  CHECK(got == 5);
  CHECK(read == 5);
}

// ---- executors

namespace {

// An actor with a child, a question and a stream on one executor, from another thread.
template <class Executor>
void works_on(Executor ex) {
  std::atomic<int> in_handlers{0};
  std::atomic<bool> together{false};
  const auto alone = [&] {
    if (in_handlers.fetch_add(1) != 0) together = true;
    in_handlers.fetch_sub(1);
  };
  std::pair<stream_writer<int>, stream_reader<int>> ends = make_stream<int>(ex, 127);
  auto& [w, r] = ends;
  ref<message> a = spawn<message>(ex, {}, [&](context<message> self) -> net::awaitable<void> {
    ref<message> child = self.spawn<message>({}, count);
    int sum = 0;
    while (auto m = co_await self.async_receive()) {
      alone();
      if (auto* x = std::get_if<add>(&*m)) child.tell(*x);
      if (auto* g = std::get_if<get>(&*m)) {
        sum = co_await child.ask<get>(net::use_awaitable);
        g->done(sum);
      }
    }
  });
  int read = 0;
  // The reader uses no variable of this function once it is true.
  const auto at_end = std::make_shared<std::atomic<bool>>(false);
  go(ex, [&, at_end, r = std::move(r)]() mutable -> net::awaitable<void> {
    std::array<int, 8> some;
    for (;;) {
      auto [ec, n] = co_await r.async_read_some(some, net::as_tuple(net::use_awaitable));
      alone();
      if (ec) break;
      read += static_cast<int>(n);
    }
    at_end->store(true);
  });
  {
    wakes batch;
    for (int i = 0; i < 100; ++i) {
      CHECK(a.tell(add{1}) == sent::ok);
      w.try_write(std::span<const int>(&i, 1), batch);
      if (i % 10 == 0) batch.flush();
    }
    w.close(net::error::eof, batch);
  }
  CHECK(a.ask<get>(net::use_future).get() == 100);
  a.stop();
  CHECK(a.async_join(net::use_future).get().reason == exit_reason::stopped);
  while (!at_end->load()) std::this_thread::yield();
  CHECK(read == 100);
  CHECK_FALSE(together);
}

}  // namespace

TEST_CASE("actors and streams work on an io_context, a strand, and a strand of a thread_pool") {
  SECTION("io_context") {
    exclusive_thread home("home");
    works_on(home.get_executor());
  }
  SECTION("a strand of an io_context run by two threads") {
    net::io_context io;
    auto work = net::make_work_guard(io);
    std::thread one([&] { io.run(); }), two([&] { io.run(); });
    works_on(net::make_strand(io));
    work.reset();
    one.join();
    two.join();
  }
  SECTION("a strand of a thread_pool") {
    net::thread_pool pool(2);
    works_on(net::make_strand(pool));
    pool.join();
  }
  SECTION("any_io_executor around one") {
    net::thread_pool pool(2);
    works_on(net::any_io_executor(net::make_strand(pool)));
    pool.join();
  }
}

// ---- cancellation of single operations

TEST_CASE("each operation can be cancelled by itself, and completes with operation_aborted") {
  net::io_context io;
  std::vector<reply<int>> kept;
  auto a =
      spawn<message>(io.get_executor(), {.mailbox = 1}, [&](context<message> self) -> net::awaitable<void> {
        while (auto m = co_await self.async_receive()) {
          if (auto* g = std::get_if<get>(&*m)) kept.push_back(std::move(g->done));
          net::steady_timer never(self.get_executor(), net::steady_timer::time_point::max());
          co_await never.async_wait(net::use_awaitable);
        }
      });
  auto [w, r] = make_stream<int>(io.get_executor(), 7);
  std::vector<error_code> heard;
  const auto note = [&](error_code ec, auto&&...) { heard.push_back(ec); };
  std::array<net::cancellation_signal, 4> cancel;
  int out = 0;
  a.ask<get>(net::bind_cancellation_slot(cancel[0].slot(), note));
  io.poll();
  a.tell(add{1});  // full
  a.async_tell(add{2}, net::bind_cancellation_slot(cancel[1].slot(), note));
  a.async_join(net::bind_cancellation_slot(cancel[2].slot(), note));
  r.async_read_some(std::span<int>(&out, 1), net::bind_cancellation_slot(cancel[3].slot(), note));
  io.restart();
  io.poll();
  CHECK(heard.empty());
  for (std::size_t i = 0; i < cancel.size(); ++i) {
    cancel[i].emit(net::cancellation_type::none);  // not a request
    cancel[i].emit(net::cancellation_type::terminal);
    CHECK(heard.size() == i);  // never inside emit
    io.restart();
    io.poll();
    REQUIRE(heard.size() == i + 1);
    CHECK(heard.back() == net::error::operation_aborted);
    cancel[i].emit(net::cancellation_type::terminal);  // late: nothing
  }
  kept.clear();  // the late answer goes nowhere
  io.restart();
  io.poll();
  CHECK(heard.size() == cancel.size());
  a.kill();
  io.restart();
  io.run();
}

// ---- allocators

namespace {

// Counts what is allocated through it.
template <class T>
struct counting_allocator {
  using value_type = T;
  explicit counting_allocator(int* n) : live(n) {}
  template <class U>
  counting_allocator(const counting_allocator<U>& o) : live(o.live) {}
  T* allocate(std::size_t n) {
    ++*live;
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T* p, std::size_t n) {
    --*live;
    std::allocator<T>().deallocate(p, n);
  }
  template <class U>
  bool operator==(const counting_allocator<U>& o) const {
    return live == o.live;
  }
  int* live;
};

struct allocating_handler {
  using allocator_type = counting_allocator<void>;
  allocator_type get_allocator() const { return allocator_type(live); }
  template <class... Args>
  void operator()(error_code, Args&&...) const {
    live_when_run->push_back(*live);
  }
  int* live;
  std::vector<int>* live_when_run;
};

}  // namespace

TEST_CASE("the handler's allocator holds the operation, and has its memory back before the handler runs") {
  net::io_context io;
  auto a = spawn<message>(io.get_executor(), {}, count);
  auto [w, r] = make_stream<int>(io.get_executor(), 7);
  int live = 0, out = 0;
  std::vector<int> live_when_run;
  const allocating_handler handler{&live, &live_when_run};
  a.ask<get>(handler);
  CHECK(live == 1);
  a.async_join(handler);
  CHECK(live == 2);
  r.async_read_some(std::span<int>(&out, 1), handler);
  CHECK(live == 3);
  io.poll();
  CHECK(live == 2);
  { const auto gone = std::move(w); }
  a.stop();
  io.restart();
  io.run();
  CHECK(live_when_run == std::vector<int>{2, 1, 0});
}

TEST_CASE("the handler's allocator has its memory back after a cancellation, whoever still holds the reply") {
  net::io_context io;
  std::optional<reply<int>> kept;
  auto a = spawn<message>(io.get_executor(), {}, [&](context<message> self) -> net::awaitable<void> {
    while (auto m = co_await self.async_receive()) kept.emplace(std::move(std::get<get>(*m).done));
  });
  int live = 0;
  std::vector<int> live_when_run;
  net::cancellation_signal cancel;
  a.ask<get>(net::bind_cancellation_slot(cancel.slot(), allocating_handler{&live, &live_when_run}));
  io.poll();
  REQUIRE(kept);
  CHECK(live == 1);
  cancel.emit(net::cancellation_type::terminal);
  io.restart();
  io.poll();
  CHECK(live_when_run == std::vector<int>{0});
  (*kept)(1);
  a.stop();
  io.restart();
  io.run();
}

}  // namespace weir::tests::tokens_test
