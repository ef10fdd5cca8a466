#include "core/delays.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

namespace weir::tests::delays_test {

using weir::core::delays;

TEST_CASE("delays: quantiles are never below the truth and at most a sixteenth above it") {
  std::mt19937_64 random(3);
  std::lognormal_distribution<double> draw(6, 2);
  delays d;
  std::vector<double> all;
  for (int i = 0; i < 20000; ++i) {
    all.push_back(std::floor(draw(random)));
    d.add(std::chrono::microseconds(static_cast<std::int64_t>(all.back())));
  }
  std::sort(all.begin(), all.end());
  CHECK(d.count() == 20000);
  for (double q : {0.01, 0.5, 0.99, 1.0}) {
    const double exact = all[static_cast<std::size_t>(std::ceil(q * 20000)) - 1] / 1000;
    CAPTURE(q);
    CHECK(d.quantile_ms(q) >= exact);
    CHECK(d.quantile_ms(q) <= exact * (1 + 1.0 / 16) + 0.001);
  }
}

TEST_CASE("delays: nothing, less than nothing, and more than an hour") {
  delays d;
  CHECK(d.quantile_ms(0.99) == 0);
  d.add(std::chrono::microseconds(-5));
  CHECK(d.quantile_ms(1) == 0);
  d.add(std::chrono::hours(100));
  CHECK(d.quantile_ms(1) > 3'600'000);
  CHECK(d.count() == 2);
}

TEST_CASE("delays: what is published has the same durations, exactly, in round buckets") {
  std::mt19937_64 random(4);
  std::lognormal_distribution<double> draw(15, 3);
  delays d, other, both;
  weir::core::histogram<weir::core::delay_bounds> exact;
  for (int i = 0; i < 5000; ++i) {
    const std::chrono::nanoseconds ns(static_cast<std::int64_t>(draw(random)));
    exact.add(ns);
    (i % 2 == 0 ? d : other).add(ns);
  }
  both.add(d);
  both.add(other);
  CHECK(both.count() == 5000);
  CHECK(both.published().sum() == exact.sum());
  CHECK(std::ranges::equal(both.published().view().counts, exact.view().counts));
  CHECK(both.quantile_ms(0) == std::min(d.quantile_ms(0), other.quantile_ms(0)));
  CHECK(both.quantile_ms(1) == std::max(d.quantile_ms(1), other.quantile_ms(1)));
}

}  // namespace weir::tests::delays_test
