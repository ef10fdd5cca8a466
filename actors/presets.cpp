#include "actors/presets.h"

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "core/shortened.h"

namespace weir::actors {
namespace {

core::error unknown_preset(std::string_view name, const sampling_presets& all) {
  if (all.empty())
    return core::bad_param("preset", "preset: none is called '{}'; there are no presets",
                           core::shortened(name));
  std::string names;
  for (const auto& [known, fields] : all) names += (names.empty() ? "" : ", ") + known;
  return core::bad_param("preset", "preset: none is called '{}'; there are {}", core::shortened(name), names);
}

}  // namespace

core::result<void> take_preset(request& r, const sampling_presets& all) {
  if (!r.preset) return {};
  const auto found = all.find(*r.preset);
  if (found == all.end()) return unknown_preset(*r.preset, all);
  const sampling_preset& preset = found->second;
  if (!r.banned_strings) r.banned_strings = preset.banned_strings;
  if (!r.token_healing) r.token_healing = preset.token_healing;
  core::visit_sampling([&](const core::sampling_field& f, auto sent, auto) {
    auto& own = r.sampling.*sent;
    const bool is_set = own != std::remove_cvref_t<decltype(own)>();
    if (!is_set &&
        std::ranges::find(r.sampling_left_out, std::string_view(f.name)) == r.sampling_left_out.end())
      own = preset.*sent;
  });
  return {};
}

}  // namespace weir::actors
