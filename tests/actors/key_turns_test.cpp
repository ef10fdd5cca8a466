// Keys take turns, whatever the order in which things come and end.
#include "actors/key_turns.h"

#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace weir::tests::key_turns_test {

using actors::key_turns;

TEST_CASE("key_turns: a key with one thing waits for one thing of a key with many") {
  key_turns<std::string> line;
  const auto take = [&] { return line.take([](const std::string&) { return true; }); };
  for (int i = 0; i < 30; ++i) {
    auto flood = "a" + std::to_string(i);
    line.add(1, flood);
  }
  CHECK(*take()->what == "a0");
  std::string lone = "b";
  line.add(2, lone);
  auto other = take();  // beside the first, where there is a worker more
  REQUIRE(other);
  CHECK(*other->what == "b");
  CHECK_FALSE(take());  // the first key has one in progress
  line.done(1);
  CHECK(*take()->what == "a1");
}

TEST_CASE("key_turns: what is put back is the next of its key, behind all other keys") {
  key_turns<std::string> line;
  const auto take = [&] { return line.take([](const std::string&) { return true; }); };
  for (std::string what : {"a0", "a1"}) line.add(1, what);
  for (std::string what : {"b0", "b1"}) line.add(2, what);
  CHECK(*take()->what == "a0");
  line.put_back(1);
  CHECK(*take()->what == "b0");
  line.done(2);
  CHECK(*take()->what == "a0");
  line.done(1);
  CHECK(*take()->what == "b1");
  CHECK(*take()->what == "a1");
}

TEST_CASE("key_turns: what may not begin keeps its turn, and others have theirs") {
  key_turns<std::string> line;
  const auto not_b = [](const std::string& what) { return what != "b"; };
  for (std::string what : {"b", "a0"}) line.add(what == "b" ? 2 : 1, what);
  CHECK(*line.take(not_b)->what == "a0");
  CHECK_FALSE(line.take(not_b));
  line.put_back(1);
  CHECK(*line.take([](const std::string&) { return true; })->what == "b");
}

// One worker or several, things of several keys that come and end at random.
TEST_CASE("key_turns: nobody of another key begins two things while a key waits") {
  for (std::uint32_t seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    key_turns<int> line;
    std::map<std::uint64_t, std::deque<int>> waiting;  // by key
    std::map<std::uint64_t, int> in_progress;
    std::map<std::uint64_t, std::map<std::uint64_t, int>>
        begun_meanwhile;  // while a key waits and is not busy
    std::vector<std::uint64_t> busy;
    const std::size_t workers = 1 + random() % 3;
    int number = 0;
    for (int step = 0; step < 2'000; ++step) {
      const auto key = random() % 3 == 0 ? 1 + random() % 4 : 1;
      if (random() % 2 == 0) {
        int what = ++number;
        line.add(key, what);
        waiting[key].push_back(number);
      } else if (!busy.empty() && random() % 2 == 0) {
        const auto at = busy.begin() + static_cast<std::ptrdiff_t>(random() % busy.size());
        if (random() % 4 == 0) {
          line.put_back(*at);
          waiting[*at].push_front(in_progress[*at]);
        } else {
          line.done(*at);
        }
        busy.erase(at);
      } else if (busy.size() < workers) {
        const auto next = line.take([](int) { return true; });
        if (!next) continue;
        REQUIRE(std::ranges::find(busy, next->key) == busy.end());
        REQUIRE(waiting[next->key].front() == *next->what);
        waiting[next->key].pop_front();
        in_progress[next->key] = *next->what;
        busy.push_back(next->key);
        begun_meanwhile.erase(next->key);
        for (const auto& [other, things] : waiting)
          if (!things.empty() && std::ranges::find(busy, other) == busy.end())
            REQUIRE(++begun_meanwhile[other][next->key] <= 1);
      }
    }
    CHECK(number > 0);
  }
}

}  // namespace weir::tests::key_turns_test
