// The pool's bounds, what becomes of tasks that throw, and how long the next one would wait.
#include "actors/text_pool.h"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <future>
#include <mutex>
#include <new>
#include <thread>

namespace weir::tests::text_pool_test {

using actors::text_pool;
using namespace std::chrono_literals;

namespace {

// A clock that stands still until a task moves it on.
class hand_clock final : public core::clock {
 public:
  core::time_point now() const noexcept override { return core::time_point(core::duration(at_.load())); }
  void advance(core::duration d) { at_ += d.count(); }

 private:
  std::atomic<core::duration::rep> at_{1'000'000'000};
};

// A pool of one thread, and what became of its tasks.
struct pool_rig {
  explicit pool_rig(const actors::text_bounds& limits = {}) : pool(limits, clock, seen, {1, 1}) {}
  ~pool_rig() { go_on(); }

  // A task that lasts until go_on().
  void hold(std::uint64_t bytes) {
    std::promise<void> begun;
    post(bytes, [&] {
      begun.set_value();
      gate.wait();
    });
    begun.get_future().wait();
  }
  void go_on() {
    if (!std::exchange(open, true)) opener.set_value();
  }
  void post(std::uint64_t bytes, std::function<void()> run = [] {}) {
    text_pool::task t;
    t.bytes = bytes;
    t.run = [run = std::move(run)](core::turn&) { run(); };
    t.refuse = [this](core::error e) {
      const std::lock_guard lock(mutex);
      refused.push_back(std::move(e));
    };
    pool.post(std::move(t));
  }
  // Ends hold(), and returns when the pool has no task left.
  void finish() {
    go_on();
    while (pool.tasks() > 0) std::this_thread::yield();
  }

