// Matrix products of the cpu backend: against the reference, and each row against itself alone, on every path
// that this machine has.
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>

#include "kernels/buffer.h"
#include "kernels/cpu/amx.h"
#include "kernels/cpu/backend.h"
#include "kernels/cpu/packing.h"
#include "kernels/cpu/self_test.h"
#include "tests/kernels/random_data.h"

namespace weir::tests::linear_test {

using namespace weir::kernels;

namespace {

using backend_ptr = std::shared_ptr<const backend>;

constexpr dtype types[] = {dtype::f32, dtype::bf16, dtype::f16};

// check(one thread, three threads), the same path in both.
void on_every_path(const std::function<void(const backend_ptr&, const backend_ptr&)>& check) {
  for (const simd_kernels* simd : simd_choices())
    for (const bool matrix_unit : {false, true}) {
      const auto one = make_cpu_backend(1, *simd, matrix_unit),
                 three = make_cpu_backend(3, *simd, matrix_unit);
      CAPTURE(one->name);
      check(one, three);
    }
}

// A matrix in a backend's own layout, with its memory.
struct packed_matrix {
  buffer memory;
  matrix view;

  packed_matrix(const backend_ptr& b, const matrix& rows)
      : memory(b, b->weight_bytes(b->self, rows.type, rows.rows, rows.cols)), view(rows) {
    std::memset(memory.data(), 0xff, memory.size());  // NaN, where packing leaves something out
    b->do_pack(b->self, rows, memory.data());
    view.data = memory.data();
    view.order = layout::packed;
  }
};

std::vector<float> run(const backend& b, const matrix& w, const float* bias, const float* x,
                       std::uint32_t rows) {
  constexpr std::size_t fence = 64;
  auto out = poison(std::size_t{rows} * w.rows + fence);
  b.run(linear{w, bias, x, out.data(), rows});
  for (std::size_t i = 0; i < fence; ++i) CHECK(std::isnan(out[out.size() - 1 - i]));
  out.resize(out.size() - fence);
  return out;
}

}  // namespace

TEST_CASE("linear equals the reference, packed and as rows") {
  tests::rng r(1);
  on_every_path([&](const backend_ptr& one, const backend_ptr& three) {
    for (int round = 0; round < 30; ++round) {
      const dtype type = types[round % 3];
      const std::uint32_t rows = pick(r, 1, 70), n = pick(r, 1, 400), k = pick(r, 1, 300);
      const tests::random_matrix w(r, type, n, k);
      const auto x = random_floats(r, std::size_t{rows} * k), some = random_floats(r, n);
      const float* bias = pick(r, 0, 1) ? some.data() : nullptr;
      CAPTURE(name(type), rows, n, k, bias != nullptr);
      const auto wanted = run(*reference_backend(), w.view, bias, x.data(), rows);
      const packed_matrix packed(one, w.view);
      const auto got = run(*one, packed.view, bias, x.data(), rows);
      CHECK(tests::worst_difference(wanted, got) <= 3e-5);
      CHECK(run(*three, packed.view, bias, x.data(), rows) == got);
      CHECK(run(*three, w.view, bias, x.data(), rows) == got);
    }
  });
}

TEST_CASE("a row of linear has the same bits alone, among 64, among 512, with one thread and with three") {
  tests::rng r(2);
  struct shape {
    std::uint32_t n, k;
  };
  on_every_path([&](const backend_ptr& one, const backend_ptr& three) {
    for (const dtype type : types)
      for (const shape s : {shape{96, 768}, {391, 517}, {33, 2081}, {1, 1}, {1000, 31}}) {
        const tests::random_matrix w(r, type, s.n, s.k);
        const packed_matrix packed(one, w.view);
        const auto x = random_floats(r, 512 * s.k);
        CAPTURE(name(type), s.n, s.k);
        const auto most = run(*one, packed.view, nullptr, x.data(), 512);
        CHECK(run(*three, packed.view, nullptr, x.data(), 512) == most);
        const auto row = [&](std::size_t i) { return most.begin() + static_cast<std::ptrdiff_t>(i * s.n); };
        for (const std::uint32_t rows : {1u, 2u, 7u, 13u, 16u, 17u, 33u, 64u}) {
          const std::size_t first = pick(r, 0, 512 - rows);
          for (const auto& b : {one, three}) {
            CAPTURE(rows, first);
            CHECK(run(*b, packed.view, nullptr, x.data() + first * s.k, rows) ==
                  std::vector<float>(row(first), row(first + rows)));
          }
        }
      }
  });
}

TEST_CASE("a row of linear does not see what is in other rows") {
  tests::rng r(3);
  on_every_path([&](const backend_ptr& one, const backend_ptr&) {
    for (const dtype type : types) {
      const std::uint32_t rows = 41, n = 100, k = 70;
      const tests::random_matrix w(r, type, n, k);
      const packed_matrix packed(one, w.view);
      auto x = random_floats(r, rows * k);
      const auto before = run(*one, packed.view, nullptr, x.data(), rows);
      for (std::uint32_t i = 0; i < rows; ++i)
        if (i % 2 == 0) std::fill_n(x.begin() + i * k, k, std::nanf(""));
      const auto after = run(*one, packed.view, nullptr, x.data(), rows);
      CAPTURE(name(type));
      for (std::uint32_t i = 1; i < rows; i += 2)
        CHECK(std::equal(before.begin() + i * n, before.begin() + (i + 1) * n, after.begin() + i * n));
    }
  });
}

TEST_CASE("a packed matrix takes what it says, and gather finds its rows in it") {
  tests::rng r(4);
  const auto b = cpu_backend(2);
  for (const dtype type : types) {
    CHECK(b->weight_bytes(b->self, type, 32000, 768) == 32000u * 768 * size_of(type));  // nothing to fill up
    const tests::random_matrix w(r, type, 77, 45);
    const packed_matrix packed(b, w.view);
    std::vector<std::int32_t> ids(1500);
    for (auto& id : ids) id = static_cast<std::int32_t>(pick(r, 0, 76));
    auto wanted = poison(ids.size() * 45), got = wanted;
    reference_backend()->run(gather{w.view, ids, wanted.data()});
    b->run(gather{packed.view, ids, got.data()});
    CHECK(wanted == got);
  }
}

TEST_CASE("the self-test finds a path whose rows depend on their neighbours, and it is left out by name") {
  static const simd_kernels& good = *simd_choices().front();
  static product_path sloppy = *good.products;
  sloppy.multiply = [](const product_tile& t) {
    good.products->multiply(t);
    if (t.rows == 5) t.to[4 * t.to_stride] = std::nextafter(t.to[4 * t.to_stride], 1e9f);
  };
  static product_path wrong = *good.products;
  wrong.multiply = [](const product_tile& t) {
    good.products->multiply(t);
    for (std::size_t i = 0; i < t.rows; ++i) t.to[i * t.to_stride] = 0;
  };
  CHECK(is_exact(*good.products, dtype::f32));
  CHECK(!is_exact(sloppy, dtype::f32));
  CHECK(!is_exact(wrong, dtype::bf16));

  simd_kernels broken = good;
  broken.name = "broken";
  broken.products = &sloppy;
  const simd_kernels* both[] = {&broken, &good};
  const auto paths = choose_paths(both, &wrong);
  CHECK(paths.simd == &good);
  CHECK(paths.amx == nullptr);
  CHECK(paths.name == std::string("cpu (") + good.name +
                          "; broken failed its self-test; amx-bf16 failed its self-test)");
  CHECK_THROWS(choose_paths(std::span(both).first(1), nullptr));
}

TEST_CASE("limits are measured") {
  const auto b = cpu_backend(2);
  for (const dtype type : types) CHECK(b->peak_flops(b->self, type) > 1e8);
  const std::vector<std::byte> some(1'000'003);
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{700}, some.size()})
    b->do_read(b->self, some.data(), bytes);
}

}  // namespace weir::tests::linear_test
