// Jobs that go from an engine whose device failed to the one that replaces it.
#include <algorithm>
#include <cassert>
#include <iterator>

#include "core/engine_state.h"
#include "core/insist.h"

namespace weir::core {

stranded_jobs::stranded_jobs() noexcept = default;
stranded_jobs::stranded_jobs(stranded_jobs&&) noexcept = default;
stranded_jobs& stranded_jobs::operator=(stranded_jobs&& o) noexcept {
  std::swap(all_, o.all_);
  return *this;
}
stranded_jobs::~stranded_jobs() {
  if (!all_.empty()) insist([&] { end(make_error(errc::unavailable, "the engine was stopped")); });
}

std::size_t stranded_jobs::size() const noexcept { return all_.size(); }

void stranded_jobs::end(const error& why) {
  for (auto& s : all_) {
    if (!s) continue;  // ended by a call that threw later
    if (!s->ended()) {
      s->end(finish_reason::error, why);
      s->settle_now();
    } else if (!s->settle()) {
      s->change_ending(finish_reason::error, why);
      s->settle_now();
    }
    s.reset();
  }
  all_.clear();
}

stranded_jobs engine::evacuate() {
  assert(s_->fault && s_->config.keep_jobs);
  std::erase(s_->finishing, nullptr);  // a stop() that threw has left some
  s_->end_continued();
  s_->deliver();
  stranded_jobs out;
  auto& all = out.all_;
  all.reserve(s_->known.size());
  scheduler& plan = s_->plan;
  while (!plan.waiting().empty()) all.push_back(plan.take_waiting());
  plan.sweep([&](std::unique_ptr<sequence>& s) { all.push_back(std::move(s)); });
  std::ranges::move(s_->finishing, std::back_inserter(all));
  s_->finishing.clear();
  s_->known.clear();
  return out;
}

void engine::state::end_continued() {
  std::vector<const sequence*> again;
  const auto look = [&](const sequence& s) {
    if (s.continued && !s.ended()) again.push_back(&s);
  };
  plan.waiting().each(look);
  for (const auto& s : plan.resting()) look(*s);
  finishing.reserve(finishing.size() + again.size());
  for (const sequence* s : again) {
    std::optional<error> why = fault;  // copied before the job is in nobody's hands
    sequence& ended = *finishing.emplace_back(plan.take(*s));
    close(ended, finish_reason::error, std::move(why));
  }
}

void engine::adopt(stranded_jobs& jobs) {
  std::size_t taken = 0;
  try {
    for (auto& s : jobs.all_) {
      s_->adopt(s);
      ++taken;
    }
  } catch (...) {
    jobs.all_.erase(jobs.all_.begin(), jobs.all_.begin() + static_cast<std::ptrdiff_t>(taken));
    throw;
  }
  jobs.all_.clear();
}

void engine::state::adopt(std::unique_ptr<sequence>& s) {
  const auto named = known.emplace(s->asked.id, s.get()).first;
  try {
    if (s->ended()) {
      finishing.push_back(std::move(s));
    } else if (!s->fit(longest)) {
      finishing.reserve(finishing.size() + 1);
      s->end(finish_reason::error,
             make_error(errc::does_not_fit, "the device was started again, with room for {} tokens of a job",
                        longest));
      finishing.push_back(std::move(s));
    } else {
      if (s->asked.deadline) earliest_deadline = std::min(earliest_deadline, *s->asked.deadline);
      sequence& added = *s;
      plan.adopt(std::move(s));
      added.continued = true;
      ++totals.continued;
    }
  } catch (...) {
    known.erase(named);
    throw;
  }
}

}  // namespace weir::core
