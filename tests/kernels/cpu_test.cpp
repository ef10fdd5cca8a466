// Every operation of the cpu backend against the reference, over random shapes, on every instruction set that
// this machine has, with the matrix unit and without, with one thread and with three.
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>

#include "kernels/cpu/backend.h"
#include "kernels/ops.h"
#include "tests/kernels/random_data.h"

namespace weir::tests::cpu_test {

using namespace weir::kernels;

namespace {

const backend& defined() {
  static const auto b = reference_backend();
  return *b;
}

void on_every_backend(const std::function<void(const backend&)>& check) {
  for (const simd_kernels* simd : simd_choices())
    for (const bool matrix_unit : {false, true})
      for (const unsigned threads : {1u, 3u}) {
        const auto b = make_cpu_backend(threads, *simd, matrix_unit);
        CAPTURE(b->name, threads);
        check(*b);
      }
}

constexpr dtype types[] = {dtype::f32, dtype::bf16, dtype::f16};

// Runs op into both backends' poisoned outputs and compares.
template <class Op>
void compare(const backend& b, Op op, std::size_t out_size, double tolerance) {
  auto wanted = poison(out_size), got = poison(out_size);
  op.out = wanted.data();
  defined().run(op);
  op.out = got.data();
  b.run(op);
  CHECK(tests::worst_difference(wanted, got) <= tolerance);
}

// The same for operations in place: both start from the same x.
template <class Op>
void compare_in_place(const backend& b, Op op, const std::vector<float>& x, double tolerance) {
  auto wanted = x, got = x;
  op.x = wanted.data();
  defined().run(op);
  op.x = got.data();
  b.run(op);
  CHECK(tests::worst_difference(wanted, got) <= tolerance);
}

// The largest error of an element in units of itself, where f in double is the definition.
template <class F>
double worst_share(const std::vector<float>& x, const std::vector<float>& got, const F& f) {
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double wanted = f(double{x[i]});
    worst = std::max(worst, std::abs(got[i] - wanted) / std::max(std::abs(wanted), 1e-30));
  }
  return worst;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// Whether `rows` rows together get the bits that each gets alone. run(x, rows, out) computes rows of `stride`
// elements into rows of `width`.
template <class Run>
bool each_as_alone(const std::vector<float>& x, std::uint32_t rows, std::size_t stride, std::size_t width,
                   const Run& run) {
  auto all = poison(rows * width), one = poison(rows * width);
  run(x.data(), rows, all.data());
  for (std::uint32_t r = 0; r < rows; ++r) run(x.data() + r * stride, 1u, one.data() + r * width);
  return same_bits(all, one);
}

}  // namespace

TEST_CASE("cpu: gather equals the reference bit for bit, and widens special values") {
  on_every_backend([](const backend& b) {
    tests::rng r(4);
    for (const dtype type : types) {
      const std::uint32_t rows = 50, width = pick(r, 1, 1400);
      tests::random_matrix table(r, type, rows, width);
      if (type == dtype::f16) reinterpret_cast<std::uint16_t*>(table.memory.data())[0] = 0x7c00;  // infinity
      std::vector<std::int32_t> ids(40);
      for (auto& id : ids) id = static_cast<std::int32_t>(pick(r, 1, rows - 1));
      CAPTURE(name(type), width);
      compare(b, gather{table.view, ids, nullptr}, ids.size() * width, 0);
      compare(b, gather{table.view, ids, nullptr, 7.25f}, ids.size() * width, 0);
      std::vector<float> first(width);
      ids = {0};
      b.run(gather{table.view, ids, first.data()});
      CHECK(first[0] == load(table.view.data, type, 0));
    }
  });
}

TEST_CASE("cpu: norms equal the reference") {
  on_every_backend([](const backend& b) {
    tests::rng r(5);
    for (int round = 0; round < 12; ++round) {
      const std::uint32_t rows = pick(r, 1, 40), width = pick(r, 1, 2000), heads = pick(r, 1, 8);
      const auto x = random_floats(r, std::size_t{rows} * width, 3), weight = random_floats(r, width);
      CAPTURE(rows, width, heads);
      const auto bias = random_floats(r, width);
      for (const bool centred : {false, true})
        for (const float* more : {static_cast<const float*>(nullptr), bias.data()})
          if (width > 1 || !centred)
            compare(b, row_norm{x.data(), weight.data(), nullptr, rows, width, 1e-5f, centred, more},
                    rows * width, 2e-6);
      const std::uint32_t head_dim = pick(r, 4, 128) * 2, stride = heads * head_dim + pick(r, 0, 9);
      const auto per_head = random_floats(r, std::size_t{rows} * stride),
                 head_weight = random_floats(r, head_dim);
      const auto own = random_floats(r, std::size_t{heads} * head_dim);
      for (const bool centred : {false, true}) {
        compare_in_place(
            b, head_norm{nullptr, head_weight.data(), rows, stride, heads, head_dim, 1e-6f, centred},
            per_head, 2e-6);
        compare_in_place(
            b, head_norm{nullptr, own.data(), rows, stride, heads, head_dim, 1e-6f, centred, head_dim},
            per_head, 2e-6);
        // All heads of a row as one, as in models that norm the whole row.
        compare_in_place(b, head_norm{nullptr, own.data(), rows, stride, 1, heads * head_dim, 1e-6f, centred},
                         per_head, 2e-6);
      }
    }
  });
}

TEST_CASE("cpu: norms of wide rows and of rows far from zero equal the reference") {
  on_every_backend([](const backend& b) {
    tests::rng r(8);
    const std::uint32_t rows = 3;
    for (const std::uint32_t width : {256u, 5120u, 16387u}) {
      auto x = random_floats(r, std::size_t{rows} * width);
      const auto weight = random_floats(r, width), bias = random_floats(r, width);
      CAPTURE(width);
      compare_in_place(b, head_norm{nullptr, weight.data(), rows, width, 1, width, 1e-6f}, x, 2e-6);
      for (float& v : x) v += 100;  // the mean is known to 1e-5 of the spread
      compare(b, row_norm{x.data(), weight.data(), nullptr, rows, width, 1e-5f, true, bias.data()}, x.size(),
              2e-5);
      compare_in_place(b, head_norm{nullptr, weight.data(), rows, width, 1, width, 1e-6f, true}, x, 2e-5);
    }
    // A row whose elements are all the same has no spread: only the bias is left.
    const std::vector<float> flat(40, 3.5f), weight(40, 2.0f), bias(40, 0.25f);
    auto out = poison(40);
    b.run(row_norm{flat.data(), weight.data(), out.data(), 1, 40, 1e-5f, true, bias.data()});
    CHECK(out == bias);
  });
}

TEST_CASE("cpu: rotary equals the reference") {
  on_every_backend([](const backend& b) {
    tests::rng r(6);
    for (int round = 0; round < 12; ++round) {
      const std::uint32_t rows = pick(r, 1, 40), heads = pick(r, 1, 8), half = pick(r, 1, 128);
      const std::uint32_t stride = heads * half * 2 + pick(r, 0, 9);
      std::vector<std::uint32_t> positions(rows);
      for (auto& p : positions) p = pick(r, 0, 100000);
      const auto frequencies = random_floats(r, half);
      auto cos = poison(rows * half), sin = poison(rows * half);
      b.run(rotary_angles{positions, frequencies, cos.data(), sin.data()});
      CHECK(cos[0] == std::cos(static_cast<float>(positions[0]) * frequencies[0]));
      const float plain = cos[0];
      b.run(rotary_angles{positions, frequencies, cos.data(), sin.data(), 1.25f});
      CHECK(cos[0] == 1.25f * plain);
      const auto x = random_floats(r, std::size_t{rows} * stride);
      CAPTURE(rows, heads, half);
      compare_in_place(b, rotary{nullptr, cos.data(), sin.data(), rows, stride, heads, 2 * half, 2 * half}, x,
                       1e-6);
      // Only the first elements of a head turn.
      const std::uint32_t turned = 2 * pick(r, 0, half);
      compare_in_place(b, rotary{nullptr, cos.data(), sin.data(), rows, stride, heads, 2 * half, turned}, x,
                       1e-6);
      auto still = x;
      b.run(rotary{still.data(), cos.data(), sin.data(), rows, stride, heads, 2 * half, 0});
      CHECK(same_bits(still, x));
      auto moved = x;
      b.run(rotary{moved.data(), cos.data(), sin.data(), 1, stride, 1, 2 * half, turned});
      CHECK(std::equal(moved.begin() + turned, moved.end(), x.begin() + turned));
    }
  });
}

TEST_CASE("cpu: activate and add equal the reference, at the edges of exp too") {
  on_every_backend([](const backend& b) {
    tests::rng r(7);
    for (int round = 0; round < 8; ++round) {
      const std::uint32_t rows = pick(r, 1, 40), width = pick(r, 1, 1500);
      auto x = random_floats(r, std::size_t{rows} * 2 * width, 4), y = random_floats(r, x.size());
      CAPTURE(rows, width);
      for (const activation kind : {activation::silu, activation::gelu, activation::relu2})
        for (const bool gated : {true, false})
          compare(b, activate{x.data(), nullptr, rows, width, kind, gated}, rows * width, 1e-6);
      for (const float limit : {0.5f, 7.0f, 1e30f})
        compare(b, activate{x.data(), nullptr, rows, width, activation::clamped, true, limit}, rows * width,
                1e-6);
      compare_in_place(b, add{nullptr, y.data(), y.size()}, x, 0);
      compare_in_place(b, add{nullptr, y.data(), y.size(), 0.37f}, x, 1e-6);
      const auto half = std::span(x).first(std::size_t{rows} * width);
      compare_in_place(b, sigmoid_mul{nullptr, y.data(), rows, width, 2 * width},
                       std::vector<float>(half.begin(), half.end()), 1e-6);
      for (const float cap : {0.0f, 0.5f, 3.0f, 50.0f})
        compare_in_place(b, soft_cap{nullptr, x.size(), 1.7f, cap}, x, 1e-6);
    }
    std::vector<float> steep{-1e30f, -500, -30, -1e-3f, -0.0f, 0, 1e-6f, 0.2499f, 0.2501f, 30, 500, 1e30f};
    compare_in_place(b, soft_cap{nullptr, steep.size(), 1, 2}, steep, 1e-6);
    std::vector<float> edges{-1e30f, -200, -88, -87, -0.0f, 0, 87, 88, 200, 1e30f};
    auto x = edges;
    x.resize(2 * edges.size(), 1.0f);
    const auto count = static_cast<std::uint32_t>(edges.size());
    for (const activation kind : {activation::silu, activation::gelu})
      compare(b, activate{x.data(), nullptr, 1, count, kind}, edges.size(), 1e-6);
    auto out = poison(1);
    float broken[] = {std::nanf(""), 1};
    for (const activation kind : {activation::silu, activation::gelu, activation::relu2}) {
      out[0] = 0;
      b.run(activate{broken, out.data(), 1, 1, kind});
      CHECK(std::isnan(out[0]));
    }
    b.run(soft_cap{broken, 1, 1, 5});
    CHECK(std::isnan(broken[0]));
    float gate[] = {std::nanf("")};
    b.run(sigmoid_mul{out.data(), gate, 1, 1, 1});
    CHECK(std::isnan(out[0]));
  });
}

TEST_CASE("clamped bounds the gate from above and the up on both sides, and a NaN stays one") {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> gates{-20, -3, -1e-3f, 0, 1, 6.9f, 7.1f, 100, 1e30f, inf},
      ups{-inf, -1e30f, -7.1f, -6.9f, -1, 0, 2, 6.9f, 7.1f, inf};
  std::vector<float> x;
  for (const float g : gates) x.insert(x.end(), ups.size(), g);
  for (std::size_t i = 0; i < gates.size(); ++i) x.insert(x.end(), ups.begin(), ups.end());
  const auto count = static_cast<std::uint32_t>(x.size() / 2);
  const auto check = [&](const backend& b) {
    auto out = poison(count);
    b.run(activate{x.data(), out.data(), 1, count, activation::clamped, true, 7});
    for (std::uint32_t i = 0; i < count; ++i) {
      const double g = std::min(double{x[i]}, 7.0), u = std::clamp(double{x[count + i]}, -7.0, 7.0);
      const double wanted = g / (1 + std::exp(-1.702 * g)) * (u + 1);
      CAPTURE(x[i], x[count + i]);
      CHECK(std::abs(out[i] - wanted) <= 2e-6 * std::abs(wanted) + 1e-12);
    }
    for (const std::size_t place : {0u, 1u}) {
      std::vector<float> bad(2, 1);
      bad[place] = nan;
      out[0] = 0;
      b.run(activate{bad.data(), out.data(), 1, 1, activation::clamped, true, 7});
      CHECK(std::isnan(out[0]));
    }
  };
  check(defined());
  on_every_backend(check);
}

TEST_CASE("cpu: gelu, tanh and the sigmoid are right where they are small, and at the ends of the line") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  on_every_backend([](const backend& b) {
    std::vector<float> x;
    for (float v = -8; v <= 8; v += 1.0f / 128) x.push_back(v + 1e-4f);
    for (const float v : {1e-30f, -1e-20f, 1e-6f, -1e-3f}) x.push_back(v);
    const auto count = static_cast<std::uint32_t>(x.size());
    auto out = poison(count);
    b.run(activate{x.data(), out.data(), 1, count, activation::gelu, false});
    CHECK(worst_share(x, out, [](double g) {
            return g / (1 + std::exp(-2 * 0.7978845608 * (g + 0.044715 * g * g * g)));
          }) <= 1e-5);
    b.run(activate{x.data(), out.data(), 1, count, activation::relu2, false});
    CHECK(worst_share(x, out, [](double g) { return g > 0 ? g * g : 0; }) <= 1e-7);
    out = x;
    b.run(soft_cap{out.data(), count, 1, 1.5f});
    CHECK(worst_share(x, out, [](double v) { return 1.5 * std::tanh(v / 1.5); }) <= 1e-6);
    out.assign(count, 3.0f);
    b.run(sigmoid_mul{out.data(), x.data(), 1, count, count});
    CHECK(worst_share(x, out, [](double v) { return 3 / (1 + std::exp(-v)); }) <= 1e-6);

    const std::vector<float> ends{-inf, -3e38f, -1e4f, -100, -20, 0, 20, 100, 1e4f, 3e38f, inf};
    const std::uint32_t many = static_cast<std::uint32_t>(ends.size());
    out = poison(many);
    b.run(activate{ends.data(), out.data(), 1, many, activation::gelu, false});
    for (std::uint32_t i = 0; i < many; ++i) {
      CAPTURE(ends[i], out[i]);
      CHECK((ends[i] > 0 ? out[i] == ends[i] : std::abs(out[i]) <= 1e-30f));
    }
    b.run(activate{ends.data(), out.data(), 1, many, activation::relu2, false});
    CHECK((out[0] == 0 && out[3] == 0 && out[7] == 1e4f && out[10] == inf));
    out = ends;
    b.run(soft_cap{out.data(), many, 1, 30});
    CHECK((out[0] == -30 && out[1] == -30 && out[5] == 0 && out[9] == 30 && out[10] == 30));
    out.assign(many, 2.0f);
    b.run(sigmoid_mul{out.data(), ends.data(), 1, many, many});
    CHECK((out[0] <= 1e-30f && out[5] == 1 && out[10] == 2));
  });
}

