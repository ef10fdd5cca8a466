// The single operations of mixtures of experts on a device against the reference. Skipped, saying so, where
// there is no device.
#ifdef WEIR_WITH_CUDA
#include <cmath>
#include <set>

#include "tests/kernels/device_experts.h"
#include "tests/kernels/on_device.h"
#include "tests/support/seed.h"

namespace weir::tests::cuda_experts_test {

using namespace weir::kernels;

namespace {

const backend& defined() {
  static const auto b = reference_backend();
  return *b;
}

// A router and the rows that it routes.
struct routing {
  route op;
  std::vector<float> x, router, bias, choice_bias, weights, shared;
  std::vector<std::int32_t> ids;

  routing(rng& r, std::uint32_t rows, std::uint32_t width, expert_router how, bool biased, bool gated)
      : x(random_floats(r, std::size_t{rows} * width)),
        router(random_floats(r, std::size_t{how.experts + gated} * width, 1 / std::sqrt(float(width)))),
        bias(random_floats(r, how.experts)),
        choice_bias(random_floats(r, how.experts, 0.2f)),
        weights(poison(std::size_t{rows} * how.chosen)),
        shared(poison(rows)),
        ids(weights.size(), -7) {
    op.how = how;
    op.rows = rows;
    op.width = width;
    // Some experts have the router's row of another one, so that their scores are equal.
    for (std::uint32_t e = 1; e < how.experts; e += 5) {
      std::copy_n(router.begin() + (e - 1) * width, width, router.begin() + e * width);
      bias[e] = bias[e - 1];
      choice_bias[e] = choice_bias[e - 1];
    }
    // A row whose products are all NaN, and one with the largest numbers.
    if (rows > 2) x[width] = NAN;
    if (rows > 3) std::fill_n(x.begin() + 2 * width, width, 1e30f);
    op.x = x.data();
    op.router = router.data();
    op.bias = biased ? bias.data() : nullptr;
    op.choice_bias = how.choice_bias ? choice_bias.data() : nullptr;
    op.ids = ids.data();
    op.weights = weights.data();
    op.shared = gated ? shared.data() : nullptr;
  }

  // What the choice of an expert is made by, in double.
  double key(std::uint32_t row, std::int32_t e) const {
    double sum = op.bias ? double{bias[static_cast<std::size_t>(e)]} : 0.0;
    for (std::uint32_t i = 0; i < op.width; ++i)
      sum += double{x[row * op.width + i]} * router[static_cast<std::size_t>(e) * op.width + i];
    if (!op.choice_bias) return sum;
    if (op.how.sigmoid) return 1 / (1 + std::exp(-sum)) + choice_bias[static_cast<std::size_t>(e)];
    return NAN;  // a softmax needs all
  }

