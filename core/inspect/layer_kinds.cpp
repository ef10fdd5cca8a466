#include "core/inspect/layer_kinds.h"

#include <fmt/format.h>

#include <algorithm>

namespace weir::core {
namespace {

using kernels::layer_shape;

// Two layers are alike where only their places among the pages differ.
bool alike(layer_shape a, const layer_shape& b) {
  a.mixer.place = b.mixer.place;
  return a == b;
}

bool differ(std::span<const layer_kind> kinds, auto&& of) {
  return std::ranges::any_of(kinds, [&](const layer_kind& k) { return of(k.shape) != of(kinds[0].shape); });
}

// What sets this kind apart from the others.
std::string kind_text(const layer_shape& s, std::span<const layer_kind> kinds) {
  std::string out =
      s.mixer.rule.window != 0 ? fmt::format("with a window of {}", s.mixer.rule.window) : "full";
  const auto add = [&](const std::string& text) { out += ", " + text; };
  if (s.mixer.rotary < 0)
    add("without rotation");
  else if (differ(kinds, [](const layer_shape& l) { return std::max(l.mixer.rotary, 0); }))
    add(fmt::format("rope {}", s.mixer.rotary + 1));
  if (differ(kinds, [](const layer_shape& l) { return l.mixer.head_dim; }) ||
      differ(kinds, [](const layer_shape& l) { return l.mixer.kv_heads; }))
    add(fmt::format("{} kv heads of {}", s.mixer.kv_heads, s.mixer.head_dim));
  if (differ(kinds, [](const layer_shape& l) { return l.mlp.is_mixture(); }))
    add(s.mlp.is_mixture() ? fmt::format("{} experts", s.mlp.router.experts) : "dense");
  if (differ(kinds, [](const layer_shape& l) { return l.mlp.inter; }))
    add(fmt::format("inner {}", s.mlp.inter));
  return out;
}

}  // namespace

std::vector<layer_kind> layer_kinds(std::span<const layer_shape> layers) {
  std::vector<layer_kind> out;
  for (std::uint32_t i = 0; i < layers.size(); ++i) {
    const auto same = std::ranges::find_if(out, [&](const auto& k) { return alike(k.shape, layers[i]); });
    if (same == out.end())
      out.push_back({layers[i], {i}});
    else
      same->at.push_back(i);
  }
  return out;
}

std::string layers_text(std::span<const layer_kind> kinds) {
  std::size_t layers = 0;
  std::string each;
  for (const layer_kind& k : kinds) {
    layers += k.at.size();
    if (!each.empty()) each += "; ";
    if (kinds.size() > 1) each += fmt::format("{} ", k.at.size());
    each += kind_text(k.shape, kinds);
  }
  return fmt::format("{} layer{}: {}", layers, layers == 1 ? "" : "s", each);
}

}  // namespace weir::core
