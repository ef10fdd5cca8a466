// pausable_jobs.h — how many unfinished jobs of a model may pause (request::may_pause): of each API key, and
// of all keys together.
//
// Admission does not count a job that has paused (admission_control.h), so this bound takes the place of that
// one. A job has its place from its admission to its end, paused or not, so a job that was let in can pause.
//
// Thread safety: any thread. The lock is held for a few steps, when a job comes or ends.
#pragma once

#include <cstdint>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "actors/overloaded.h"
#include "core/error.h"

namespace weir::actors {

class pausable_jobs {
 public:
  // Most jobs of one key, and of all keys.
  pausable_jobs(std::uint32_t of_key, std::uint32_t of_all) : of_key_(of_key), of_all_(of_all) {}

  // The place of one job, until it is destroyed. The table must outlive it.
  class place {
   public:
    place(place&& o) noexcept : in_(std::exchange(o.in_, nullptr)), key_(o.key_) {}
    place& operator=(place&& o) noexcept {
      std::swap(in_, o.in_);
      std::swap(key_, o.key_);
      return *this;
    }
    ~place() {
      if (in_) in_->give_back(key_);
    }

   private:
    friend pausable_jobs;
    place(pausable_jobs& in, std::uint64_t key) noexcept : in_(&in), key_(key) {}
    pausable_jobs* in_;
    std::uint64_t key_;
  };

  // The place of one more job of `key` (principal::key), or the error overloaded. `model`: its name, for the
  // message.
  core::result<place> take(std::string_view model, std::uint64_t key) {
    const std::lock_guard hold(mutex_);
    const auto of_key = jobs_.find(key);
    if (of_key != jobs_.end() && of_key->second >= of_key_)
      return overloaded(0, fmt::format("this key has {} unfinished jobs of {} with on_lag \"pause\", and may "
                                       "have no more",
                                       of_key_, model));
    if (all_ >= of_all_)
      return overloaded(0, fmt::format("{} has {} unfinished jobs with on_lag \"pause\", and takes no more "
                                       "for now",
                                       model, of_all_));
    ++jobs_[key];
    ++all_;
    return place(*this, key);
  }

 private:
  void give_back(std::uint64_t key) noexcept {
    const std::lock_guard hold(mutex_);
    const auto of_key = jobs_.find(key);
    if (--of_key->second == 0) jobs_.erase(of_key);
    --all_;
  }

  const std::uint32_t of_key_, of_all_;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::uint32_t> jobs_;  // by key; none is 0
  std::uint32_t all_ = 0;
};

}  // namespace weir::actors
