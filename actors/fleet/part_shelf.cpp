#include "actors/fleet/part_shelf.h"

#include <algorithm>

namespace weir::actors::fleet {

std::optional<std::string> part_shelf::add(const core::fleet::job_part& p, core::time_point now) {
  const auto of_job = [&](const pile& x) { return x.id == p.id && x.attempt == p.attempt; };
  auto at = std::ranges::find_if(piles_, of_job);
  if (at == piles_.end()) {
    if (piles_.size() == most_jobs) remove(piles_.begin());
    piles_.push_back({.id = p.id, .attempt = p.attempt, .since = now, .parts = {}, .bytes = 0});
    at = piles_.end() - 1;
    at->parts.resize(p.of);
  }
  if (at->parts.size() != p.of) return std::nullopt;
  auto& place = at->parts[p.part];
  if (!place) {
    place.emplace(p.bytes);
    at->bytes += p.bytes.size();
    bytes_ += p.bytes.size();
  }
  if (!std::ranges::all_of(at->parts, [](const auto& x) { return x.has_value(); })) {
    while (bytes_ > most_bytes) remove(piles_.begin());
    return std::nullopt;
  }
  std::string whole;
  whole.reserve(at->bytes);
  for (const auto& part : at->parts) whole += *part;
  remove(at);
  return whole;
}

void part_shelf::expire(core::time_point now) {
  while (!piles_.empty() && now - piles_.front().since > patience) remove(piles_.begin());
}

void part_shelf::remove(std::vector<pile>::iterator at) {
  bytes_ -= at->bytes;
  piles_.erase(at);
}

}  // namespace weir::actors::fleet
