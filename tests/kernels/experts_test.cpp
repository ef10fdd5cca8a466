// The products of a mixture's experts, and the sum of what they made: the reference against float64, the cpu
// backend against the reference and against its own products of single matrices, on every path of this
// machine.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <functional>

#include "kernels/cpu/backend.h"
#include "kernels/ops.h"
#include "tests/kernels/expert_data.h"
#include "tests/support/counted_allocations.h"
#include "tests/support/seed.h"

namespace weir::tests::experts_test {

using namespace weir::kernels;

namespace {

using backend_ptr = std::shared_ptr<const backend>;

rng seeded(std::uint64_t n) { return rng(static_cast<std::uint32_t>(drawn_seed(n))); }

void for_types(const std::function<void(dtype)>& f) {
  for (std::size_t i = 0; i < dtype_count; ++i) {
    CAPTURE(name(static_cast<dtype>(i)));
    f(static_cast<dtype>(i));
  }
}

// check(one thread, three threads), the same path in both.
void on_every_path(const std::function<void(const backend_ptr&, const backend_ptr&)>& check,
                   activation_type x = activation_type::f32) {
  for (const simd_kernels* simd : simd_choices())
    for (const bool matrix_unit : {false, true}) {
      if (matrix_unit && !amx_products()) continue;
      const auto one = make_cpu_backend(1, *simd, matrix_unit, x),
                 three = make_cpu_backend(3, *simd, matrix_unit, x);
      CAPTURE(one->name);
      check(one, three);
    }
}

std::uint32_t columns(rng& r, dtype type) {
  if (is_plain(type)) return pick(r, 1, 200);
  return facts(type).block_weights * pick(r, 1, facts(type).block_weights == 32 ? 9 : 2);
}

// Some rows and the experts that they choose. `share`: whether the slots of a row read one row of x.
struct scene {
  std::uint32_t experts, chosen, rows, slots, n, k, share;
  histogram how;
  std::vector<std::int32_t> ids;
  std::vector<float> x, biases;
  const float* bias;

  scene(rng& r, dtype type, std::uint32_t most_rows)
      : experts(pick(r, 1, 24)),
        chosen(pick(r, 1, std::min(8u, experts))),
        rows(pick(r, 1, most_rows)),
        slots(rows * chosen),
        n(pick(r, 1, 140)),
        k(columns(r, type)),
        share(pick(r, 0, 1) ? chosen : 1),
        how(histograms[pick(r, 0, 4)]),
        ids(chosen_experts(r, how, rows, chosen, experts)),
        x(random_floats(r, std::size_t{slots / share} * k)),
        biases(random_floats(r, std::size_t{experts} * n)),
        bias(pick(r, 0, 1) ? biases.data() : nullptr) {}

  std::vector<float> run(const backend& b, const expert_matrices& w) const {
    constexpr std::size_t fence = 64;
    auto out = poison(std::size_t{slots} * n + fence);
    b.run(expert_linear{w, bias, x.data(), ids.data(), out.data(), slots, share});
    for (std::size_t i = 0; i < fence; ++i) CHECK(std::isnan(out[out.size() - 1 - i]));
    out.resize(out.size() - fence);
    return out;
  }

