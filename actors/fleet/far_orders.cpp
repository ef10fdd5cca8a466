// Orders for the models of workers, which an admin gives at a gateway.
#include <boost/asio/post.hpp>

#include "actors/fleet/far_owner.h"
#include "core/insist.h"

namespace weir::actors::fleet {

namespace wire = core::fleet;

namespace {

// A load of a large model may take minutes. Who waits longer looks at the boards.
constexpr core::duration order_within = std::chrono::minutes(20);
constexpr core::duration permit_within = std::chrono::seconds(2);

using answered = enum bus::answer::how;

core::error no_answer_of(const std::string& worker, answered how) {
  if (how == answered::nobody_there)
    return core::make_error(core::errc::not_found, "the fleet has no worker {}", worker);
  return core::make_error(core::errc::unavailable, "the worker {} does not answer", worker);
}

}  // namespace

void far_owner::order(const std::string& worker, wire::model_wish wish, order_done done) {
  if (stopped_ || !view_.has(worker)) return done(no_answer_of(worker, answered::nobody_there));
  bus_.ask(subjects_.control_of(worker), wire::frame_of(wire::permit_wish{}), permit_within, ex_,
           [weak = weak_from_this(), worker, wish = std::move(wish), done](bus::answer a) mutable {
             const auto self = weak.lock();
             const auto permit = wire::read_permit(a.bytes);
             if (!self || self->stopped_ || a.how != answered::came || !permit)
               return done(no_answer_of(worker, a.how));
             wish.permit = permit->number;
             self->give_order(worker, wish, std::move(done));
           });
}

void far_owner::give_order(const std::string& worker, const wire::model_wish& wish, order_done done) {
  ++now_.orders;
  const auto id = ++last_order_;
  orders_[id] = {worker, std::move(done)};
  bus_.ask(subjects_.control_of(worker), wire::frame_of(wish), order_within, ex_,
           [weak = weak_from_this(), worker, id](bus::answer a) {
             const auto self = weak.lock();
             if (!self) return;
             auto answer = wire::read_wish_answer(a.bytes);
             if (a.how == answered::came && !answer) ++self->now_.broken;
             answer ? self->end_order(id, std::move(*answer))
                    : self->end_order(id, no_answer_of(worker, a.how));
           });
}

void far_owner::end_order(std::uint64_t id, core::result<wire::wish_answer> how) {
  const auto at = orders_.find(id);
  if (at == orders_.end()) return;
  const auto done = std::move(at->second.done);
  orders_.erase(at);
  done(std::move(how));
}

// Nobody waits for the answer of a worker that is gone.
void far_owner::look_after_orders() {
  std::vector<std::uint64_t> lost;
  for (const auto& [id, o] : orders_)
    if (stopped_ || !view_.has(o.worker)) lost.push_back(id);
  for (const auto id : lost)
    end_order(id, core::make_error(core::errc::unavailable,
                                   "the worker is gone, and nobody knows whether the order was carried out"));
}

}  // namespace weir::actors::fleet
