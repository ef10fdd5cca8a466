// The router of a mixture of experts: the reference against a computation of its own in float64, and the cpu
// backend against both, on every path of this machine.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "kernels/cpu/backend.h"
#include "kernels/ops.h"
#include "tests/kernels/random_data.h"
#include "tests/support/seed.h"

namespace weir::tests::route_test {

using namespace weir::kernels;

namespace {

using backend_ptr = std::shared_ptr<const backend>;

rng seeded(std::uint64_t n) { return rng(static_cast<std::uint32_t>(drawn_seed(n))); }

void on_every_path(const std::function<void(const backend&)>& check) {
  check(*reference_backend());
  for (const simd_kernels* simd : simd_choices())
    for (const unsigned threads : {1u, 3u}) {
      const auto b = make_cpu_backend(threads, *simd, false);
      CAPTURE(b->name, threads);
      check(*b);
    }
}

struct routed {
  std::vector<std::int32_t> ids;
  std::vector<float> weights, shared;

  bool operator==(const routed& o) const {
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
      if (a.size() != b.size()) return false;
      return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
    };
    return ids == o.ids && same(weights, o.weights) && same(shared, o.shared);
  }
};

struct scene {
  expert_router how;
  std::uint32_t rows, width;
  bool biased, gated;
  std::vector<float> x, router, bias, choice_bias;

  scene(rng& r, std::uint32_t rows, std::uint32_t experts, std::uint32_t chosen, std::uint32_t width)
      : rows(rows), width(width), biased(pick(r, 0, 1)), gated(pick(r, 0, 1)) {
    how.experts = experts, how.chosen = chosen;
    how.sigmoid = pick(r, 0, 1), how.choice_bias = pick(r, 0, 1), how.renormalised = pick(r, 0, 1);
    how.factor = pick(r, 0, 1) ? 1 : 2.5f;
    x = random_floats(r, std::size_t{rows} * width);
    router = random_floats(r, std::size_t{experts + 1} * width, 2 / std::sqrt(static_cast<float>(width)));
    bias = random_floats(r, experts, 0.3f);
    choice_bias = random_floats(r, experts, 0.2f);
  }

  routed run(const backend& b, std::uint32_t first = 0, std::uint32_t count = 0) const {
    if (count == 0) count = rows;
    constexpr std::size_t fence = 20;
    const std::size_t slots = std::size_t{count} * how.chosen;
    routed out{std::vector<std::int32_t>(slots + fence, -7), poison(slots + fence), poison(count + fence)};
    b.run(route{x.data() + std::size_t{first} * width, router.data(), biased ? bias.data() : nullptr,
                how.choice_bias ? choice_bias.data() : nullptr, how, out.ids.data(), out.weights.data(),
                gated ? out.shared.data() : nullptr, count, width});
    for (std::size_t i = 0; i < fence; ++i) {
      CHECK(out.ids[slots + i] == -7);
      CHECK((std::isnan(out.weights[slots + i]) && std::isnan(out.shared[count + i])));
    }
    out.ids.resize(slots), out.weights.resize(slots), out.shared.resize(gated ? count : 0);
    return out;
  }
};

#define CAPTURE_SCENE(s)                                                                  \
  CAPTURE(s.rows, s.width, s.how.experts, s.how.chosen, s.how.sigmoid, s.how.choice_bias, \
          s.how.renormalised, s.how.factor, s.biased, s.gated)

// A row's products, scores and keys of choice, in double.
struct row_scores {
  std::vector<double> scores, keys;
  double shared = 0;

  row_scores(const scene& s, std::uint32_t row) {
    std::vector<double> products;
    for (std::uint32_t e = 0; e <= s.how.experts; ++e) {
      double sum = 0;
      for (std::uint32_t i = 0; i < s.width; ++i)
        sum += double{s.x[std::size_t{row} * s.width + i]} * s.router[std::size_t{e} * s.width + i];
      products.push_back(sum + (s.biased && e < s.how.experts ? s.bias[e] : 0.0f));
    }
    shared = 1 / (1 + std::exp(-products.back()));
    products.pop_back();
    scores = keys = products;
    double total = 0;
    for (const double p : products) total += std::exp(p);
    for (double& p : scores) p = s.how.sigmoid ? 1 / (1 + std::exp(-p)) : std::exp(p) / total;
    if (s.how.choice_bias)
      for (std::uint32_t e = 0; e < s.how.experts; ++e) keys[e] = scores[e] + s.choice_bias[e];
  }
  std::vector<std::int32_t> best_first() const {
    std::vector<std::int32_t> order(keys.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return keys[static_cast<std::size_t>(a)] > keys[static_cast<std::size_t>(b)];
    });
    return order;
  }
};

