#include "actors/arrival.h"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "actors/make_job.h"
#include "actors/overloaded.h"
#include "core/insist.h"

namespace weir::actors {
namespace {

// Counts the jobs that were admitted and not submitted yet. The destructor gives their places back to
// admission.
class admitted_jobs {
 public:
  admitted_jobs(admission_control& admission, std::uint32_t jobs) noexcept
      : admission_(admission), jobs_(jobs) {}
  ~admitted_jobs() {
    for (; jobs_ > 0; --jobs_) admission_.job_done(0);
  }
  admitted_jobs(const admitted_jobs&) = delete;
  admitted_jobs& operator=(const admitted_jobs&) = delete;
  void taken() noexcept { --jobs_; }

 private:
  admission_control& admission_;
  std::uint32_t jobs_;
};

struct made {
  std::shared_ptr<job_stream::state_block> stream;
  core::job job;
};

// Makes one job for each choice that was not cancelled. The last of them is moved from `first`.
std::vector<made> jobs_of(const arrival& a, core::job first) {
  std::vector<std::uint32_t> wanted;
  for (std::uint32_t i = 0; i < a.choices.size(); ++i)
    if (!a.choices[i]->abandoned()) wanted.push_back(i);
  std::vector<made> jobs;
  jobs.reserve(wanted.size());
  for (const auto i : wanted) {
    const auto& s = a.choices[i];
    made& m = jobs.emplace_back();
    m.stream = s;
    m.job = choice_of(i == wanted.back() ? std::move(first) : first, a.asked, i);
    m.job.id = s->id;
  }
  return jobs;
}

}  // namespace

core::error no_memory_for_clients() {
  return overloaded(1, "what clients hold has reached the server's limit of memory");
}

std::uint64_t arrival::bytes() const {
  if (const auto* text = std::get_if<std::string>(&asked.input)) return text->size();
  if (const auto* ids = std::get_if<prompt_ids>(&asked.input)) return ids->size() * sizeof(core::token_id);
  return core::text_bytes(std::get<core::conversation>(asked.input));
}

void arrival::refuse(core::error why) const {
  boost::asio::post(choices.front()->shard, [all = choices, why = std::move(why)] {
    for (const auto& s : all) s->refused(why);
  });
}

void arrival::bring_in() {
  // all choices were cancelled, and their streams have ended
  if (std::ranges::all_of(choices, [](const auto& s) { return s->abandoned(); })) return;
  auto job = make_job(asked, *model);
  if (!job) return refuse(job.error());
  job->cache_salt = prefix_salt(prefix_owner, job->cache_salt);
  job->created = choices.front()->created;
  if (asked.deadline) job->deadline = job->created + *asked.deadline;
  const auto tokens = static_cast<std::uint32_t>(job->prompt.size());
  auto jobs = jobs_of(*this, std::move(*job));
  if (jobs.empty()) return;

  // A prompt is in memory twice: in the job, and at the beginning of the tokens of the job's sequence.
  const std::uint64_t each = job_bytes + 2 * sizeof(core::token_id) * std::uint64_t{tokens};
  if (!memory.resize(each * jobs.size())) return refuse(no_memory_for_clients());

  auto& admission = *model->admission;
  const auto prompt = std::make_shared<waiting_prompt>(admission);
  const auto count = static_cast<std::uint32_t>(jobs.size());
  if (const auto room = admission.admit(model->name, tokens, count); !room) return refuse(room.error());
  admitted_jobs places(admission, count);
  prompt->counts(tokens);
  for (const auto& a : asked.accounts)
    if (a) a->admitted(count, tokens, choices.front()->time->now());
  for (auto left = count; made& m : jobs) {
    const auto& s = m.stream;
    s->taken_by = model;
    s->prompt = prompt;
    s->deadline = m.job.deadline;
    s->memory = memory.split(each);
    const auto ahead = admission.waiting() - std::min(admission.waiting(), --left);
    model->submit(std::move(m.job), s);
    places.taken();
    core::insist(
        [&] { boost::asio::post(s->shard, [s = s, by = model, ahead] { s->admitted(by, ahead); }); });
  }
}

}  // namespace weir::actors
