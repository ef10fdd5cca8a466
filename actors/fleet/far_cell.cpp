// What a gateway asks of its whole cell: which jobs its workers have, and that some of them end.
#include <boost/asio/post.hpp>

#include "actors/fleet/far_owner.h"
#include "core/insist.h"

namespace weir::actors::fleet {

namespace wire = core::fleet;

namespace {

constexpr core::duration lists_looked_at_every = std::chrono::milliseconds(10);

}  // namespace

// While the bus is down nobody can be asked: all workers count as silent.
void far_owner::on(far_ask& m) {
  const auto refuse = [&] {
    cell_question::answer no;
    no.silent = static_cast<std::uint32_t>(std::max<std::size_t>(1, view_.names().size()));
    core::insist([&] { boost::asio::post(m.what.ex, [done = m.what.done, no] { done(no); }); });
  };
  if (stopped_ || bus_.state() != bus::link::up) return refuse();
  switch (lists_.begin(m.what, questions_(), view_.names(), time_.now())) {
    case far_lists::begun::crowded:
      ++now_.crowded;
      return refuse();
    case far_lists::begun::joins:
      return;
    case far_lists::begun::asks:
      ++now_.lists;
      return look_after_lists();
  }
}

void far_owner::ask_cell(wire::job_question q) { bus_.publish(subjects_.finds(), wire::frame_of(q)); }

void far_owner::look_after_lists() {
  for (auto& q : lists_.look(time_.now())) ask_cell(std::move(q));
  if (!lists_.empty() && list_timer_) list_timer_->set(time_.now() + lists_looked_at_every);
}

}  // namespace weir::actors::fleet
