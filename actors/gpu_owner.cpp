#include "actors/gpu_owner.h"

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "actors/engine_place.h"
#include "actors/engine_sleepers.h"
#include "actors/job_state.h"
#include "actors/mailbox_port.h"
#include "actors/mask_pool.h"
#include "actors/open_model.h"
#include "actors/restart_plan.h"
#include "actors/runtime/context.h"
#include "actors/runtime/spawn.h"
#include "core/engine.h"
#include "core/insist.h"

namespace weir::actors {
namespace {

namespace asio = boost::asio;
using core::time_point;

constexpr core::duration publish_every = std::chrono::milliseconds(50);
constexpr core::duration list_landmarks_every = std::chrono::seconds(1);        // while there is work
constexpr core::duration look_at_loads_every = std::chrono::milliseconds(100);  // whether they are wanted

class owner {
 public:
  // `where`: executor for loads; empty: a thread of their own.
  owner(owner_options o, const timekeeper& time, std::shared_ptr<board> b, shared_by_owners shared,
        std::shared_ptr<mask_pool> masks, asio::any_io_executor where)
      : options_(std::make_shared<owner_options>(std::move(o))),
        time_(time),
        board_(std::move(b)),
        shared_(std::move(shared)),
        engines_need_{time, std::move(masks), shared_.seen},
        loader_(options_, engines_need_, std::move(where)) {}

  // Engines end their remaining jobs when they are destroyed, and the sinks of those jobs use the outbox.
  ~owner() {
    engines_.clear();
    outbox_.flush();
  }

  void begin(const context<owner_msg>& self) {
    self_ = self.self();
    const auto ring = [to = self_] {
      core::insist([&] { to.tell(time_came()); });  // makes the owner look for what is due
    };
    timer_ = time_.make_timer(self.get_executor(), ring);
    load_timer_ = time_.make_timer(self.get_executor(), ring);
  }

  void accept(owner_msg& m) {
    core::contained(*shared_.seen, "the owner's mail",
                    [&] { std::visit([this](auto& what) { on(what); }, m); });
  }

  bool idle() const {
    for (const auto& e : engines_)
      if (e.engine && !e.engine->idle()) return false;
    return true;
  }

  // Whether no job runs or waits: there are no jobs, or all of them are paused.
  bool rests() const {
    for (const auto& e : engines_)
      if (e.engine && !e.engine->idle() && !e.rests) return false;
    return true;
  }

  // One of the engines that have something due takes a step. An engine that throws is in no known state: its
  // jobs end, and its device is treated as one that failed.
  void step() noexcept {
    if (core::contained(*shared_.seen, "the owner's step", [this] { step_engines(); })) return;
    if (stepping_) stepping_->threw = true;
    core::contained(*shared_.seen, "the owner's restart", [this] { device_failed(broken_step_); });
  }

  void step_engines() {
    say_busy(true);
    stepping_ = nullptr;
    if (engine_place* const e = choose()) {
      if (e->rests) {
        e->pace.wake(time_.now());
        board_->beat(time_.now(), true);
      }
      e->engine->set_company(has_company(*e) ? options_->turn_time : core::duration::zero());
      shares_.begin(e->share);
      stepping_ = e;
      const auto done = e->engine->step();
      stepping_ = nullptr;
      note(*e, done);
      if (const auto fault = e->engine->fault()) device_failed(*fault);
    }
    if (options_->audit) check_books(&core::engine::check_integrity);
    outbox_.flush();
    if (time_.now() >= publish_at_ && board_->offer(picture())) publish_at_ = time_.now() + publish_every;
  }

  // When the next step is due; in the past where something is due now. REQUIRES !idle().
  time_point due() const {
    auto first = time_point::max();
    for (const auto& e : engines_)
      if (e.engine && !e.engine->idle()) first = std::min(first, e.due);
    return first;
  }

  time_point now() const { return time_.now(); }

  // Called before the owner waits for mail or until the next step is due. It sends no heartbeat while a job
  // runs or waits: a device that makes the owner wait for long is not healthy.
  void before_wait(time_point until) {
    if (rests()) board_->beat(time_.now(), false);
    say_busy(!rests());
    core::contained(*shared_.seen, "the owner's news", [this, until] {
      outbox_.flush();
      const auto now = time_.now();
      if (now >= publish_at_ || until > now + publish_every) publish();  // the picture holds until then
    });
    timer_->set(until);
  }

