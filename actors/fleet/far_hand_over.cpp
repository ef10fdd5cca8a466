// How a gateway that ends leaves its jobs: they run on in their workers, where other gateways find and adopt
// them.
#include <algorithm>

#include "actors/fleet/far_owner.h"

namespace weir::actors::fleet {

namespace {

core::error resume_it_elsewhere() {
  return core::make_error(core::errc::handed_over,
                          "this gateway ends, and the response goes on: resume it at another gateway");
}

}  // namespace

void far_owner::hand_over(core::duration longest, std::function<void(std::uint32_t)> done) {
  handing_.emplace(hand_over_state{time_.now() + longest, 0, std::move(done)});
  look_after_hand_over();
  outbox_.flush();
}

// A job that no worker has taken yet is waited for: where it runs is where it is left.
void far_owner::look_after_hand_over() {
  if (!handing_) return;
  std::vector<job_ptr> taken;
  bool some_wait = false;
  for (const auto& [id, j] : jobs_) {
    if (!j->end->resume || j->how || j->cancelled || j->end->abandoned()) continue;
    if (j->where && j->taken)
      taken.push_back(j);
    else
      some_wait = true;
  }
  for (const auto& j : taken) leave_to_run(j);
  handing_->left += static_cast<std::uint32_t>(taken.size());
  if (some_wait && time_.now() < handing_->until) return;
  const auto over = std::exchange(handing_, std::nullopt);
  over->done(over->left);
}

// The worker hears no farewell, so that it keeps the job for another gateway. The stream's readers are told.
void far_owner::leave_to_run(const job_ptr& j) {
  j->where.reset();
  fail(j, resume_it_elsewhere());
}

}  // namespace weir::actors::fleet
