// quantised_linears.h — random linears as quantised directories store them: the tensors of one linear, and
// the weights that they define. Plain loops in double, apart from the loader's code; the layouts are those of
// the formats' writers (core/model/load/quantised.h names them).
//
// Thread safety: pure functions of a generator.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/tensor.h"
#include "tests/support/toy_directory.h"

namespace weir::tests {

// A scale of fp8 may be of all weights, of an output, or of a block of 128 x 128.
enum class scale_of { all, output, block };

// How the linears of a directory are stored.
struct linear_format {
  enum { fp8, awq, packed, whole_ints } form = fp8;
  scale_of scales = scale_of::block;  // fp8
  std::string scale_dtype = "F32";    // F32, BF16 or F16
  std::string scale_name = ".weight_scale";
  bool input_scale = false;  // fp8: a factor of activations beside it
  std::uint32_t group = 0;   // awq, packed: inputs that share a scale; 0: all
  bool zeros = false;        // packed
};

struct written_linear {
  std::vector<toy_tensor> tensors;
  std::vector<double> weights;  // [outputs, inputs]
};

namespace detail {

using u64 = std::uint64_t;
using doubles = std::vector<double>;

template <class T>
std::string raw(const std::vector<T>& v) {
  return {reinterpret_cast<const char*>(v.data()), v.size() * sizeof(T)};
}

// The number that a scale is in its type.
inline double rounded(double x, const std::string& dtype) {
  const auto f = static_cast<float>(x);
  if (dtype == "BF16") return kernels::from_bf16(kernels::to_bf16(f));
  return dtype == "F16" ? kernels::from_f16(kernels::to_f16(f)) : f;
}

inline toy_tensor scale_tensor(std::string name, const std::string& dtype, std::vector<u64> shape,
                               const doubles& scales) {
  toy_tensor t{std::move(name), dtype, std::move(shape), {}};
  for (const double s : scales) {
    const auto f = static_cast<float>(s);
    const std::uint16_t half = dtype == "BF16" ? kernels::to_bf16(f) : kernels::to_f16(f);
    if (dtype == "F32")
      t.bytes.append(reinterpret_cast<const char*>(&f), 4);
    else
      t.bytes.append(reinterpret_cast<const char*>(&half), 2);
  }
  return t;
}

inline doubles random_weights(std::mt19937& r, u64 count) {
  std::normal_distribution<double> normal(0, 0.1);
  doubles out(count);
  for (double& x : out) x = normal(r);
  return out;
}

// The numbers of the e4m3 codes 0 to 126, in their order: four bits of exponent, three of mantissa.
inline std::array<double, 127> e4m3_numbers() {
  std::array<double, 127> out{};
  for (int code = 0; code < 127; ++code) {
    const int exponent = code >> 3, mantissa = code & 7;
    out[static_cast<std::size_t>(code)] =
        exponent ? std::ldexp(8 + mantissa, exponent - 10) : std::ldexp(mantissa, -9);
  }
  return out;
}

inline written_linear write_fp8(const std::string& name, u64 outputs, u64 inputs, const linear_format& f,
                                doubles w) {
  const u64 tall = f.scales == scale_of::all      ? outputs
                   : f.scales == scale_of::output ? 1
                                                  : 128,
            wide = f.scales == scale_of::block ? 128 : inputs;
  const u64 down = (outputs + tall - 1) / tall, across = (inputs + wide - 1) / wide;
  const auto scale_at = [&](u64 n, u64 k) { return n / tall * across + k / wide; };
  doubles scales(down * across);
  for (u64 i = 0; i < w.size(); ++i) {
    double& s = scales[scale_at(i / inputs, i % inputs)];
    s = std::max(s, std::abs(w[i]) / 448);
  }
  for (double& s : scales) s = rounded(s, f.scale_dtype);
  static const auto numbers = e4m3_numbers();
  std::vector<std::uint8_t> codes(w.size());
  for (u64 i = 0; i < w.size(); ++i) {
    const double scale = scales[scale_at(i / inputs, i % inputs)], x = std::abs(w[i]) / scale;
    auto above = std::lower_bound(numbers.begin(), numbers.end() - 1, x);
    if (above != numbers.begin() && x - *(above - 1) < *above - x) --above;
    codes[i] = static_cast<std::uint8_t>((above - numbers.begin()) | (w[i] < 0 ? 0x80 : 0));
    w[i] = (w[i] < 0 ? -1 : 1) * *above * scale;
  }
  const std::vector<u64> shape =
      f.scales == scale_of::all ? std::vector<u64>{} : std::vector<u64>{down, across};
  written_linear out{{{name + ".weight", "F8_E4M3", {outputs, inputs}, raw(codes)}}, std::move(w)};
  out.tensors.push_back(scale_tensor(name + f.scale_name, f.scale_dtype, shape, scales));
  if (f.input_scale) out.tensors.push_back(scale_tensor(name + ".input_scale", "F32", {}, {0.125}));
  return out;
}

// Codes of four bits, and a scale and a zero for each output and group.
struct grouped {
  std::vector<unsigned> codes, zeros;
  doubles scales, weights;
};
inline grouped group_codes(u64 outputs, u64 inputs, u64 group, bool zeros, const std::string& dtype,
                           const doubles& w) {
  const u64 groups = inputs / group;
  grouped g{std::vector<unsigned>(w.size()), std::vector<unsigned>(outputs * groups, 8),
            doubles(outputs * groups), w};
  for (u64 at = 0; at < outputs * groups; ++at) {
    const auto first = w.begin() + static_cast<std::ptrdiff_t>(at * group);
    const auto [least, most] = std::minmax_element(first, first + static_cast<std::ptrdiff_t>(group));
    const double span = zeros ? (*most - *least) / 15 : std::max(-*least, *most) / 7.5;
    g.scales[at] = rounded(span, dtype);
    if (zeros) g.zeros[at] = static_cast<unsigned>(std::clamp(std::round(-*least / g.scales[at]), 0.0, 15.0));
    for (u64 i = at * group; i < (at + 1) * group; ++i) {
      const double code = std::clamp(std::round(w[i] / g.scales[at]) + g.zeros[at], 0.0, 15.0);
      g.codes[i] = static_cast<unsigned>(code);
      g.weights[i] = g.scales[at] * (code - g.zeros[at]);
    }
  }
  return g;
}

inline written_linear write_packed(const std::string& name, u64 outputs, u64 inputs, const linear_format& f,
                                   const doubles& w) {
  const u64 group = f.group ? f.group : inputs, groups = inputs / group, wide = inputs / 8,
            tall = (outputs + 7) / 8;
  grouped g = group_codes(outputs, inputs, group, f.zeros, f.scale_dtype, w);
  std::vector<std::uint32_t> codes(outputs * wide), zeros(tall * groups);
  for (u64 n = 0; n < outputs; ++n) {
    for (u64 k = 0; k < inputs; ++k) codes[n * wide + k / 8] |= g.codes[n * inputs + k] << k % 8 * 4;
    for (u64 i = 0; i < groups; ++i) zeros[n / 8 * groups + i] |= g.zeros[n * groups + i] << n % 8 * 4;
  }
  const std::vector<u64> sides{outputs, inputs};
  written_linear out{{{name + ".weight_packed", "I32", {outputs, wide}, raw(codes)},
                      {name + ".weight_shape", "I64", {2}, raw(sides)}},
                     std::move(g.weights)};
  out.tensors.push_back(scale_tensor(name + ".weight_scale", f.scale_dtype, {outputs, groups}, g.scales));
  if (f.zeros) out.tensors.push_back({name + ".weight_zero_point", "I32", {tall, groups}, raw(zeros)});
  return out;
}

// Codes lie along the outputs, eight to a word, in the order 0, 2, 4, 6, 1, 3, 5, 7.
inline written_linear write_awq(const std::string& name, u64 outputs, u64 inputs, const linear_format& f,
                                const doubles& w) {
  const u64 groups = inputs / f.group, wide = outputs / 8;
  grouped g = group_codes(outputs, inputs, f.group, true, "F16", w);
  constexpr unsigned place[8] = {0, 4, 1, 5, 2, 6, 3, 7};
  std::vector<std::uint32_t> codes(inputs * wide), zeros(groups * wide);
  doubles scales(groups * outputs);
  for (u64 n = 0; n < outputs; ++n) {
    const unsigned bit = place[n % 8] * 4;
    for (u64 k = 0; k < inputs; ++k) codes[k * wide + n / 8] |= g.codes[n * inputs + k] << bit;
    for (u64 i = 0; i < groups; ++i) {
      zeros[i * wide + n / 8] |= g.zeros[n * groups + i] << bit;
      scales[i * outputs + n] = g.scales[n * groups + i];
    }
  }
  written_linear out{{{name + ".qweight", "I32", {inputs, wide}, raw(codes)},
                      {name + ".qzeros", "I32", {groups, wide}, raw(zeros)}},
                     std::move(g.weights)};
  out.tensors.push_back(scale_tensor(name + ".scales", "F16", {groups, outputs}, scales));
  return out;
}

inline written_linear write_whole_ints(const std::string& name, u64 outputs, u64 inputs,
                                       const linear_format& f, doubles w) {
  std::vector<std::int8_t> codes(w.size());
  doubles scales(outputs);
  for (u64 n = 0; n < outputs; ++n) {
    for (u64 i = n * inputs; i < (n + 1) * inputs; ++i) scales[n] = std::max(scales[n], std::abs(w[i]) / 127);
    scales[n] = rounded(scales[n], f.scale_dtype);
    for (u64 i = n * inputs; i < (n + 1) * inputs; ++i) {
      codes[i] = static_cast<std::int8_t>(std::clamp(std::round(w[i] / scales[n]), -127.0, 127.0));
      w[i] = scales[n] * codes[i];
    }
  }
  written_linear out{{{name + ".weight", "I8", {outputs, inputs}, raw(codes)}}, std::move(w)};
  out.tensors.push_back(scale_tensor(name + ".weight_scale", f.scale_dtype, {outputs, 1}, scales));
  return out;
}

}  // namespace detail

// REQUIRES: `inputs` are whole groups; awq: `outputs` is a multiple of 8
inline written_linear write_linear(std::mt19937& r, const std::string& name, std::uint64_t outputs,
                                   std::uint64_t inputs, const linear_format& f) {
  auto w = detail::random_weights(r, outputs * inputs);
  switch (f.form) {
    case linear_format::fp8:
      return detail::write_fp8(name, outputs, inputs, f, std::move(w));
    case linear_format::awq:
      return detail::write_awq(name, outputs, inputs, f, w);
    case linear_format::packed:
      return detail::write_packed(name, outputs, inputs, f, w);
    case linear_format::whole_ints:
      break;
  }
  return detail::write_whole_ints(name, outputs, inputs, f, std::move(w));
}

}  // namespace weir::tests
