// How long a stream may wait for its next token while somebody else's prompt is computed.
#include <random>

#include "core/engine.h"
#include "tests/support/engine_rig.h"

namespace weir::tests::engine_gap_test {

using namespace weir::core;
using namespace std::chrono_literals;

namespace {

constexpr duration prefill_time = 30ms;

engine_config sixteen_and_a_prompt() {
  auto c = small_config();
  c.kv_pages = 512;
  c.prefill_rows = 512;
  c.step_target = prefill_time;
  c.lone_step_target = 250ms;
  return c;
}

// A device in virtual time: each pass reads the weights; each row is multiplied with the weights and attends
// to its context, so that the later rows of a prompt cost more.
struct costs {
  duration pass = 8ms, row = 100us, seen = 25ns;

  duration of(const batch& b) const {
    duration all = pass;
    for (const auto& s : b.slices) all += s.rows * (row + seen * (s.position + s.rows / 2));
    return all;
  }
};

struct crowd {
  engine_rig rig{sixteen_and_a_prompt(), letters(61), 8192};
  duration longest_decode_step{};
  std::vector<std::shared_ptr<recording_sink>> streams;

  explicit crowd(const costs& cost) {
    rig.toy->before_forward = [this, cost](const batch& b) -> result<void> {
      const bool prompts = std::ranges::any_of(b.slices, [](const auto& s) { return s.rows > 1; });
      const duration took = cost.of(b);
      if (!prompts) longest_decode_step = std::max(longest_decode_step, took);
      rig.clock.advance(took);
      return {};
    };
    for (std::uint64_t n = 0; n < 16; ++n) streams.push_back(rig.submit(rig.job(n, 1500, 20)));
  }

  duration longest_gap() const {
    duration longest{};
    for (const auto& s : streams)
      for (std::size_t i = 1; i < s->tokens.size(); ++i)
        longest = std::max(longest, s->tokens[i].at - s->tokens[i - 1].at);
    return longest;
  }
};

}  // namespace

TEST_CASE("a prompt of 4,000 tokens among 16 streams delays none by more than the prefill time and a step") {
  crowd all(costs{});
  for (int i = 0; i < 30; ++i) all.rig.step();
  const auto late = all.rig.submit(all.rig.job(99, 20, 4000));
  while (late->tokens.empty()) all.rig.step();
  for (int i = 0; i < 30; ++i) all.rig.step();
  CHECK(all.longest_gap() <= prefill_time + all.longest_decode_step);
  CHECK(all.longest_gap() > all.longest_decode_step);  // the prompt did share steps with them
}

TEST_CASE(
    "prompts of all lengths that keep coming delay no stream by more than the prefill time and a step") {
  for (const costs cost : {costs{}, costs{2ms, 300us, 0ns}, costs{15ms, 20us, 100ns}}) {
    crowd all(cost);
    for (int i = 0; i < 5; ++i) all.rig.step();
    std::mt19937 random(7);
    for (std::uint64_t n = 100; n < 160; ++n) {
      all.rig.submit(all.rig.job(n, 4, 1 + random() % 3000));
      for (int i = 0; i < 10; ++i) all.rig.step();
    }
    CAPTURE(cost.pass.count(), cost.row.count(), cost.seen.count());
    CHECK(all.longest_gap() <= prefill_time + all.longest_decode_step);
  }
}

}  // namespace weir::tests::engine_gap_test