  hand_clock clock;
  std::vector<std::string> logged;
  const std::shared_ptr<core::incidents> seen =
      std::make_shared<core::incidents>([this](std::string_view line) { logged.emplace_back(line); });
  std::promise<void> opener;
  std::shared_future<void> gate = opener.get_future().share();
  bool open = false;
  std::mutex mutex;
  std::vector<core::error> refused;
  text_pool pool;
};

}  // namespace

TEST_CASE("text_pool: as many tasks as may, not one more, and again when some are done") {
  pool_rig r({.queue = 3});
  r.hold(1);
  for (int i = 0; i < 2; ++i) r.post(1);
  CHECK(r.refused.empty());
  r.post(1);
  REQUIRE(r.refused.size() == 1);
  CHECK(r.refused[0].code == core::errc::overloaded);
  CHECK(r.refused[0].message == "3 texts wait to be tokenised, and no more are taken for now");
  CHECK(r.refused[0].retry_after_ms == 1000);
  CHECK(r.pool.tasks() == 3);
  CHECK(r.pool.bytes() == 3);
  r.finish();
  r.post(1);
  r.finish();
  CHECK(r.refused.size() == 1);
  CHECK(r.pool.bytes() == 0);
}

TEST_CASE("text_pool: as many bytes as may, but a task alone is taken however long it is") {
  pool_rig r({.queue_bytes = 1000});
  r.hold(5000);
  r.post(1);
  REQUIRE(r.refused.size() == 1);
  CHECK(r.refused[0].message == "texts of 5000 bytes wait to be tokenised, and 1 more are not taken for now");
  r.finish();

  pool_rig s({.queue_bytes = 1000});
  s.hold(400);
  s.post(600);
  CHECK(s.refused.empty());
  s.post(1);
  CHECK(s.refused.size() == 1);
}

TEST_CASE("text_pool: a task that throws is refused, counted and told of once, and those behind it run") {
  pool_rig r;
  bool ran = false;
  r.post(10, [] { throw std::bad_alloc(); });
  r.post(10, [] { throw std::runtime_error("surprise"); });
  r.post(10, [] { throw 7; });
  r.post(10, [&] { ran = true; });
  r.finish();
  CHECK(ran);
  REQUIRE(r.refused.size() == 3);
  CHECK(r.refused[0].code == core::errc::overloaded);
  CHECK(r.refused[0].message == "out of memory");
  CHECK(r.refused[1].code == core::errc::internal);
  CHECK(r.refused[1].message.find("surprise") == std::string::npos);  // our own business
  CHECK(r.refused[2].code == core::errc::internal);
  CHECK(r.seen->count() == 3);
  REQUIRE(r.logged.size() == 2);  // the first and the second
  CHECK(r.logged[1].find("surprise") != std::string::npos);
}

TEST_CASE("text_pool: whoever has to be told of a fault is told, once there is memory for it") {
  pool_rig r;
  int tries = 0;
  text_pool::task t;
  t.run = [](core::turn&) { throw std::bad_alloc(); };
  t.refuse = [&](const core::error&) {
    if (++tries < 3) throw std::bad_alloc();
  };
  r.pool.post(std::move(t));
  r.finish();
  CHECK(tries == 3);
  CHECK(r.seen->count() == 1);
}

TEST_CASE("text_pool: the wait is the bytes that wait by the bytes a second that were measured") {
  pool_rig r({.queue_bytes = 3 << 20});
  r.post(100, [&] { r.clock.advance(5s); });  // too short to tell anything
  r.finish();
  CHECK(r.pool.predicted_wait() == 0s);
  r.post(1 << 20, [&] { r.clock.advance(2s); });
  r.finish();
  CHECK(r.pool.predicted_wait() == 0s);  // nothing waits

  std::promise<void> begun, end;
  r.post(1 << 20, [&] {
    begun.set_value();
    end.get_future().wait();
    r.clock.advance(2s);
  });
  begun.get_future().wait();
  r.post(1 << 20);
  // what is under way counts whole
  CHECK(std::chrono::duration<double>(r.pool.predicted_wait()).count() == Approx(4));
  r.post(2 << 20);
  REQUIRE(r.refused.size() == 1);
  CHECK(r.refused[0].retry_after_ms == Approx(2000));  // until 1 MiB of 2 is done
  end.set_value();
  r.finish();
}

TEST_CASE("text_pool: a key's text waits for one text of another key, however many that key has sent") {
  boost::asio::io_context here;
  hand_clock clock;
  std::vector<std::string> ran;
  {
    text_pool pool({}, clock, std::make_shared<core::incidents>(), {1, 1}, here.get_executor());
    const auto post = [&](std::uint64_t key, const std::string& name) {
      text_pool::task t;
      t.key = key;
      t.bytes = 2'000'000;
      t.run = [&ran, name](core::turn&) { ran.push_back(name); };
      t.refuse = [](const core::error& e) { FAIL(e.message); };
      pool.post(std::move(t));
    };
    for (int i = 0; i < 12; ++i) post(1, "a");
    here.run_one();
    post(2, "b");
    here.run();
  }
  REQUIRE(ran.size() == 13);
  CHECK((ran[1] == "b" || ran[2] == "b"));
}

TEST_CASE("text_pool: with two threads a key waits for no other, and has one thread itself") {
  hand_clock clock;
  text_pool pool({}, clock, std::make_shared<core::incidents>(), {2, 2});
  std::promise<void> begun, opener, other;
  auto gate = opener.get_future().share();
  std::atomic<int> second{0};
  const auto post = [&](std::uint64_t key, std::function<void()> run) {
    pool.post({.key = key,
               .bytes = 1,
               .run = [run = std::move(run)](core::turn&) { run(); },
               .refuse = [](const core::error&) {}});
  };
  post(1, [&] {
    begun.set_value();
    gate.wait();
  });
  post(1, [&] { ++second; });
  begun.get_future().wait();
  post(2, [&] { other.set_value(); });
  other.get_future().wait();
  CHECK(second == 0);
  opener.set_value();
  while (pool.tasks() > 0) std::this_thread::yield();
  CHECK(second == 1);
}

TEST_CASE("text_pool: one key leaves half of the room to the others") {
  boost::asio::io_context here;
  hand_clock clock;
  text_pool pool({.queue = 4, .queue_bytes = 1'000}, clock, std::make_shared<core::incidents>(), {1, 1},
                 here.get_executor());
  std::vector<std::string> refused;
  const auto post = [&](std::uint64_t key, std::uint64_t bytes) {
    pool.post({.key = key,
               .bytes = bytes,
               .run = [](core::turn&) {},
               .refuse = [&](const core::error& e) { refused.push_back(e.message); }});
  };
  post(1, 10), post(1, 10), post(1, 10);
  CHECK(refused == std::vector<std::string>{"2 texts wait to be tokenised, and no more are taken for now"});
  post(2, 400), post(2, 200);
  REQUIRE(refused.size() == 2);
  CHECK(refused[1] == "texts of 400 bytes wait to be tokenised, and 200 more are not taken for now");
  here.run();
  CHECK(pool.tasks() == 0);
  post(1, 10);
  CHECK(refused.size() == 2);
  here.restart();
  here.run();
}

TEST_CASE("text pool: what is dropped is destroyed on a thread of the pool, before the tasks that wait") {
  pool_rig r;
  struct noisy {
    std::promise<std::thread::id>& where;
    ~noisy() { where.set_value(std::this_thread::get_id()); }
  };
  std::promise<std::thread::id> destroyed, worked;
  auto destroyed_on = destroyed.get_future(), worked_on = worked.get_future();
  bool came_first = false;
  r.hold(1);
  r.post(1, [&] {
    came_first = destroyed_on.wait_for(0s) == std::future_status::ready;
    worked.set_value(std::this_thread::get_id());
  });
  r.pool.drop(std::make_shared<const noisy>(destroyed));
  r.finish();
  CHECK(came_first);
  CHECK(destroyed_on.get() == worked_on.get());
}

}  // namespace weir::tests::text_pool_test