// Checks a row. Two experts whose keys are `gap` apart or nearer may have changed places. Returns whether
// none have.
bool check_row(const scene& s, const routed& got, std::uint32_t row, double gap, double tolerance) {
  const row_scores wanted(s, row);
  const auto order = wanted.best_first();
  const std::size_t chosen = s.how.chosen, first = row * chosen;
  double sum = 0;
  bool same = true;
  std::vector<std::int32_t> seen;
  for (std::size_t i = 0; i < chosen; ++i) {
    const std::int32_t id = got.ids[first + i];
    REQUIRE((id >= 0 && id < static_cast<std::int32_t>(s.how.experts)));
    REQUIRE(std::find(seen.begin(), seen.end(), id) == seen.end());
    seen.push_back(id);
    same = same && id == order[i];
    REQUIRE(std::abs(wanted.keys[static_cast<std::size_t>(id)] -
                     wanted.keys[static_cast<std::size_t>(order[i])]) <= gap);
    sum += wanted.scores[static_cast<std::size_t>(id)];
  }
  for (std::size_t i = 0; i < chosen; ++i) {
    const double score = wanted.scores[static_cast<std::size_t>(got.ids[first + i])];
    const double weight = score / (s.how.renormalised ? sum : 1) * s.how.factor;
    REQUIRE(std::abs(got.weights[first + i] - weight) <= tolerance * s.how.factor);
  }
  if (s.gated) REQUIRE(std::abs(got.shared[row] - wanted.shared) <= tolerance);
  return same;
}

}  // namespace

TEST_CASE("route: experts, weights and the shared expert's gate are those of a computation in float64") {
  on_every_path([&](const backend& b) {
    rng r = seeded(11);
    std::uint32_t rows = 0, same = 0;
    for (int round = 0; round < 60; ++round) {
      const std::uint32_t experts = pick(r, 1, 140);
      const scene s(r, pick(r, 1, round % 10 ? 20 : 150), experts, pick(r, 1, std::min(8u, experts)),
                    pick(r, 1, 400));
      CAPTURE_SCENE(s);
      const routed got = s.run(b);
      for (std::uint32_t row = 0; row < s.rows; ++row, ++rows) same += check_row(s, got, row, 1e-5, 3e-6);
    }
    CHECK(rows - same <= rows / 200);
  });
}

TEST_CASE("route: from one row to 4,096, up to 1,024 experts and all of them chosen") {
  struct shape {
    std::uint32_t rows, experts, chosen, width;
  };
  constexpr shape shapes[] = {{1, 128, 8, 2048}, {3, 1024, 8, 100}, {4, 1024, 1024, 30},
                              {2, 1, 1, 64},     {40, 8, 8, 1024},  {4096, 128, 8, 24}};
  on_every_path([&](const backend& b) {
    rng r = seeded(12);
    for (const shape& at : shapes) {
      const scene s(r, at.rows, at.experts, at.chosen, at.width);
      CAPTURE_SCENE(s);
      const routed got = s.run(b);
      for (std::uint32_t row = 0; row < s.rows; row += 1 + s.rows / 100) check_row(s, got, row, 2e-5, 3e-6);
    }
  });
}

TEST_CASE("route: a row is the same bits alone and beside others") {
  on_every_path([&](const backend& b) {
    rng r = seeded(13);
    for (const std::uint32_t rows : {2u, 5u, 33u, 300u}) {
      const scene s(r, rows, pick(r, 8, 130), 8, pick(r, 1, 600));
      CAPTURE_SCENE(s);
      const routed all = s.run(b);
      for (std::uint32_t row = 0; row < rows; row += 1 + rows / 40) {
        const routed one = s.run(b, row, 1);
        const auto part = [&](const auto& v, std::size_t width) {
          return std::decay_t<decltype(v)>(v.begin() + std::ptrdiff_t(row * width),
                                           v.begin() + std::ptrdiff_t((row + 1) * width));
        };
        const routed wanted{part(all.ids, 8), part(all.weights, 8),
                            s.gated ? part(all.shared, 1) : std::vector<float>{}};
        CHECK(one == wanted);
      }
    }
  });
}

