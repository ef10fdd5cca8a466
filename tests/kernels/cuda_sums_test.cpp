// What stands between a decoder's products besides attention: the embedding, norms and sums of the residual
// stream, activations, gates and bounds, against loops in double. Skipped, saying so, where there is no
// device.
#ifdef WEIR_WITH_CUDA
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/cuda/layers.h"
#include "tests/kernels/on_device.h"
#include "tests/kernels/random_data.h"

namespace weir::tests::cuda_sums_test {

using namespace weir::kernels;
using namespace weir::kernels::cuda;

namespace {

using doubles = std::vector<double>;

bool chance(tests::rng& r) { return pick(r, 0, 1) == 1; }

doubles widened(const std::vector<float>& v) { return {v.begin(), v.end()}; }

void normalise(doubles& row, const std::vector<float>& weight, const std::vector<float>& bias, double eps,
               bool centred) {
  double mean = 0, squares = 0;
  for (const double x : row) mean += centred ? x / static_cast<double>(row.size()) : 0;
  for (double& x : row) {
    x -= mean;
    squares += x * x;
  }
  const double scale = 1 / std::sqrt(squares / static_cast<double>(row.size()) + eps);
  for (std::size_t i = 0; i < row.size(); ++i)
    row[i] = row[i] * scale * weight[i] + (bias.empty() ? 0.0 : bias[i]);
}

// The largest difference, in units of the largest wanted number.
double worst(const doubles& wanted, const doubles& got) {
  double most = 1e-30, off = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double d = std::abs(wanted[i] - got[i]);
    most = std::max(most, std::abs(wanted[i]));
    off = d <= 1e30 ? std::max(off, d) : 1e30;
  }
  return off / most;
}

double rounding(dtype type) { return type == dtype::f16 ? 6e-4 : 5e-3; }

// Weights and biases of one norm, on the host and on the device.
struct some_norm {
  std::vector<float> weight, bias;
  on_device<float> dweight, dbias;
  norm_args args;
  some_norm(device& d, tests::rng& r, std::uint32_t width, bool there, float eps)
      : weight(random_floats(r, width)), bias(random_floats(r, width)), dweight(d, weight), dbias(d, bias) {
    if (!there || chance(r)) bias.clear();
    if (there) args.by = {dweight.get(), bias.empty() ? nullptr : dbias.get()};
    args.eps = eps;
    args.centred = chance(r);
  }
  void apply(doubles& row) const {
    if (args.by.weight) normalise(row, weight, bias, args.eps, args.centred);
  }
};

}  // namespace

TEST_CASE("cuda: the residual stream takes biases and branches with every norm, and rows come normed") {
  for (const bool deterministic : {false, true}) {
    device* d = the_device(deterministic);
    if (!d) return;
    tests::rng r(41);
    constexpr std::uint32_t widths[] = {64, 768, 2560, 4096, 4608, 8192, 12288};
    for (int round = 0; round < 80; ++round) {
      const std::uint32_t width = widths[round % 7], rows = pick(r, 1, chance(r) ? 8 : 90);
      const dtype type = chance(r) ? dtype::f16 : dtype::bf16;
      const bool branched = chance(r), some = chance(r), clear = chance(r) && !some;
      const auto x = random_floats(r, std::size_t{rows} * width, 3),
                 branch = random_floats(r, std::size_t{rows} * width, 40);
      const auto bias = random_floats(r, width), other = random_floats(r, width);
      const some_norm behind(*d, r, width, chance(r), 1e-3f), front(*d, r, width, pick(r, 0, 3) > 0, 1e-5f);
      const on_device dx(*d, x), dbranch(*d, branch);
      const on_device dbias(*d, bias), dother(*d, other);
      std::vector<std::int32_t> from(rows);
      for (auto& f : from) f = static_cast<std::int32_t>(pick(r, 0, rows - 1));
      const on_device dfrom(*d, from);
      const on_device out(*d, std::vector<element>(std::size_t{rows} * width, element{0xffff}));
      pending_sum p;
      const bool first = chance(r), second = chance(r);
      if (first) p.biases[0] = dbias.get();
      if (second) p.biases[1] = dother.get();
      if (branched) p.branch = dbranch.get(), p.behind = behind.args, p.factor = 0.25f, p.clear = clear;
      const column_order order = chance(r) ? column_order::paired : column_order::plain;
      norm(*d, type, dx.get(), p, some ? dfrom.get() : nullptr, front.args, rows, width, out.get(), order);
      const auto rounded_rows = out.back();
      const auto stream = dx.back(), left = dbranch.back();
      doubles wanted, wanted_x, got;
      for (std::uint32_t i = 0; i < rows; ++i) {
        const auto row_of = [&](const std::vector<float>& v, std::uint32_t at) {
          return widened(
              {v.begin() + std::ptrdiff_t(at) * width, v.begin() + std::ptrdiff_t(at + 1) * width});
        };
        const auto sum_of = [&](std::uint32_t at) {
          doubles row = row_of(x, at), more = branched ? row_of(branch, at) : doubles(width);
          for (std::size_t j = 0; j < width; ++j)
            more[j] += (first ? bias[j] : 0.0) + (second ? other[j] : 0.0);
          if (branched) behind.apply(more);
          for (std::size_t j = 0; j < width; ++j) row[j] += (branched ? 0.25 : 1.0) * more[j];
          return row;
        };
        doubles row = sum_of(some ? static_cast<std::uint32_t>(from[i]) : i);
        const doubles here = some ? row_of(x, i) : row;
        wanted_x.insert(wanted_x.end(), here.begin(), here.end());
        front.apply(row);
        wanted.insert(wanted.end(), row.begin(), row.end());
        for (std::uint32_t j = 0; j < width; ++j)
          got.push_back(number(type, rounded_rows[std::size_t{i} * width + place_in(order, j)]));
      }
      CAPTURE(deterministic, round, width, rows, name(type), branched, some, first, second,
              front.args.centred, behind.args.centred, front.args.by.weight != nullptr,
              behind.args.by.weight != nullptr);
      CHECK(worst(wanted, got) <= rounding(type));
      CHECK(worst(wanted_x, widened(stream)) <= 3e-6);
      CHECK((left == branch) == !(branched && clear));
      if (branched && clear) CHECK(std::ranges::count(left, 0.0f) == std::ptrdiff_t(left.size()));
    }
    CHECK(d->fault == "");
  }
}

