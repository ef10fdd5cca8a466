// Long tasks of a pool give their places to other keys, in virtual time: a clock that the tasks themselves
// move on. One place: of all tasks one runs at a time, so that each test has one course.
#include <atomic>
#include <catch2/catch.hpp>
#include <future>
#include <random>
#include <thread>

#include "actors/constraint_store.h"
#include "actors/text_pool.h"
#include "core/grammar/cursor.h"
#include "core/text/template/template.h"
#include "tests/support/byte_views.h"
#include "tests/support/free_turn.h"

namespace weir::tests::text_pool_turns_test {

using namespace weir::actors;
using namespace std::chrono_literals;
using core::grammar::constraint_text;

namespace {

// Moves on by `step` at every look, too.
class moving_clock final : public core::clock {
 public:
  explicit moving_clock(core::duration step = {}) : step_(step.count()) {}
  core::time_point now() const noexcept override { return core::time_point(core::duration(at_ += step_)); }
  void advance(core::duration d) { at_ += d.count(); }

 private:
  const core::duration::rep step_;
  mutable std::atomic<core::duration::rep> at_{1'000'000'000};
};

struct turns_rig {
  explicit turns_rig(text_pool::size size, core::duration step = {})
      : clock(std::make_shared<moving_clock>(step)),
        pool(std::in_place, text_bounds(), *clock, std::make_shared<core::incidents>(), size) {}

