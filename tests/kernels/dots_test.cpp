// Products of whole numbers (kernels/cpu/simd/dots.h) against their definition in double, on every
// instruction set that this machine has.
#include <catch2/catch.hpp>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <functional>

#include "kernels/blocks.h"
#include "kernels/buffer.h"
#include "kernels/cpu/backend.h"
#include "kernels/cpu/packing.h"
#include "kernels/cpu/self_test.h"
#include "tests/kernels/host_blocks.h"
#include "tests/kernels/random_data.h"
#include "tests/kernels/rounded_activations.h"
#include "tests/support/budget.h"

namespace weir::tests::dots_test {

using namespace weir::kernels;

namespace {

bool has_dots(dtype type) { return !is_plain(type) && type != dtype::fp8; }

void for_dot_types(const std::function<void(dtype)>& f) {
  for (std::size_t i = 0; i < dtype_count; ++i) {
    const auto type = static_cast<dtype>(i);
    if (!has_dots(type)) continue;
    CAPTURE(name(type));
    f(type);
  }
}

backend_ptr with_dots(unsigned threads, const simd_kernels& simd) {
  return make_cpu_backend(threads, simd, false, activation_type::int8);
}

void on_every_path(const std::function<void(const backend_ptr&, const backend_ptr&)>& check) {
  for (const simd_kernels* simd : simd_choices()) {
    const auto one = with_dots(1, *simd), three = with_dots(3, *simd);
    CAPTURE(one->name);
    check(one, three);
  }
}

using blocks_matrix = tests::random_blocks;
using packed_blocks = tests::host_packed_blocks;

// Sets all bytes of a block that neither its scale, its minimum nor its zero depends on.
void fill_codes(blocks_matrix& w, std::byte byte) {
  const dtype type = w.view.type;
  block_parts before, after;
  for (std::size_t at = 0; at < w.memory.size(); at += facts(type).block_bytes)
    for (std::size_t i = 0; i < facts(type).block_bytes; ++i) {
      const std::byte old = w.memory[at + i];
      take_apart(type, w.memory.data() + at, before);
      w.memory[at + i] = byte;
      take_apart(type, w.memory.data() + at, after);
      const bool same = before.scale == after.scale && before.minimum == after.minimum &&
                        before.zero == after.zero && std::isfinite(after.scale);
      if (!same) w.memory[at + i] = old;
    }
}

// The largest difference from the definition, in units of the sum of the sizes of all terms.
double worst_error(const matrix& w, const float* bias, const std::vector<float>& x, std::uint32_t rows,
                   const std::vector<float>& got) {
  const auto rounded = tests::rounded_activations(x, w.cols);
  std::vector<float> wide(std::size_t{w.rows} * w.cols);
  dequantise(w.type, w.data, wide.size(), wide.data());
  double worst = 0;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t j = 0; j < w.rows; ++j) {
      double sum = bias ? bias[j] : 0, size = std::abs(sum) + 1e-30;
      for (std::size_t i = 0; i < w.cols; ++i) {
        const double term = rounded[r * w.cols + i] * double{wide[j * w.cols + i]};
        sum += term;
        size += std::abs(term);
      }
      const double off = std::abs(sum - double{got[r * w.rows + j]}) / size;
      worst = off <= worst ? worst : off;  // NaN is the worst
    }
  return worst;
}

}  // namespace

TEST_CASE("dots: products equal their definition in double, packed and as rows, on every path") {
  tests::rng r(21);
  on_every_path([&](const backend_ptr& one, const backend_ptr& three) {
    for_dot_types([&](dtype type) {
      for (std::uint32_t round = 0; round < 2 + tests::rounds(2); ++round) {
        const std::uint32_t rows = round == 0 ? 1 : pick(r, 1, round == 1 ? 13 : 40), n = pick(r, 1, 100);
        const std::uint32_t k =
            facts(type).block_weights * pick(r, 1, facts(type).block_weights == 32 ? 45 : 5);
        blocks_matrix w(r, type, n, k);
        if (round > 0) tests::make_some_extreme(r, type, n, k, w.memory.data());
        auto x = random_floats(r, std::size_t{rows} * k);
        for (std::size_t i = 0; i < std::min<std::size_t>(k, 32); ++i) x[i] = 0;
        const auto some = random_floats(r, n);
        const float* bias = pick(r, 0, 1) ? some.data() : nullptr;
        CAPTURE(rows, n, k, bias != nullptr);
        const packed_blocks packed(one, w.view);
        const auto got = product_of(*one, packed.view, bias, x.data(), rows);
        CHECK(worst_error(w.view, bias, x, rows, got) <= 2e-6);
        CHECK(bits_of(product_of(*three, packed.view, bias, x.data(), rows)) == bits_of(got));
        CHECK(bits_of(product_of(*three, w.view, bias, x.data(), rows)) == bits_of(got));
      }
    });
  });
}

