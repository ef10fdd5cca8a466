#include "actors/fleet/gateway_side.h"

#include <boost/asio/post.hpp>

#include "actors/fleet/far_owner.h"
#include "actors/fleet/member_name.h"
#include "actors/fleet/side_thread.h"
#include "core/insist.h"

namespace weir::actors::fleet {

gateway_side::gateway_side(bus& b, service& s, const timekeeper& time, std::vector<far_model> models,
                           gateway_options o)
    : name_(o.name.empty() ? draw_name() : o.name) {
  const auto doors = s.doors();
  thread_ = std::make_unique<side_thread>("weir-fleet", o.where, doors.seen);
  if (thread_->thread()) doors.keep(thread_->thread());
  far_ = std::make_shared<far_owner>(b, doors, time, std::move(models), std::move(o), name_,
                                     thread_->get_executor());
  far_->open_mailbox();
  finder_ = far_->finder();
  set_finder_ = doors.set_finder;
}

gateway_side::~gateway_side() {
  thread_->call([this] { far_->stop(); });
  thread_->call([this] { far_.reset(); });
}

core::result<> gateway_side::start() {
  auto begun = thread_->call([this] { return far_->begin(); });
  if (begun) set_finder_(finder_);
  return begun;
}

void gateway_side::hand_over(core::duration longest, executor ex, std::function<void(std::uint32_t)> done) {
  auto tell = [ex = std::move(ex), done = std::move(done)](std::uint32_t left) {
    boost::asio::post(ex, [done, left] { done(left); });
  };
  boost::asio::post(thread_->get_executor(), [to = far_, longest, tell = std::move(tell)]() mutable {
    to->hand_over(longest, std::move(tell));
  });
}

void gateway_side::kill_worker_of(const core::job_id& id) {
  boost::asio::post(thread_->get_executor(), [to = far_, id] { to->kill_worker_of(id); });
}

void gateway_side::order(std::string worker, core::fleet::model_wish wish, executor ex,
                         std::function<void(core::result<core::fleet::wish_answer>)> done) {
  auto tell = [ex = std::move(ex), done = std::move(done)](core::result<core::fleet::wish_answer> a) {
    core::insist([&] { boost::asio::post(ex, [done, a] { done(a); }); });
  };
  boost::asio::post(thread_->get_executor(), [to = far_, worker = std::move(worker), wish = std::move(wish),
                                              tell]() mutable { to->order(worker, std::move(wish), tell); });
}

std::vector<seen_worker> gateway_side::workers() const { return far_->workers(); }
gateway_counts gateway_side::counts() const { return far_->counts(); }

}  // namespace weir::actors::fleet
