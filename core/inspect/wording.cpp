#include "core/inspect/wording.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace weir::core {
namespace {

template <std::size_t N, class E>
std::string_view nth_name(const std::array<std::string_view, N>& names, E which) noexcept {
  return names[static_cast<std::size_t>(which)];
}

constexpr std::array<std::string_view, 6> rope_names{"plain", "linear",   "llama3",
                                                     "yarn",  "longrope", "proportional"};
constexpr std::array<std::string_view, 9> form_names{
    "none", "gptq", "awq", "packed integers", "8-bit integers", "fp8", "mxfp4", "mxfp4 experts", "exl2"};
constexpr std::array<std::string_view, 4> place_names{"before", "behind", "both", "parallel"};
constexpr std::array<std::string_view, 4> activation_names{"silu", "gelu", "relu2", "clamped silu"};
constexpr std::array<std::string_view, 4> head_norm_names{"none", "each", "own", "row"};

}  // namespace

std::string grouped(std::uint64_t n) {
  std::string out = std::to_string(n);
  for (std::size_t at = out.size(); at > 3; at -= 3) out.insert(at - 3, 1, ',');
  return out;
}

std::string short_count(std::uint64_t n) {
  const auto in = [n](double unit, const char* name) {
    const double value = static_cast<double>(n) / unit;
    return fmt::format("{:.{}f} {}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0, name);
  };
  if (n >= 999'500'000) return in(1e9, "billion");
  return n >= 999'500 ? in(1e6, "million") : grouped(n);
}

std::string_view name_of(rope_type t) noexcept { return nth_name(rope_names, t); }
std::string_view name_of(quant_form f) noexcept { return nth_name(form_names, f); }
std::string_view name_of(kernels::norm_place p) noexcept { return nth_name(place_names, p); }
std::string_view name_of(kernels::activation a) noexcept { return nth_name(activation_names, a); }
std::string_view name_of(kernels::head_norms n) noexcept { return nth_name(head_norm_names, n); }

const kernels::feed_forward* mixture_of(const kernels::model_shape& shape) noexcept {
  for (const kernels::layer_shape& l : shape.layers)
    if (l.mlp.is_mixture()) return &l.mlp;
  return nullptr;
}

std::vector<std::size_t> used_ropes(const model_config& c) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < c.ropes.size(); ++i)
    if (std::ranges::any_of(c.shape.layers, [&](const auto& l) { return l.mixer.rotary == int(i); }))
      out.push_back(i);
  return out;
}

}  // namespace weir::core