TEST_CASE("route: of experts with equal products those with lower numbers come first") {
  on_every_path([](const backend& b) {
    rng r = seeded(14);
    for (const std::uint32_t experts : {8u, 13u, 64u, 128u})
      for (const std::uint32_t rows : {1u, 7u, 70u}) {
        scene s(r, rows, experts, 8, 77);
        s.how.choice_bias = s.biased = false;
        // All experts the same, then in pairs that lie apart.
        for (std::uint32_t e = 1; e < experts; ++e)
          std::copy_n(s.router.begin(), s.width, s.router.begin() + std::ptrdiff_t{e} * s.width);
        CAPTURE_SCENE(s);
        routed got = s.run(b);
        for (std::size_t i = 0; i < got.ids.size(); ++i) {
          REQUIRE(got.ids[i] == static_cast<std::int32_t>(i % 8));
          REQUIRE(got.weights[i] == got.weights[i / 8 * 8]);
        }
        const auto other = random_floats(r, std::size_t{experts} * s.width);
        const std::uint32_t half = experts / 2;
        for (std::uint32_t e = 0; e < 2 * half; ++e)
          std::copy_n(other.begin() + std::ptrdiff_t{e % half} * s.width, s.width,
                      s.router.begin() + std::ptrdiff_t{e} * s.width);
        s.how.experts = 2 * half;
        got = s.run(b);
        for (std::size_t i = 0; i < got.ids.size(); i += 2) {
          REQUIRE(got.ids[i + 1] == got.ids[i] + static_cast<std::int32_t>(half));
          REQUIRE(got.weights[i] == got.weights[i + 1]);
        }
      }
  });
}

TEST_CASE("route: what is NaN counts as the least, and its row's weights are NaN") {
  on_every_path([](const backend& b) {
    rng r = seeded(15);
    for (const bool sigmoid : {false, true})
      for (const bool choice_bias : {false, true}) {
        scene s(r, 9, 20, 4, 50);
        s.how.sigmoid = sigmoid, s.how.choice_bias = choice_bias, s.biased = false;
        const routed sound = s.run(b);
        // An expert with a NaN is never chosen while others are left.
        const auto bad = static_cast<std::uint32_t>(sound.ids[0]);
        s.router[std::size_t{bad} * s.width + 3] = std::nanf("");
        routed got = s.run(b);
        CAPTURE_SCENE(s);
        if (sigmoid || !choice_bias)
          for (const std::int32_t id : got.ids) CHECK(id != static_cast<std::int32_t>(bad));
        for (const float w : got.weights) CHECK(std::isnan(w) == !sigmoid);  // a softmax has all in its sum
        // A row with a NaN has the first experts, and weights that end its job. Others do not see it.
        s.router[std::size_t{bad} * s.width + 3] = 0;
        const routed before = s.run(b);
        s.x[4 * s.width + 7] = std::nanf("");
        got = s.run(b);
        for (std::size_t i = 0; i < got.ids.size(); ++i)
          if (i / 4 == 4) {
            CHECK(got.ids[i] == static_cast<std::int32_t>(i % 4));
            CHECK(std::isnan(got.weights[i]));
          } else {
            CHECK((got.ids[i] == before.ids[i] && got.weights[i] == before.weights[i]));
          }
        if (s.gated) CHECK((std::isnan(got.shared[4]) && got.shared[5] == before.shared[5]));
      }
  });
}

TEST_CASE("route: a bias for the choice changes who is chosen, and not their scores") {
  on_every_path([](const backend& b) {
    rng r = seeded(16);
    scene s(r, 5, 16, 2, 40);
    s.how.choice_bias = true, s.how.renormalised = false, s.how.sigmoid = true, s.how.factor = 1;
    s.choice_bias.assign(16, -1.0f);
    s.choice_bias[11] = 3, s.choice_bias[2] = 1.5f;  // more than a sigmoid apart
    const routed got = s.run(b);
    for (std::uint32_t row = 0; row < s.rows; ++row) {
      CHECK((got.ids[2 * row] == 11 && got.ids[2 * row + 1] == 2));
      CHECK((got.weights[2 * row] > 0 && got.weights[2 * row] < 1));
      check_row(s, got, row, 1e-5, 3e-6);
    }
  });
}

TEST_CASE("route: weights of a softmax over the chosen products alone are the renormalised ones") {
  on_every_path([](const backend& b) {
    rng r = seeded(17);
    scene s(r, 6, 32, 4, 100);
    s.how = {32, 4, false, false, true, 1};
    const routed got = s.run(b);
    for (std::uint32_t row = 0; row < s.rows; ++row) {
      const row_scores products(s, row);  // without a bias for the choice, keys are products
      double sum = 0;
      for (std::size_t i = 0; i < 4; ++i)
        sum += std::exp(products.keys[static_cast<std::size_t>(got.ids[4 * row + i])]);
      for (std::size_t i = 0; i < 4; ++i)
        CHECK(got.weights[4 * row + i] ==
              Approx(std::exp(products.keys[static_cast<std::size_t>(got.ids[4 * row + i])]) / sum)
                  .epsilon(1e-5));
    }
  });
}

}  // namespace weir::tests::route_test
