// board.h — what an owner publishes between steps, so that health, statistics and lists never wait for an
// engine.
//
// Thread safety: the owner's thread publishes; any thread reads. The lock guards one pointer copy and is
// never held while anything else happens.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/delays.h"
#include "core/engine.h"

namespace weir::actors {

struct listed_job {
  core::sequence_view sequence;
  std::size_t engine = 0;
};

struct owner_picture {
  core::time_point at{};
  core::engine_counts counts;          // of all engines together
  std::vector<listed_job> jobs;
  std::vector<std::uint32_t> bad_endings;  // of each engine: core::engine::bad_endings()
  double tokens_per_s = 0, step_p50_ms = 0, step_p99_ms = 0;
};

class board {
 public:
  void publish(std::shared_ptr<const owner_picture> p) {
    std::lock_guard hold(lock_);
    picture_ = std::move(p);
  }
  std::shared_ptr<const owner_picture> look() const {
    std::lock_guard hold(lock_);
    return picture_;
  }

  // The owner's pulse: when it last finished a step (or began to have something to do), and whether it has.
  void beat(core::time_point now, bool busy) noexcept {
    pulse_.store(now.time_since_epoch().count() << 1 | (busy ? 1 : 0), std::memory_order_release);
  }
  // How long the owner has had work without finishing a step; nothing while it is idle.
  std::optional<core::duration> silent_for(core::time_point now) const noexcept {
    const auto p = pulse_.load(std::memory_order_acquire);
    if (!(p & 1)) return std::nullopt;
    return now.time_since_epoch() - core::duration(p >> 1);
  }

  void fail(std::string why) {
    std::lock_guard hold(lock_);
    fault_ = std::move(why);
  }
  std::string fault() const {
    std::lock_guard hold(lock_);
    return fault_;
  }

  core::delays cancel_to_release;  // from a cancel or a deadline to the moment when the pages were free

 private:
  mutable std::mutex lock_;
  std::shared_ptr<const owner_picture> picture_ = std::make_shared<owner_picture>();
  std::string fault_;
  std::atomic<std::int64_t> pulse_{0};
};

// Rates and step times over the last moments: owner's thread only.
class step_meter {
 public:
  void add(core::time_point now, std::uint32_t tokens, core::duration took);
  double tokens_per_s(core::time_point now) const;
  // Quantile of the last steps' times, in ms; 0 before the first.
  double step_ms(double q) const;

 private:
  static constexpr core::duration slot_{std::chrono::milliseconds(100)};
  static constexpr std::size_t slots_ = 10;
  struct bucket { std::int64_t slot = -1; std::uint64_t tokens = 0; };
  std::array<bucket, slots_ + 1> buckets_{};
  std::array<float, 512> times_{};
  std::size_t steps_ = 0;
};

}  // namespace weir::actors
