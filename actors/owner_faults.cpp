// What the owner of a device does where the device has failed.
#include "actors/owner_mind.h"

#include "actors/open_model.h"
#include "core/insist.h"

namespace weir::actors {

void owner_mind::device_failed(const core::error& why) {
  const bool again = plan_.failed(time_.now());
  std::vector<core::stranded_jobs> unfinished;
  core::insist([&] {
    fault_ = again ? why.message : why.message + "; it failed twice within a minute and stays down";
    unfinished.resize(engines_.size());
  });
  go_down(fault_);
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    if (!engines_[i].engine) continue;
    if (again && !engines_[i].threw) unfinished[i] = take_jobs(*engines_[i].engine, why);
    core::insist([&] { engines_[i].engine->stop(why); });  // those that were not taken
  }
  close_all();
  sleepers_.lose_all(loader_);
  outbox_.flush();  // before what may take long
  shared_.seen->note("the device", fault_);
  if (again && start_again()) give_back(unfinished);
  for (auto& jobs : unfinished) core::insist([&] { jobs.end(why); });
  outbox_.flush();
}

core::stranded_jobs owner_mind::take_jobs(core::engine& e, const core::error& why) {
  try {
    e.fail(why);
    return e.evacuate();
  } catch (const std::bad_alloc&) {
    shared_.seen->note("the jobs of a device that failed", std::current_exception());
    return {};
  }
}

void owner_mind::give_back(std::vector<core::stranded_jobs>& unfinished) {
  for (std::size_t i = 0; i < engines_.size(); ++i) {
    if (unfinished[i].size() == 0) continue;
    auto& e = engines_[i];
    e.pace.wake(time_.now());
    try {
      e.engine->adopt(unfinished[i]);
    } catch (const std::bad_alloc&) {
      shared_.seen->note("the jobs of a device that was started again", std::current_exception());
    }
  }
  board_->beat(time_.now(), !rests());
}

void owner_mind::go_down(const std::string& why) {
  core::insist([&] { board_->fail(why); });
  for (auto& e : engines_)
    core::insist([&] {
      e.served->admission->close(door::device, core::make_error(core::errc::unavailable, "{}", why));
    });
}

bool owner_mind::start_again() {
  say_busy(false);
  plan_.attempt(time_.now());
  core::result<> made;
  try {
    made = reopen_all();
  } catch (const std::bad_alloc&) {
    made = core::make_error(core::errc::overloaded, "out of memory");
  }
  if (made) {
    plan_.succeeded();
    board_->fail({});
    for (auto& e : engines_) e.served->admission->reopen(door::device);
    board_->beat(time_.now(), false);
    shared_.seen->tell("the device", "it was started again");
    return true;
  }
  close_all();
  go_down(fault_ + "; it cannot be started again: " + made.error().message);
  if (plan_.first())
    shared_.seen->note("the device",
                       fmt::format("it cannot be started again and stays down: {}; it is tried again "
                                   "after pauses that grow",
                                   made.error().message));
  return false;
}

void owner_mind::close_all() {
  changes_.lose_all();
  for (auto& e : engines_) e.close();
}

core::result<> owner_mind::reopen_all() {
  for (auto& e : engines_) {
    auto again = load_now(*options_, engines_need_, e.spec, {});
    if (!again) return again.error();
    e.engine = std::move((*again)->engine);
    e.due = {};
  }
  return {};
}

}  // namespace weir::actors
