#include "core/fleet/choose_loader.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <limits>
#include <tuple>

namespace weir::core::fleet {
namespace {

enum rank : std::uint8_t { loads, wished, wakes, fits, fits_after, busy };

// The smallest is the best. `cost`: within its rank.
using order = std::tuple<rank, std::uint64_t, std::uint64_t>;

order order_of(const load_place& p, std::uint64_t turn, std::uint64_t bytes) {
  if (p.now == load_place::stand::loading) return {loads, 0, turn};
  if (p.now == load_place::stand::wished) return {wished, 0, turn};
  if (p.now == load_place::stand::asleep) return {wakes, 0, turn};
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t free = p.free.value_or(bytes);
  if (free >= bytes) return {fits, most - free, turn};
  if (p.resting >= bytes - free) return {fits_after, bytes - free, turn};
  return {busy, p.jobs, turn};
}

}  // namespace

std::optional<std::size_t> choose_loader(std::span<const load_place> places, std::string_view model,
                                         std::uint64_t bytes) {
  const auto seed = XXH3_64bits(model.data(), model.size());
  std::optional<std::size_t> best;
  order least;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto& w = places[i].worker;
    const auto it = order_of(places[i], XXH3_64bits_withSeed(w.data(), w.size(), seed), bytes);
    if (best && it >= least) continue;
    best = i;
    least = it;
  }
  return best;
}

}  // namespace weir::core::fleet
