#include "core/schedule/awaited_draws.h"

#include <catch2/catch.hpp>

namespace weir::tests::awaited_draws_test {

using namespace weir::core;

TEST_CASE("awaited draws: a draw stands in for its token until it is taken, and the next step has another") {
  awaited_draws d;
  CHECK_FALSE(d.any());
  d.request(7);
  CHECK(d.count() == 1);
  CHECK(d.stand_in(0) == drawn_by(7));
  CHECK(d.take() == 7);
  CHECK_FALSE(d.any());
  d.request(0);
  CHECK(d.take() == 0);
}

TEST_CASE("awaited draws: a forgotten draw leaves room for the next one") {
  awaited_draws d;
  d.request(3);
  d.forget();
  CHECK(d.count() == 0);
  d.request(4);
  CHECK(d.stand_in(0) == drawn_by(4));
}

}  // namespace weir::tests::awaited_draws_test
