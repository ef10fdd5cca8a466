#include "actors/fleet/far_owner.h"

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <limits>

#include "actors/fleet/random_numbers.h"
#include "actors/runtime/context.h"
#include "actors/runtime/spawn.h"
#include "core/insist.h"

namespace weir::actors::fleet {

namespace asio = boost::asio;
namespace wire = core::fleet;
using core::time_point;

namespace {

constexpr core::duration tick_every = std::chrono::milliseconds(50);
// After these a job without a place ends: one that is new, and one that ran before.
constexpr core::duration homeless_for = std::chrono::seconds(10), moved_for = std::chrono::seconds(60);
constexpr std::size_t mailbox_size = std::size_t{1} << 17;
constexpr core::duration quiet_for = std::chrono::seconds(1);  // then a worker is asked for a job's news
constexpr core::duration farewells_kept = std::chrono::minutes(1);
constexpr std::size_t most_farewells = 4096;  // of a worker

}  // namespace

far_owner::far_owner(bus& b, service_doors doors, const timekeeper& time, std::vector<far_model> models,
                     gateway_options o, std::string name, executor ex)
    : bus_(b),
      doors_(std::move(doors)),
      time_(time),
      options_(std::move(o)),
      name_(std::move(name)),
      subjects_(options_.cell),
      ex_(std::move(ex)),
      view_(doors_.list, *doors_.seen, std::move(models), options_, name_,
            [this](far_engine where) { return std::make_shared<far_port>(mail_, std::move(where)); }),
      demand_(std::make_shared<far_demand>(
          far_demand::parts{bus_, time_, doors_.list, view_, subjects_, options_, now_, name_, ex_})),
      outbox_(*doors_.cancel_to_release),
      searches_(doors_.memory),
      lists_(doors_.memory, name_),
      questions_(random_numbers()) {}

void far_owner::open_mailbox() {
  options opt;
  opt.name = "fleet";
  opt.mailbox = mailbox_size;
  opt.restart = {.when = restart_when::on_error, .max = std::numeric_limits<int>::max(), .first_delay = {}};
  mail_ = spawn<far_message>(ex_, opt,
                             [weak = weak_from_this()](context<far_message> self) -> asio::awaitable<void> {
                               while (auto m = co_await self.async_receive()) {
                                 const auto mind = weak.lock();
                                 if (!mind) co_return;
                                 std::visit([&](auto& what) { mind->on(what); }, *m);
                                 mind->outbox_.flush();
                               }
                             });
}

core::result<> far_owner::begin() {
  timer_ = time_.make_timer(ex_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->tick();
  });
  room_timer_ = time_.make_timer(ex_, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    for (const auto& w : std::exchange(self->waiting_, {})) {
      const auto j = w.lock();
      if (!j) continue;
      j->waits_for_room = false;
      self->write_or_wait(j);
    }
    self->outbox_.flush();
  });
  search_timer_ = time_.make_timer(ex_, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->look_after_searches();
    self->outbox_.flush();
  });
  list_timer_ = time_.make_timer(ex_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->look_after_lists();
  });
  view_.publish();
  const std::pair<std::string, void (far_owner::*)(bus::message&)> all[] = {
      {subjects_.tokens_to(name_), &far_owner::on_tokens},
      {subjects_.answers_to(name_), &far_owner::on_answers},
      {subjects_.all_boards(), &far_owner::on_board}};
  for (const auto& [subject, what] : all)
    if (auto fine = listen(subject, what); !fine) return fine;
  bus_.publish(subjects_.hello(), {});
  tick();
  return {};
}

void far_owner::stop() {
  stopped_ = true;
  ears_.clear();
  timer_.reset();
  room_timer_.reset();
  search_timer_.reset();
  list_timer_.reset();
  lists_.end_all();
  look_after_orders();
  demand_->stop();
  for (const auto& n : searches_.names()) end_search(n, job_search::end::nothing);
  mail_.stop();
  while (!jobs_.empty())
    fail(jobs_.begin()->second, core::make_error(core::errc::unavailable, "the gateway has ended"));
  say_farewell();
  outbox_.flush();
  doors_.list.publish_far({});
}

// ---- the mailbox