  // Each slot by itself, as a product with its expert's matrix.
  std::vector<float> one_by_one(const backend& b, const expert_matrices& w) const {
    auto out = poison(std::size_t{slots} * n);
    for (std::uint32_t s = 0; s < slots; ++s) {
      const auto e = static_cast<std::uint32_t>(ids[s]);
      b.run(linear{w.of(e), bias ? bias + e * n : nullptr, x.data() + std::size_t{s / share} * k,
                   out.data() + std::size_t{s} * n, 1});
    }
    return out;
  }
};

#define CAPTURE_SCENE(s) \
  CAPTURE(s.experts, s.chosen, s.rows, s.n, s.k, s.share, int(s.how), s.bias != nullptr)

}  // namespace

TEST_CASE("reference: a slot of expert_linear is the product with its expert's matrix") {
  rng r = seeded(1);
  for_types([&](dtype type) {
    for (int round = 0; round < 6; ++round) {
      const scene s(r, type, 9);
      const random_experts w(r, type, s.experts, s.n, s.k);
      CAPTURE_SCENE(s);
      std::vector<float> wanted;
      for (std::uint32_t slot = 0; slot < s.slots; ++slot) {
        const auto e = static_cast<std::uint32_t>(s.ids[slot]);
        const auto numbers = w.numbers(e);
        for (std::uint32_t j = 0; j < s.n; ++j) {
          double sum = s.bias ? s.bias[e * s.n + j] : 0.0;
          for (std::uint32_t i = 0; i < s.k; ++i)
            sum += double{s.x[slot / s.share * s.k + i]} * numbers[j * s.k + i];
          wanted.push_back(static_cast<float>(sum));
        }
      }
      CHECK(worst_difference(wanted, s.run(*reference_backend(), w.view)) <= 3e-7);
    }
  });
}

TEST_CASE("cpu: expert_linear equals the reference, packed and as rows, for every type") {
  rng r = seeded(2);
  on_every_path([&](const backend_ptr& one, const backend_ptr& three) {
    for_types([&](dtype type) {
      for (int round = 0; round < 4; ++round) {
        const scene s(r, type, round == 0 ? 1 : 30);
        const random_experts w(r, type, s.experts, s.n, s.k);
        const packed_experts packed(one, w.view);
        CAPTURE_SCENE(s);
        const auto got = s.run(*one, packed.view);
        CHECK(worst_difference(s.run(*reference_backend(), w.view), got) <= 3e-5);
        CHECK(s.run(*three, packed.view) == got);
        CHECK(s.run(*three, w.view) == got);
      }
    });
  });
}

TEST_CASE("cpu: a slot of expert_linear has the bits of its product alone, with activations of any type") {
  rng r = seeded(3);
  for (const activation_type x : {activation_type::f32, activation_type::int8})
    on_every_path(
        [&](const backend_ptr& one, const backend_ptr& three) {
          for_types([&](dtype type) {
            if (x == activation_type::int8 && is_plain(type)) return;
            const scene s(r, type, 80);
            const packed_experts packed(one, random_experts(r, type, s.experts, s.n, s.k).view);
            CAPTURE_SCENE(s);
            const auto wanted = s.one_by_one(*one, packed.view);
            CHECK(s.run(*one, packed.view) == wanted);
            CHECK(s.run(*three, packed.view) == wanted);
          });
        },
        x);
}

TEST_CASE("cpu: every histogram of experts, from one row to 4,096") {
  struct shape {
    std::uint32_t rows, experts, chosen, n, k;
  };
  // The last two need more memory for activations than a wave has.
  constexpr shape shapes[] = {{1, 128, 8, 70, 96},   {1, 8, 1, 33, 64},     {2, 128, 8, 64, 1056},
                              {16, 32, 4, 40, 64},   {17, 16, 2, 33, 64},   {64, 128, 8, 96, 64},
                              {200, 8, 2, 500, 128}, {4096, 128, 8, 8, 32}, {4096, 64, 8, 33, 512},
                              {4096, 8, 8, 65, 480}};
  rng r = seeded(4);
  const auto one = cpu_backend(1), three = cpu_backend(3);
  for (const shape& at : shapes)
    for (const dtype type : {dtype::bf16, dtype::mxfp4}) {
      const packed_experts w(one, random_experts(r, type, at.experts, at.n, at.k).view);
      for (const histogram how : histograms) {
        const bool many = at.rows > 200;
        if (many && (type == dtype::mxfp4 || how == histogram::uneven || how == histogram::one_row_each))
          continue;
        scene s(r, type, 1);
        s.experts = at.experts, s.chosen = at.chosen, s.rows = at.rows, s.slots = at.rows * at.chosen;
        s.n = at.n, s.k = at.k, s.share = at.chosen, s.how = how;
        s.ids = chosen_experts(r, how, s.rows, s.chosen, s.experts);
        s.x = random_floats(r, std::size_t{s.rows} * s.k);
        s.bias = nullptr;
        CAPTURE_SCENE(s);
        const auto together = s.run(*three, w.view);
        CHECK(together == s.one_by_one(*one, w.view));
      }
    }
}

TEST_CASE("a slot of expert_linear does not see other rows") {
  rng r = seeded(5);
  for (const auto& b : {reference_backend(), cpu_backend(3)})
    for (const dtype type : {dtype::f32, dtype::bf16, dtype::f16, dtype::q4_k}) {
      scene s(r, type, 40);
      const random_experts w(r, type, s.experts, s.n, s.k);
      const auto before = s.run(*b, w.view);
      for (std::size_t i = 0; i < s.x.size(); ++i)
        if (i / s.k % 2 == 0) s.x[i] = std::nanf("");
      const auto after = s.run(*b, w.view);
      CAPTURE_SCENE(s);
      for (std::uint32_t slot = 0; slot < s.slots; ++slot)
        for (std::uint32_t j = 0; j < s.n; ++j) {
          const std::size_t at = std::size_t{slot} * s.n + j;
          REQUIRE((slot / s.share % 2 == 0 ? std::isnan(after[at]) : after[at] == before[at]));
        }
    }
}

TEST_CASE("cpu: calls of any shapes follow each other") {
  rng r = seeded(6);
  on_every_path([&](const backend_ptr&, const backend_ptr& three) {
    three->begin_step(three->self);
    for (int round = 0; round < 30; ++round) {
      const dtype type = static_cast<dtype>(pick(r, 0, dtype_count - 1));
      const scene s(r, type, round % 3 ? 3 : 60);
      const packed_experts w(three, random_experts(r, type, s.experts, s.n, s.k).view);
      CAPTURE(name(type));
      CAPTURE_SCENE(s);
      const auto first = s.run(*three, w.view);
      CHECK(s.run(*three, w.view) == first);
      CHECK(s.one_by_one(*three, w.view) == first);
    }
    three->end_step(three->self);
  });
}

TEST_CASE("cpu: a call of expert_linear allocates nothing once a larger one has been made") {
  rng r = seeded(9);
  const auto b = cpu_backend(2);
  const random_experts w(r, dtype::bf16, 32, 70, 96);
  const auto ids = chosen_experts(r, histogram::any, 300, 4, 32);
  const auto x = random_floats(r, 300 * 96);
  auto out = poison(1200 * 70);
  const auto run = [&](std::uint32_t rows) {
    b->run(expert_linear{w.view, nullptr, x.data(), ids.data(), out.data(), 4 * rows, 4});
  };
  CHECK(allocations_in([&] { run(300); }) > 0);
  CHECK(allocations_in([&] {
          for (const std::uint32_t rows : {1u, 299u, 7u, 300u}) run(rows);
        }) == 0);
}

TEST_CASE("expert_linear of no slots writes nothing") {
  rng r = seeded(7);
  const random_experts w(r, dtype::f32, 4, 3, 5);
  for (const auto& b : {reference_backend(), cpu_backend(2)}) {
    auto out = poison(1);
    b->run(expert_linear{w.view, nullptr, nullptr, nullptr, out.data(), 0, 2});
    CHECK(std::isnan(out[0]));
  }
}

namespace {

// What experts made of some rows.
struct made {
  std::uint32_t rows, width, chosen;
  std::vector<float> y, weights, shared, gate;
  bool adds, gates;

