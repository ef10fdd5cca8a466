// How another gateway gets a job: it asks all workers for the job, and adopts it.
#include <algorithm>
#include <utility>

#include "actors/fleet/intake.h"

namespace weir::actors::fleet {

namespace wire = core::fleet;

// A gateway that names the job's id and the job's key is answered. The worker is silent to all others. Those
// who name the job of another key are counted: most questions are for jobs that other workers have.
void intake::on_find(bus::message& m) {
  if (wire::kind_of(m.bytes) == wire::frame_kind::list) return on_list(m);
  const auto frame = wire::read_control(m.bytes);
  const auto* f = frame ? std::get_if<wire::find>(&*frame) : nullptr;
  if (!f) return void(++now_.broken);
  const auto now = time_.now();
  const auto at = guests_.find(f->id);
  const auto g = at == guests_.end() ? nullptr : at->second;
  if (!g) return;
  if (g->key != f->key) return void(++now_.silent);
  if (g->frame.empty() || !finds_.take(now) || !found_bytes_.take(now, g->frame.size())) return;
  wire::found head;
  head.job = g->name;
  head.question = f->question;
  head.worker = name_;
  head.model = g->model;
  head.engine = g->engine;
  head.since = now - g->received;
  head.tokens = g->tokens();
  head.ended = g->over();
  const auto longest = std::min(wire::longest_job_frame, bus_.most_bytes());
  for (const auto& part : wire::found_frames(head, g->frame, longest))
    bus_.publish(subjects_.answers_to(f->gateway), part);
  ++now_.found;
}

// A job of another gateway is not told to this one.
void intake::on(const wire::again& f, const bus::message&) {
  std::vector<job_name> unknown, elsewhere;
  for (const auto& place : f.jobs) {
    const auto at = guests_.find(place.job.id);
    const auto g = at == guests_.end() ? nullptr : at->second;
    const bool own = g && g->gateway == f.gateway;
    if (own && g->name == place.job) {
      ++now_.told_again;
      g->tell_again(place.after);
      note(g);
    } else if (g && !own && !g->gateway.empty() && g->name.attempt >= place.job.attempt) {
      elsewhere.push_back(place.job);
    } else {
      unknown.push_back(place.job);
    }
  }
  if (!unknown.empty())
    bus_.publish(subjects_.answers_to(f.gateway), wire::frame_of(wire::gone{name_, std::move(unknown)}));
  if (!elsewhere.empty()) tell_adopted(f.gateway, std::move(elsewhere));
}

// The last adopter has the job. Whoever had it before is told so, and what it says of the job is void, since
// the job has another attempt from now on.
void intake::on(const wire::adopt& f, const bus::message& m) {
  const auto g = guest_for(f);
  auto* const p = g ? peer_of(f.gateway) : nullptr;
  if (!p) {
    if (guests_.contains(f.job.id)) ++now_.silent;
    return answer(m.answer_to, wire::gone{name_, {f.job}});
  }
  p->heard = time_.now();
  if (g->gateway != f.gateway || g->slot != f.slot) {
    if (!g->gateway.empty() && g->gateway != f.gateway) tell_adopted(g->gateway, {g->name});
    lose_peer(*g);
    if (std::exchange(g->left, false)) left_bytes_ -= g->bytes();
    ++p->jobs;
    g->gateway = f.gateway;
    g->slot = f.slot;
    ++g->name.attempt;
    g->ended.reset();
    ++now_.adopted;
  }
  g->tell_again(f.after);
  answer(m.answer_to, wire::taken{g->name, 0, 0});
  note(g);
}

// The job that a gateway adopts. Null: the worker has no job of this name and key.
std::shared_ptr<guest> intake::guest_for(const wire::adopt& f) const {
  constexpr std::uint8_t last_attempt = 255;
  const auto at = guests_.find(f.job.id);
  if (at == guests_.end()) return nullptr;
  const auto& g = at->second;
  const bool may = g->key == f.key && g->name.attempt >= f.job.attempt && g->name.attempt < last_attempt;
  return may ? g : nullptr;
}

void intake::tell_adopted(const std::string& gateway, std::vector<job_name> jobs) {
  bus_.publish(subjects_.answers_to(gateway), wire::frame_of(wire::adopted{name_, std::move(jobs)}));
}

void intake::on(const wire::drop& f, const bus::message&) {
  for (const auto& n : f.jobs) {
    const auto g = find(n);
    if (!g) continue;
    if (g->over() && !g->frame.empty())
      leave(g);
    else
      forget(n.id);
  }
}

// Keeps an ended job that its gateway does not need any more.
void intake::leave(const std::shared_ptr<guest>& g) {
  if (std::exchange(g->left, true)) return;
  lose_peer(*g);
  g->had_by = std::exchange(g->gateway, {});
  if (!g->ended) g->ended = time_.now();
  left_.push_back(g);
  left_bytes_ += g->bytes();
  while (left_bytes_ > most_left) {
    const auto oldest = left_.front().lock();
    left_.pop_front();
    if (oldest && oldest->left && find(oldest->name) == oldest) forget(oldest->name.id);
  }
  while (!left_.empty() && left_.front().expired()) left_.pop_front();
}

void intake::lose_peer(guest& g) {
  const auto p = peers_.find(g.gateway);
  if (p != peers_.end()) p->second.jobs -= std::min(p->second.jobs, 1u);
}

}  // namespace weir::actors::fleet
