#include "core/histogram.h"

#include <catch2/catch.hpp>
#include <random>

namespace weir::tests::histogram_test {

using namespace weir::core;
using namespace std::chrono_literals;

namespace {

constexpr auto bounds = bounds_in_s({0.001, 0.0025, 1, 2560});

}  // namespace

TEST_CASE("histogram: bounds are exact, and a value at a bound is below it") {
  CHECK(bounds.at == std::array<std::int64_t, 4>{1'000'000, 2'500'000, 1'000'000'000, 2'560'000'000'000});
  const struct {
    duration value;
    std::size_t bucket;
  } rows[] = {{0ns, 0}, {1ms, 0},   {1'000'001ns, 1},         {2500us, 1},          {2'500'001ns, 2},
              {1s, 2},  {2560s, 3}, {2'560'000'000'001ns, 4}, {duration::max(), 4}, {-5ns, 0}};
  for (const auto& r : rows) {
    CAPTURE(r.value.count());
    histogram<bounds> h;
    h.add(r.value);
    for (std::size_t i = 0; i < h.view().counts.size(); ++i)
      CHECK(h.view().counts[i] == (i == r.bucket ? 1u : 0u));
    CHECK(h.sum() == std::max(r.value, 0ns).count());
    CHECK(h.count() == 1);
  }
}

TEST_CASE("histogram: two that are added are one that was given all values") {
  std::mt19937_64 random(5);
  std::lognormal_distribution<double> draw(16, 4);
  histogram<bounds> one, other, all;
  for (int i = 0; i < 5000; ++i) {
    const duration d(static_cast<std::int64_t>(draw(random)));
    (i % 3 == 0 ? one : other).add(d);
    all.add(d);
  }
  one += other;
  CHECK(one.count() == 5000);
  CHECK(one.sum() == all.sum());
  CHECK(std::ranges::equal(one.view().counts, all.view().counts));
}

}  // namespace weir::tests::histogram_test
