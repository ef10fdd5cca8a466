// What callers can read of an engine: its counts, the list of its jobs, and the check of its invariants.
#include <algorithm>

#include "core/engine_state.h"

namespace weir::core {

namespace {

// Counts the pages of a sequence in the batch or a paused one; returns what is wrong with it, if anything.
std::string check(const sequence& s, std::vector<std::uint32_t>& references) {
  for (const page_id p : s.pages.all()) ++references[static_cast<std::size_t>(p)];
  if (s.named() * page_tokens > s.computed())
    return fmt::format("job {} has named rows that are not computed", s.asked.id.text());
  if (s.computed() > s.length() || pages_for(s.computed()) > s.pages.size()) {
    return fmt::format("job {} has {} rows in {} pages", s.asked.id.text(), s.computed(), s.pages.size());
  }
  if (s.delivered() > s.decided() || s.decided() > s.output().size() || s.output().size() > s.max_output()) {
    return fmt::format("job {}: {} delivered, {} decided, {} sampled of {}", s.asked.id.text(), s.delivered(),
                       s.decided(), s.output().size(), s.max_output());
  }
  return {};
}

}  // namespace

const char* name(sequence_state s) noexcept {
  constexpr const char* names[] = {"queued", "prefilling", "decoding", "paused", "finished"};
  return names[static_cast<int>(s)];
}

engine_counts engine::counts() const noexcept {
  engine_counts c{s_->totals};
  const std::uint32_t returning = s_->plan.returning();
  c.queued = static_cast<std::uint32_t>(s_->plan.waiting().size()) + returning;
  c.paused = static_cast<std::uint32_t>(s_->plan.resting().size()) - returning;
  c.finishing = static_cast<std::uint32_t>(s_->finishing.size());
  c.queued_tokens = s_->plan.waiting().tokens();
  for (const auto& s : s_->plan.running()) ++(s->decoding() ? c.decoding : c.prefilling);
  c.prompt_share = s_->config.slo.set() ? s_->plan.prompt_share() : 0;
  c.pages_total = s_->pool.total();
  c.pages_free = s_->pool.free();
  c.pages_cached = s_->pool.cached();
  c.pages_used = s_->pool.used();
  if (const auto& tier = s_->tier) {
    c.host_total = tier->total();
    c.host_used = tier->used();
    c.restored = tier->restored();
  }
  return c;
}

const engine_measures& engine::measures() const noexcept { return s_->measures; }

void engine::list(std::vector<sequence_view>& out) const {
  out.clear();
  const auto add = [&](const sequence& s, sequence_state state) {
    out.push_back({.id = s.asked.id,
                   .state = state,
                   .prompt_tokens = s.prompt_tokens(),
                   .output_tokens = s.sampled(),
                   .cached_tokens = s.cached(),
                   .pages = s.pages.size(),
                   .preemptions = s.preemptions(),
                   .priority = s.asked.priority,
                   .created = s.asked.created});
  };
  for (const auto& s : s_->plan.running()) {
    add(*s, s->decoding() ? sequence_state::decoding : sequence_state::prefilling);
  }
  for (const auto& s : s_->plan.resting())
    add(*s, s->phase() == sequence_phase::paused ? sequence_state::paused : sequence_state::queued);
  s_->plan.waiting().each([&](const sequence& s) { add(s, sequence_state::queued); });
  for (const auto& s : s_->finishing) add(*s, sequence_state::finished);
}

std::span<const prefix_tree::landmark> engine::landmarks() const noexcept {
  return s_->pool.names().landmarks();
}

std::uint64_t engine::landmark_changes() const noexcept { return s_->pool.names().landmark_changes(); }

std::string engine::check_integrity() const {
  const page_pool& pool = s_->pool;
  std::vector<std::uint32_t> references(pool.capacity(), 0);
  std::string wrong;
  for (const auto& s : s_->plan.running()) {
    if (!s->in_batch()) return fmt::format("job {} has left, and is in the batch", s->asked.id.text());
    if (wrong = check(*s, references); !wrong.empty()) return wrong;
  }
  for (const auto& s : s_->plan.resting()) {
    if (!s->rests() || (s->phase() == sequence_phase::paused) != s->paused_until().has_value())
      return fmt::format("job {} does not rest, and is among those that do", s->asked.id.text());
    if (wrong = check(*s, references); !wrong.empty()) return wrong;
  }
  for (std::size_t p = 0; p < references.size(); ++p) {
    if (references[p] != pool.references(static_cast<page_id>(p))) {
      return fmt::format("page {} has {} references, tables hold {}", p,
                         pool.references(static_cast<page_id>(p)), references[p]);
    }
  }
  const auto taken = std::count_if(references.begin(), references.end(), [](auto r) { return r > 0; });
  if (taken + pool.cached() + pool.free() != pool.total())
    return fmt::format("of {} pages {} are used, {} cached, {} free", pool.total(), taken, pool.cached(),
                       pool.free());
  if (wrong = pool.check(); !wrong.empty()) return wrong;
  if (s_->device->page_step() > 0 && static_cast<std::uint32_t>(s_->device->pages()) < pool.end())
    return fmt::format("the pool ends at page {}, and {} have memory", pool.end(), s_->device->pages());
  if (wrong = pool.names().check([&](page_id p) { return pool.references(p) > 0; }); !wrong.empty())
    return wrong;
  const std::size_t all = s_->plan.waiting().size() + s_->plan.running().size() + s_->plan.resting().size() +
                          s_->finishing.size();
  if (all != s_->known.size())
    return fmt::format("{} jobs are known, {} are somewhere", s_->known.size(), all);
  return {};
}

std::string engine::check_idle() const {
  const page_pool& pool = s_->pool;
  if (pool.used() == 0) return {};
  return fmt::format("no job is there, and of {} pages {} are cached, {} free", pool.total(), pool.cached(),
                     pool.free());
}

}  // namespace weir::core
