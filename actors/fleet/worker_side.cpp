#include "actors/fleet/worker_side.h"

#include <boost/asio/post.hpp>

#include "actors/fleet/intake.h"
#include "actors/fleet/member_name.h"
#include "actors/fleet/side_thread.h"

namespace weir::actors::fleet {

worker_side::worker_side(bus& b, service& s, const timekeeper& time, worker_options o)
    : name_(o.name.empty() ? draw_name() : o.name) {
  const auto doors = s.doors();
  thread_ = std::make_unique<side_thread>("weir-fleet", o.where, doors.seen);
  if (thread_->thread()) doors.keep(thread_->thread());
  intake_ = std::make_shared<intake>(b, doors, time, std::move(o), name_, thread_->get_executor());
}

// Cancels that the end of the intake has posted run before the second call returns.
worker_side::~worker_side() {
  thread_->call([this] { intake_->stop(); });
  thread_->call([this] { intake_.reset(); });
}

core::result<> worker_side::start() {
  return thread_->call([this] { return intake_->begin(); });
}

void worker_side::drain(core::duration limit, executor ex, std::function<void()> done) {
  boost::asio::post(thread_->get_executor(),
                    [to = intake_, limit, ex = std::move(ex), done = std::move(done)]() mutable {
                      to->drain(limit, std::move(ex), std::move(done));
                    });
}

worker_counts worker_side::counts() const { return intake_->counts(); }

}  // namespace weir::actors::fleet
