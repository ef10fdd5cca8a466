// Every operation of the cpu backend against the reference, over random shapes, on every instruction set that
// this machine has, with the matrix unit and without, with one thread and with three.
#include <catch2/catch.hpp>
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
        // All heads of a row as one.
        compare_in_place(b, head_norm{nullptr, own.data(), rows, stride, 1, heads * head_dim, 1e-6f, centred},
                         per_head, 2e-6);
      }
    }
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
  });
}

}  // namespace weir::tests::cpu_test
