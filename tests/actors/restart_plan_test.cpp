// When a device that failed is made again.
#include "actors/restart_plan.h"

#include <catch2/catch.hpp>
#include <vector>

namespace weir::tests::restart_plan_test {

using actors::restart_plan;
using namespace std::chrono_literals;

TEST_CASE("restart_plan: what cannot be made is tried again after pauses that grow, and never given up") {
  restart_plan plan;
  core::time_point now{1h};
  CHECK_FALSE(plan.due(now));
  REQUIRE(plan.failed(now));
  std::vector<core::duration> pauses;
  for (int i = 0; i < 20; ++i) {
    plan.attempt(now);
    CHECK(plan.first() == (i == 0));
    REQUIRE(plan.next());
    CHECK_FALSE(plan.due(*plan.next() - 1ns));
    pauses.push_back(*plan.next() - now);
    now = *plan.next();
    CHECK(plan.due(now));
  }
  CHECK(std::vector(pauses.begin(), pauses.begin() + 8) ==
        std::vector<core::duration>{1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s});
  CHECK(pauses.back() == 60s);
  plan.attempt(now);
  plan.succeeded();
  CHECK_FALSE(plan.next());
}

TEST_CASE(
    "restart_plan: a device that fails twice within a minute stays down, later it has its chance again") {
  restart_plan plan;
  core::time_point now{1h};
  REQUIRE(plan.failed(now));
  plan.attempt(now);
  plan.succeeded();
  now += 59s;
  CHECK_FALSE(plan.failed(now));
  CHECK_FALSE(plan.next());
  now += 60s;
  CHECK(plan.failed(now));
  plan.attempt(now);
  CHECK(*plan.next() - now == restart_plan::first_pause);
}

}  // namespace weir::tests::restart_plan_test