TEST_CASE("dots: every instruction set gives the same bits") {
  tests::rng r(22);
  for_dot_types([&](dtype type) {
    const std::uint32_t rows = 13, n = 70,
                        k = facts(type).block_weights * (facts(type).block_weights == 32 ? 21 : 3);
    const blocks_matrix w(r, type, n, k);
    const auto x = random_floats(r, std::size_t{rows} * k);
    std::vector<std::uint32_t> first;
    for (const simd_kernels* simd : simd_choices()) {
      const auto got = bits_of(product_of(*with_dots(2, *simd), w.view, nullptr, x.data(), rows));
      if (first.empty()) first = got;
      CAPTURE(simd->name);
      CHECK(got == first);
    }
  });
}

TEST_CASE("dots: a row has the same bits in any company") {
  tests::rng r(23);
  on_every_path([&](const backend_ptr& one, const backend_ptr& three) {
    for_dot_types([&](dtype type) {
      const std::uint32_t rows = 61, n = 65,
                          k = facts(type).block_weights * (facts(type).block_weights == 32 ? 37 : 5);
      const blocks_matrix w(r, type, n, k);
      const packed_blocks packed(one, w.view);
      const auto x = random_floats(r, std::size_t{rows} * k);
      const auto all = product_of(*one, packed.view, nullptr, x.data(), rows);
      for (std::uint32_t first = 0; first < rows;) {
        const std::uint32_t count = std::min(pick(r, 1, 14), rows - first);
        const auto part = product_of(*three, packed.view, nullptr, x.data() + std::size_t{first} * k, count);
        const std::vector<float> wanted(all.begin() + first * n, all.begin() + (first + count) * n);
        CHECK(bits_of(part) == bits_of(wanted));
        first += count;
      }
    });
  });
}

TEST_CASE("dots: weights with inputs of their own multiply each row of x in that order") {
  tests::rng r(24);
  on_every_path([&](const backend_ptr& one, const backend_ptr& three) {
    for (const dtype type : {dtype::q4_0, dtype::q8_0, dtype::int4_32, dtype::int8}) {
      const std::uint32_t rows = pick(r, 1, 30), n = 50, k = 32 * pick(r, 1, 9), width = pick(r, 1, k);
      const blocks_matrix w(r, type, n, k);
      const auto x = random_floats(r, std::size_t{rows} * width);
      std::vector<std::uint32_t> inputs(k);
      for (auto& i : inputs) i = pick(r, 0, width - 1);
      std::vector<float> in_order;
      for (std::uint32_t i = 0; i < rows; ++i)
        for (const std::uint32_t from : inputs) in_order.push_back(x[std::size_t{i} * width + from]);
      const packed_blocks packed(one, w.view);
      const auto wanted = product_of(*one, packed.view, nullptr, in_order.data(), rows);
      matrix m = packed.view;
      m.input_count = width;
      m.inputs = inputs.data();
      CHECK(product_of(*three, m, nullptr, x.data(), rows) == wanted);
    }
  });
}

TEST_CASE("dots: the largest codes against the largest activations do not saturate") {
  on_every_path([&](const backend_ptr& one, const backend_ptr& three) {
    for_dot_types([&](dtype type) {
      const std::uint32_t n = 33, k = 512, rows = 5;
      tests::rng r(25);
      for (const unsigned byte : {0x00u, 0x80u, 0x7fu, 0xffu, 0x88u, 0x77u, 0xf0u}) {
        blocks_matrix w(r, type, n, k);
        fill_codes(w, static_cast<std::byte>(byte));
        std::vector<float> x(std::size_t{rows} * k);
        for (std::size_t i = 0; i < x.size(); ++i)
          x[i] = i / k == 0                ? 1.0f
                 : i / k == 1              ? -1.0f
                 : i / k == 2 && i % 2     ? -3.0f
                 : i / k == 3 && i % 4 > 1 ? -2.0f
                                           : 3.0f;
        CAPTURE(byte);
        const packed_blocks packed(one, w.view);
        const auto got = product_of(*one, packed.view, nullptr, x.data(), rows);
        CHECK(worst_error(w.view, nullptr, x, rows, got) <= 2e-6);
        CHECK(product_of(*three, packed.view, nullptr, x.data() + 4 * k, 1) ==
              std::vector<float>(got.begin() + 4 * n, got.end()));
      }
    });
  });
}

