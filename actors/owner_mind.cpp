#include "actors/owner_mind.h"

#include <algorithm>

#include "core/insist.h"

namespace weir::actors {
namespace {

using core::time_point;

constexpr core::duration publish_every = std::chrono::milliseconds(50);
constexpr core::duration list_landmarks_every = std::chrono::seconds(1);  // while there is work

}  // namespace

owner_mind::owner_mind(owner_options o, const timekeeper& time, std::shared_ptr<board> b,
                       shared_by_owners shared, std::shared_ptr<mask_pool> masks, executor where)
    : options_(std::make_shared<owner_options>(std::move(o))),
      time_(time),
      board_(std::move(b)),
      shared_(std::move(shared)),
      engines_need_{time, std::move(masks), shared_.seen},
      loader_(options_, engines_need_, std::move(where)) {}

// The sinks of the engines' last jobs use the outbox.
owner_mind::~owner_mind() {
  changes_.lose_all();
  engines_.clear();
  outbox_.flush();
}

void owner_mind::begin(const context<owner_msg>& self) {
  self_ = self.self();
  const auto ring = [to = self_] {
    core::insist([&] { to.tell(time_came()); });  // makes the owner look for what is due
  };
  timer_ = time_.make_timer(self.get_executor(), ring);
  load_timer_ = time_.make_timer(self.get_executor(), ring);
  change_timer_ = time_.make_timer(self.get_executor(), ring);
}

void owner_mind::accept(owner_msg& m) {
  core::contained(*shared_.seen, "the owner's mail",
                  [&] { std::visit([this](auto& what) { on(what); }, m); });
}

bool owner_mind::idle() const {
  for (const auto& e : engines_)
    if (e.engine && !e.engine->idle()) return false;
  return true;
}

bool owner_mind::rests() const {
  for (const auto& e : engines_)
    if (e.engine && !e.engine->idle() && !e.rests) return false;
  return true;
}

void owner_mind::step() noexcept {
  if (core::contained(*shared_.seen, "the owner's step", [this] { step_engines(); })) return;
  if (stepping_) stepping_->threw = true;
  core::contained(*shared_.seen, "the owner's restart", [this] { device_failed(broken_step_); });
}

void owner_mind::step_engines() {
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
  if (!changes_.empty()) advance_changes();
  if (options_->audit) check_books(&core::engine::check_integrity);
  outbox_.flush();
  if (time_.now() >= publish_at_ && board_->offer(picture())) publish_at_ = time_.now() + publish_every;
}

time_point owner_mind::due() const {
  auto first = time_point::max();
  for (const auto& e : engines_)
    if (e.engine && !e.engine->idle()) first = std::min(first, e.due);
  return first;
}

void owner_mind::before_wait(time_point until) {
  if (rests()) board_->beat(time_.now(), false);
  say_busy(!rests());
  core::contained(*shared_.seen, "the owner's news", [this, until] {
    outbox_.flush();
    const auto now = time_.now();
    if (now >= publish_at_ || until > now + publish_every) publish();  // the picture holds until then
  });
  timer_->set(until);
}

void owner_mind::before_idling() {
  core::contained(*shared_.seen, "the owner's news", [this] {
    outbox_.flush();
    publish();
    check_books(options_->audit ? &core::engine::check_integrity : &core::engine::check_idle);
  });
  board_->beat(time_.now(), false);
  say_busy(false);
  if (const auto at = plan_.next()) timer_->set(*at);
}

engine_place* owner_mind::choose() {
  engine_place* first = nullptr;
  const auto now = time_.now();
  for (auto& e : engines_) {
    const bool due = e.engine && !e.engine->idle() && e.due <= now;
    shares_.look(e.share, due);
    if (due && (!first || core::shares::before(e.share, first->share))) first = &e;
  }
  return first;
}

bool owner_mind::has_company(const engine_place& e) const {
  const auto now = time_.now();
  return std::ranges::any_of(engines_, [&](const auto& x) { return &x != &e && x.works(now); });
}

void owner_mind::note(engine_place& e, const core::step_report& done) {
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

core::engine* owner_mind::working(engine_id id) {
  auto* const e = find(id);
  return e && e->engine && !e->engine->fault() ? e->engine.get() : nullptr;
}

void owner_mind::on(time_came&) {
  if (plan_.due(time_.now())) (void)start_again();
  if (!changes_.empty()) advance_changes();
  begin_loads();
}

void owner_mind::check_books(std::string (core::engine::*check)() const) {
  for (const auto& e : engines_)
    if (auto wrong = e.engine ? (*e.engine.*check)() : std::string(); !wrong.empty())
      board_->fail("the books do not balance: " + wrong);
}

void owner_mind::publish() {
  publish_at_ = time_.now() + publish_every;
  landmarks_at_ = {};
  board_->publish(picture());
}

board::picture owner_mind::picture() {
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

engine_place* owner_mind::find(engine_id id) {
  const auto e = std::ranges::find(engines_, id, [](const auto& x) { return x.served->engine; });
  return e == engines_.end() ? nullptr : &*e;
}

}  // namespace weir::actors