void far_owner::on(far_submit& m) {
  m.end->out = &outbox_;
  const bool may_pause = m.end->pausable.has_value();
  const auto j = add(std::move(m.job), std::move(m.end), std::move(m.where), may_pause);
  if (stopped_) return fail(j, core::make_error(core::errc::unavailable, "the gateway has ended"));
  if (!view_.has(j->where->worker)) return hop(j, std::nullopt);
  offer(j);
}

far_owner::job_ptr far_owner::add(core::job job, job_stream::owner_end end, far_engine where,
                                  bool may_pause) {
  auto j = std::make_shared<far_job>();
  j->job = std::move(job);
  j->job.constraint.reset();  // the worker compiles it again
  j->job.prompt_ids = {};
  j->received = std::exchange(j->job.spoken, {});
  j->end = std::move(end);
  j->first_place = j->end->taken_by;
  j->may_pause = may_pause;
  j->where = std::move(where);
  j->since = time_.now();
  while (slots_.contains(next_slot_)) ++next_slot_;
  j->slot = next_slot_++;
  slots_.emplace(j->slot, j);
  jobs_.emplace(j->job.id, j);
  return j;
}

void far_owner::on(far_cancel& m) {
  const auto j = find(m.id);
  if (!j || j->cancelled || j->how) return;
  if (j->scores.ending) {
    j->take_ending();
    return write_or_wait(j);
  }
  j->cancelled = m.why;
  if (!j->where) return finish(j, j->ending(m.why));
  tell(j->where->worker, wire::cancel{j->name(), m.why});
}

void far_owner::on(far_pause& m) {
  m.end->pause_told.store(false);  // before the wish is read: a later wish sends a message of its own
  const auto until = m.end->pause_until.load();
  const auto j = find(m.end->id);
  if (!j || !j->where) return;
  if (until == time_point::min())
    tell(j->where->worker, wire::resume{j->name()});
  else
    tell(j->where->worker, wire::pause{j->name(), until - time_.now()});
}

void far_owner::on(far_wish& m) {
  demand_->take(std::move(m.what));
  if (stopped_) return demand_->stop();
  look_after_demand();
}

void far_owner::on(far_end_wishes& m) { demand_->refuse_all(m.why); }

void far_owner::kill_worker_of(const core::job_id& id) {
  const auto j = find(id);
  if (j && j->where && j->taken) tell(j->where->worker, wire::crash{j->name()});
}

far_owner::job_ptr far_owner::find(const core::job_id& id) const {
  const auto at = jobs_.find(id);
  return at == jobs_.end() ? nullptr : at->second;
}

void far_owner::tell(const std::string& worker, const wire::control& what) {
  bus_.publish(subjects_.control_of(worker), wire::frame_of(what));
}

// ---- time

void far_owner::tick() {
  const auto now = time_.now();
  look_after_workers();
  look_after_frames();
  look_after_homeless();
  look_after_demand();
  look_after_hand_over();
  look_after_orders();
  look_after_files();
  say_farewell();
  if (now >= pulse_at_) {
    pulse_at_ = now + options_.pulse_every;
    pulse();
  }
  outbox_.flush();
  show();
  if (timer_) timer_->set(now + tick_every);
}

void far_owner::look_after_workers() {
  const auto now = time_.now();
  if (bus_.state() != bus::link::up) return view_.forgive(now);
  const auto found = view_.judge(now);
  for (const auto& name : found.suspected) probe(name);
  for (const auto& name : found.dead) lose(name);
}

void far_owner::probe(const std::string& worker) {
  bus_.ask(subjects_.control_of(worker), wire::frame_of(wire::probe{}), options_.answer_within, ex_,
           [weak = weak_from_this(), worker](bus::answer a) {
             const auto self = weak.lock();
             if (!self || self->stopped_) return;
             if (a.how == bus::answer::how::came) return self->on_probed(worker, a.bytes);
             if (a.how != bus::answer::how::nobody_there) return;
             self->view_.bury(worker);
             self->lose(worker);
             self->outbox_.flush();
           });
}

void far_owner::on_probed(const std::string& worker, std::string_view json) {
  auto b = wire::read_board(json);
  if (!b || b->worker != worker) return void(++now_.broken);
  take_board(std::move(*b));
}

