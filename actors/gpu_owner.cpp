#include "actors/gpu_owner.h"

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "actors/owner_mind.h"
#include "actors/runtime/context.h"
#include "actors/runtime/spawn.h"

namespace weir::actors {
namespace {

namespace asio = boost::asio;

asio::awaitable<void> run(context<owner_msg> self, std::shared_ptr<owner_mind> o) {
  o->begin(self);
  while (!self.stopping()) {
    while (auto m = self.try_receive()) o->accept(*m);
    if (o->idle()) {
      o->before_idling();
      if (auto m = co_await self.async_receive()) o->accept(*m);
    } else if (const auto due = o->due(); due > o->now()) {
      o->before_wait(due);  // nothing to do before then but read the mail
      if (auto m = co_await self.async_receive()) o->accept(*m);
    } else {
      o->step();
      co_await asio::post(self.get_executor(), asio::use_awaitable);  // so that a stop can run
    }
  }
}

std::shared_ptr<mask_pool> make_mask_pool(const owner_options& o) {
  if (o.mask_threads == 0) return nullptr;
  return std::make_shared<mask_pool>(o.mask_threads, o.models * o.max_batch);
}

// Gives `done` the owner's answer on `ex`, or an error where the owner is gone.
template <class Result>
auto owner_answer(const executor& ex, std::function<void(Result)> done) {
  return asio::bind_executor(ex, [done = std::move(done)](boost::system::error_code lost, Result r) {
    if (!lost) return done(std::move(r));
    done(core::make_error(core::errc::internal, "the owner of the device is gone: {}", lost.message()));
  });
}

}  // namespace

gpu_owner::gpu_owner(owner_options o, const timekeeper& time, shared_by_owners shared,
                     asio::any_io_executor where)
    : device_(o.device) {
  const auto simulated = where;
  auto masks = where ? nullptr : make_mask_pool(o);  // a simulation has no threads
  if (!where) {
    exclusive_thread::options own{.name = "weir-" + o.device};
    own.on_escape = [seen = shared.seen](std::exception_ptr what) {
      seen->note("the owner's thread", std::move(what));
    };
    where = thread_.emplace(std::move(own)).get_executor();
  }
  options opt;
  opt.name = "owner-" + o.device;
  // each admitted job, its cancel and its pause; then loads
  opt.mailbox = 3 * o.models * admission_control::most_jobs(o.max_batch, o.queue) + 64;
  // If the loop throws because it has no memory even to wait, it begins again and keeps everything that it
  // owns.
  opt.restart = {.when = restart_when::on_error, .max = std::numeric_limits<int>::max(), .first_delay = {}};
  auto mind = std::make_shared<owner_mind>(std::move(o), time, board_, std::move(shared), std::move(masks),
                                           simulated);
  mail_ =
      spawn<owner_msg>(where, opt, [mind](context<owner_msg> self) { return run(std::move(self), mind); });
}

gpu_owner::~gpu_owner() { mail_.stop(); }

void gpu_owner::open(model_spec spec, model_progress progress, executor ex,
                     std::function<void(opened)> done) {
  mail_.ask<load_model>(owner_answer(ex, std::move(done)), std::move(spec), std::move(progress));
}

void gpu_owner::close(engine_id engine, executor ex, std::function<void(core::engine_totals)> done) {
  mail_.ask<close_engine>(
      asio::bind_executor(ex, [done = std::move(done)](boost::system::error_code,
                                                       core::engine_totals totals) { done(totals); }),
      engine);
}

void gpu_owner::sleep(engine_id engine, executor ex, napped done) {
  ask_nap(engine, nap::sleep, std::move(ex), std::move(done));
}

void gpu_owner::wake(engine_id engine, executor ex, napped done) {
  ask_nap(engine, nap::wake, std::move(ex), std::move(done));
}

void gpu_owner::ask_nap(engine_id engine, nap what, executor ex, napped done) {
  mail_.ask<nap_engine>(owner_answer(ex, std::move(done)), engine, what);
}

void gpu_owner::resize(engine_id engine, std::uint32_t pages, executor ex, napped done) {
  mail_.ask<resize_engine>(owner_answer(ex, std::move(done)), engine, pages);
}

void gpu_owner::set_share(engine_id engine, double weight) { mail_.tell(actors::set_share(engine, weight)); }

}  // namespace weir::actors
