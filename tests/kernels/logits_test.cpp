// The loops over logits on every instruction set of this machine, against plain ones.
#include "kernels/logits.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/simd.h"
#include "tests/kernels/random_data.h"

namespace weir::tests::logits_test {

using namespace weir::kernels;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr std::size_t sizes[] = {1, 3, 15, 16, 17, 63, 64, 65, 511, 512, 1000, 5003};

template <class F>
void for_all(const F& check) {
  for (const simd_kernels* simd : simd_choices()) {
    tests::rng r(1);
    for (const std::size_t n : sizes) {
      CAPTURE(simd->name, n);
      check(*simd->logits, n, r);
    }
  }
}

// Rounded, so that there are ties, with some -inf.
std::vector<float> logits_of(tests::rng& r, std::size_t n) {
  auto x = tests::random_floats(r, n, 3);
  for (float& l : x) l = tests::pick(r, 0, 20) ? std::round(l * 20) / 20 : -inf;
  return x;
}

}  // namespace

TEST_CASE("logits: the largest, and whether all are sound") {
  for_all([](const logit_loops& loops, std::size_t n, tests::rng& r) {
    auto x = logits_of(r, n);
    const auto found = loops.largest(x.data(), n);
    CHECK(found.sound);
    CHECK(found.largest == *std::max_element(x.begin(), x.end()));
    const std::vector<float> nothing(n, -inf);
    CHECK(loops.largest(nothing.data(), n).largest == -inf);
    for (const float odd : {inf, std::nanf(""), -std::nanf("")})
      for (const std::size_t at : {std::size_t{0}, n / 2, n - 1}) {
        auto y = x;
        y[at] = odd;
        CHECK_FALSE(loops.largest(y.data(), n).sound);
      }
    x[n / 2] = 3e38f;
    CHECK(loops.largest(x.data(), n).sound);
  });
}

TEST_CASE("logits: next finds each that reaches a bound") {
  for_all([](const logit_loops& loops, std::size_t n, tests::rng& r) {
    const auto x = logits_of(r, n);
    for (const float least : {-inf, -3.0f, 0.0f, 5.0f, 100.0f}) {
      std::vector<std::size_t> wanted, got;
      for (std::size_t i = 0; i < n; ++i)
        if (x[i] >= least) wanted.push_back(i);
      for (std::size_t i = loops.next(x.data(), 0, n, least); i < n;
           i = loops.next(x.data(), i + 1, n, least))
        got.push_back(i);
      CHECK(got == wanted);
      CHECK(loops.next(x.data(), n, n, least) == n);
    }
  });
}

TEST_CASE("logits: as many tokens reach the k-th group's peak as there are groups above it") {
  for_all([](const logit_loops& loops, std::size_t n, tests::rng& r) {
    const auto x = logits_of(r, n);
    for (const std::size_t most : {16u, 64u, 300u}) {
      std::vector<float> peaks(most);
      const std::size_t groups = loops.group_peaks(x.data(), n, most, peaks.data());
      REQUIRE(groups <= most);
      if (n >= 2 * most) CHECK(groups >= most - 15);
      for (const float least : {-2.0f, 0.0f, 4.0f}) {
        const auto reach = [&](const float* from, std::size_t count) {
          return std::count_if(from, from + count, [&](float l) { return l >= least; });
        };
        CHECK(reach(peaks.data(), groups) <= reach(x.data(), n));
      }
      if (groups > 0) {
        const float top = *std::max_element(peaks.begin(), peaks.begin() + std::ptrdiff_t(groups));
        CHECK(top == *std::max_element(x.begin(), x.begin() + std::ptrdiff_t(n / groups * groups)));
      }
    }
  });
}

TEST_CASE("logits: weights and their sums are the same bits on every instruction set, and right") {
  const logit_loops& plain = *simd_choices().back()->logits;
  for_all([&](const logit_loops& loops, std::size_t n, tests::rng& r) {
    const auto x = logits_of(r, n);
    for (const float temperature : {0.3f, 1.0f, 2.0f}) {
      auto wanted = tests::poison(n), got = tests::poison(n);
      plain.weigh(x.data(), n, 12.5f, temperature, wanted.data());
      loops.weigh(x.data(), n, 12.5f, temperature, got.data());
      CHECK(std::memcmp(wanted.data(), got.data(), n * sizeof(float)) == 0);
      for (std::size_t i = 0; i < n; ++i) {
        const double exact = std::exp((double{x[i]} - 12.5) / double{temperature});
        REQUIRE(std::abs(got[i] - exact) <= exact * 2e-5 + 1.1e-37);
      }
      for (const float least : {0.0f, 1e-6f, 1e-3f}) {
        CHECK(loops.sum_from(got.data(), n, least) == plain.sum_from(got.data(), n, least));
        double exact = 0;
        for (const float w : got) exact += w >= least ? w : 0.0f;
        CHECK(loops.sum_from(got.data(), n, least) == Approx(exact).epsilon(1e-12));
      }
    }
  });
}

TEST_CASE("logits: cuts keep what they say") {
  for_all([](const logit_loops& loops, std::size_t n, tests::rng& r) {
    const auto x = logits_of(r, n);
    const auto weights = tests::random_floats(r, n);
    const std::size_t last = tests::pick(r, 0, static_cast<std::uint32_t>(n) - 1);
    auto wanted = weights, got = weights;
    for (std::size_t i = 0; i < n; ++i)
      if (!(x[i] > x[last] || (x[i] == x[last] && i <= last))) wanted[i] = 0;
    loops.keep_through(x.data(), n, x[last], static_cast<std::int32_t>(last), got.data());
    CHECK(got == wanted);
    for (float& w : wanted) w = w >= 0.1f ? w : 0.0f;
    loops.keep_from(0.1f, got.data(), n);
    CHECK(got == wanted);
  });
}

}  // namespace weir::tests::logits_test
