#include "core/memory/ledger.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace weir::core {
namespace {

constexpr std::uint64_t least_drift = 256u << 20;

// What is left of `total` once all parts are taken of it; 0 where they are more.
std::uint64_t rest_of(std::uint64_t total, std::initializer_list<std::uint64_t> parts) {
  for (const std::uint64_t p : parts) total -= std::min(total, p);
  return total;
}

}  // namespace

std::uint64_t bytes_of(const memory_lines& l) noexcept {
  std::uint64_t sum = 0;
  for_lines(l, [&](const char*, std::uint64_t bytes) { sum = sum_of(sum, bytes); });
  return sum;
}

std::uint64_t ledger::taken() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& [id, e] : entries_) sum = sum_of(sum, held_by(e));
  return sum;
}

memory_lines ledger::taken_lines() const noexcept {
  memory_lines sum;
  for (const auto& [id, e] : entries_) {
    const memory_lines l = e.asleep ? asleep_part(e.whole(), device_.name) : e.whole();
    sum.weights = sum_of(sum.weights, l.weights);
    sum.workspaces = sum_of(sum.workspaces, l.workspaces);
    sum.runtime = sum_of(sum.runtime, l.runtime);
    sum.staging = sum_of(sum.staging, l.staging);
    sum.pages = sum_of(sum.pages, l.pages);
  }
  return sum;
}

std::uint64_t ledger::free() const noexcept {
  if (device_.total == 0) return ~0ull;
  return rest_of(device_.total, {device_.outside, device_.context, device_.reserve, taken()});
}

result<ledger::grant_id> ledger::grant(std::string model, const memory_lines& lines) {
  const std::uint64_t at_first = free();
  std::uint64_t left = at_first;
  const char* line = nullptr;  // the first for which there is no room
  for_lines(lines, [&](const char* name, std::uint64_t bytes) {
    if (!line && bytes > left && device_.total != 0) line = name;
    left -= std::min(left, bytes);
  });
  if (line)
    return make_error(errc::does_not_fit, "{}: no room on {} for its {}: {} bytes are missing, {} are free",
                      model, device_.name, line, bytes_of(lines) - at_first, at_first);
  entries_.emplace(next_, entry{std::move(model), lines, {}, false, {}});
  return next_++;
}

void ledger::release(grant_id id) { entries_.erase(id); }

void ledger::sleep(grant_id id) {
  if (const auto at = entries_.find(id); at != entries_.end()) at->second.asleep = true;
}

result<void> ledger::wake(grant_id id) {
  const auto at = entries_.find(id);
  if (at == entries_.end() || !at->second.asleep) return {};
  entry& e = at->second;
  const std::uint64_t left = free(), needs = freed_by_sleep(e);
  if (device_.total != 0 && needs > left)
    return make_error(errc::does_not_fit,
                      "{}: no room on {} for its weights and pages: {} bytes are missing, {} are free",
                      e.model, device_.name, needs - left, left);
  e.asleep = false;
  return {};
}

void ledger::set_pool(grant_id id, const auto_pool& p) {
  if (const auto at = entries_.find(id); at != entries_.end()) at->second.pool = p;
}

void ledger::note_used(grant_id id, std::uint64_t pages) {
  const auto at = entries_.find(id);
  if (at != entries_.end() && at->second.pool) at->second.pool->used = pages;
}

result<void> ledger::resize(grant_id id, std::uint64_t pages) {
  entry& e = entries_.at(id);
  auto_pool& p = *e.pool;
  const std::uint64_t left = free();
  const std::uint64_t more = pages > p.pages ? (pages - p.pages) * p.page_bytes : 0;
  if (device_.total != 0 && more > left)
    return make_error(errc::does_not_fit,
                      "{}: no room on {} for {} pages more: {} bytes are missing, {} are free", e.model,
                      device_.name, pages - p.pages, more - left, left);
  p.pages = pages;
  e.predicted.pages = pages * p.page_bytes;
  if (e.measured) e.measured->pages = e.predicted.pages;
  return {};
}

std::optional<ledger::drift> ledger::settle(grant_id id, const memory_lines& measured,
                                            std::optional<std::uint64_t> device_free) {
  if (const auto at = entries_.find(id); at != entries_.end()) at->second.measured = measured;
  if (device_.total == 0 || !device_free) return std::nullopt;
  const drift d{rest_of(device_.total, {device_.outside, device_.context, taken()}), *device_free};
  const bool less = d.measured_free < d.predicted_free;
  const std::uint64_t by = less ? d.predicted_free - d.measured_free : d.measured_free - d.predicted_free;
  if (by <= std::max(device_.total / 50, least_drift)) return std::nullopt;
  device_.outside = less ? sum_of(device_.outside, by) : device_.outside - std::min(device_.outside, by);
  return d;
}

}  // namespace weir::core
