#include "net/load/arrivals.h"

#include <catch2/catch.hpp>
#include <vector>

#include "net/load/range.h"

namespace weir::tests::arrivals_test {

using namespace weir::load;

namespace {

std::vector<double> times(arrival_options o, int n) {
  arrivals a(o);
  std::vector<double> t;
  for (int i = 0; i < n; ++i) t.push_back(a.next());
  return t;
}

struct moments {
  double mean = 0, cv = 0;
};

moments of_gaps(const std::vector<double>& t) {
  double sum = 0, squares = 0;
  for (std::size_t i = 1; i < t.size(); ++i) {
    REQUIRE(t[i] >= t[i - 1]);
    sum += t[i] - t[i - 1];
    squares += (t[i] - t[i - 1]) * (t[i] - t[i - 1]);
  }
  const double n = static_cast<double>(t.size() - 1);
  moments m;
  m.mean = sum / n;
  m.cv = std::sqrt(squares / n - m.mean * m.mean) / m.mean;
  return m;
}

}  // namespace

TEST_CASE("gaps have the mean that the rate says and the spread that the burstiness says") {
  for (double burstiness : {0.25, 1.0, 4.0}) {
    CAPTURE(burstiness);
    const auto m = of_gaps(times({.rate = 50, .burstiness = burstiness, .seed = 3}, 200000));
    CHECK(m.mean == Approx(0.02).epsilon(0.02));
    CHECK(m.cv == Approx(1 / std::sqrt(burstiness)).epsilon(0.02));
  }
}

TEST_CASE("constant arrivals are a grid") {
  const auto t = times({.rate = 4, .burstiness = 0}, 5);
  for (int i = 0; i < 5; ++i) CHECK(t[i] == Approx(0.25 * (i + 1)));
}

TEST_CASE("the same seed gives the same arrivals") {
  CHECK(times({.rate = 10, .seed = 1}, 100) == times({.rate = 10, .seed = 1}, 100));
  CHECK(times({.rate = 10, .seed = 1}, 100) != times({.rate = 10, .seed = 2}, 100));
}

TEST_CASE("a ramp raises the rate from nothing: half as many come during it, and the full rate after") {
  const auto t = times({.rate = 100, .burstiness = 0, .ramp_s = 10}, 2000);
  CHECK(t[499] == Approx(10));                       // 100 × 10 / 2 requests in the ramp
  CHECK(t[124] == Approx(5));                        // a quarter of them in its first half
  CHECK(t[1499] - t[499] == Approx(10));             // 1,000 in the next ten seconds
}

TEST_CASE("arrivals are poisson, constant or gamma with a shape") {
  CHECK(parse_arrivals("poisson").value() == 1);
  CHECK(parse_arrivals("constant").value() == 0);
  CHECK(parse_arrivals("gamma:0.5").value() == 0.5);
  for (const char* bad : {"", "gamma", "gamma:", "gamma:0", "gamma:-1", "gamma:1x", "gamma:nan", "uniform"}) {
    CAPTURE(bad);
    const auto r = parse_arrivals(bad);
    REQUIRE(!r);
    CHECK(r.error().param == "arrivals");
  }
}

TEST_CASE("a number of tokens is a constant or a range") {
  const auto one = parse_range("max-tokens", "128");
  REQUIRE(one.has_value());
  CHECK((one->low == 128 && one->high == 128));
  const auto many = parse_range("max-tokens", "64-256");
  REQUIRE(many.has_value());
  CHECK((many->low == 64 && many->high == 256));
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const auto n = many->draw(random);
    CHECK((n >= 64 && n <= 256));
  }
  for (const char* bad : {"", "0", "-5", "5-", "9-4", "1.5", "99999999999", "4-4x"}) {
    CAPTURE(bad);
    const auto r = parse_range("max-tokens", bad);
    REQUIRE(!r);
    CHECK(r.error().param == "max-tokens");
  }
}

}  // namespace weir::tests::arrivals_test
