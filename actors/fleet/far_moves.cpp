// Where a far job runs: how it is offered, and how it moves.
#include <algorithm>

#include "actors/fleet/far_owner.h"

namespace weir::actors::fleet {

namespace wire = core::fleet;
using core::errc;

namespace {

constexpr std::uint32_t most_hops = 3;  // places that are asked, one after the other

// Whether every worker would refuse the job for this reason.
bool is_final(const core::error& why) {
  switch (why.code) {
    case errc::overloaded:
    case errc::unavailable:
    case errc::busy:
    case errc::internal:
      return false;
    default:
      return true;
  }
}

// Lets the admission of `to` count the job, and no longer that of the job's last place. The admission of the
// last place counts a job that has no place now, so that there the room on the worker's board decides. False:
// `to` has no room.
bool count_at(job_stream::state_block& job, const std::shared_ptr<const model_place>& to,
              const std::string& model) {
  auto& a = *to->admission;
  if (job.taken_by == to) return a.active() <= std::uint64_t{a.batch()} + a.limits().queue;
  if (!a.admit(model, 0)) return false;
  job.taken_by->admission->job_done(0, job.standing);
  job.standing = admission_control::standing::counted;
  job.taken_by = to;
  return true;
}

core::error lost(std::uint32_t moves) {
  return core::make_error(errc::unavailable, "the job has lost its worker {} times, which is once too often",
                          moves + 1);
}

}  // namespace

// Asks the job's worker. `reads` gets the answer with the attempt that was asked for, unless the job is gone.
void far_owner::ask_worker(const job_ptr& j, std::string subject, const std::string& frame,
                           answer_reader reads) {
  bus_.ask(std::move(subject), frame, options_.answer_within, ex_,
           [weak = weak_from_this(), job = std::weak_ptr(j), attempt = j->attempt, reads](bus::answer a) {
             const auto self = weak.lock();
             const auto j = job.lock();
             if (!self || !j || self->stopped_) return;
             ((*self).*reads)(j, attempt, a);
             self->outbox_.flush();
           });
}

// Sends the job to its place. Its answer, or the first tokens, say that it was taken.
void far_owner::offer(const job_ptr& j) {
  j->taken = false;
  const auto longest = std::min(wire::longest_job_frame, bus_.most_bytes());
  auto frames = wire::job_frames(j->order(name_), time_.now(), longest);
  if (!frames) return fail(j, frames.error());
  const auto subject = subjects_.jobs_of(j->where->worker);
  for (std::size_t i = 0; i + 1 < frames->size(); ++i) bus_.publish(subject, (*frames)[i]);
  ask_worker(j, subject, frames->back(), &far_owner::on_answer);
}

void far_owner::on_answer(const job_ptr& j, std::uint8_t attempt, const bus::answer& a) {
  if (j->attempt != attempt || !j->where || !find(j->job.id) || j->taken) return;
  if (a.how == bus::answer::how::nobody_there) {
    const std::string worker = j->where->worker;
    view_.bury(worker);
    return lose(worker);
  }
  if (a.how != bus::answer::how::came) return hop(j, std::nullopt);
  const auto frame = wire::read_control(a.bytes);
  if (const auto* taken = frame ? std::get_if<wire::taken>(&*frame) : nullptr;
      taken && taken->job == j->name()) {
    j->taken = true;
    j->heard = time_.now();
    note_class(*j, taken->arithmetic);
    return pause_again(j);
  }
  if (const auto* no = frame ? std::get_if<wire::refused>(&*frame) : nullptr; no && no->job == j->name())
    return refused(j, no->why);
  ++now_.broken;
  hop(j, std::nullopt);
}

void far_owner::refused(const job_ptr& j, core::error why) {
  if (is_final(why)) return fail(j, std::move(why));
  hop(j, std::move(why));
}

// Another worker is asked. `why`: the refusal; nullopt: there was no answer.
void far_owner::hop(const job_ptr& j, std::optional<core::error> why) {
  ++now_.hops;
  ++j->hops;
  const bool full = why && why->code == errc::overloaded;
  if (full && (!j->why || why->retry_after_ms < j->why->retry_after_ms)) j->why = std::move(why);
  leave(j);
  if (ends_here(j)) return;
  if (j->hops < most_hops && settle(j)) return offer(j);
  // A newcomer that nobody has room for is told so. A job that ran before waits for room.
  if (j->why && !j->ran && (full || j->hops >= most_hops)) return fail(j, *j->why);
  j->tried.clear();  // it waits, for a while, for whoever comes
}

// The worker is lost, or has to be left. What was received goes with the job. Only `lost` counts as a move of
// those that a job may have: an upgrade of all workers ends no job.
void far_owner::move(const job_ptr& j, bool is_lost) {
  if (!j->taken) return hop(j, std::nullopt);
  leave(j);
  if (ends_here(j)) return;
  if (is_lost && j->moves++ >= options_.moves) return fail(j, lost(options_.moves));
  j->ran = true;
  ++now_.moved;
  j->since = time_.now();
  j->hops = 0;
  j->why.reset();
  if (settle(j)) return offer(j);
  j->tried.clear();
}

// Takes the job from its worker: whatever it says of this attempt is void from now on.
void far_owner::leave(const job_ptr& j) {
  if (!j->where) return;
  say_farewell_to(j->where->worker, j->name());
  if (std::exchange(j->adopting, false)) {  // the worker may have given it the next number
    ++j->attempt;
    say_farewell_to(j->where->worker, j->name());
  }
  j->tried.push_back(j->where->worker);
  j->where.reset();
  homeless_.emplace(j->job.id, j);
  j->taken = false;
  j->scores = {.ending = std::move(j->scores.ending)};
  ++j->attempt;
}

// Ends a job without a place where the job cannot go on. True: the job has ended.
bool far_owner::ends_here(const job_ptr& j) {
  if (j->cancelled || j->end->abandoned()) {
    finish(j, j->ending(j->cancelled.value_or(core::finish_reason::cancel)));
  } else if (j->attempt >= 254) {
    fail(j, lost(j->moves));
  } else if (j->has_output() && !j->job.prompt_logprobs) {  // its ending alone was lost
    finish(j, j->ending(core::finish_reason::length));
  } else if (!j->received.empty() && j->job.sampling.mirostat_mode != 0) {
    fail(j, core::make_error(errc::not_supported,
                             "the worker was lost, and a job with mirostat_mode cannot go on elsewhere"));
  } else if (may_not_change_class(*j)) {
    fail(j, core::make_error(errc::class_changed,
                             "the worker was lost or leaves, and no other one of {} has the same arithmetic",
                             j->model()));
  } else {
    return false;
  }
  return true;
}

// Finds a place for the job and counts it there. False: there is none now.
bool far_owner::settle(const job_ptr& j) {
  const std::string& model = j->model();
  auto places = view_.places_of(model);
  std::erase_if(places,
                [&](const auto& p) { return std::ranges::find(j->tried, p.where.worker) != j->tried.end(); });
  auto& end = *j->end;
  for (const auto i : order_of(*j, places)) {
    if (!count_at(end, places[i].seen, model)) continue;
    j->where = places[i].where;
    homeless_.erase(j->job.id);
    return true;
  }
  return false;
}

// The jobs of a worker that is dead, hangs or leaves.
void far_owner::lose(const std::string& worker) {
  std::vector<job_ptr> its;
  for (const auto& [id, j] : jobs_)
    if (j->where && j->where->worker == worker && !j->how) its.push_back(j);
  // Those that run first: their readers wait.
  std::ranges::sort(its, [](const auto& a, const auto& b) {
    return std::tuple(a->received.empty(), a->job.id) < std::tuple(b->received.empty(), b->job.id);
  });
  const bool leaves = view_.leaves(worker);
  if (!view_.has(worker)) {
    ++now_.dead;
    frames_.erase(worker);
  }
  for (const auto& j : its)
    if (find(j->job.id)) move(j, !leaves);
}

// A job that was to pause when its worker was lost pauses in the next one, too.
void far_owner::pause_again(const job_ptr& j) {
  const auto until = j->end->pause_until.load(), now = time_.now();
  if (j->may_pause && until > now) tell(j->where->worker, wire::pause{j->name(), until - now});
}

void far_owner::finish(const job_ptr& j, core::ending how) {
  if (j->where) say_farewell_to(j->where->worker, j->name());
  if (j->first_place->known && !j->ran) now_.found += how.cached_tokens;
  j->end->resume.reset();
  j->end->finish(how);
  slots_.erase(j->slot);
  homeless_.erase(j->job.id);
  jobs_.erase(core::job_id(j->job.id));
}

void far_owner::fail(const job_ptr& j, core::error why) {
  core::ending how = j->ending(core::finish_reason::error);
  how.fault = std::move(why);
  finish(j, std::move(how));
}

}  // namespace weir::actors::fleet