TEST_CASE("cuda: an embedding has its factor and clears what is to be added to, of every type") {
  device* d = the_device();
  if (!d) return;
  tests::rng r(42);
  for (const dtype type : {dtype::f32, dtype::bf16, dtype::f16})
    for (const bool clears : {false, true}) {
      const std::uint32_t hidden = 8 * pick(r, 1, 200), rows = pick(r, 1, 30);
      const tests::random_matrix table(r, type, 40, hidden);
      const on_device there(*d, table.memory);
      std::vector<std::int32_t> tokens(rows), drawn{7, 9};
      for (auto& t : tokens) t = static_cast<std::int32_t>(pick(r, 0, 39));
      tokens.back() = -2;  // the second of those drawn
      const on_device dtokens(*d, tokens), ddrawn(*d, drawn);
      const on_device x(*d, tests::poison(std::size_t{rows} * hidden)),
          zeros(*d, tests::poison(std::size_t{rows} * hidden));
      rows_view v{};
      v.tokens = dtokens.get();
      v.drawn = ddrawn.get();
      v.rows = rows;
      matrix m = table.view;
      m.data = there.get();
      embed(*d, v, m, x.get(), 2.5f, clears ? zeros.get() : nullptr);
      const auto got = x.back(), cleared = zeros.back();
      std::size_t wrong = 0;
      for (std::uint32_t i = 0; i < rows; ++i)
        for (std::uint32_t j = 0; j < hidden; ++j) {
          const std::int32_t token = tokens[i] == -2 ? 9 : tokens[i];
          const float w = load(table.view.data, type, static_cast<std::size_t>(token) * hidden + j);
          wrong += got[std::size_t{i} * hidden + j] != w * 2.5f;
        }
      CHECK(wrong == 0);
      const auto zero = std::ranges::count(cleared, 0.0f);
      CHECK(zero == (clears ? std::ptrdiff_t(cleared.size()) : 0));

      const some_norm n(*d, r, hidden, true, 1e-6f);
      norm_stream(*d, x.get(), n.args, rows, hidden, 0.5f);
      doubles wanted;
      for (std::uint32_t i = 0; i < rows; ++i) {
        doubles row(got.begin() + std::ptrdiff_t(i) * hidden, got.begin() + std::ptrdiff_t(i + 1) * hidden);
        n.apply(row);
        for (const double y : row) wanted.push_back(y / 2);
      }
      CHECK(worst(wanted, widened(x.back())) <= 3e-6);
    }
  CHECK(d->fault == "");
}

TEST_CASE("cuda: angles of several tables, with factors, and of a table that turns nothing") {
  device* d = the_device();
  if (!d) return;
  tests::rng r(43);
  const std::uint32_t half = 24, rows = 50, tables = 3, room = 64;
  std::vector<float> frequencies = random_floats(r, tables * half), factors(tables * half, 1.0f);
  for (std::uint32_t i = 0; i < half; ++i) {
    frequencies[2 * half + i] = 0;
    factors[half + i] = 1.3f;
  }
  std::vector<std::uint32_t> positions(rows);
  for (auto& p : positions) p = pick(r, 0, 100000);
  const on_device at(*d, positions);
  const on_device df(*d, frequencies), dm(*d, factors);
  const on_device cos(*d, std::vector<float>(tables * room * half, 9)),
      sin(*d, std::vector<float>(tables * room * half, 9));
  rows_view v{};
  v.positions = at.get();
  v.rows = rows;
  angles(*d, v, {df.get(), dm.get(), tables, half}, room * half, cos.get(), sin.get());
  const auto c = cos.back(), s = sin.back();
  double off = 0;
  std::size_t touched = 0;
  for (std::uint32_t t = 0; t < tables; ++t)
    for (std::uint32_t row = 0; row < room; ++row)
      for (std::uint32_t i = 0; i < half; ++i) {
        const std::size_t where = (std::size_t{t} * room + row) * half + i;
        if (row >= rows) {
          touched += c[where] != 9 || s[where] != 9;
          continue;
        }
        const float angle = static_cast<float>(positions[row]) * frequencies[t * half + i];
        off = std::max({off, std::abs(factors[t * half + i] * std::cos(double{angle}) - c[where]),
                        std::abs(factors[t * half + i] * std::sin(double{angle}) - s[where])});
        if (t == 2) touched += c[where] != 1 || s[where] != 0;
      }
  CHECK(off <= 1e-6);
  CHECK(touched == 0);
}