  made(rng& r, std::uint32_t rows, std::uint32_t width)
      : rows(rows),
        width(width),
        chosen(pick(r, 1, 8)),
        y(random_floats(r, std::size_t{rows} * chosen * width)),
        weights(random_floats(r, std::size_t{rows} * chosen)),
        shared(random_floats(r, std::size_t{rows} * width)),
        gate(random_floats(r, rows)),
        adds(pick(r, 0, 1)),
        gates(pick(r, 0, 1)) {}

  std::vector<float> mix(const backend& b, std::uint32_t first, std::uint32_t count) const {
    auto out = poison(std::size_t{count} * width + 20);
    b.run(mix_experts{y.data() + std::size_t{first} * chosen * width, weights.data() + first * chosen,
                      adds ? shared.data() + std::size_t{first} * width : nullptr,
                      adds && gates ? gate.data() + first : nullptr, out.data(), count, width, chosen});
    for (std::size_t i = 0; i < 20; ++i) CHECK(std::isnan(out[out.size() - 1 - i]));
    out.resize(out.size() - 20);
    return out;
  }

  std::vector<float> wanted() const {
    std::vector<float> out;
    for (std::uint32_t row = 0; row < rows; ++row)
      for (std::uint32_t c = 0; c < width; ++c) {
        double sum = adds ? (gates ? double{gate[row]} : 1.0) * shared[row * width + c] : 0.0;
        for (std::uint32_t i = 0; i < chosen; ++i)
          sum += double{weights[row * chosen + i]} * y[(std::size_t{row} * chosen + i) * width + c];
        out.push_back(static_cast<float>(sum));
      }
    return out;
  }
};

}  // namespace

TEST_CASE("mix_experts is the weighted sum of experts and the shared one, and a row is what it is alone") {
  rng r = seeded(8);
  for (int round = 0; round < 8; ++round) {
    const made m(r, pick(r, 1, round ? 40 : 4096), pick(r, 1, round ? 1500 : 20));
    CAPTURE(m.rows, m.width, m.chosen, m.adds, m.gates);
    const auto wanted = m.wanted();
    CHECK(worst_difference(wanted, m.mix(*reference_backend(), 0, m.rows)) <= 1e-7);
    on_every_path([&](const backend_ptr& one, const backend_ptr& three) {
      const auto got = m.mix(*one, 0, m.rows);
      CHECK(worst_difference(wanted, got) <= 1e-6);
      CHECK(m.mix(*three, 0, m.rows) == got);
      for (std::uint32_t row = 0; row < m.rows; row += 1 + m.rows / 20) {
        const auto from = got.begin() + std::ptrdiff_t{row} * m.width;
        CHECK(m.mix(*three, row, 1) == std::vector<float>(from, from + m.width));
      }
    });
  }
}

}  // namespace weir::tests::experts_test
