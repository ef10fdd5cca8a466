// job_places.h — how many jobs each user of browser tokens has at a time, over all of its sockets.
//
// Thread safety: any thread. A place may outlive the table.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "actors/request.h"

namespace weir::net {

class job_places {
 public:
  // The place of one more job, which is free again when the last copy is destroyed; null: `who` has `most`
  // jobs or more. `most` 0: no limit.
  std::shared_ptr<const void> take(const actors::principal& who, std::uint32_t most) {
    const auto taken = std::make_shared<place>(table_, who);
    std::lock_guard lock(table_->mutex);
    auto& jobs = table_->jobs[who];
    if (most != 0 && jobs >= most) return nullptr;
    ++jobs;
    taken->counted = true;
    return taken;
  }

 private:
  struct table {
    std::mutex mutex;
    std::map<actors::principal, std::uint32_t> jobs;  // no count is 0
  };
  struct place {
    place(std::shared_ptr<table> t, const actors::principal& w) : in(std::move(t)), who(w) {}
    place(const place&) = delete;
    place& operator=(const place&) = delete;
    ~place() {
      if (!counted) return;
      std::lock_guard lock(in->mutex);
      const auto jobs = in->jobs.find(who);
      if (--jobs->second == 0) in->jobs.erase(jobs);
    }
    const std::shared_ptr<table> in;
    const actors::principal who;
    bool counted = false;
  };

  const std::shared_ptr<table> table_ = std::make_shared<table>();
};

}  // namespace weir::net
