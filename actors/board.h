// board.h — what an owner publishes between steps, so that health, statistics and lists never wait for an
// engine.
//
// Thread safety: the owner's thread publishes and any thread reads. The lock is held only while one pointer
// or message is copied.
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

#include "actors/served_model.h"
#include "core/clock.h"
#include "core/delays.h"
#include "core/engine.h"

namespace weir::actors {

// One job in an owner_picture.
struct listed_job {
  core::sequence_view sequence;
  engine_id engine{};
};

// The state of an owner at one moment.
struct owner_picture {
  core::time_point at{};         // when it was taken
  core::engine_counts counts;    // sums over all engines
  std::vector<listed_job> jobs;  // of all engines
  // Engines with bad endings, and core::engine::bad_endings() of each.
  std::vector<std::pair<engine_id, std::uint32_t>> bad;
  // Sampled tokens a second; median and 99th percentile of the time of a step. See step_meter.
  double tokens_per_s = 0, step_p50_ms = 0, step_p99_ms = 0;

  std::uint32_t bad_endings(engine_id engine) const noexcept {
    for (const auto& [of, count] : bad)
      if (of == engine) return count;
    return 0;
  }
};

class board {
 public:
  // Replaces the picture.
  void publish(std::shared_ptr<const owner_picture> p) {
    std::lock_guard hold(lock_);
    picture_ = std::move(p);
  }
  // The latest picture; never null.
  std::shared_ptr<const owner_picture> look() const {
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

  // Delays from a job's cancel or deadline until its pages were free. Any thread.
  core::delays cancel_to_release;

 private:
  mutable std::mutex lock_;
  std::shared_ptr<const owner_picture> picture_ = std::make_shared<owner_picture>();
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
