// What workers tell a gateway: tokens, endings, boards, and that they do not know a job.
#include <algorithm>

#include "actors/fleet/far_owner.h"

namespace weir::actors::fleet {

namespace wire = core::fleet;

namespace {

constexpr core::duration room_after = std::chrono::milliseconds(2);  // a shard has drained a queue by then
constexpr core::duration ask_every = std::chrono::milliseconds(50);  // a worker at most

}  // namespace

core::result<> far_owner::listen(std::string subject, void (far_owner::*what)(bus::message&)) {
  auto ear = bus_.subscribe(std::move(subject), ex_, [weak = weak_from_this(), what](bus::message m) {
    const auto self = weak.lock();
    if (!self || self->stopped_) return;
    ((*self).*what)(m);
    self->outbox_.flush();
  });
  if (!ear) return ear.error();
  ears_.push_back(std::move(*ear));
  return {};
}

void far_owner::on_tokens(bus::message& m) {
  if (!frame_.read(m.bytes)) return void(++now_.broken);
  if (!view_.has(frame_.worker)) return void(++now_.void_news);  // it was given up, or never was
  ++now_.frames;
  auto& w = frames_[frame_.worker];
  if (frame_.serial > w.next) w.gap = true;
  w.next = std::max(w.next, frame_.serial + 1);
  for (const auto& n : frame_.jobs) take_news(n);
  if (w.gap && time_.now() - w.asked >= ask_every) ask_again(frame_.worker, w);
}

void far_owner::take_news(const wire::job_news& n) {
  const auto at = slots_.find(n.slot);
  if (at == slots_.end()) return void(++now_.void_news);
  const job_ptr j = at->second;
  if (j->attempt != n.attempt || !j->where || j->where->worker != frame_.worker)
    return void(++now_.void_news);
  if (!std::exchange(j->taken, true)) {
    note_class(*j, 0);
    pause_again(j);
  }
  j->heard = time_.now();
  switch (j->take(n, frame_)) {
    case far_job::news::gap:
      frames_[frame_.worker].gap = true;
      break;
    case far_job::news::fresh:
      write_or_wait(j);
      break;
    case far_job::news::unscored:
      write_or_wait(j);
      ask_scores(j);
      break;
    case far_job::news::nothing:
      break;
  }
}

// A stream's queue has room for so many tokens; what is left waits for its shard.
void far_owner::write_or_wait(const job_ptr& j) {
  if (!find(j->job.id)) return;
  if (j->write()) {
    if (j->how) finish(j, *j->how);
    return;
  }
  if (std::exchange(j->waits_for_room, true)) return;
  waiting_.push_back(j);
  room_timer_->set(time_.now() + room_after);
}

void far_owner::ask_again(const std::string& worker, wire_state& w) {
  w.gap = false;
  w.asked = time_.now();
  wire::again f{name_, {}};
  const auto send = [&] {
    if (f.jobs.empty()) return;
    ++now_.asked_again;
    tell(worker, f);
    f.jobs.clear();
  };
  for (const auto& [id, j] : jobs_) {
    if (!j->where || j->where->worker != worker || !j->taken || j->how) continue;
    f.jobs.push_back({j->name(), static_cast<std::uint32_t>(j->received.size())});
    if (f.jobs.size() == wire::most_named) send();
  }
  send();
}

void far_owner::on_answers(bus::message& m) {
  if (wire::kind_of(m.bytes) == wire::frame_kind::listed) {
    const auto part = wire::read_listed(m.bytes);
    if (!part) return void(++now_.broken);
    if (!lists_.take(*part)) ++now_.void_news;
    return look_after_lists();
  }
  const auto frame = wire::read_control(m.bytes);
  if (const auto* found = frame ? std::get_if<wire::found>(&*frame) : nullptr) {
    if (!searches_.take(*found, time_.now())) ++now_.void_news;
    return;
  }
  if (const auto* adopted = frame ? std::get_if<wire::adopted>(&*frame) : nullptr)
    return on_adopted(*adopted);
  const auto* gone = frame ? std::get_if<wire::gone>(&*frame) : nullptr;
  if (!gone) return void(++now_.broken);
  for (const auto& n : gone->jobs) {
    const auto j = find(n.id);
    if (j && j->name() == n && j->where && j->where->worker == gone->worker && !j->how) move(j, true);
  }
}

void far_owner::on_board(bus::message& m) {
  if (wire::kind_of(m.bytes)) {
    const auto n = wire::read_landmarks(m.bytes);
    if (!n || m.subject != subjects_.board_of(n->worker)) return void(++now_.broken);
    return view_.see(*n);
  }
  auto b = wire::read_board(m.bytes);
  if (!b || m.subject != subjects_.board_of(b->worker)) return void(++now_.broken);
  take_board(std::move(*b));
}

void far_owner::take_board(wire::fleet_board b) {
  const std::string worker = b.worker;
  const auto own = b.gateways.find(name_);
  const std::uint64_t sent = own == b.gateways.end() ? 0 : own->second.frames;
  if (view_.see(std::move(b), time_.now())) lose(worker);
  look_after_demand();
  if (!view_.has(worker)) return;  // there are too many
  auto& w = frames_[worker];
  w.sent = std::max(w.sent, sent);
}

}  // namespace weir::actors::fleet
