// device_meter.h — the device time that one engine took lately.
//
// Thread safety: the owner's thread only. Nothing allocates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/clock.h"

namespace weir::actors {

class device_meter {
 public:
  static constexpr core::duration window{std::chrono::seconds(10)};

  // A step that took `used` of the device ended at `now`.
  void add(core::time_point now, core::duration used) noexcept {
    bucket& b = of(now);
    b.used += used;
  }
  // Device time of the last `window`, in slots of a second; the slot of `now` counts as far as it is over.
  core::duration lately(core::time_point now) const noexcept {
    const std::int64_t current = slot_of(now);
    core::duration sum{};
    for (const bucket& b : buckets_)
      if (b.slot > current - static_cast<std::int64_t>(slots) && b.slot <= current) sum += b.used;
    return sum;
  }

 private:
  static constexpr core::duration slot_length{std::chrono::seconds(1)};
  static constexpr std::size_t slots = window / slot_length;
  struct bucket {
    std::int64_t slot = -1;
    core::duration used{};
  };

  static std::int64_t slot_of(core::time_point t) noexcept { return t.time_since_epoch() / slot_length; }
  bucket& of(core::time_point now) noexcept {
    const std::int64_t slot = slot_of(now);
    bucket& b = buckets_[static_cast<std::size_t>(slot) % slots];
    if (b.slot != slot) b = {slot, {}};
    return b;
  }

  std::array<bucket, slots> buckets_{};
};

}  // namespace weir::actors
