#include "actors/fleet/far_search.h"

#include <algorithm>

namespace weir::actors::fleet {

namespace wire = core::fleet;

namespace {

constexpr std::size_t most_answers = 4;  // workers that a search hears
constexpr std::size_t most_askers = 64;  // of one search
constexpr std::size_t asker_bytes = 512;

core::error crowded() {
  return core::make_error(core::errc::overloaded, "too many responses are looked for in the fleet now");
}

}  // namespace

core::result<bool> far_searches::begin(job_search s, std::uint64_t question, core::time_point now) {
  const name n{s.id, s.who};
  const auto there = all_.find(n);
  const bool joins = there != all_.end();
  if (joins && there->second.askers.size() >= most_askers) return crowded();
  if (!joins && (all_.size() >= most || searches_of(n.who.key) >= most_of_a_key || !begun_.take(now)))
    return crowded();
  core::memory_hold memory(joins ? std::move(there->second.memory) : core::memory_hold(memory_));
  const bool has_room = memory.resize(memory.bytes() + asker_bytes);
  if (joins) there->second.memory = std::move(memory);
  if (!has_room) return crowded();
  search& one = joins ? there->second : all_[n];
  one.askers.push_back(std::move(s));
  if (joins) return true;
  one.question = question;
  one.since = one.asked = now;
  one.memory = std::move(memory);
  ++of_key_[n.who.key];
  return false;
}

std::size_t far_searches::searches_of(std::uint64_t key) const {
  const auto at = of_key_.find(key);
  return at == of_key_.end() ? 0 : at->second;
}

bool far_searches::take(wire::found f, core::time_point now) {
  auto at = all_.lower_bound({f.job.id, {}});
  while (at != all_.end() && at->first.id == f.job.id && at->second.question != f.question) ++at;
  if (at == all_.end() || at->first.id != f.job.id || at->second.found) return false;
  search& s = at->second;
  auto p = std::ranges::find_if(s.piles, [&](const pile& x) { return x.head.worker == f.worker; });
  if (p == s.piles.end()) {
    if (s.piles.size() == most_answers) return false;
    p = s.piles.insert(s.piles.end(), pile{f, {}, f.of, now});
    p->head.bytes.clear();
    p->parts.resize(f.of);
  }
  if (p->parts.size() != f.of || p->parts[f.part]) return true;  // told twice
  if (!s.memory.resize(s.memory.bytes() + f.bytes.size())) return false;
  p->parts[f.part] = std::move(f.bytes);
  if (--p->missing == 0 && !s.settles) s.settles = now + settles_after;
  return true;
}

far_searches::due far_searches::look(core::time_point now) {
  due out;
  for (auto& [n, s] : all_) {
    if (s.found) continue;
    if (s.settles && now >= *s.settles) {
      s.found = true;
      const auto newest = std::ranges::max_element(
          s.piles, {}, [](const pile& p) { return p.missing == 0 ? int{p.head.job.attempt} : -1; });
      for (auto p = s.piles.begin(); p != s.piles.end(); ++p)
        if (p->head.job.attempt < newest->head.job.attempt) out.older.push_back(p->head);
      out.found.emplace_back(n, join(*newest, now));
      s.piles.clear();
    } else if (!s.settles && now - s.since >= (s.piles.empty() ? patience : patience_with_parts)) {
      out.over.push_back(n);
    } else if (s.piles.empty() && now - s.asked >= asked_again_after) {
      s.asked = now;
      out.again.push_back({n.id, n.who.key, s.question, {}});
    }
  }
  return out;
}

std::vector<job_search> far_searches::end(const name& n) {
  const auto at = all_.find(n);
  if (at == all_.end()) return {};
  auto askers = std::move(at->second.askers);
  all_.erase(at);
  const auto k = of_key_.find(n.who.key);
  if (--k->second == 0) of_key_.erase(k);
  return askers;
}

std::vector<far_searches::name> far_searches::names() const {
  std::vector<name> out;
  for (const auto& [n, s] : all_) out.push_back(n);
  return out;
}

far_searches::whole far_searches::join(pile& p, core::time_point now) {
  whole out{p.head, {}};
  out.head.since += now - p.came;
  for (const auto& part : p.parts) out.job += *part;
  return out;
}

}  // namespace weir::actors::fleet