TEST_CASE("dots: an activation that is not finite makes its row NaN, and no other") {
  tests::rng r(26);
  on_every_path([&](const backend_ptr& one, const backend_ptr&) {
    for_dot_types([&](dtype type) {
      const std::uint32_t n = 40, k = 512, rows = 9;
      const blocks_matrix w(r, type, n, k);
      const packed_blocks packed(one, w.view);
      auto x = random_floats(r, std::size_t{rows} * k);
      const auto healthy = product_of(*one, packed.view, nullptr, x.data(), rows);
      x[1 * k + pick(r, 0, k - 1)] = std::nanf("");
      x[4 * k + pick(r, 0, k - 1)] = std::numeric_limits<float>::infinity();
      x[6 * k + pick(r, 0, k - 1)] = -std::numeric_limits<float>::infinity();
      x[8 * k + 31] = -std::nanf("");
      const auto got = product_of(*one, packed.view, nullptr, x.data(), rows);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const std::size_t row = i / n;
        if (row == 1 || row == 4 || row == 6 || row == 8)
          CHECK(std::isnan(got[i]));
        else
          CHECK(got[i] == healthy[i]);
      }
    });
  });
}

TEST_CASE("dots: very small activations are zeros, and very large ones are not lost") {
  tests::rng r(27);
  on_every_path([&](const backend_ptr& one, const backend_ptr&) {
    const blocks_matrix w(r, dtype::q8_0, 32, 64);
    for (const float size : {1e-44f, 1e-38f, 7e-37f, 1e-36f, 1e-30f, 1e30f, 3e38f}) {
      auto x = random_floats(r, 64);
      for (float& v : x) v = std::clamp(v, -1.0f, 1.0f) * size;
      CAPTURE(size);
      const auto got = product_of(*one, w.view, nullptr, x.data(), 1);
      if (size < 0x1p-120f)
        CHECK(got == std::vector<float>(32, 0.0f));
      else
        CHECK(worst_error(w.view, nullptr, x, 1, got) <= 2e-6);
    }
  });
}

TEST_CASE("dots: gather reads the numbers of packed weights, and packing takes the bytes that were said") {
  tests::rng r(28);
  on_every_path([&](const backend_ptr& one, const backend_ptr&) {
    for_dot_types([&](dtype type) {
      const std::uint32_t n = pick(r, 1, 70), k = facts(type).block_weights * pick(r, 1, 3);
      const blocks_matrix w(r, type, n, k);
      CHECK(one->weight_bytes(one->self, type, n, k) == packed_bytes(type, n, k));
      const packed_blocks packed(one, w.view);
      std::vector<float> wanted(std::size_t{n} * k);
      dequantise(type, w.memory.data(), wanted.size(), wanted.data());
      std::vector<std::int32_t> ids(n);
      for (std::uint32_t i = 0; i < n; ++i) ids[i] = static_cast<std::int32_t>(i);
      auto got = poison(wanted.size());
      one->run(gather{packed.view, ids, got.data()});
      CHECK(got == wanted);
    });
  });
}

TEST_CASE("dots: plain weights, and fp8, are multiplied by f32 as without the option") {
  tests::rng r(29);
  for (const simd_kernels* simd : simd_choices()) {
    const auto f32 = make_cpu_backend(2, *simd, false), int8 = with_dots(2, *simd);
    const blocks_matrix w(r, dtype::fp8, 50, 256);
    const tests::random_matrix plain(r, dtype::bf16, 50, 256);
    const auto x = random_floats(r, 3 * 256);
    for (const matrix& m : {w.view, plain.view})
      CHECK(product_of(*int8, m, nullptr, x.data(), 3) == product_of(*f32, m, nullptr, x.data(), 3));
  }
}

TEST_CASE(
    "dots: every path passes its self-test, and one that saturates or depends on its company does not") {
  for (const simd_kernels* simd : simd_choices())
    for_dot_types([&](dtype type) { CHECK(is_exact(*simd->dots(type), type)); });
  static const product_path* sound = simd_choices().back()->dots(dtype::q4_0);
  product_path broken = *sound;
  broken.multiply = [](const product_tile& t) {
    sound->multiply(t);
    if (t.rows == 3) t.to[0] += 1e-3f;
  };
  CHECK(!is_exact(broken, dtype::q4_0));
}

}  // namespace weir::tests::dots_test
