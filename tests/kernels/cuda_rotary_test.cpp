// What stands between the product of a step's queries, keys and values and its attention, against a loop in
// double: bias, norm and rotary embedding, and the write into pages. Skipped, saying so, without a device.
#ifdef WEIR_WITH_CUDA
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kernels/cuda/layers.h"
#include "kernels/cuda/pages/head_order.h"
#include "tests/kernels/on_device.h"
#include "tests/kernels/random_data.h"

namespace weir::tests::cuda_rotary_test {

using namespace weir::kernels;
using namespace weir::kernels::cuda;

namespace {

constexpr float eps = 1e-5f;

// What may differ among models beside sizes: rotary_args.
struct variant {
  bool bias = false, norm = false, centred = false;
  head_norms norms = head_norms::each;
  std::uint32_t rest = 0;
  float growth = 0;
};

// Rows of three sequences and of padding, whose pages are in any order.
struct scene {
  dtype type;
  head_shape h;
  variant is;
  std::vector<std::uint32_t> positions;
  std::vector<std::int32_t> pages_at, pages;
  std::vector<element> qkv;
  std::vector<float> bias, q_norm, k_norm, cos, sin;

  scene(tests::rng& r, dtype t, head_shape shape, const variant& v) : type(t), h(shape), is(v) {
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
    q_norm = random_floats(r, h.heads * h.head_dim);
    k_norm = random_floats(r, h.kv_heads * h.head_dim);
    cos = random_floats(r, rows() * h.head_dim / 2);
    sin = random_floats(r, rows() * h.head_dim / 2);
  }
  std::size_t rows() const { return positions.size(); }

  std::vector<double> numbers_of(std::size_t row, std::uint32_t head) const {
    std::vector<double> v(h.head_dim);
    for (std::size_t i = 0; i < v.size(); ++i)
      v[i] = double{number(type, qkv[row * h.width() + head * h.head_dim + i])} +
             (is.bias ? bias[head * h.head_dim + i] : 0.0f);
    return v;
  }

  // The norm of one head of a row.
  void normalise(std::vector<double>& v, std::size_t row, std::uint32_t head) const {
    const std::uint32_t first = head < h.heads ? 0 : h.heads,
                        last = head < h.heads ? h.heads : h.heads + h.kv_heads;
    double mean = 0, squares = 0, count = h.head_dim;
    for (const double x : v) mean += is.centred ? x / count : 0;
    for (double& x : v) x -= mean;
    for (const double x : v) squares += x * x;
    if (is.norms == head_norms::row) {
      squares = 0;
      count *= last - first;
      for (std::uint32_t other = first; other < last; ++other)
        for (const double x : numbers_of(row, other)) squares += x * x;
    }
    const float* weight = (head < h.heads ? q_norm : k_norm).data();
    if (is.norms != head_norms::each) weight += (head - first) * h.head_dim;
    for (std::size_t i = 0; i < v.size(); ++i) v[i] *= weight[i] / std::sqrt(squares / count + double{eps});
  }

  // What becomes of one head of a row, in double, in the order that kernels have numbers in.
  std::vector<double> wanted(std::size_t row, std::uint32_t head) const {
    const std::size_t half = h.head_dim / 2, pairs = half - is.rest;
    std::vector<double> v = numbers_of(row, head), out;
    if (head >= h.heads + h.kv_heads) return v;
    if (is.norm) normalise(v, row, head);
    for (std::size_t i = 0; i < pairs; ++i) {
      const double c = cos[row * half + i], s = sin[row * half + i], a = v[i], b = v[i + pairs];
      v[i] = a * c - b * s;
      v[i + pairs] = b * c + a * s;
    }
    const double grown = 1 + is.growth * std::log(1.0 + positions[row] / 50);
    for (std::size_t i = 0; i < v.size(); ++i)
      out.push_back(v[static_cast<std::size_t>(
                        number_at(static_cast<int>(i), static_cast<int>(half), static_cast<int>(pairs)))] *
                    (head < h.heads ? grown : 1));
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
    rotary_args t{is.bias ? b.get() : nullptr,
                  is.norm ? q.get() : nullptr,
                  is.norm ? k.get() : nullptr,
                  c.get(),
                  s.get(),
                  eps};
    t.rest = is.rest;
    t.norms = is.norms;
    t.centred = is.centred;
    t.growth = is.growth;
    t.growth_unit = 50;
    rotary_and_write(d, type, v, h, t, there.get(), {keys.as<unsigned char>(), values.as<unsigned char>()});
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
          const element e =
              head < h.heads ? got[from + i]
                             : (value ? got_values : got_keys)[place(row, (head - h.heads) % h.kv_heads, i)];
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
                                     head_shape{40, 8, head_dim, elements_of(type), 40}}) {
            CAPTURE(head_dim, name(type), bias, norm, h.heads);
            scene(r, type, h, {bias, norm}).check(*d);
          }
        }
  for (int round = 0; round < 96; ++round) {
    constexpr std::uint32_t sizes[] = {16, 32, 64, 96, 128, 256};
    const std::uint32_t head_dim = sizes[round % 6], half = head_dim / 2;
    variant is{pick(r, 0, 1) == 1, pick(r, 0, 3) > 0, pick(r, 0, 1) == 1};
    is.norms = static_cast<head_norms>(pick(r, 1, 3));
    if (is.norms == head_norms::row) is.centred = false;
    if (pick(r, 0, 1)) is.rest = pick(r, 0, 1) ? half / 2 : pick(r, 1, half - 1);
    if (pick(r, 0, 1)) is.growth = 0.3f;
    const dtype type = round % 2 ? dtype::f16 : dtype::bf16;
    const head_shape h{pick(r, 1, 3) * 8, 4, head_dim, elements_of(type), 16 * pick(r, 0, 1)};
    CAPTURE(round, head_dim, name(type), is.bias, is.norm, is.centred, static_cast<int>(is.norms), is.rest,
            is.growth);
    scene s(r, type, h, is);
    for (std::size_t row = 0; row < s.rows(); ++row)
      for (std::uint32_t i = half - is.rest; i < half; ++i)
        s.cos[row * half + i] = 1, s.sin[row * half + i] = 0;
    s.check(*d);
  }
  CHECK(d->fault == "");
}

}  // namespace weir::tests::cuda_rotary_test

#endif