  // Called before the owner waits for mail while it has no work. Publishes all news, and checks the engines.
  void before_idling() {
    core::contained(*shared_.seen, "the owner's news", [this] {
      outbox_.flush();
      publish();
      check_books(options_->audit ? &core::engine::check_integrity : &core::engine::check_idle);
    });
    board_->beat(time_.now(), false);
    say_busy(false);
    if (const auto at = plan_.next()) timer_->set(*at);
  }

 private:
  // The engine that steps next; null where none has anything due.
  engine_place* choose() {
    engine_place* first = nullptr;
    const auto now = time_.now();
    for (auto& e : engines_) {
      const bool due = e.engine && !e.engine->idle() && e.due <= now;
      shares_.look(e.share, due);
      if (due && (!first || core::shares::before(e.share, first->share))) first = &e;
    }
    return first;
  }

  // Whether an engine beside `e` has something to do, now or later.
  bool has_company(const engine_place& e) const {
    const auto now = time_.now();
    return std::ranges::any_of(engines_, [&](const auto& x) { return &x != &e && x.works(now); });
  }

  // Takes note of what a step of `e` did.
  void note(engine_place& e, const core::step_report& done) {
    const auto now = time_.now();
    e.due = done.wait_until;
    e.rests = done.running + done.waiting == 0;
    e.note_pace(now, done);
    shares_.charge(e.share, done.device_time, done.under_way);
    if (done.rows == 0) return;
    e.used.add(now, done.device_time);
    meter_.add(now, done.tokens, done.took);
    board_->beat(now, true);
  }

  void on(set_share& m) {
    sleepers_.set_share(m.engine, m.weight);
    auto* const e = find(m.engine);
    if (!e) return;
    e->share.set_weight(m.weight);
    e->spec.share = m.weight;
  }

  void on(submit_job& m) {
    m.stream->out = &outbox_;
    if (rests()) board_->beat(time_.now(), true);
    auto* const e = find(m.engine);
    if (!e) return refuse(*m.stream, sleepers_.has(m.engine) ? model_sleeps : model_is_gone);
    if (!e->engine)
      return refuse(*m.stream,
                    [&] { return core::make_error(core::errc::unavailable, "{}", board_->fault()); });
    if (e->engine->idle()) e->pace.wake(time_.now());
    m.job.sink = m.stream;
    try {
      e->engine->submit(std::move(m.job));
    } catch (const std::bad_alloc&) {  // the engine is as it was before
      shared_.seen->note("a job on its way into the engine", std::current_exception());
      return refuse(*m.stream, [] {
        return core::make_error(core::errc::overloaded, "there is no memory for this job now");
      });
    }
    e->due = {};
  }

  static core::error model_is_gone() {
    return core::make_error(core::errc::unavailable, "the model was unloaded");
  }

  static core::error model_sleeps() { return core::make_error(core::errc::unavailable, "the model sleeps"); }

  // Ends a job that no engine has, with the error that `why` makes. Waits for memory where it is short, since
  // nobody else would tell the client.
  template <class F>
  static void refuse(core::token_sink& sink, F why) {
    core::insist([&] {
      core::ending how;
      how.reason = core::finish_reason::error;
      how.fault = why();
      sink.finish(how);
    });
  }

  void on(cancel_job& m) {
    auto* const e = find(m.engine);
    if (!e || !e->engine) return;
    e->engine->cancel(m.id, m.why);
    e->due = {};
    if (const auto fault = e->engine->fault()) device_failed(*fault);
  }

  void on(pause_job& m) {
    m.stream->pause_told.store(false);  // before the wish is read: a later wish sends a message of its own
    const auto until = m.stream->pause_until.load();
    auto* const e = find(m.engine);
    if (!e || !e->engine) return;
    if (until == core::time_point::min())
      e->engine->resume(m.stream->id);
    else if (m.stream->pausable)
      e->engine->pause(m.stream->id, until);
    e->due = {};
  }

  void on(time_came&) {
    if (plan_.due(time_.now())) (void)start_again();
    begin_loads();
  }

