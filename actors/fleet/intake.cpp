#include "actors/fleet/intake.h"

#include <algorithm>
#include <utility>

namespace weir::actors::fleet {

namespace wire = core::fleet;

namespace {

constexpr std::size_t most_peers = 1024;
constexpr core::duration longest_drain = std::chrono::hours(24);
constexpr core::duration between_hellos = std::chrono::milliseconds(25);

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
      {subjects_.hello(), &intake::on_hello},
      {subjects_.finds(), &intake::on_find}};
  for (const auto& [subject, what] : all)
    if (auto fine = listen(subject, what); !fine) return fine;
  // A model that came or went: requests wait for that.
  if (doors_.demand.on)
    models_seen_ = doors_.list.follow(ex_, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (self && self->timer_ && self->time_.now() - self->board_at_ >= between_hellos)
        self->publish_board();
    });
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
  models_seen_.reset();
  end_wishes();
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
  std::string frame;
  if (!order->resume.empty()) frame = whole.empty() ? std::string(job) : std::move(whole);
  order->resume = {};
  take(std::move(*order), std::move(frame), m.answer_to);
}

void intake::on_control(bus::message& m) {
  if (take_order(m)) return;
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

// Whoever may say it may say it often. Who is not answered hears the board of the next tick.
void intake::on_hello(bus::message&) {
  if (time_.now() - board_at_ >= between_hellos) publish_board();
}

void intake::on(const wire::cancel& f, const bus::message&) {
  if (const auto g = find(f.job)) g->stream->cancel(f.why);
}

void intake::on(const wire::pause& f, const bus::message&) {
  if (const auto g = find(f.job)) g->stream->pause(time_.now() + f.longest);
}

void intake::on(const wire::resume& f, const bus::message&) {
  if (const auto g = find(f.job)) g->stream->resume();
}

void intake::on(const wire::probe&, const bus::message& m) {
  if (!m.answer_to.empty()) bus_.publish(m.answer_to, wire::json_of(board()));
}

void intake::on(const wire::crash& f, const bus::message&) {
  const auto g = options_.on_crash ? find(f.job) : nullptr;
  if (!g || g->over()) return void(++now_.broken);
  options_.on_crash();
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
  guest& g = *at->second;
  lose_peer(g);
  if (std::exchange(g.left, false)) left_bytes_ -= g.bytes();
  g.stream->cancel();  // who brings it in may hold it still
  guests_.erase(at);
}

worker_counts intake::counts() const {
  const std::lock_guard held(lock_);
  return shown_;
}

}  // namespace weir::actors::fleet
