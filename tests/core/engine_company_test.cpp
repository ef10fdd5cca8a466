// An engine beside others on one device: what it tells its model, and what its steps are charged.
#include "tests/support/engine_rig.h"

namespace weir::tests::engine_company_test {

using namespace std::chrono_literals;
using core::step_kind;

TEST_CASE("engine in company: the model is told, and its measure counts as the device time of a step") {
  engine_rig rig(small_config(), loop_kind::overlapped);
  rig.late->measured = 7ms;
  rig.engine->set_company(20ms);
  CHECK(rig.late->company);
  auto j = rig.job(1, 4, 5);
  j.ignore_eos = true;
  rig.submit(std::move(j));
  std::vector<step_kind> kinds;
  core::duration sum{};
  while (!rig.engine->idle()) {
    const auto r = rig.step();
    kinds.push_back(r.under_way);
    if (r.rows > 0) CHECK(r.device_time == 7ms);
    sum += r.device_time;
  }
  // The prompt is begun; collected alone, as its step has no stream; then three steps decode.
  CHECK(kinds == std::vector{step_kind::prompt, step_kind::none, step_kind::decode, step_kind::decode,
                             step_kind::decode, step_kind::none});
  CHECK(sum == 4 * 7ms);
  CHECK(rig.engine->counts().device_us == 28'000);
  rig.engine->set_company({});
  CHECK_FALSE(rig.late->company);
}

TEST_CASE("engine in company: a step that was not measured counts as the time that it took") {
  const auto loop = GENERATE(loop_kind::plain, loop_kind::overlapped);
  engine_rig rig(small_config(), loop);
  auto j = rig.job(1, 8, 5);
  j.ignore_eos = true;
  rig.submit(std::move(j));
  int steps = 0;
  while (!rig.engine->idle()) {
    const auto r = rig.step();
    CHECK(r.device_time == r.took);
    if (loop == loop_kind::plain) CHECK(r.under_way == step_kind::none);
    ++steps;
  }
  CHECK(steps >= 8);
}

TEST_CASE("engine in company: what a job writes does not depend on the turn") {
  const auto loop = GENERATE(loop_kind::plain, loop_kind::overlapped);
  engine_rig rig(small_config(), loop);
  const auto alone = rig.solo(rig.job(3, 20, 200));
  for (const core::duration turn : {1ns, 1000ns, 20'000'000ns}) {
    rig.engine->set_company(turn);
    CHECK(rig.solo(rig.job(3, 20, 200)) == alone);
  }
}

}  // namespace weir::tests::engine_company_test