  // The device has failed, and its memory is lost for all engines. Backend and engines are then made again as
  // restart_plan.h says, and unfinished jobs go on in the new engines. Where that is not to be or fails, they
  // end with `why`, and readiness says why from then on. So do jobs that went on behind a failure before, and
  // those of an engine that threw. Messages wait meanwhile, cancels too; a deadline that has passed takes
  // effect in the first step. What must not be left half done waits for memory where it is short.
  void device_failed(const core::error& why) {
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

  // The jobs of an engine that go on behind the failure of its device: none where host memory is short.
  core::stranded_jobs take_jobs(core::engine& e, const core::error& why) {
    try {
      e.fail(why);
      return e.evacuate();
    } catch (const std::bad_alloc&) {
      shared_.seen->note("the jobs of a device that failed", std::current_exception());
      return {};
    }
  }

  // Gives each engine its jobs back. What an engine has no memory for stays in the list.
  void give_back(std::vector<core::stranded_jobs>& unfinished) {
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

  // Tells loads on this device whether engines have work, to which loads give way.
  void say_busy(bool now) { engines_need_.busy->store(now, std::memory_order_relaxed); }

  // Jobs go to other places of their models from now on, or are refused.
  void go_down(const std::string& why) {
    core::insist([&] { board_->fail(why); });
    for (auto& e : engines_)
      core::insist([&] {
        e.served->admission->close(door::device, core::make_error(core::errc::unavailable, "{}", why));
      });
  }

  // Makes the engines that the failed device has lost. False: it could not be done, and is tried again as
  // restart_plan.h says.
  bool start_again() {
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

  // Frees the engines' memory, and with it their backends.
  void close_all() {
    for (auto& e : engines_) e.close();
  }

  core::result<> reopen_all() {
    for (auto& e : engines_) {
      auto again = load_now(*options_, engines_need_, e.spec, {});
      if (!again) return again.error();
      e.engine = std::move((*again)->engine);
      e.due = {};
    }
    return {};
  }

  // A load that has to wait begins when its time has come, or soon after nobody wants it any more: then it
  // ends with an error.
  void on(load_model& m) {
    const auto wait = simulated_load(m.spec, *options_);
    loads_.push_back({time_.now() + wait, std::move(m)});
    begin_loads();
  }

  // An engine leaves the owner before it sleeps. Where the sleep takes simulated time, it waits for that
  // among the sleepers.
  void on(nap_engine& m) {
    if (m.what == nap::sleep) {
      if (auto no = give_to_sleepers(m.engine)) return m.answer(nap_engine::result(std::move(*no)));
    } else if (!sleepers_.has(m.engine)) {
      return m.answer(nap_engine::result(
          core::make_error(core::errc::unavailable, "this host has no such engine that sleeps")));
    }
    const auto times = simulated_naps(sleepers_.spec_of(m.engine), *options_);
    naps_.push_back({time_.now() + (m.what == nap::sleep ? times.sleep : times.wake), std::move(m)});
    begin_loads();
  }

  // Why an engine cannot be given out; nullopt: it is among the sleepers now.
  std::optional<core::error> give_to_sleepers(engine_id id) {
    const auto e = std::ranges::find(engines_, id, [](const auto& x) { return x.served->engine; });
    if (e == engines_.end())
      return core::make_error(core::errc::unavailable, "this host has no such engine that is awake");
    if (!e->engine || e->engine->fault())
      return core::make_error(core::errc::unavailable, "the device is down: {}", board_->fault());
    if (!e->engine->idle()) return core::make_error(core::errc::busy, "the engine has jobs");
    sleepers_.add(std::move(*e));
    engines_.erase(e);
    publish();
    return std::nullopt;
  }

  void begin_nap(nap_engine& m) {
    auto engine = sleepers_.has(m.engine) ? sleepers_.give_out(m.engine) : nullptr;
    if (!engine) {
      nap_ended none(m.engine, m.what, nullptr,
                     core::make_error(core::errc::internal, "its engine was lost with the device"),
                     std::move(m.answer));
      return on(none);
    }
    const auto answer = std::make_shared<reply<nap_engine::result>>(std::move(m.answer));
    auto done = [to = self_, id = m.engine, what = m.what, answer](std::unique_ptr<core::engine> e,
                                                                   core::result<> r) {
      to.tell(nap_ended(id, what, std::move(e), std::move(r), std::move(*answer)));
    };
    m.what == nap::sleep ? loader_.sleep(std::move(engine), std::move(done))
                         : loader_.wake(std::move(engine), std::move(done));
  }

  void on(nap_ended& m) {
    if (auto awake = sleepers_.take_back(m, loader_)) {
      auto& e = engines_.emplace_back(std::move(*awake));
      e.due = {};
      e.rests = false;
    }
    publish();
    m.answer(nap_engine::result(std::move(m.result)));
  }

  void begin_loads() {
    const auto now = time_.now();
    auto next = time_point::max();
    std::vector<waiting_load> later;
    for (auto& w : loads_) {
      const auto& unwanted = w.what.spec.unwanted;
      if (w.at <= now || (unwanted && *unwanted)) {
        begin_load(w.what);
        continue;
      }
      next = std::min(next, unwanted ? std::min(w.at, now + look_at_loads_every) : w.at);
      later.push_back(std::move(w));
    }
    loads_ = std::move(later);
    next = std::min(next, begin_naps(now));
    if (next != time_point::max()) load_timer_->set(next);
  }

  // Returns when the next of those that wait is due.
  time_point begin_naps(time_point now) {
    auto next = time_point::max();
    for (auto all = std::exchange(naps_, {}); auto& w : all) {
      if (w.at <= now) {
        begin_nap(w.what);
        continue;
      }
      next = std::min(next, w.at);
      naps_.push_back(std::move(w));
    }
    return next;
  }

  void begin_load(load_model& m) {
    const auto answer = std::make_shared<reply<load_model::result>>(std::move(m.answer));
    loader_.load(m.spec, m.progress, [to = self_, spec = m.spec, answer](loaded what) {
      to.tell(load_ended(std::move(what), spec, std::move(*answer)));
    });
  }

  void on(load_ended& m) {
    // A load that was refused leaves the device as it was. If the device has failed meanwhile, each engine
    // finds that in its next step.
    if (!m.what) return m.answer(load_model::result(m.what.error()));
    auto& [engine, weights, config, served, place] = **m.what;
    place->engine = next_engine_id();
    place->port = std::make_shared<mailbox_port>(self_, place->engine);
    if (options_->lists_landmarks)
      place->known = std::make_shared<known_prefixes>(std::string(served->info.kv_type),
                                                      std::make_shared<std::atomic<std::uint64_t>>(0));
    served->constraints =
        std::make_shared<constraint_store>(served->tokenizer, served->info.stop_ids, time_.lasting(),
                                           options_->grammar_time, shared_.constraints);
    served->places.push_back(place);
    auto& e = engines_.emplace_back();
    e.engine = std::move(engine);
    e.spec = m.spec;
    e.spec.unwanted.reset();  // a load that follows a fault is wanted
    e.max_batch = config.max_batch;
    e.share = core::share_account(m.spec.share.value_or(1));
    e.served = std::move(place);
    publish();
    m.answer(load_model::result(std::move(served)));
  }

  // The engine's memory is freed on the loader's thread, so that no other engine waits for that.
  void on(close_engine& m) {
    const auto e = std::ranges::find(engines_, m.engine, [](const auto& x) { return x.served->engine; });
    if (e == engines_.end()) return close_sleeper(m);
    if (e->engine) e->engine->stop(model_is_gone());
    outbox_.flush();
    const core::engine_totals totals = e->look().counts;
    auto engine = std::move(e->engine);
    engines_.erase(e);
    publish();
    const auto answer = std::make_shared<reply<close_engine::result>>(std::move(m.answer));
    loader_.destroy(std::move(engine), [answer, totals] { (*answer)(totals); });
  }

  void close_sleeper(close_engine& m) {
    auto gone = sleepers_.close(m.engine);
    if (!gone) return m.answer(core::engine_totals());
    publish();
    if (!gone->engine) return m.answer(gone->totals);
    const auto answer = std::make_shared<reply<close_engine::result>>(std::move(m.answer));
    loader_.destroy(std::move(gone->engine), [answer, totals = gone->totals] { (*answer)(totals); });
  }

  // A lost page is a fault of the engine. Readiness reports the fault before the memory runs out.
  void check_books(std::string (core::engine::*check)() const) {
    for (const auto& e : engines_)
      if (auto wrong = e.engine ? (*e.engine.*check)() : std::string(); !wrong.empty())
        board_->fail("the books do not balance: " + wrong);
  }

  void publish() {
    publish_at_ = time_.now() + publish_every;
    landmarks_at_ = {};
    board_->publish(picture());
  }

  board::picture picture() {
    auto p = std::make_shared<owner_picture>();
    p->at = time_.now();
    p->engines.reserve(engines_.size());
    const bool lists = options_->lists_landmarks && p->at >= landmarks_at_;
    if (lists) landmarks_at_ = p->at + list_landmarks_every;
    for (auto& e : engines_) {
      if (lists) e.list_landmarks();
      p->engines.push_back(e.look());
      p->engines.back().used = e.used.lately(p->at);
      if (!e.engine) continue;
      listed_.clear();
      e.engine->list(listed_);
      for (const auto& s : listed_) p->jobs.push_back({s, e.served->engine});
    }
    sleepers_.look(p->engines);
    p->tokens_per_s = meter_.tokens_per_s(p->at);
    p->step_p50_ms = meter_.step_ms(0.5);
    p->step_p99_ms = meter_.step_ms(0.99);
    return p;
  }

  // Null where the engine was closed: messages to a closed engine may still arrive.
  engine_place* find(engine_id id) {
    const auto e = std::ranges::find(engines_, id, [](const auto& x) { return x.served->engine; });
    return e == engines_.end() ? nullptr : &*e;
  }

  using door = admission_control::door;
  struct waiting_load {
    time_point at;
    load_model what;
  };
  struct waiting_nap {
    time_point at;
    nap_engine what;
  };

  const std::shared_ptr<const owner_options> options_;
  const timekeeper& time_;
  std::shared_ptr<board> board_;
  const shared_by_owners shared_;
  const loader::surroundings engines_need_;
  ref<owner_msg> self_;
  std::unique_ptr<timekeeper::timer> timer_, load_timer_;
  outbox outbox_{*shared_.cancel_to_release};
  std::vector<engine_place> engines_;  // that are awake, in the order of their loads and wakes
  engine_sleepers sleepers_;           // the others
  core::shares shares_;                // whose turn it is
  engine_place* stepping_ = nullptr;   // whose step is under way, or has thrown
  std::vector<waiting_load> loads_;
  std::vector<waiting_nap> naps_;
  restart_plan plan_;
  std::string fault_;  // the last failure of the device
  const core::error broken_step_ = core::make_error(core::errc::internal, "a step could not be finished");
  std::vector<core::sequence_view> listed_;
  step_meter meter_;
  time_point publish_at_{}, landmarks_at_{};
  loader loader_;  // last, so that it ends first
};

asio::awaitable<void> run(context<owner_msg> self, std::shared_ptr<owner> o) {
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
  auto mind =
      std::make_shared<owner>(std::move(o), time, board_, std::move(shared), std::move(masks), simulated);
  mail_ = spawn<owner_msg>(where, opt,
                           [mind](context<owner_msg> self) { return run(std::move(self), mind); });
}

gpu_owner::~gpu_owner() { mail_.stop(); }

void gpu_owner::open(model_spec spec, model_progress progress, executor ex,
                     std::function<void(opened)> done) {
  mail_.ask<load_model>(
      asio::bind_executor(ex,
                          [done = std::move(done)](boost::system::error_code lost, opened r) {
                            if (!lost) return done(std::move(r));
                            done(core::make_error(core::errc::internal, "the owner of the device is gone: {}",
                                                  lost.message()));
                          }),
      std::move(spec), std::move(progress));
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
  mail_.ask<nap_engine>(
      asio::bind_executor(ex,
                          [done = std::move(done)](boost::system::error_code lost, core::result<> r) {
                            if (!lost) return done(std::move(r));
                            done(core::make_error(core::errc::internal, "the owner of the device is gone: {}",
                                                  lost.message()));
                          }),
      engine, what);
}

void gpu_owner::set_share(engine_id engine, double weight) { mail_.tell(actors::set_share(engine, weight)); }

}  // namespace weir::actors