  void post(std::uint64_t key, std::function<void(core::turn&)> run, std::function<bool()> unwanted = {}) {
    pool->post({.key = key,
                .bytes = 1,
                .run = std::move(run),
                .refuse = [](const core::error& e) { FAIL(e.message); },
                .unwanted = std::move(unwanted)});
  }
  // A task that takes so many ms of its own time. The pool is idle when it begins to be posted to.
  void post_work(std::uint64_t key, int ms) {
    post(key, [this, ms](core::turn& at) { work(at, ms); });
  }
  bool work(core::turn& at, int ms) {
    for (int i = 0; i < ms; ++i) {
      clock->advance(1ms);
      if (!at.go_on()) return false;
    }
    return true;
  }
  // Runs `first` in the pool's place, from where it may post, and then all that was posted.
  void run(std::function<void()> first) {
    post(1'000, [first = std::move(first)](core::turn&) { first(); });
    while (pool->tasks() > 0) std::this_thread::yield();
  }
  // Posts a task that takes a moment, and notes how long it waited for its beginning.
  void post_waiter(std::uint64_t key) {
    post(key, [this, from = clock->now()](core::turn&) { waited.push_back(clock->now() - from); });
  }

  const std::shared_ptr<moving_clock> clock;
  std::vector<core::duration> waited;  // of waiters; written in the pool's one place
  std::optional<text_pool> pool;
};

}  // namespace

TEST_CASE("text_pool: a key waits for one slice of another key, however long that key's tasks are") {
  turns_rig r({.places = 1, .threads = 4});
  r.run([&] {
    r.post(1, [&](core::turn& at) {
      CHECK(r.work(at, 7));
      r.post_waiter(2);
      CHECK(r.work(at, 2'000));
    });
    for (int i = 0; i < 11; ++i) r.post_work(1, 2'000);
  });
  REQUIRE(r.waited.size() == 1);
  CHECK(r.waited[0] == text_pool::slice - 7ms);
}

TEST_CASE("text_pool: beside floods of many keys a key waits for one slice of each, however often it comes") {
  turns_rig r({.places = 1, .threads = 8});
  r.run([&] {
    for (std::uint64_t key = 1; key <= 6; ++key)
      for (int i = 0; i < 12; ++i) r.post_work(key, 500);
    for (int i = 0; i < 5; ++i) r.post_waiter(7);
  });
  REQUIRE(r.waited.size() == 5);
  for (int i = 0; i < 5; ++i) CHECK(r.waited[i] == 6 * (i + 1) * text_pool::slice);
}

TEST_CASE("text_pool: where every thread has a half-done task, the next key begins when one has ended") {
  turns_rig r({.places = 1, .threads = 2});
  std::vector<std::uint64_t> ended;
  r.run([&] {
    for (std::uint64_t key = 1; key <= 2; ++key)
      r.post(key, [&, key](core::turn& at) {
        CHECK(r.work(at, key == 1 ? 1'000 : 100));
        ended.push_back(key);
      });
    r.post(3, [&](core::turn&) { ended.push_back(3); });
  });
  CHECK(ended == std::vector<std::uint64_t>{2, 3, 1});
}

TEST_CASE("text_pool: a task's time stands still while others have their turns") {
  turns_rig r({.places = 1, .threads = 4});
  core::duration own{}, all{};
  r.run([&] {
    r.post(1, [&](core::turn& at) {
      const auto from = at.now(), began = r.clock->now();
      CHECK(r.work(at, 300));
      own = at.now() - from;
      all = r.clock->now() - began;
    });
    r.post_work(2, 1'000);
  });
  CHECK(own == 300ms);
  CHECK(all > 500ms);
}

TEST_CASE("text_pool: a task that nobody wants any more ends at its next turn, and does no more") {
  turns_rig r({.places = 1, .threads = 4});
  std::atomic<bool> left{false};
  const auto began = r.clock->now();
  core::duration done{};
  r.run([&] {
    r.post(
        1,
        [&](core::turn& at) {
          const auto from = at.now();
          CHECK_FALSE(r.work(at, 1'000));
          done = at.now() - from;
          CHECK_FALSE(at.go_on());
        },
        [&] { return left.load(); });
    r.post(2, [&](core::turn&) { left = true; });
  });
  CHECK(done == text_pool::slice);
  CHECK(r.clock->now() - began == text_pool::slice);
}

TEST_CASE("text_pool: a pool that ends ends its half-done tasks, and drops those that have not begun") {
  turns_rig r({.places = 1, .threads = 3});
  std::atomic<int> begun{0}, ended{0}, dropped{0};
  for (std::uint64_t key = 1; key <= 3; ++key) {
    r.post(key, [&](core::turn& at) {
      ++begun;
      while (at.go_on()) r.clock->advance(1ms);
      ++ended;
    });
    r.post(key, [&](core::turn&) { ++dropped; });
  }
  while (begun < 3) std::this_thread::yield();
  r.pool.reset();
  CHECK(ended == 3);
  CHECK(dropped == 0);
}

// Tasks that come, last and are given up at random on several places: each ends once, and none is lost.
TEST_CASE("text_pool: random tasks of many keys all end") {
  turns_rig r({.places = 3, .threads = 6});
  std::atomic<int> ended{0}, given_up{0};
  std::mt19937 random(5);
  constexpr int all = 600;
  for (int i = 0; i < all; ++i) {
    const int ms = static_cast<int>(random() % 80);
    const bool leaves = random() % 4 == 0;
    const auto left = std::make_shared<std::atomic<bool>>(false);
    r.post(
        1 + random() % 12,
        [&, ms, leaves, left](core::turn& at) {
          if (!r.work(at, ms / 2)) ++given_up;
          if (leaves) *left = true;
          if (r.work(at, ms / 2 + 1) == leaves) FAIL("the turn does not say whether the task is wanted");
          ++ended;
        },
        [left] { return left->load(); });
  }
  while (r.pool->tasks() > 0) std::this_thread::yield();
  CHECK(ended == all);
  CHECK(given_up == 0);
}

namespace {

constraint_text slow_schema(int n) {
  constraint_text c{.what = constraint_text::kind::json_schema,
                    .text = R"({"properties":{"p":{"type":"string"})"};
  for (int i = 0; i < 200; ++i)
    c.text += R"(,"m)" + std::to_string(i) + R"(":{"maximum":)" + std::to_string(1'000 + n) + "}";
  c.text += R"(},"required":["m0","m9"]})";
  return c;
}

std::shared_ptr<const core::tokenizer> byte_words() {
  std::vector<std::string> bytes;
  for (int b = 0; b < 256; ++b) bytes.emplace_back(1, static_cast<char>(b));
  return std::make_shared<toy_tokenizer>(std::move(bytes));
}

// Byte pairs of a's, so that a text of a's is one word with many merges.
std::shared_ptr<const core::tokenizer> pairs() {
  const auto made = core::parse_tokenizer(
      R"({"model":{"type":"BPE","vocab":{"a":0,"aa":1,"aaaa":2},"merges":["a a","aa aa"]}})", "");
  REQUIRE(made.has_value());
  return *made;
}

// Posts a waiter of key 2 at the tenth look of a task.
class posting_turn final : public core::turn {
 public:
  posting_turn(core::turn& inner, turns_rig& r) : inner_(inner), rig_(r) {}
  core::time_point now() const noexcept override { return inner_.now(); }
  bool go_on() override {
    if (++looks_ == 10) rig_.post_waiter(2);
    return inner_.go_on();
  }
  int looks() const { return looks_; }

 private:
  core::turn& inner_;
  turns_rig& rig_;
  int looks_ = 0;
};

}  // namespace

// Work as it is, each look of which takes 1 ms: what a key sends does not hold up another for longer than a
// slice and a look.
TEST_CASE("text_pool: slow schemas, long texts and hostile templates of a key take turns with another key") {
  const auto words = pairs();
  const auto program = core::jinja::program::compile(
      "{% for a in range(2000) %}{% for b in range(99) %}{% set x = a ~ b %}{% endfor %}{% endfor %}");
  REQUIRE(program.has_value());
  const boost::json::object none;
  using flood = std::function<void(core::turn&, constraint_store&)>;
  const std::vector<flood> floods{
      [](core::turn& at, constraint_store& store) {
        for (int i = 0; i < 12; ++i) CHECK(store.get(slow_schema(i), "s", at, [] {})->has_value());
      },
      [&](core::turn& at, constraint_store&) {
        for (int i = 0; i < 3; ++i)
          CHECK(words->encode(std::string(2'000'000, 'a'), {.at = &at}).size() == 500'000);
      },
      [&](core::turn& at, constraint_store&) {
        CHECK((*program)->render({none, none, {}}, {.at = &at}).has_value());
      },
  };
  for (const auto& flood : floods) {
    turns_rig r({.places = 1, .threads = 4}, 1ms);
    constraint_store store(byte_words(), {}, r.clock, {},
                           std::make_shared<core::grammar::constraint_cache>());
    int looks = 0;
    r.run([&] {
      r.post(1, [&](core::turn& at) {
        posting_turn mine(at, r);
        flood(mine, store);
        looks = mine.looks();
      });
    });
    CHECK(looks > 100);
    REQUIRE(r.waited.size() == 1);
    CHECK(r.waited[0] <= text_pool::slice + 3ms);
  }
}

TEST_CASE("text_pool: a constraint whose compilation gives its place away is the same as one of its own") {
  turns_rig r({.places = 1, .threads = 4}, text_pool::slice);  // each look is the end of a slice
  constraint_store store(byte_words(), {}, r.clock, {}, std::make_shared<core::grammar::constraint_cache>());
  constraint_store alone(byte_words(), {}, r.clock, {}, std::make_shared<core::grammar::constraint_cache>());
  std::vector<std::optional<core::result<compiled_constraint>>> made(4);
  std::atomic<int> running{0}, most{0};
  r.run([&] {
    for (std::size_t key = 0; key < made.size(); ++key)
      r.post(1 + key, [&, key](core::turn& at) {
        most = std::max(most.load(), ++running);
        made[key] = store.get(slow_schema(static_cast<int>(key)), "s", at, [] {});
        --running;
      });
  });
  CHECK(most == 4);
  std::mt19937 random(3);
  for (std::size_t key = 0; key < made.size(); ++key) {
    REQUIRE(made[key]->has_value());
    free_turn at;
    const auto own = alone.get(slow_schema(static_cast<int>(key)), "s", at, [] {});
    core::grammar::cursor shared((*made[key])->rules), plain((*own)->rules);
    for (int i = 0; i < 300 && !plain.must_end(); ++i) {
      const auto ids = plain.mask()->ids();
      REQUIRE(shared.mask()->ids() == ids);
      const auto next = ids[random() % ids.size()];
      REQUIRE(plain.accept(next));
      REQUIRE(shared.accept(next));
    }
  }
}

}  // namespace weir::tests::text_pool_turns_test
