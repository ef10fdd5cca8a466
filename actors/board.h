// board.h — what an owner publishes between steps, so that health, statistics and lists never wait for an
// engine.
//
// Thread safety: the owner's thread publishes and any thread reads. The lock is held only while one pointer
// or message is copied, and no step waits for it: offer() gives up while a reader holds the lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/device_meter.h"
#include "actors/model_place.h"
#include "core/clock.h"
#include "core/engine.h"

namespace weir::actors {

// One job in an owner_picture.
struct listed_job {
  core::sequence_view sequence;
  engine_id engine{};
};

// One engine in an owner_picture.
struct engine_picture {
  engine_id engine{};
  // Totals and measures include those of the engines that this one replaced after a fault.
  core::engine_counts counts;
  core::engine_measures measures;
  std::uint32_t bad_endings = 0;  // core::engine::bad_endings()
  double share = 1;               // its weight among the engines of the device (core/schedule/shares.h)
  core::duration used{};          // device time of the last 10 s (device_meter.h)
  // Names of the landmarks of its prefix cache, in no order; null: they are not listed. Where they change,
  // there is another list.
  std::shared_ptr<const std::vector<std::uint64_t>> landmarks;
  bool asleep = false;            // or on its way there or back
};

// The state of an owner at one moment.
struct owner_picture {
  core::time_point at{};                // when it was taken
  std::vector<engine_picture> engines;
  std::vector<listed_job> jobs;         // of all engines
  // Sampled tokens a second; median and 99th percentile of the time of a step. See step_meter.
  double tokens_per_s = 0, step_p50_ms = 0, step_p99_ms = 0;

  // The picture of `engine`. An engine that the owner has not shown yet has an empty one.
  engine_picture of(engine_id engine) const {
    for (const auto& e : engines)
      if (e.engine == engine) return e;
    return {};
  }
};

// Parts of a device's time, 0 to 1.
struct device_parts {
  double asked = 0;  // the engine's weight, divided by the weights of all engines that are awake
  double got = 0;    // its device time of the last 10 s, divided by that of all engines
};
// Those of `engine` at `now`. `got` is 0 where no engine took time, or where the picture is older than 10 s:
// an owner without work publishes none.
device_parts part_of(const owner_picture& p, engine_id engine, core::time_point now) noexcept;

class board {
 public:
  using picture = std::shared_ptr<const owner_picture>;

  // Replaces the picture. The one before is destroyed outside of the lock.
  void publish(picture p) {
    std::lock_guard hold(lock_);
    picture_.swap(p);
  }
  // The same for use between two steps: never waits. Returns false, and changes nothing, while a reader holds
  // the lock.
  bool offer(picture p) {
    std::unique_lock hold(lock_, std::try_to_lock);
    if (hold) picture_.swap(p);
    return hold.owns_lock();
  }
  // The latest picture; never null.
  picture look() const {
    std::lock_guard hold(lock_);
    return picture_;
  }

  // Heartbeat of the owner: it finished a step, got work or became idle at `now`. `busy`: it has work.
  void beat(core::time_point now, bool busy) noexcept {
    pulse_.store(now.time_since_epoch().count() << 1 | (busy ? 1 : 0), std::memory_order_release);
  }
  // Time since the latest heartbeat of an owner that has work; nullopt while it is idle.
  std::optional<core::duration> silent_for(core::time_point now) const noexcept {
    const auto p = pulse_.load(std::memory_order_acquire);
    if (!(p & 1)) return std::nullopt;
    return now.time_since_epoch() - core::duration(p >> 1);
  }

  // Makes the service unready for this reason; an empty one makes it ready again.
  void fail(std::string why) {
    std::lock_guard hold(lock_);
    fault_ = std::move(why);
  }
  // Reason given to fail(); empty: none.
  std::string fault() const {
    std::lock_guard hold(lock_);
    return fault_;
  }

 private:
  mutable std::mutex lock_;
  picture picture_ = std::make_shared<owner_picture>();
  std::string fault_;
  std::atomic<std::int64_t> pulse_{0};  // latest heartbeat: time in ns << 1 | busy
};

// Token rate over the last second, and times of the last 512 steps. Owner's thread only.
class step_meter {
 public:
  // A step that sampled `tokens` tokens ended at `now`.
  void add(core::time_point now, std::uint32_t tokens, core::duration took);
  // Over the last ten full slots.
  double tokens_per_s(core::time_point now) const;
  // Quantile `q` of the last steps' times, in ms; 0 before the first step.
  double step_ms(double q) const;

 private:
  static constexpr core::duration slot_{std::chrono::milliseconds(100)};
  static constexpr std::size_t slots_ = 10;
  struct bucket { std::int64_t slot = -1; std::uint64_t tokens = 0; };
  std::array<bucket, slots_ + 1> buckets_{};
  std::array<float, 512> times_{};  // ms, a ring
  std::size_t steps_ = 0;
};

}  // namespace weir::actors
