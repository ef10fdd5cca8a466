#include "actors/board.h"

#include <algorithm>

namespace weir::actors {

void step_meter::add(core::time_point now, std::uint32_t tokens, core::duration took) {
  const std::int64_t slot = now.time_since_epoch() / slot_;
  auto& b = buckets_[static_cast<std::size_t>(slot) % buckets_.size()];
  if (b.slot != slot) b = {slot, 0};
  b.tokens += tokens;
  times_[steps_++ % times_.size()] = std::chrono::duration<float, std::milli>(took).count();
}

double step_meter::tokens_per_s(core::time_point now) const {
  const std::int64_t slot = now.time_since_epoch() / slot_;  // not complete yet, so it is left out
  std::uint64_t sum = 0;
  for (const auto& b : buckets_)
    if (b.slot < slot && b.slot >= slot - static_cast<std::int64_t>(slots_)) sum += b.tokens;
  return static_cast<double>(sum) / std::chrono::duration<double>(slot_ * slots_).count();
}

double step_meter::step_ms(double q) const {
  const auto n = std::min(steps_, times_.size());
  if (n == 0) return 0;
  auto sorted = times_;
  const auto nth = sorted.begin() + static_cast<std::ptrdiff_t>(q * static_cast<double>(n - 1) + 0.5);
  std::nth_element(sorted.begin(), nth, sorted.begin() + static_cast<std::ptrdiff_t>(n));
  return *nth;
}

device_parts part_of(const owner_picture& p, engine_id engine, core::time_point now) noexcept {
  double share = 0, shares = 0;
  core::duration used{}, all{};
  for (const auto& e : p.engines) {
    if (e.asleep) continue;
    shares += e.share;
    all += e.used;
    if (e.engine != engine) continue;
    share = e.share;
    used = e.used;
  }
  device_parts out;
  if (shares > 0) out.asked = share / shares;
  if (all > core::duration::zero() && now - p.at <= device_meter::window)
    out.got = static_cast<double>(used.count()) / static_cast<double>(all.count());
  return out;
}

}  // namespace weir::actors
