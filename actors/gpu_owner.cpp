#include "actors/gpu_owner.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "actors/job_state.h"
#include "actors/open_model.h"
#include "actors/runtime/context.h"
#include "actors/runtime/spawn.h"
#include "core/engine.h"

namespace weir::actors {
namespace {

namespace asio = boost::asio;
using core::time_point;

constexpr core::duration publish_every = std::chrono::milliseconds(50);

class owner {
 public:
  owner(owner_options o, const core::clock& time, std::shared_ptr<board> b)
      : options_(std::move(o)), time_(time), board_(std::move(b)) {}

  // Engines end what is left as they go; their sinks must still find the outbox.
  ~owner() {
    engines_.clear();
    outbox_.flush();
  }

  void bind(ref<owner_msg> self) { self_ = std::move(self); }

  void accept(owner_msg& m) {
    std::visit([this](auto& what) { on(what); }, m);
  }

  bool idle() const {
    for (const auto& e : engines_)
      if (!e->idle()) return false;
    return true;
  }

  // Every engine that has something due takes one step.
  void step() {
    board_->beat(time_.now(), true);
    for (auto& e : engines_) {
      if (e->idle() || e->due() > time_.now()) continue;
      const auto done = e->step();
      meter_.add(time_.now(), done.tokens, done.took);
      if (const auto& fault = e->fault()) board_->fail(fault->message);
    }
    outbox_.flush();
    if (time_.now() >= publish_at_) publish();
  }

  // When the next step is due; in the past where something is due now. REQUIRES !idle().
  time_point due() const {
    auto first = time_point::max();
    for (const auto& e : engines_)
      if (!e->idle()) first = std::min(first, e->due());
    return first;
  }

  time_point now() const { return time_.now(); }

  // Before the owner waits for mail: what there was to tell is told.
  void rest() {
    outbox_.flush();
    publish();
    board_->beat(time_.now(), false);
  }

 private:
  void on(submit_job& m) {
    static_cast<job_stream::state_block&>(*m.job.sink).out = &outbox_;
    engines_[m.engine]->submit(std::move(m.job));
  }

  void on(cancel_job& m) { engines_[m.engine]->cancel(m.id, m.why); }

  void on(load_model& m) {
    auto opened = open_model(m.spec, options_, m.progress);
    if (!opened) return m.answer(load_model::result(opened.error()));
    auto served = std::make_shared<served_model>(std::move(opened->served));
    const auto index = engines_.size();
    served->device = options_.device;
    served->capacity = options_.queue + options_.max_batch;
    served->submit = [to = self_, index](core::job j) {
      [[maybe_unused]] const auto how = to.tell(submit_job(std::move(j), index));
      assert(how != sent::full);  // admission keeps the mailbox from filling
    };
    served->cancel = [to = self_, index](const core::job_id& id, core::finish_reason why) {
      to.tell(cancel_job(id, index, why));
    };
    engines_.push_back(std::make_unique<core::engine>(std::move(opened->weights), served->tokenizer,
                                                      opened->config, time_));
    publish();
    m.answer(load_model::result(std::move(served)));
  }

  void publish() {
    publish_at_ = time_.now() + publish_every;
    auto p = std::make_shared<owner_picture>();
    p->at = time_.now();
    for (std::size_t i = 0; i < engines_.size(); ++i) {
      p->counts += engines_[i]->counts();
      listed_.clear();
      engines_[i]->list(listed_);
      for (const auto& s : listed_) p->jobs.push_back({s, i});
    }
    p->tokens_per_s = meter_.tokens_per_s(p->at);
    p->step_p50_ms = meter_.step_ms(0.5);
    p->step_p99_ms = meter_.step_ms(0.99);
    board_->publish(std::move(p));
  }

  owner_options options_;
  const core::clock& time_;
  std::shared_ptr<board> board_;
  ref<owner_msg> self_;
  outbox outbox_;
  std::vector<std::unique_ptr<core::engine>> engines_;
  std::vector<core::sequence_view> listed_;
  step_meter meter_;
  time_point publish_at_{};
};

asio::awaitable<void> run(context<owner_msg> self, std::shared_ptr<owner> o) {
  o->bind(self.self());
  while (!self.stopping()) {
    while (auto m = self.try_receive()) o->accept(*m);
    if (o->idle()) {
      o->rest();
      auto m = co_await self.async_receive();
      o->accept(m);
      continue;
    }
    const auto due = o->due();
    if (due > o->now()) {
      co_await self.async_wait_mail(due);  // a simulated device: nothing to do before then but read the mail
      continue;
    }
    o->step();
    co_await asio::post(self.get_executor(), asio::use_awaitable);  // lets stop in
  }
}

}  // namespace

gpu_owner::gpu_owner(owner_options o, const core::clock& time)
    : thread_({.name = "weir-" + o.device, .cpu = {}, .on_start = {}}) {
  options opt;
  opt.name = "owner-" + o.device;
  opt.mailbox = 2 * o.models * std::size_t{o.queue + o.max_batch} + 64;  // every admitted job, its cancel, loads
  auto mind = std::make_shared<owner>(std::move(o), time, board_);
  mail_ = spawn<owner_msg>(thread_.get_executor(), opt,
                           [mind](context<owner_msg> self) { return run(std::move(self), mind); });
}

gpu_owner::~gpu_owner() { mail_.stop(); }

}  // namespace weir::actors
