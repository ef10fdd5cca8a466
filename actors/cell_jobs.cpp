#include "actors/cell_jobs.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace weir::actors {

namespace {

using cell_line = cell_question::one;

bool is_ended_line(const job_view& v) { return !v.finish_reason.empty(); }

// What the service says of a job that it has, and what the job's worker says. A job that runs here is shown
// as its engine has it. A job that ended here with an error may go on at another gateway.
const job_view& better_line(const job_view& here, const cell_line& there) {
  const bool went_on = there.elsewhere && here.finish_reason == "error";
  return went_on || (!is_ended_line(here) && !there.elsewhere) ? there.view : here;
}

// Whether the service has nothing to ask a worker about the job. Of an answer that ended otherwise than by a
// cancel, other choices may run elsewhere.
bool is_settled_line(const std::optional<job_view>& here, bool cancel) {
  if (!here || !is_ended_line(*here)) return false;
  return cancel ? here->finish_reason == "cancel" : here->finish_reason != "error";
}

cell_jobs joined_lists(const std::vector<job_view>& here, cell_question::answer there) {
  std::unordered_map<core::job_id, const cell_line*, core::job_id_hash> by_id;
  for (const auto& j : there.jobs) by_id.emplace(j.view.id, &j);
  cell_jobs out;
  out.silent = there.silent;
  out.left_out = there.left_out;
  for (const auto& mine : here) {
    const auto at = by_id.find(mine.id);
    out.jobs.push_back(at == by_id.end() ? mine : better_line(mine, *at->second));
    if (at != by_id.end()) by_id.erase(at);
  }
  if (there.jobs.empty()) return out;
  for (auto& j : there.jobs)
    if (by_id.contains(j.view.id)) out.jobs.push_back(j.view);
  std::ranges::stable_sort(out.jobs, {},
                           [](const job_view& v) { return std::pair(is_ended_line(v), v.age_s); });
  return out;
}

cell_job found_in_cell(const std::optional<job_view>& here, const core::job_id& id,
                       const cell_question::answer& there) {
  cell_job out;
  out.job = here;
  out.silent = there.silent;
  auto at = std::ranges::find_if(there.jobs, [&](const cell_line& j) { return j.view.id == id; });
  // A job that is no longer kept, and whose answer has others.
  if (at == there.jobs.end()) at = there.jobs.begin();
  if (at == there.jobs.end()) return out;
  out.job = here ? better_line(*here, *at) : at->view;
  out.elsewhere = at->elsewhere;
  return out;
}

void ask_cell_for(service& s, asker who, core::job_id id, bool cancel, executor ex,
                  std::function<void(cell_job)> done, std::optional<job_view> here) {
  if (is_settled_line(here, cancel)) return done({here, false, 0});
  cell_question q{who, id, cancel, std::move(ex), {}};
  q.done = [here, id, done = std::move(done)](const cell_question::answer& there) {
    done(found_in_cell(here, id, there));
  };
  s.ask_cell(std::move(q));
}

}  // namespace

void list_cell_jobs(service& s, asker who, executor ex, std::function<void(cell_jobs)> done) {
  s.list_jobs(who, ex, [&s, who, ex, done = std::move(done)](std::vector<job_view> here) mutable {
    cell_question q{who, std::nullopt, false, ex, {}};
    q.done = [here = std::move(here), done = std::move(done)](cell_question::answer there) {
      done(joined_lists(here, std::move(there)));
    };
    s.ask_cell(std::move(q));
  });
}

void find_cell_job(service& s, asker who, core::job_id id, executor ex, std::function<void(cell_job)> done) {
  s.find_job(who, id, ex, [&s, who, id, ex, done = std::move(done)](std::optional<job_view> here) {
    ask_cell_for(s, who, id, false, ex, done, std::move(here));
  });
}

void cancel_cell_job(service& s, asker who, core::job_id id, executor ex,
                     std::function<void(cell_job)> done) {
  s.cancel_job(who, id, ex, [&s, who, id, ex, done = std::move(done)](std::optional<job_view> here) {
    ask_cell_for(s, who, id, true, ex, done, std::move(here));
  });
}

}  // namespace weir::actors
