// What stands between the product of a step's queries, keys and values and its attention, against a loop in
// double: bias, norm and rotary embedding, and the write into pages. Skipped, saying so, without a device.
#ifdef WEIR_WITH_CUDA
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/cuda/layers.h"
#include "tests/kernels/on_device.h"
#include "tests/kernels/random_data.h"

namespace weir::tests::cuda_rotary_test {

using namespace weir::kernels;
using namespace weir::kernels::cuda;

namespace {

constexpr float eps = 1e-5f;

// Rows of three sequences and of padding, whose pages are in any order.
struct scene {
  dtype type;
  head_shape h;
  bool has_bias, has_norm;
  std::vector<std::uint32_t> positions;
  std::vector<std::int32_t> pages_at, pages;
  std::vector<element> qkv;
  std::vector<float> bias, q_norm, k_norm, cos, sin;

  scene(tests::rng& r, dtype t, head_shape shape, bool with_bias, bool with_norm)
      : type(t), h(shape), has_bias(with_bias), has_norm(with_norm) {
    for (const std::uint32_t first : {0u, 61u, 1000u}) {
      const auto begin = static_cast<std::int32_t>(pages.size());
      for (std::uint32_t i = 0; i < 11; ++i) {
        positions.push_back(first + i);
        pages_at.push_back(begin);
      }
      pages.resize(pages.size() + (first + 10) / cuda::page_tokens + 1);
      positions.push_back(0);
      pages_at.push_back(-1);
    }
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), r);
    for (const float x : random_floats(r, rows() * h.width())) qkv.push_back(rounded(type, x));
    bias = random_floats(r, h.width());
    q_norm = random_floats(r, h.head_dim);
    k_norm = random_floats(r, h.head_dim);
    cos = random_floats(r, rows() * h.head_dim / 2);
    sin = random_floats(r, rows() * h.head_dim / 2);
  }
  std::size_t rows() const { return positions.size(); }

  // What becomes of one head of a row, in double.
  std::vector<double> wanted(std::size_t row, std::uint32_t head) const {
    const std::size_t half = h.head_dim / 2;
    std::vector<double> v(h.head_dim), out(h.head_dim);
    double squares = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
      v[i] = double{number(type, qkv[row * h.width() + head * h.head_dim + i])} +
             (has_bias ? bias[head * h.head_dim + i] : 0.0f);
      squares += v[i] * v[i];
    }
    if (head >= h.heads + h.kv_heads) return v;
    const auto& weight = head < h.heads ? q_norm : k_norm;
    for (std::size_t i = 0; has_norm && i < v.size(); ++i)
      v[i] *= weight[i] / std::sqrt(squares / h.head_dim + double{eps});
    for (std::size_t i = 0; i < half; ++i) {
      const double c = cos[row * half + i], s = sin[row * half + i];
      out[i] = v[i] * c - v[half + i] * s;
      out[half + i] = v[half + i] * c + v[i] * s;
    }
    return out;
  }

  // The place of element `i` of a row's key or value in the pages.
  std::size_t place(std::size_t row, std::uint32_t kv_head, std::size_t i) const {
    const std::uint32_t position = positions[row];
    const auto page = static_cast<std::size_t>(
        pages[static_cast<std::size_t>(pages_at[row]) + position / cuda::page_tokens]);
    const int at = unit_at(static_cast<int>(i / 8), static_cast<int>(position % cuda::page_tokens),
                           static_cast<int>(h.head_dim / 8), cuda::page_tokens);
    return (page * h.kv_heads + kv_head) * cuda::page_tokens * h.head_dim + static_cast<std::size_t>(at) * 8 +
           i % 8;
  }

  void check(device& d) const {
    const std::size_t page_elements = pages.size() * h.kv_heads * cuda::page_tokens * h.head_dim;
    const on_device there(d, qkv), keys(d, std::vector<element>(page_elements, element{0xffff})),
        values(d, std::vector<element>(page_elements, element{0xffff}));
    const on_device b(d, bias), q(d, q_norm), k(d, k_norm), c(d, cos), s(d, sin);
    const on_device at(d, positions);
    const on_device first(d, pages_at), all(d, pages);
    rows_view v{};
    v.positions = at.get();
    v.pages_at = first.get();
    v.pages = all.get();
    v.rows = static_cast<std::uint32_t>(rows());
    const rotary_args t{has_bias ? b.get() : nullptr, has_norm ? q.get() : nullptr,
                        has_norm ? k.get() : nullptr, c.get(),
                        s.get(),                      eps};
    rotary_and_write(d, type, v, h, t, there.get(),
                     {keys.as<unsigned char>(), values.as<unsigned char>()});
    const auto got = there.back(), got_keys = keys.back(), got_values = values.back();
    const double tolerance = type == dtype::f16 ? 0.0015 : 0.012;
    std::size_t written = 0, wrong = 0;
    for (std::size_t row = 0; row < rows(); ++row)
      for (std::uint32_t head = 0; head < h.heads + 2 * h.kv_heads; ++head) {
        const std::size_t from = row * h.width() + head * h.head_dim;
        if (pages_at[row] < 0) {  // padding stays as it is
          wrong += std::memcmp(&got[from], &qkv[from], h.head_dim * sizeof(element)) != 0;
          continue;
        }
        const auto want = wanted(row, head);
        for (std::size_t i = 0; i < want.size(); ++i) {
          const bool value = head >= h.heads + h.kv_heads;
          const element e = head < h.heads ? got[from + i]
                                           : (value ? got_values : got_keys)[place(
                                                 row, (head - h.heads) % h.kv_heads, i)];
          written += head >= h.heads;
          const double off = std::abs(double{number(type, e)} - want[i]);
          wrong += !(off <= tolerance * std::max(1.0, std::abs(want[i])));
        }
      }
    CHECK(wrong == 0);
    // Nothing else in the pages is touched.
    const auto untouched = [](const std::vector<element>& v) {
      return static_cast<std::size_t>(std::ranges::count_if(v, [](element e) { return e.bits == 0xffff; }));
    };
    CHECK(untouched(got_keys) + untouched(got_values) + written == 2 * page_elements);
  }
};

}  // namespace

TEST_CASE("cuda: bias, norm and rotary embedding, and the write into pages, equal their definition") {
  device* d = the_device();
  if (!d) return;
  tests::rng r(31);
  for (const std::uint32_t head_dim : {16u, 32u, 64u, 96u, 128u, 256u})
    for (const dtype type : {dtype::bf16, dtype::f16})
      for (const bool bias : {false, true})
        for (const bool norm : {false, true}) {
          // Heads of which one block has all at once, and more than that.
          for (const head_shape h : {head_shape{4, 2, head_dim, elements_of(type)},
                                     head_shape{40, 8, head_dim, elements_of(type)}}) {
            CAPTURE(head_dim, name(type), bias, norm, h.heads);
            scene(r, type, h, bias, norm).check(*d);
          }
        }
  CHECK(d->fault == "");
}

}  // namespace weir::tests::cuda_rotary_test

#endif
