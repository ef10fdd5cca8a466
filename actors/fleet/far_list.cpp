#include "actors/fleet/far_list.h"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "core/engine.h"
#include "core/insist.h"

namespace weir::actors::fleet {

namespace wire = core::fleet;

namespace {

constexpr std::size_t most_sharers = 64;  // of one question
constexpr std::size_t sharer_bytes = 512, listed_job_bytes = 512;

std::optional<std::uint64_t> asking_key(const asker& who) {
  return who ? std::optional(who->key) : std::nullopt;
}

job_view view_of_listed(const wire::listed_job& j) {
  job_view v;
  v.id = j.id;
  v.state = core::name(j.state);
  v.model = j.model;
  if (j.state == core::sequence_state::finished) v.finish_reason = core::name(j.reason);
  v.prompt_tokens = j.prompt_tokens;
  v.output_tokens = j.output_tokens;
  v.cached_tokens = j.cached_tokens;
  v.pages = j.pages;
  v.preemptions = j.preemptions;
  v.priority = j.priority;
  v.age_s = std::chrono::duration<double>(j.age).count();
  return v;
}

bool is_finished(const wire::listed_job& j) { return j.state == core::sequence_state::finished; }

}  // namespace

far_lists::begun far_lists::begin(const cell_question& q, std::uint64_t question,
                                  std::vector<std::string> workers, core::time_point now) {
  const name n{q.who, q.id, q.cancel};
  auto at = all_.find(n);
  const bool joins = at != all_.end();
  const auto of_key = of_key_.find(asking_key(q.who));
  const std::size_t askers = joins ? at->second.askers.size() : 0;
  const std::size_t questions = of_key == of_key_.end() ? 0 : of_key->second;
  if (askers >= most_sharers) return begun::crowded;
  if (!joins && (all_.size() >= most || questions >= most_of_a_key || !begun_.take(now)))
    return begun::crowded;
  core::memory_hold memory(joins ? std::move(at->second.memory) : core::memory_hold(memory_));
  const bool has_room = memory.resize(memory.bytes() + sharer_bytes);
  if (!joins && has_room) at = all_.try_emplace(n).first;
  if (joins || has_room) at->second.memory = std::move(memory);
  if (!has_room) return begun::crowded;
  asked& a = at->second;
  a.askers.push_back(q);
  if (joins) return begun::joins;
  a.question = question;
  a.since = a.round = now;
  for (auto& w : workers) a.piles[std::move(w)];
  ++of_key_[asking_key(q.who)];
  return begun::asks;
}

bool far_lists::take(const wire::listed& part) {
  const auto at =
      std::ranges::find_if(all_, [&](const auto& a) { return a.second.question == part.question; });
  if (at == all_.end()) return false;
  asked& a = at->second;
  const auto to = a.piles.find(part.worker);
  if (to == a.piles.end()) return false;
  pile& p = to->second;
  if (p.parts.empty()) {
    p.parts.resize(part.of);
    p.missing = part.of;
  }
  // An answer that comes again may have other parts than the first: the one that was begun stays.
  if (p.parts.size() != part.of || p.parts[part.part]) return true;
  if (!a.memory.resize(a.memory.bytes() + listed_job_bytes * (1 + part.jobs.size()))) return false;
  p.parts[part.part] = part;
  --p.missing;
  return true;
}

bool far_lists::is_answered(const asked& a) {
  return std::ranges::all_of(a.piles, [](const auto& p) { return p.second.whole(); });
}

// Whether all jobs that were told of have ended.
bool far_lists::has_ended(const asked& a) {
  for (const auto& [worker, p] : a.piles)
    for (const auto& part : p.parts)
      if (part && !std::ranges::all_of(part->jobs, is_finished)) return false;
  return true;
}

bool far_lists::is_over(const name& n, const asked& a, core::time_point now) {
  if (!is_answered(a) && now - a.round < patience) return false;
  return !n.cancel || has_ended(a) || now - a.since >= until_ended;
}

wire::job_question far_lists::ask(const name& n, asked& a, core::time_point now) {
  a.at = now;
  wire::job_question q;
  q.question = a.question;
  q.gateway = self_;
  if (n.who) q.who = {n.who->key, n.who->user};
  q.id = n.id;
  q.cancel = n.cancel;
  return q;
}

std::vector<wire::job_question> far_lists::look(core::time_point now) {
  std::vector<wire::job_question> out;
  for (auto at = all_.begin(); at != all_.end();) {
    const auto here = at++;
    auto& [n, a] = *here;
    if (is_over(n, a, now)) {
      answer(a);
      forget(here);
      continue;
    }
    if (a.at && now - *a.at < asked_again_after) continue;
    if (is_answered(a) || now - a.round >= patience) begin_round(a, now);
    out.push_back(ask(n, a, now));
  }
  return out;
}

void far_lists::begin_round(asked& a, core::time_point now) {
  for (auto& [worker, p] : a.piles) {
    for (const auto& part : p.parts)
      if (part)
        for (const auto& j : part->jobs) a.before.insert_or_assign(j.id, j);
    p = {};
  }
  a.memory.force(sharer_bytes * a.askers.size());
  a.round = now;
}

// Two workers may have a job, where one of them has not heard yet that the job has moved.
cell_question::answer far_lists::answer_of(const asked& a) const {
  cell_question::answer out;
  std::map<core::job_id, const wire::listed_job*> newest;
  for (const auto& [worker, p] : a.piles) {
    if (!p.whole()) {
      ++out.silent;
      continue;
    }
    for (const auto& part : p.parts)
      for (const auto& j : part->jobs) {
        auto& best = newest[j.id];
        if (!best || best->attempt < j.attempt) best = &j;
      }
    out.left_out += p.parts.front()->left_out;
  }
  for (const auto& [id, j] : a.before) {
    if (newest.contains(id)) continue;
    wire::listed_job last = j;
    if (out.silent == 0 && !is_finished(j)) {
      last.state = core::sequence_state::finished;
      last.reason = core::finish_reason::cancel;
    }
    out.jobs.push_back({view_of_listed(last), last.gateway != self_});
  }
  for (const auto& [id, j] : newest) out.jobs.push_back({view_of_listed(*j), j->gateway != self_});
  return out;
}

void far_lists::answer(const asked& a) const {
  const auto all = std::make_shared<const cell_question::answer>(answer_of(a));
  for (const auto& one : a.askers)
    core::insist([&] { boost::asio::post(one.ex, [done = one.done, all] { done(*all); }); });
}

void far_lists::forget(std::map<name, asked>::iterator at) {
  const auto k = of_key_.find(asking_key(at->first.who));
  if (--k->second == 0) of_key_.erase(k);
  all_.erase(at);
}

void far_lists::end_all() {
  while (!all_.empty()) {
    answer(all_.begin()->second);
    forget(all_.begin());
  }
}

}  // namespace weir::actors::fleet