TEST_CASE("cuda: activations of rows, gates on attention, and bounds of logits equal their definition") {
  device* d = the_device();
  if (!d) return;
  tests::rng r(44);
  for (int round = 0; round < 36; ++round) {
    const dtype type = round % 2 ? dtype::f16 : dtype::bf16;
    const feed_forward f{8 * pick(r, 1, 300), static_cast<activation>(round % 3), chance(r)};
    const std::uint32_t rows = pick(r, 1, 30), width = f.width();
    std::vector<element> x;
    for (const float v : random_floats(r, std::size_t{rows} * width, 2)) x.push_back(rounded(type, v));
    const auto bias = random_floats(r, width);
    const bool biased = chance(r);
    const on_device dx(*d, x), out(*d, std::vector<element>(std::size_t{rows} * f.inter, element{0xffff}));
    const on_device dbias(*d, bias);
    activate_rows(*d, type, dx.get(), biased ? dbias.get() : nullptr, rows, f, out.get());
    const auto got = out.back();
    std::size_t wrong = 0;
    const auto number_at = [&](std::size_t row, std::size_t i) {
      return double{number(type, x[row * width + i])} + (biased ? bias[i] : 0.0f);
    };
    for (std::uint32_t row = 0; row < rows; ++row)
      for (std::uint32_t i = 0; i < f.inter; ++i) {
        const double g = number_at(row, i);
        const double a = f.kind == activation::silu ? g / (1 + std::exp(-g))
                         : f.kind == activation::gelu
                             ? 0.5 * g * (1 + std::tanh(0.7978845608 * (g + 0.044715 * g * g * g)))
                             : std::pow(std::max(g, 0.0), 2);
        const double wanted = a * (f.gated ? number_at(row, f.inter + i) : 1);
        const double off = std::abs(wanted - number(type, got[std::size_t{row} * f.inter + i]));
        wrong += !(off <= rounding(type) * std::max(std::abs(wanted), 0.1));
      }
    CAPTURE(round, name(type), rows, f.inter, f.gated, biased);
    CHECK(wrong == 0);

    head_shape h{pick(r, 1, 4) * 2, 2, 16 * pick(r, 1, 8), elements_of(type)};
    h.gates = h.heads * h.head_dim;
    const std::uint32_t wide = h.gates, first = h.width() - wide;
    std::vector<element> qkv, attended;
    for (const float v : random_floats(r, std::size_t{rows} * h.width(), 2)) qkv.push_back(rounded(type, v));
    for (const float v : random_floats(r, std::size_t{rows} * wide)) attended.push_back(rounded(type, v));
    const auto gate_bias = random_floats(r, wide);
    const on_device dqkv(*d, qkv), dattended(*d, attended);
    const on_device dgate_bias(*d, gate_bias);
    const column_order order = chance(r) ? column_order::paired : column_order::plain;
    gate_rows(*d, type, h, dqkv.get(), biased ? dgate_bias.get() : nullptr, rows, dattended.get(), order);
    const auto gated_rows = dattended.back();
    for (std::uint32_t row = 0; row < rows; ++row)
      for (std::uint32_t i = 0; i < wide; ++i) {
        const std::size_t at = std::size_t{row} * wide + place_in(order, i);
        const double g =
            number(type, qkv[std::size_t{row} * h.width() + first + i]) + (biased ? gate_bias[i] : 0.0);
        const double wanted = number(type, attended[at]) / (1 + std::exp(-g));
        wrong += !(std::abs(wanted - number(type, gated_rows[at])) <=
                   rounding(type) * std::max(std::abs(wanted), 0.1));
      }
    CHECK(wrong == 0);

    const auto logits = random_floats(r, pick(r, 1, 5000), 40);
    const on_device dlogits(*d, logits);
    cap_logits(*d, dlogits.get(), logits.size(), 30);
    doubles bounded;
    for (const double v : logits) bounded.push_back(30 * std::tanh(v / 30));
    CHECK(worst(bounded, widened(dlogits.back())) <= 1e-6);
  }
  CHECK(d->fault == "");
}

}  // namespace weir::tests::cuda_sums_test

#endif
