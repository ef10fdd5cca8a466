#include "actors/fleet/intake.h"

#include <algorithm>

namespace weir::actors::fleet {

namespace wire = core::fleet;

namespace {

constexpr std::size_t most_peers = 1024;
constexpr core::duration longest_drain = std::chrono::hours(24);

}  // namespace

intake::intake(bus& b, service_doors doors, const timekeeper& time, worker_options o, std::string name,
               executor ex)
    : bus_(b),
      doors_(std::move(doors)),
      time_(time),
      options_(std::move(o)),
      name_(std::move(name)),
      subjects_(options_.cell),
      ex_(std::move(ex)) {}

core::result<> intake::begin() {
  timer_ = time_.make_timer(ex_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->tick();
  });
  const std::pair<std::string, void (intake::*)(bus::message&)> all[] = {
      {subjects_.jobs_of(name_), &intake::on_job},
      {subjects_.control_of(name_), &intake::on_control},
      {subjects_.all_pulses(), &intake::on_pulse},
      {subjects_.hello(), &intake::on_hello}};
  for (const auto& [subject, what] : all)
    if (auto fine = listen(subject, what); !fine) return fine;
  tick();
  return {};
}

core::result<> intake::listen(std::string subject, void (intake::*what)(bus::message&)) {
  auto ear = bus_.subscribe(std::move(subject), ex_, [weak = weak_from_this(), what](bus::message m) {
    const auto self = weak.lock();
    if (self && !self->ears_.empty()) ((*self).*what)(m);
  });
  if (!ear) return ear.error();
  ears_.push_back(std::move(*ear));
  return {};
}

void intake::stop() {
  ears_.clear();
  timer_.reset();
  guests_.clear();
  news_.clear();
  peers_.clear();
}

void intake::on_job(bus::message& m) {
  const auto kind = wire::kind_of(m.bytes);
  const std::string_view body = kind ? wire::body_of(m.bytes) : std::string_view();
  std::string whole;
  std::string_view job = body;
  if (kind == wire::frame_kind::job_part) {
    const auto part = wire::read_job_part(body);
    if (!part) return void(++now_.broken);
    auto all = shelf_.add(*part, time_.now());
    if (!all) return;  // the gateway asks again where one was lost
    whole = std::move(*all);
    job = whole;
  } else if (kind != wire::frame_kind::job) {
    return void(++now_.broken);
  }
  auto order = wire::read_job(job, time_.now());
  if (!order) return void(++now_.broken);
  take(std::move(*order), m.answer_to);
}

void intake::on_control(bus::message& m) {
  const auto frame = wire::read_control(m.bytes);
  if (!frame) return void(++now_.broken);
  std::visit([&](const auto& f) { on(f, m); }, *frame);
}

void intake::on_pulse(bus::message& m) {
  const auto frame = wire::read_control(m.bytes);
  const auto* pulse = frame ? std::get_if<wire::pulse>(&*frame) : nullptr;
  if (!pulse) return void(++now_.broken);
  // A gateway without jobs here is not kept: anybody may say that there is one.
  if (const auto p = peers_.find(pulse->gateway); p != peers_.end()) p->second.heard = time_.now();
}

void intake::on_hello(bus::message&) { publish_board(); }

void intake::on(const wire::cancel& f, const bus::message&) {
  if (const auto g = find(f.job)) g->stream->cancel(f.why);
}

void intake::on(const wire::pause& f, const bus::message&) {
  if (const auto g = find(f.job)) g->stream->pause(time_.now() + f.longest);
}

void intake::on(const wire::resume& f, const bus::message&) {
  if (const auto g = find(f.job)) g->stream->resume();
}

// A job of another gateway is not told to this one.
void intake::on(const wire::again& f, const bus::message&) {
  wire::gone unknown{name_, {}};
  for (const auto& place : f.jobs) {
    const auto g = find(place.job);
    if (!g || g->gateway != f.gateway) {
      unknown.jobs.push_back(place.job);
      continue;
    }
    ++now_.told_again;
    g->tell_again(place.after);
    note(g);
  }
  if (!unknown.jobs.empty()) bus_.publish(subjects_.answers_to(f.gateway), wire::frame_of(unknown));
}

void intake::on(const wire::adopt& f, const bus::message& m) {
  const auto g = find(f.job);
  auto* const p = g && g->key == f.key ? peer_of(f.gateway) : nullptr;
  if (!p) return answer(m.answer_to, wire::gone{name_, {f.job}});
  if (auto* before = peer_of(g->gateway)) before->jobs -= std::min(before->jobs, 1u);
  ++p->jobs;
  p->heard = time_.now();
  g->gateway = f.gateway;
  g->slot = f.slot;
  g->tell_again(f.after);
  answer(m.answer_to, wire::taken{f.job, 0, 0});
  note(g);
}

void intake::on(const wire::drop& f, const bus::message&) {
  for (const auto& n : f.jobs)
    if (find(n)) forget(n.id);
}

void intake::on(const wire::probe&, const bus::message& m) {
  if (!m.answer_to.empty()) bus_.publish(m.answer_to, wire::json_of(board()));
}

void intake::on(const wire::drain& f, const bus::message& m) {
  drain_until(time_.now() + std::clamp(f.limit, core::duration(), longest_drain));
  on(wire::probe(), m);
}

void intake::on(const wire::undrain&, const bus::message& m) {
  if (!ends_) {
    state_ = wire::worker_state::ready;
    drain_until_ = leave_at_ = core::time_point::max();
    publish_board();
  }
  on(wire::probe(), m);
}

void intake::answer(const std::string& to, const wire::control& what) {
  if (!to.empty()) bus_.publish(to, wire::frame_of(what));
}

// Null: there are too many.
intake::peer* intake::peer_of(const std::string& gateway) {
  const auto at = peers_.find(gateway);
  if (at != peers_.end()) return &at->second;
  if (peers_.size() >= most_peers) return nullptr;
  return &peers_.emplace(gateway, peer(name_)).first->second;
}

std::shared_ptr<guest> intake::find(const job_name& n) const {
  const auto at = guests_.find(n.id);
  return at != guests_.end() && at->second->name == n ? at->second : nullptr;
}

void intake::forget(const core::job_id& id) {
  const auto at = guests_.find(id);
  if (at == guests_.end()) return;
  if (const auto p = peers_.find(at->second->gateway); p != peers_.end())
    p->second.jobs -= std::min(p->second.jobs, 1u);
  at->second->stream->cancel();  // who brings it in may hold it still
  guests_.erase(at);
}

worker_counts intake::counts() const {
  const std::lock_guard held(lock_);
  return shown_;
}

}  // namespace weir::actors::fleet
