// How a gateway takes over a job that another gateway had: it looks for the job, makes the job's stream, and
// adopts it from its worker.
#include <algorithm>
#include <boost/asio/post.hpp>

#include "actors/fleet/far_owner.h"
#include "actors/fleet/revival.h"
#include "core/insist.h"

namespace weir::actors::fleet {

namespace asio = boost::asio;
namespace wire = core::fleet;
using core::errc;
using end = job_search::end;

namespace {

constexpr core::duration look_every = std::chrono::milliseconds(10);
constexpr unsigned most_claims = 3;  // times that a worker is told to give a job

void answer(const job_search& to, job_search::answer how) {
  core::insist([&] {
    asio::post(to.shard, [done = to.done, how = std::move(how)]() mutable { done(std::move(how)); });
  });
}
void answer(const job_search& to, end how, std::optional<core::error> why = {}) {
  job_search::answer a;
  a.how = how;
  a.why = std::move(why);
  answer(to, std::move(a));
}

core::error cannot_ask() {
  return core::make_error(errc::unavailable, "the gateway cannot ask the fleet for a response now");
}

core::error elsewhere() {
  return core::make_error(errc::adopted, "this response goes on elsewhere: resume it again");
}

}  // namespace

std::shared_ptr<job_finder> far_owner::finder() const { return std::make_shared<far_finder>(mail_); }

void far_owner::on(far_find& m) {
  const job_search& s = m.what;
  if (find(s.id)) return answer(s, end::here);
  if (stopped_ || bus_.state() != bus::link::up) return answer(s, end::refused, cannot_ask());
  const auto now = time_.now();
  const std::uint64_t question = questions_();
  const auto joined = searches_.begin(s, question, now);
  if (!joined) {
    ++now_.crowded;
    return answer(s, end::refused, joined.error());
  }
  if (*joined) return;
  ++now_.searches;
  ask_fleet({s.id, s.who.key, question, name_});
  search_timer_->set(now + look_every);
}

void far_owner::ask_fleet(const wire::find& f) { bus_.publish(subjects_.finds(), wire::frame_of(f)); }

void far_owner::look_after_searches() {
  auto due = searches_.look(time_.now());
  for (auto& f : due.again) {
    f.gateway = name_;
    ask_fleet(f);
  }
  for (const auto& old : due.older) say_farewell_to(old.worker, old.job);
  for (const auto& n : due.over) end_search(n, end::nothing);
  for (auto& [n, what] : due.found) revive(n, std::move(what));
  if (!searches_.empty()) search_timer_->set(time_.now() + look_every);
}

// All who still wait for an answer get this one.
void far_owner::end_search(const far_searches::name& n, end how, std::optional<core::error> why) {
  for (const auto& one : searches_.end(n)) answer(one, how, why);
}

// The job was found: a text thread reads it, and the shard of the first who asked makes its stream.
void far_owner::revive(const far_searches::name& n, far_searches::whole what) {
  const job_search& first = searches_.first(n);
  const auto place = view_.place_at({what.head.worker, what.head.model, what.head.engine});
  auto model = doors_.list.find(what.head.model);
  if (!place || !model || (*model)->name != what.head.model) return end_search(n, end::nothing);
  auto r = std::make_shared<revival>();
  r->search = n;
  r->found = std::move(what);
  r->at = time_.now();
  r->accounts = first.accounts;
  r->model = std::move(*model);
  r->place = place->seen;
  const auto fails = [self = weak_from_this(), ex = ex_, n](core::error why) {
    core::insist([&] {
      asio::post(ex, [self, n, why] {
        if (const auto alive = self.lock()) alive->not_revived(n, why);
      });
    });
  };
  doors_.texts.post({.key = n.who.key,
                     .bytes = r->found.job.size(),
                     .run =
                         [self = weak_from_this(), r, fails, first](core::turn&) {
                           if (auto fine = read_revival(*r); !fine) return fails(fine.error());
                           core::insist([&] {
                             asio::post(first.shard, [self, r, fails, first] {
                               if (const auto alive = self.lock()) alive->bring_back(*r, first, fails);
                             });
                           });
                         },
                     .refuse = fails,
                     .unwanted = {}});
}

void far_owner::not_revived(const far_searches::name& n, const core::error& why) {
  if (why.code == errc::not_found) return end_search(n, end::nothing);
  end_search(n, end::refused, why);
}

// On the shard. The others who asked hear of it once the job is adopted.
void far_owner::bring_back(revival& r, const job_search& to, const std::function<void(core::error)>& fails) {
  auto made = begin_revival(r, doors_, mail_, to.shard);
  if (!made) return fails(made.error());
  job_search::answer a;
  a.how = end::found;
  a.job = std::move(*made);
  to.done(std::move(a));
}

void far_owner::on(far_adopt& m) {
  auto waiting = searches_.end({m.job.id, m.for_whom});
  if (!waiting.empty()) waiting.erase(waiting.begin());  // its shard has the job
  for (const auto& one : waiting) answer(one, end::here);
  m.end->out = &outbox_;
  if (find(m.job.id)) {  // the key and a user of it have looked for the job at the same time
    core::ending twice;
    twice.reason = core::finish_reason::error;
    twice.fault = elsewhere();
    return m.end->finish(twice);
  }
  const auto j = add(std::move(m.job), std::move(m.end), std::move(m.where), m.may_pause);
  j->attempt = m.attempt;
  j->adopting = j->ran = true;
  begin_class_of_adopted(*j, m.began_on);
  ++now_.adopted;
  if (stopped_) return fail(j, core::make_error(errc::unavailable, "the gateway has ended"));
  j->begin_with_received(j->created());
  write_or_wait(j);
  if (!view_.has(j->where->worker)) return hop(j, std::nullopt);
  claim(j);
}

void far_owner::claim(const job_ptr& j) {
  ++j->claims;
  const auto have = static_cast<std::uint32_t>(j->received.size());
  const auto frame = wire::frame_of(wire::adopt{j->name(), j->job.key, name_, j->slot, have});
  ask_worker(j, subjects_.control_of(j->where->worker), frame, &far_owner::on_claimed);
}

// The worker has given the job another number of an attempt, so that its former gateway's frames are void.
void far_owner::on_claimed(const job_ptr& j, std::uint8_t attempt, const bus::answer& a) {
  if (j->attempt != attempt || !j->where || !find(j->job.id) || !j->adopting) return;
  if (a.how == bus::answer::how::nobody_there) {
    const std::string worker = j->where->worker;
    view_.bury(worker);
    return lose(worker);
  }
  if (a.how != bus::answer::how::came) return j->claims < most_claims ? claim(j) : hop(j, std::nullopt);
  const auto frame = wire::read_control(a.bytes);
  const auto* taken = frame ? std::get_if<wire::taken>(&*frame) : nullptr;
  if (!taken || taken->job.id != j->job.id) return hop(j, std::nullopt);
  j->attempt = taken->job.attempt;
  j->adopting = false;
  j->taken = true;
  j->heard = time_.now();
  pause_again(j);
  if (j->cancelled) tell(j->where->worker, wire::cancel{j->name(), *j->cancelled});
  // Frames that came before this answer had an attempt that was not known yet, and were dropped.
  const auto have = static_cast<std::uint32_t>(j->received.size());
  tell(j->where->worker, wire::again{name_, {{j->name(), have}}});
}

// Another gateway has adopted a job from here. Its worker needs no farewell.
void far_owner::on_adopted(const wire::adopted& f) {
  for (const auto& n : f.jobs) {
    const auto j = find(n.id);
    if (!j || j->name() != n || !j->where || j->where->worker != f.worker || j->how) continue;
    ++now_.given;
    j->where.reset();
    fail(j, elsewhere());
  }
}

}  // namespace weir::actors::fleet
