#include "core/memory/pools.h"

#include <algorithm>

#include "core/cache/page.h"
#include "core/memory/ledger.h"

namespace weir::core {
namespace {

using u64 = std::uint64_t;

u64 product_of(u64 a, u64 b) {
  u64 out = 0;
  return __builtin_mul_overflow(a, b, &out) ? ~0ull : out;
}

u64 bytes_of(const auto_pool& p, u64 pages) { return product_of(pages, p.page_bytes); }

// Steps that a pool has where none may have more than `level` bytes.
u64 steps_below(const auto_pool& p, u64 level) {
  const u64 has = steps_of(p), one = step_bytes(p);
  if (one == 0) return has;
  return std::clamp(level / one, std::min(kept_steps(p), has), has);
}

u64 given_at(std::span<const auto_pool> all, u64 level) {
  u64 sum = 0;
  for (const auto_pool& p : all)
    sum = sum_of(sum, product_of(steps_of(p) - steps_below(p, level), step_bytes(p)));
  return sum;
}

// The highest level at which the pools give `bytes`. REQUIRES: at level 0 they do.
u64 level_for(std::span<const auto_pool> all, u64 bytes) {
  u64 enough = 0, too_high = 1;
  for (const auto_pool& p : all) too_high = std::max(too_high, sum_of(bytes_of(p, p.pages), 1));
  while (too_high - enough > 1) {
    const u64 middle = enough + (too_high - enough) / 2;
    (given_at(all, middle) >= bytes ? enough : too_high) = middle;
  }
  return enough;
}

}  // namespace

u64 floor_of_pool(u64 pages, u64 asked, std::uint32_t context, std::uint32_t max_batch) {
  const u64 whole = pages_for(context);
  const u64 usual = std::max<u64>(whole + max_batch, pages_for(least_floor_tokens));
  return std::min(pages, asked != 0 ? std::max<u64>(pages_for(asked), whole) : usual);
}

u64 steps_of(const auto_pool& p) noexcept { return p.step == 0 ? 0 : p.pages / p.step; }

u64 kept_steps(const auto_pool& p) noexcept {
  if (p.step == 0) return 0;
  const u64 kept = std::max(p.floor, p.used);
  return std::min(steps_of(p), kept / p.step + (kept % p.step != 0 ? 1 : 0));
}

u64 step_bytes(const auto_pool& p) noexcept { return product_of(p.step, p.page_bytes); }

u64 most_given(const auto_pool& p) noexcept { return product_of(steps_of(p) - kept_steps(p), step_bytes(p)); }

u64 pages_at(const auto_pool& p, u64 steps) noexcept {
  return steps >= steps_of(p) ? p.pages : steps * p.step;
}

std::optional<std::vector<u64>> give_way(std::span<const auto_pool> all, u64 bytes) {
  const u64 most = given_at(all, 0);
  if (bytes > most) return std::nullopt;
  std::vector<u64> out;
  if (bytes == 0) {
    for (const auto_pool& p : all) out.push_back(p.pages);
    return out;
  }
  const u64 level = level_for(all, bytes);
  u64 given = given_at(all, level);
  for (const auto_pool& p : all) {
    u64 steps = steps_below(p, level);
    // Several pools may reach the level at once: those whose step is not needed keep it.
    if (steps < steps_of(p) && given - step_bytes(p) >= bytes && given >= step_bytes(p)) {
      ++steps;
      given -= step_bytes(p);
    }
    out.push_back(pages_at(p, steps));
  }
  return out;
}

std::optional<pool_growth> next_to_grow(std::span<const auto_pool> all, u64 free, u64 piece) {
  std::optional<pool_growth> best;
  u64 least = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto_pool& p = all[i];
    if (p.step == 0 || p.page_bytes == 0 || p.pages >= p.most) continue;
    const u64 begun = p.pages / p.step;  // a step that is not whole is completed first
    const u64 room = free / p.page_bytes;
    const u64 wanted = (begun + std::max<u64>(1, piece / std::max<u64>(1, step_bytes(p)))) * p.step;
    u64 pages = std::min({wanted, p.most, sum_of(p.pages, room)});
    pages = pages / p.step * p.step;
    if (pages <= p.pages) continue;
    const u64 now = bytes_of(p, p.pages);
    if (best && now >= least) continue;
    best = pool_growth{i, pages};
    least = now;
  }
  return best;
}

}  // namespace weir::core
