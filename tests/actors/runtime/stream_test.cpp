// Token streams: order, the end after the last item, batched wakes, and readers and writers that go away.
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <catch2/catch.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "counter.h"
#include "tests/support/seeded_executor.h"

namespace weir::tests::stream_test {
namespace {

// Reads all of it, a few items at a time, and gives the items and the reason for the end.
struct everything {
  std::vector<int> items;
  std::optional<error_code> end;
};
net::awaitable<void> read_all(stream_reader<int> r, everything& out) {
  std::array<int, 3> some;
  for (;;) {
    auto [ec, n] = co_await r.async_read_some(some, net::as_tuple(net::use_awaitable));
    out.items.insert(out.items.end(), some.begin(), some.begin() + n);
    if (ec) {
      out.end = ec;
      co_return;
    }
  }
}

std::vector<int> numbers(int n) {
  std::vector<int> v(n);
  std::iota(v.begin(), v.end(), 0);
  return v;
}

}  // namespace

TEST_CASE("everything written arrives in order, then the end") {
  for_each_seed(1000, [](seeded_context& sim) {
    auto [w, r] = make_stream<int>(sim.get_executor(), 7);
    everything got;
    go(sim.get_executor(), [&, r = std::move(r)]() mutable { return read_all(std::move(r), got); });
    go(sim.get_executor(), [&, w = std::move(w)]() mutable -> net::awaitable<void> {
      wakes batch;
      const auto all = numbers(40);
      std::span<const int> rest(all);
      while (!rest.empty()) {
        rest = rest.subspan(w.try_write(rest.first(std::min<std::size_t>(rest.size(), 5)), batch));
        batch.flush();
        co_await net::post(net::use_awaitable);
      }
      w.close(net::error::eof, batch);
    });
    sim.run();
    REQUIRE(got.items == numbers(40));
    REQUIRE(got.end == error_code(net::error::eof));
  });
}

TEST_CASE("a wake of many readers lets the executor's other handlers run in between") {
  net::io_context io;
  struct reader final : waker {
    explicit reader(net::io_context& at, std::vector<char>& s)
        : waker(at.get_executor(), [](waker& w) { static_cast<reader&>(w).said.push_back('w'); }), said(s) {
      arm();
    }
    std::vector<char>& said;
  };
  std::vector<char> said;
  std::vector<std::shared_ptr<reader>> all;
  wakes batch;
  for (int i = 0; i < 20; ++i) all.emplace_back(std::make_shared<reader>(io, said))->signal(batch);
  batch.flush();
  net::post(io, [&] { said.push_back('h'); });
  io.run();
  CHECK(std::string(said.begin(), said.end()) == std::string(8, 'w') + 'h' + std::string(12, 'w'));
}

TEST_CASE("a full stream takes what there is room for and says how much") {
  net::io_context io;
  auto [w, r] = make_stream<int>(io.get_executor(), 127);
  wakes batch;
  const auto many = numbers(200);
  CHECK(w.try_write(many, batch) == 127);
  CHECK(w.try_write(many, batch) == 0);
  std::vector<int> out(300);
  CHECK(r.try_read(std::span(out).first(10)) == 10);
  CHECK(w.try_write(many, batch) == 10);
}

TEST_CASE("a writer that goes away without closing ends the stream all the same") {
  for_each_seed(1000, [](seeded_context& sim) {
    everything got;
    {
      auto [w, r] = make_stream<int>(sim.get_executor(), 7);
      go(sim.get_executor(), [&, r = std::move(r)]() mutable { return read_all(std::move(r), got); });
      wakes batch;
      w.try_write(numbers(4), batch);
    }
    sim.run();
    REQUIRE(got.items == numbers(4));
    REQUIRE(got.end == error_code(actor_error::writer_gone));
  });
}

TEST_CASE("a reader that goes away shows as abandoned") {
  net::io_context io;
  auto [w, r] = make_stream<int>(io.get_executor(), 7);
  CHECK_FALSE(w.abandoned());
  { const auto gone = std::move(r); }
  CHECK(w.abandoned());
  wakes batch;
  w.try_write(numbers(3), batch);  // harmless
}

TEST_CASE("a cancelled read loses no items") {
  for_each_seed(1000, [](seeded_context& sim) {
    auto [w, r] = make_stream<int>(sim.get_executor(), 31);
    net::cancellation_signal cancel;
    std::vector<int> got;
    go(sim.get_executor(), [&, r = std::move(r)]() mutable -> net::awaitable<void> {
      std::array<int, 2> some;
      for (;;) {
        auto [ec, n] = co_await r.async_read_some(
            some, net::bind_cancellation_slot(cancel.slot(), net::as_tuple(net::use_awaitable)));
        got.insert(got.end(), some.begin(), some.begin() + n);
        if (ec == net::error::eof) co_return;
      }
    });
    go(sim.get_executor(), [&, w = std::move(w)]() mutable -> net::awaitable<void> {
      wakes batch;
      for (int i = 0; i < 20; ++i) {
        w.try_write(std::span<const int>(&i, 1), batch);
        batch.flush();
        co_await net::post(net::use_awaitable);
        cancel.emit(net::cancellation_type::all);
      }
      w.close(net::error::eof, batch);
    });
    sim.run();
    REQUIRE(got == numbers(20));
  });
}

TEST_CASE("without waiting: try_read gives what is there, ended the reason once all is read") {
  net::io_context io;
  auto [w, r] = make_stream<int>(io.get_executor(), 7);
  wakes batch;
  w.try_write(numbers(3), batch);
  w.close(net::error::eof, batch);
  CHECK_FALSE(r.ended());
  std::array<int, 7> out;
  CHECK(r.try_read(out) == 3);
  CHECK(r.ended() == error_code(net::error::eof));
}

TEST_CASE("a read into nothing completes with nothing") {
  net::io_context io;
  auto [w, r] = make_stream<int>(io.get_executor(), 7);
  auto read = r.async_read_some(std::span<int>(), net::use_future);
  io.run();
  CHECK(read.get() == 0);
}

namespace {
struct news final : waker {
  explicit news(net::any_io_executor ex)
      : waker(std::move(ex), [](waker& w) { static_cast<news&>(w).look(); }) {}
  void look() {
    ++looks;
    arm();
  }
  int looks = 0;
};
}  // namespace

TEST_CASE("a flush is one post an executor, whatever the number of wakers and signals") {
  net::io_context one, two;
  std::vector<std::shared_ptr<news>> all;
  for (int i = 0; i < 10; ++i)
    all.push_back(std::make_shared<news>(i % 2 ? one.get_executor() : two.get_executor()));
  for (auto& n : all) n->arm();
  wakes batch;
  for (int round = 0; round < 3; ++round) {
    for (auto& n : all) n->signal(batch);
  }
  CHECK(one.poll() + two.poll() == 0);  // not before the flush
  batch.flush();
  one.restart();
  two.restart();
  CHECK(one.poll() == 1);
  CHECK(two.poll() == 1);
  for (auto& n : all) CHECK(n->looks == 1);
  for (auto& n : all) n->signal(batch);  // armed again by look()
  batch.flush();
  one.restart();
  CHECK(one.poll() == 1);
}

TEST_CASE("what was written is seen by the reader's next look, or causes a wake") {
  struct board final : waker {
    explicit board(net::any_io_executor ex)
        : waker(std::move(ex), [](waker& w) { static_cast<board&>(w).look(); }) {}
    void look() {
      arm();
      seen = written;
    }
    int written = 0, seen = 0;
  };
  for_each_seed(1000, [](seeded_context& sim) {
    std::vector<std::shared_ptr<board>> all;
    for (int i = 0; i < 3; ++i) all.push_back(std::make_shared<board>(sim.get_executor()));
    for (auto& b : all) net::post(sim.get_executor(), [b] { b->look(); });
    go(sim.get_executor(), [&]() -> net::awaitable<void> {
      wakes batch;
      for (int i = 1; i <= 20; ++i) {
        for (auto& b : all) {
          b->written = i;
          b->signal(batch);
        }
        batch.flush();
        co_await net::post(net::use_awaitable);
      }
    });
    sim.run();
    for (auto& b : all) REQUIRE(b->seen == 20);
  });
}

TEST_CASE("strands of one context are told apart, however many there are") {
  net::io_context io;
  std::vector<std::shared_ptr<news>> all;
  for (int s = 0; s < 12; ++s) {
    const auto strand = net::make_strand(io);
    for (int i = 0; i < 3; ++i) all.push_back(std::make_shared<news>(strand));
  }
  for (auto& n : all) n->arm();
  wakes batch;
  for (auto& n : all) n->signal(batch);
  batch.flush();
  CHECK(io.poll() == 12);  // one invocation of each strand
  for (auto& n : all) CHECK(n->looks == 1);
}

TEST_CASE("a wake that throws costs no other its wake") {
  struct thrower final : waker {
    explicit thrower(net::any_io_executor ex) : waker(std::move(ex), [](waker&) { throw 1; }) {}
  };
  net::io_context io;
  const auto a = std::make_shared<news>(io.get_executor()), b = std::make_shared<news>(io.get_executor());
  const auto bad = std::make_shared<thrower>(io.get_executor());
  wakes batch;
  a->arm(), bad->arm(), b->arm();
  a->signal(batch), bad->signal(batch), b->signal(batch);
  batch.flush();
  CHECK_THROWS_AS(io.run(), int);
  io.run();
  CHECK(a->looks == 1);
  CHECK(b->looks == 1);
}

TEST_CASE("an unarmed waker is not woken") {
  net::io_context io;
  const auto a = std::make_shared<news>(io.get_executor());
  a->signal();
  CHECK(io.poll() == 0);
}

}  // namespace weir::tests::stream_test
