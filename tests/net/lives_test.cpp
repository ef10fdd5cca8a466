// Ten thousand lives in virtual time: random jobs that are read fast or slowly, cancelled, deserted or late,
// through the protocol that sockets speak and the service behind it; and a drain at the end.
#include <map>

#include "tests/support/budget.h"
#include "tests/support/seed.h"
#include "tests/support/town.h"

namespace weir::tests::lives_test {

using namespace std::chrono_literals;

namespace {

actors::request anything(std::mt19937_64& random) {
  actors::request r;
  r.input = std::string(1 + random() % 400, static_cast<char>('a' + random() % 26));
  r.max_tokens = 1 + static_cast<std::int64_t>(random() % 150);
  r.priority = static_cast<int>(random() % 3);
  if (random() % 5 == 0) r.deadline = std::chrono::milliseconds(1 + random() % 2000);
  if (random() % 4 == 0) r.stop = {fmt::format("w{:02d}", random() % 100)};
  return r;
}

void found(world&, actors::service_options& o) {
  o.models.push_back({"sim", "sim:rate=200,prefill=20000,arrive=staggered"});
  o.owner.max_batch = 8;
  o.owner.queue = 20;
  o.owner.kv_tokens = 2048;
}

struct outcome {
  std::map<std::string, int> endings;
  unsigned resumed = 0;
};

// 250 jobs in each of `towns`, from the `first` drawn seed on.
outcome live_in(std::uint64_t towns, std::uint64_t first) {
  outcome all;
  for (std::uint64_t n = first; n < first + towns; ++n) {
    const auto seed = drawn_seed(n);
    INFO("seed " << seed);
    town t(seed, 250ms, found);
    core::duration when{};
    for (int i = 0; i < 250; ++i) {
      when += std::chrono::microseconds(t.here.random() % 60000);
      t.expect(when, [&] { return anything(t.here.random); });
    }
    t.live(when);
    t.judge(all.endings);
    for (const auto& l : t.lives) all.resumed += l->resumed();
  }
  return all;
}

constexpr const char* every_ending[] = {"length", "stop", "timeout", "cancel", "overloaded", "deserted"};

}  // namespace

TEST_CASE("lives: five hundred jobs each end once and leave nothing, whatever their clients do") {
  auto all = live_in(2, 1001);
  CHECK(all.resumed > 0);
  for (const char* every : every_ending) {
    CAPTURE(every);
    CHECK(all.endings[every] > 0);
  }
}

TEST_CASE("lives: so do ten thousand", "[long]") {
  auto all = live_in(rounds(40), 1);
  CHECK(all.resumed > rounds(1000));
  for (const char* every : every_ending) {
    CAPTURE(every);
    CHECK(all.endings[every] > static_cast<int>(rounds(300)));
  }
}

}  // namespace weir::tests::lives_test
