#include "net/kept_jobs.h"

#include <algorithm>

#include "net/hub.h"

namespace weir::net {
namespace {

using phase = actors::job_stream::phase;

constexpr std::size_t remembered = 1000;  // expired jobs, as many as the registry has lines
// What an ended job takes beside its log: its stream with the queue.
constexpr std::uint64_t beside_the_log = 8 * 1024;

constexpr follow_refusal expired{"resume_expired", "this response is no longer kept", "response_id"};
constexpr follow_refusal beyond_the_end{"invalid_cursor", "after: the response has fewer tokens", "after"};

bool runs(const actors::job_stream& s) { return s.state() == phase::pending || s.state() == phase::running; }

// Whether the job has ended and its client knows its id, which response.created told.
bool is_resumable(const actors::job_stream& s) {
  return s.state() == phase::done && !s.model().empty() && !goes_on_elsewhere(s);
}

}  // namespace

bool was_handed_over(const actors::outcome& how) {
  return how.fault && how.fault->code == core::errc::handed_over;
}

bool goes_on_elsewhere(const core::error& why) {
  return why.code == core::errc::adopted || why.code == core::errc::handed_over;
}

bool goes_on_elsewhere(const actors::job_stream& s) {
  return s.state() == phase::done && s.ended().fault && goes_on_elsewhere(*s.ended().fault);
}

kept_jobs::kept_jobs(server_state& all) : all_(all), expired_(remembered) {}

kept_jobs::~kept_jobs() {
  while (!ended_.empty()) drop_oldest();
}

kept_jobs::follower::~follower() {
  if (const auto of = std::exchange(of_, nullptr)) jobs_->left(*of, me_);
}

const kept_job& kept_jobs::follower::job() const noexcept { return of_->job; }

void kept_jobs::follower::ack(std::uint32_t seq) {
  me_->acked = std::max(me_->acked, seq);
  jobs_->pause_or_resume(*of_);
}

kept_jobs::follower kept_jobs::keep(kept_job job) {
  const auto r = std::make_shared<record>();
  r->job = std::move(job);
  r->followers.push_back({r->job.as_created.window, 0});
  r->node.push_back(r.get());
  const auto id = r->job.stream->id();
  if (const auto former = jobs_.find(id); former != jobs_.end()) {
    const record_ptr gone = former->second;  // it went on elsewhere
    forget(*gone, false);
  }
  jobs_.emplace(id, r);
  if (r->job.pause_on_lag) {
    r->job.stream->follow([weak = std::weak_ptr(r), me = weak_from_this()] {
      const auto of = weak.lock();
      const auto jobs = me.lock();
      if (of && jobs) jobs->pause_or_resume(*of);
    });
  }
  return follower(shared_from_this(), r, r->followers.begin());
}

std::variant<kept_jobs::follower, follow_refusal> kept_jobs::follow(const core::job_id& id,
                                                                    const actors::principal& who,
                                                                    std::uint64_t after,
                                                                    const ws::follow_wishes& how,
                                                                    bool in_passing) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) {
    const auto known = expired_.begin() + static_cast<std::ptrdiff_t>(std::min(expired_count_, remembered));
    const bool was_here = std::any_of(expired_.begin(), known,
                                      [&](const auto& e) { return e.first == id && who.has(e.second); });
    return was_here ? expired : no_such_job;
  }
  const record_ptr& r = found->second;
  const auto& stream = *r->job.stream;
  if (!who.has(r->job.owner) || stream.state() == phase::refused || goes_on_elsewhere(stream))
    return no_such_job;
  if (after > r->job.stream->published()) return beyond_the_end;
  if (!in_passing && r->followers.size() >= all_.options.limits.followers) return crowded_job;
  const auto options = how.over(r->job.as_created);
  const auto me =
      r->followers.insert(r->followers.end(), {options.window, static_cast<std::uint32_t>(after)});
  pause_or_resume(*r);
  return follower(shared_from_this(), r, me);
}

