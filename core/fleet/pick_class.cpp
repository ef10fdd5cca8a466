#include "core/fleet/pick_class.h"

namespace weir::core {
namespace {

// The places of the job's class, or all others: in the order of pick(), among themselves alone.
void append_group(std::span<const place_load> places, std::span<const std::uint64_t> classes,
                  std::uint64_t wanted, bool own, std::uint32_t prompt_tokens, std::uint64_t beginning,
                  std::vector<std::uint32_t>& to) {
  std::vector<place_load> group;
  std::vector<std::uint32_t> index;
  for (std::uint32_t i = 0; i < places.size(); ++i) {
    if ((classes[i] == wanted) != own) continue;
    group.push_back(places[i]);
    index.push_back(i);
  }
  if (group.empty()) return;
  for (const auto i : pick(group, 1, prompt_tokens, beginning)) to.push_back(index[i]);
}

}  // namespace

std::vector<std::uint32_t> pick_in_class(std::span<const place_load> places,
                                         std::span<const std::uint64_t> classes, std::uint64_t wanted,
                                         bool strict, std::uint32_t prompt_tokens, std::uint64_t beginning) {
  if (wanted == 0) return pick(places, 1, prompt_tokens, beginning);
  std::vector<std::uint32_t> out;
  append_group(places, classes, wanted, true, prompt_tokens, beginning, out);
  if (!strict) append_group(places, classes, wanted, false, prompt_tokens, beginning, out);
  return out;
}

}  // namespace weir::core