TEST_CASE("cpu: a row has the same bits alone and beside others, in every operation of a row") {
  on_every_backend([](const backend& b) {
    tests::rng r(9);
    for (const std::uint32_t width : {61u, 512u, 4099u}) {
      const std::uint32_t rows = 23, half = width / 2;
      const auto x = random_floats(r, std::size_t{rows} * 2 * width, 3), weight = random_floats(r, width),
                 bias = random_floats(r, width);
      const auto alone = [&](std::size_t stride, const auto& run) {
        return each_as_alone(x, rows, stride, width, run);
      };
      const auto copied = [&](const auto& make) {  // operations in place
        return [&](const float* from, std::uint32_t n, float* out) {
          std::copy(from, from + std::size_t{n} * width, out);
          b.run(make(n, out));
        };
      };
      CAPTURE(width);
      for (const bool centred : {false, true})
        for (const float* more : {static_cast<const float*>(nullptr), bias.data()})
          CHECK(alone(width, [&](const float* from, std::uint32_t n, float* out) {
            b.run(row_norm{from, weight.data(), out, n, width, 1e-5f, centred, more});
          }));
      for (const activation kind : {activation::silu, activation::gelu, activation::relu2})
        for (const bool gated : {false, true})
          CHECK(alone(gated ? 2 * width : width, [&](const float* from, std::uint32_t n, float* out) {
            b.run(activate{from, out, n, width, kind, gated});
          }));
      CHECK(alone(2 * width, [&](const float* from, std::uint32_t n, float* out) {
        b.run(activate{from, out, n, width, activation::clamped, true, 2});
      }));
      CHECK(alone(width, copied([&](std::uint32_t n, float* out) {
                    return head_norm{out, weight.data(), n, width, 2, half, 1e-6f, true, half};
                  })));
      CHECK(alone(width, copied([&](std::uint32_t n, float* out) {
                    return soft_cap{out, std::size_t{n} * width, 1.5f, 4};
                  })));
      CHECK(alone(width, copied([&](std::uint32_t n, float* out) {
                    return sigmoid_mul{out, bias.data(), n, width, 0};  // the same gates in every row
                  })));
    }
  });
}

}  // namespace weir::tests::cpu_test