  std::set<std::int32_t> chosen(const std::vector<std::int32_t>& of, std::uint32_t row) const {
    const auto from = of.begin() + row * op.how.chosen;
    return {from, from + op.how.chosen};
  }
};

}  // namespace

TEST_CASE("cuda: route equals the reference, with ties, rows of NaN and routers of every kind") {
  const auto b = cuda_device();
  if (!b) return;
  kernels::cuda::device& d = kernels::cuda::of(b->self);
  rng r(static_cast<rng::result_type>(drawn_seed(31)));
  std::uint32_t all = 0, other = 0;
  for (int round = 0; round < 40; ++round) {
    const std::uint32_t counts[] = {8, 32, 64, 128, 256, 1000}, experts = counts[round % 6];
    const std::uint32_t rows = round == 7 ? 4096 : round % 3 == 0 ? pick(r, 1, 4) : pick(r, 5, 200);
    const std::uint32_t width = round == 7 ? 64 : round % 4 == 1 ? pick(r, 1, 300) : 4 * pick(r, 1, 200);
    expert_router how{experts, pick(r, 1, 8)};
    how.sigmoid = round % 2 == 1;
    how.choice_bias = how.sigmoid && round % 4 == 3;
    how.renormalised = pick(r, 0, 1) == 1;
    how.factor = pick(r, 0, 1) ? 2.5f : 1.0f;
    if (round == 11) how.chosen = 40;  // more than a warp has lanes
    routing host(r, rows, width, how, round % 5 == 0, round % 3 == 1);
    CAPTURE(round, rows, width, experts, how.chosen, how.sigmoid, how.choice_bias, how.renormalised);
    const on_device x(d, host.x), router(d, host.router), bias(d, host.bias), choice(d, host.choice_bias),
        weights(d, host.weights), shared(d, host.shared);
    const on_device ids(d, host.ids);
    route there = host.op;
    there.x = x.get();
    there.router = router.get();
    there.bias = host.op.bias ? bias.get() : nullptr;
    there.choice_bias = host.op.choice_bias ? choice.get() : nullptr;
    there.ids = ids.get();
    there.weights = weights.get();
    there.shared = host.op.shared ? shared.get() : nullptr;
    defined().run(host.op);
    b->run(there);
    const auto got = ids.back();
    const auto got_weights = weights.back();
    for (std::uint32_t row = 0; row < rows; ++row) {
      ++all;
      const std::size_t first = std::size_t{row} * how.chosen;
      bool same = true;
      for (std::uint32_t i = 0; i < how.chosen; ++i) {
        const std::int32_t want = host.ids[first + i], is = got[first + i];
        REQUIRE(is >= 0);
        REQUIRE(is < static_cast<std::int32_t>(experts));
        if (want == is || !same) continue;
        same = false;  // only where the two are nearly equal
        CHECK(std::abs(host.key(row, want) - host.key(row, is)) <=
              1e-5 * (1 + std::abs(host.key(row, want))));
      }
      CHECK(host.chosen(got, row).size() == how.chosen);
      other += !same;
      for (std::uint32_t i = 0; same && i < how.chosen; ++i) {
        const float want = host.weights[first + i], is = got_weights[first + i];
        if (std::isnan(want))
          CHECK(std::isnan(is));
        else
          CHECK(is == Approx(want).epsilon(3e-5).margin(1e-7));
      }
    }
    const auto gates = shared.back();
    for (std::uint32_t row = 0; row < rows; ++row)
      if (host.op.shared && !std::isnan(host.shared[row]))
        CHECK(gates[row] == Approx(host.shared[row]).epsilon(1e-5));
      else
        CHECK(std::isnan(gates[row]));
  }
  CHECK(other * 50 <= all);
  CHECK(d.fault == "");
}

TEST_CASE("cuda: products of experts equal the reference, for every type of weights and every histogram") {
  const auto b = cuda_device();
  if (!b) return;
  kernels::cuda::device& d = kernels::cuda::of(b->self);
  rng r(static_cast<rng::result_type>(drawn_seed(32)));
  for (std::size_t i = 0; i < dtype_count; ++i) {
    const auto type = static_cast<dtype>(i);
    for (const slot_histogram how : slot_histograms) {
      const std::uint32_t experts = pick(r, 1, 20), share = pick(r, 1, 8), rows = pick(r, 1, 9),
                          slots = rows * share, n = pick(r, 1, 60),
                          k = is_plain(type) ? pick(r, 1, 300)
                                             : facts(type).block_weights *
                                                   pick(r, 1, facts(type).block_weights == 32 ? 9 : 2);
      const expert_set w(r, b, type, experts, n, k);
      const auto ids = draw_experts(r, slots, experts, how);
      const bool biased = pick(r, 0, 1) == 1, shares = pick(r, 0, 1) == 1;
      const auto x = random_floats(r, std::size_t{shares ? rows : slots} * k),
                 bias = random_floats(r, std::size_t{experts} * n);
      constexpr std::size_t margin = 64;
      auto wanted = poison(std::size_t{slots} * n + margin);
      const on_device dx(d, x), dbias(d, bias), out(d, wanted);
      const on_device dids(d, ids);
      expert_linear op{
          w.on_host,         biased ? bias.data() : nullptr, x.data(), ids.data(), wanted.data(), slots,
          shares ? share : 1};
      defined().run(op);
      op.w = w.there;
      op.bias = biased ? dbias.get() : nullptr;
      op.x = dx.get();
      op.ids = dids.get();
      op.out = out.get();
      b->run(op);
      auto got = out.back();
      CAPTURE(name(type), experts, share, slots, n, k);
      for (std::size_t at = wanted.size() - margin; at < wanted.size(); ++at) REQUIRE(std::isnan(got[at]));
      got.resize(wanted.size() - margin);
      wanted.resize(got.size());
      CHECK(worst_difference(wanted, got) <= 3e-5);
    }
  }
  CHECK(d.fault == "");
}

TEST_CASE("cuda: mixtures equal the reference, with a shared expert or without, in the order of the slots") {
  const auto b = cuda_device();
  if (!b) return;
  kernels::cuda::device& d = kernels::cuda::of(b->self);
  rng r(static_cast<rng::result_type>(drawn_seed(33)));
  for (int round = 0; round < 20; ++round) {
    const std::uint32_t rows = round == 4 ? 4096 : pick(r, 1, 50), width = round == 4 ? 33 : pick(r, 1, 700),
                        chosen = pick(r, 1, 8);
    const auto y = random_floats(r, std::size_t{rows} * chosen * width),
               weights = random_floats(r, std::size_t{rows} * chosen),
               shared = random_floats(r, std::size_t{rows} * width), gate = random_floats(r, rows);
    constexpr std::size_t margin = 64;
    auto wanted = poison(std::size_t{rows} * width + margin);
    const on_device dy(d, y), dweights(d, weights), dshared(d, shared), dgate(d, gate), out(d, wanted);
    const bool with_shared = round % 2 == 1, with_gate = round % 4 == 3;
    defined().run(mix_experts{y.data(), weights.data(), with_shared ? shared.data() : nullptr,
                              with_gate ? gate.data() : nullptr, wanted.data(), rows, width, chosen});
    b->run(mix_experts{dy.get(), dweights.get(), with_shared ? dshared.get() : nullptr,
                       with_gate ? dgate.get() : nullptr, out.get(), rows, width, chosen});
    auto got = out.back();
    CAPTURE(rows, width, chosen, round);
    for (std::size_t at = wanted.size() - margin; at < wanted.size(); ++at) REQUIRE(std::isnan(got[at]));
    got.resize(wanted.size() - margin);
    wanted.resize(got.size());
    CHECK(worst_difference(wanted, got) <= 1e-6);
  }
  CHECK(d.fault == "");
}

}  // namespace weir::tests::cuda_experts_test

#endif
