#include "net/load/histogram.h"

#include <catch2/catch.hpp>
#include <random>

namespace weir::tests::histogram_test {

using weir::load::histogram;

TEST_CASE("small values are exact, and quantiles are nearest rank") {
  histogram h(1);
  for (int i = 1; i <= 1000; ++i) h.add(i);
  CHECK(h.count() == 1000);
  CHECK(h.quantile(0.5) == 500);
  CHECK(h.quantile(0.9) == 900);
  CHECK(h.quantile(0.99) == 990);
  CHECK(h.quantile(0.999) == 999);
  CHECK(h.quantile(1) == 1000);
  CHECK(h.quantile(0) == 1);
  CHECK(h.mean() == 500.5);
  CHECK(h.min() == 1);
  CHECK(h.max() == 1000);
}

TEST_CASE("an empty histogram says zero") {
  const histogram h;
  CHECK(h.count() == 0);
  CHECK(h.quantile(0.99) == 0);
  CHECK(h.mean() == 0);
  CHECK(h.max() == 0);
  CHECK(h.min() == 0);
}

TEST_CASE(
    "quantiles of random values are within a thousandth of the sorted ones, never below and never above the "
    "largest") {
  std::mt19937_64 random(7);
  for (int shape = 0; shape < 4; ++shape) {
    std::lognormal_distribution<double> draw(2.0 * shape, 2);
    histogram h;
    std::vector<double> values;
    for (int i = 0; i < 20000; ++i) {
      values.push_back(std::round(draw(random) * 1000) / 1000);
      h.add(values.back());
    }
    std::sort(values.begin(), values.end());
    for (double q : {0.01, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0}) {
      const double exact = values[static_cast<std::size_t>(std::ceil(q * 20000)) - 1];
      CAPTURE(shape, q);
      CHECK(h.quantile(q) >= exact - 1e-9);
      CHECK(h.quantile(q) <= exact * (1 + 1.0 / 1024) + 1e-3);
      CHECK(h.quantile(q) <= h.max());
    }
    CHECK(h.max() == Approx(values.back()).epsilon(1e-12));
  }
}

TEST_CASE("merged histograms are the histogram of all values") {
  histogram all, left, right;
  for (int i = 0; i < 5000; ++i) {
    const double v = i * i * 0.37;
    all.add(v);
    (i % 3 ? left : right).add(v);
  }
  left.merge(right);
  CHECK(left.count() == all.count());
  CHECK(left.max() == all.max());
  CHECK(left.min() == all.min());
  for (double q : {0.1, 0.5, 0.99}) CHECK(left.quantile(q) == all.quantile(q));
}

TEST_CASE("a value may be added many times, and negative and enormous ones are kept in bounds") {
  histogram h(1);
  h.add(5, 3);
  h.add(-2);
  h.add(1e300);
  CHECK(h.count() == 5);
  CHECK(h.min() == 0);
  CHECK(h.quantile(0.5) == 5);
  CHECK(h.max() > 1e15);
}

}  // namespace weir::tests::histogram_test