// A job whose worker has stopped telling news although its board counts frames is asked for again.
void far_owner::look_after_frames() {
  const auto now = time_.now();
  std::erase_if(frames_, [&](const auto& f) { return !view_.has(f.first); });
  for (auto& [worker, w] : frames_) {
    const bool behind = w.sent >= w.next;
    if (w.behind && behind) w.gap = true;
    w.behind = behind;
    if (w.gap && now - w.asked >= tick_every) ask_again(worker, w);
  }
}

void far_owner::look_after_homeless() {
  const auto now = time_.now();
  std::vector<job_ptr> homeless;
  for (const auto& [id, j] : homeless_) homeless.push_back(j);
  for (const auto& j : homeless) {
    if (ends_here(j)) continue;
    if (j->job.deadline && now >= *j->job.deadline) {
      finish(j, j->ending(core::finish_reason::timeout));
    } else if (bus_.state() == bus::link::up && settle(j)) {
      offer(j);
    } else if (now - j->since > longest_wait(*j)) {
      fail(j, core::make_error(core::errc::unavailable, "no worker of the fleet has {} now", j->model()));
    }
  }
}

// Where a worker could load the job's model, the job waits as a request does.
core::duration far_owner::longest_wait(const far_job& j) const {
  const core::duration usual = j.ran ? moved_for : homeless_for;
  return view_.could_load(j.model()) ? std::max(usual, doors_.demand.load_wait) : usual;
}

// A job that nobody takes since no worker loads its model ends. One that ran before waits on, for a while.
void far_owner::look_after_demand() {
  if (stopped_ || (homeless_.empty() && demand_->idle())) return;
  std::set<std::string> models;
  for (const auto& [id, j] : homeless_) models.insert(j->model());
  const auto lost = demand_->look_after(models);
  std::vector<job_ptr> fresh;
  for (const auto& [id, j] : homeless_)
    if (!j->ran && lost.contains(j->model())) fresh.push_back(j);
  for (const auto& j : fresh) fail(j, lost.at(j->model()));
}

// A cancel is repeated until the job's ending has come. A worker that says nothing of a job is asked again,
// since an `again` frame and the answer to it may be lost as well.
void far_owner::pulse() {
  const auto now = time_.now();
  bus_.publish(subjects_.pulse_of(name_),
               wire::frame_of(wire::pulse{name_, static_cast<std::uint32_t>(jobs_.size())}));
  for (const auto& [id, j] : jobs_) {
    if (!j->where) continue;
    if (j->cancelled) tell(j->where->worker, wire::cancel{j->name(), *j->cancelled});
    if (!j->taken || j->how || now - j->heard < quiet_for) continue;
    j->heard = now;
    frames_[j->where->worker].gap = true;
  }
}

void far_owner::say_farewell_to(const std::string& worker, const wire::job_name& job) {
  auto& all = farewells_[worker];
  if (all.size() < most_farewells) all.push_back({job, time_.now()});
}

// A worker that is not there hears it when it is back, unless it has cut the gateway's jobs off meanwhile.
void far_owner::say_farewell() {
  for (auto& [worker, all] : farewells_) {
    std::erase_if(all, [&](const farewell& one) { return time_.now() - one.since > farewells_kept; });
    if (all.empty() || (!stopped_ && !view_.has(worker))) continue;
    wire::drop f;
    for (auto& one : all) {
      if (f.jobs.size() == wire::most_named) break;
      f.jobs.push_back(one.job);
      --one.times;
    }
    tell(worker, f);
    std::erase_if(all, [](const farewell& one) { return one.times == 0; });
  }
  std::erase_if(farewells_, [](const auto& f) { return f.second.empty(); });
}

void far_owner::show() {
  now_.jobs = static_cast<std::uint32_t>(jobs_.size());
  now_.known = view_.promised();
  now_.waiting = static_cast<std::uint32_t>(demand_->waiting());
  auto workers = view_.look(time_.now());
  const std::lock_guard held(lock_);
  shown_ = now_;
  shown_workers_ = std::move(workers);
}

gateway_counts far_owner::counts() const {
  const std::lock_guard held(lock_);
  return shown_;
}

std::vector<seen_worker> far_owner::workers() const {
  const std::lock_guard held(lock_);
  return shown_workers_;
}

}  // namespace weir::actors::fleet
