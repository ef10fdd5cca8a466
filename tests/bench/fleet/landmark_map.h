// landmark_map.h — which devices of a cell have a landmark, by its name: what core::fleet::known_landmarks
// has a list for each device, turned around, so that a request of a simulated day looks up eight names
// instead of searching 125 lists. What a cell's gateways know is the same but for their hops, so that one map
// stands for all.
//
// Thread safety: one thread.
#pragma once

#include <bitset>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "core/fleet/landmarks.h"
#include "core/fleet/pick.h"

namespace weir::bench::fleet {

inline constexpr std::size_t most_devices = 128;  // of a cell
using device_set = std::bitset<most_devices>;

class landmark_map {
 public:
  // `now` of the device takes the place of `was`.
  void take(std::uint32_t device, const core::fleet::landmark_news& n) {
    for (const auto name : n.gone)
      if (const auto at = having_.find(name); at != having_.end()) {
        at->second.reset(device);
        if (at->second.none()) having_.erase(at);
      }
    for (const auto name : n.came) having_[name].set(device);
  }

  // Sets place_load::known of each device, as core::fleet::known_tokens() says it; at most `most`. `names`:
  // of the prompt's pages at depths 1, 2, 4, …
  void look(std::span<const std::uint64_t> names, std::uint32_t most, std::span<core::place_load> of) const {
    device_set open;
    for (std::size_t i = 0; i < of.size(); ++i) of[i].known = 0, open.set(i);
    for (std::size_t depth = names.size(); depth > 0 && open.any(); --depth) {
      const auto at = having_.find(names[depth - 1]);
      if (at == having_.end()) continue;
      const auto here = at->second & open;
      open &= ~here;
      for (auto d = here._Find_first(); d < of.size(); d = here._Find_next(d))
        of[d].known = std::min(most, static_cast<std::uint32_t>(core::page_tokens << (depth - 1)));
    }
  }

 private:
  std::unordered_map<std::uint64_t, device_set> having_;
};

}  // namespace weir::bench::fleet