void kept_jobs::left(record& r, std::list<follower::progress>::iterator who) noexcept {
  r.followers.erase(who);
  pause_or_resume(r);
  if (!r.followers.empty() || r.bytes > 0) return;
  const bool running = runs(*r.job.stream);
  r.leaves_at = all_.service.now() + all_.options.limits.detach_grace;
  if (all_.stopping || (running && r.job.cancel_when_left)) return forget(r, running);
  if (r.node.empty()) return;  // it is in detached_ already, which tick() goes through
  if (!running) return retain(r);
  detached_.splice(detached_.end(), r.node);
}

void kept_jobs::pause_or_resume(record& r) {
  if (!r.job.pause_on_lag) return;
  const std::uint32_t head = r.job.stream->published();
  const auto lags = [&](const follower::progress& f) { return f.window > 0 && head - f.acked >= f.window; };
  const auto keeps_up = [&](const follower::progress& f) {
    return f.window == 0 || head - f.acked <= f.window / 2;
  };
  if (!r.paused && !r.followers.empty() && std::ranges::all_of(r.followers, lags)) {
    r.paused = true;
    r.job.stream->pause(all_.service.now() + longest_pause);
  } else if (r.paused && (r.followers.empty() || std::ranges::any_of(r.followers, keeps_up))) {
    r.paused = false;
    r.job.stream->resume();
  }
}

// Keeps an ended job that nobody follows; forgets it if its client does not know its id. REQUIRES: the job is
// in neither list.
void kept_jobs::retain(record& r) noexcept {
  if (!is_resumable(*r.job.stream)) return forget(r, false);
  r.leaves_at = all_.service.now() + all_.options.limits.retain;
  r.bytes = beside_the_log + r.job.stream->log().memory();
  ended_.splice(ended_.end(), r.node);
  all_.retained_bytes += r.bytes;
  while (room_is_over() && !ended_.empty()) drop_oldest();
}

// Whether ended jobs have to be dropped: they exceed retain_mb, or clients use more than half of their
// memory. So ended jobs are dropped before a request is refused for lack of memory.
bool kept_jobs::room_is_over() const noexcept {
  const core::memory_account& clients = *all_.service.memory();
  return all_.retained_bytes > std::uint64_t{all_.options.limits.retain_mb} << 20 ||
         clients.used() > clients.limit() / 2;
}

void kept_jobs::drop_oldest() noexcept {
  record& r = *ended_.front();
  r.node.splice(r.node.end(), ended_, ended_.begin());
  all_.retained_bytes -= r.bytes;
  forget(r, true);
}

// Lets go of a job, which destroys its record unless somebody follows it. The destruction of the stream of a
// job that still runs cancels the job.
void kept_jobs::forget(record& r, bool was_resumable) noexcept {
  const core::job_id id = r.job.stream->id();
  if (was_resumable) expired_[expired_count_++ % remembered] = {id, r.job.owner};
  if (r.node.empty()) std::erase(detached_, &r);
  // Another one of this id may have come back meanwhile.
  if (const auto at = jobs_.find(id); at != jobs_.end() && at->second.get() == &r) jobs_.erase(at);
}

void kept_jobs::tick() {
  const auto now = all_.service.now();
  for (auto at = detached_.begin(); at != detached_.end();) {
    record& r = **at;
    const bool running = runs(*r.job.stream);
    if (r.followers.empty() && running && now < r.leaves_at) {
      ++at;
      continue;
    }
    if (r.followers.empty() && running && r.job.ending_is_kept) {
      r.job.stream->cancel();
      ++at;
      continue;
    }
    r.node.splice(r.node.end(), detached_, at++);
    if (!r.followers.empty()) continue;
    if (running)
      forget(r, true);
    else
      retain(r);
  }
  while (!ended_.empty() && (ended_.front()->leaves_at <= now || room_is_over())) drop_oldest();
}

void kept_jobs::release() {
  while (!ended_.empty()) drop_oldest();
  for (record* r : std::exchange(detached_, {})) forget(*r, false);
}

}  // namespace weir::net
