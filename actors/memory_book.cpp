#include "actors/memory_book.h"

#include <algorithm>
#include <utility>

#include "core/memory/plan_text.h"
#include "core/size_text.h"

namespace weir::actors {

memory_book::memory_book(owner_options o, std::vector<std::string> hosts,
                         std::vector<planned_device> measured)
    : options_(std::move(o)), hosts_(std::move(hosts)) {
  for (auto& d : measured) {
    ledgers_.emplace(d.name, core::ledger(d));
    known_.emplace(d.name, std::move(d));
  }
}

core::result<std::vector<planned_device>> memory_book::devices_of(std::span<const load_step> loads) {
  const std::lock_guard one_at_a_time(measuring_);
  std::vector<planned_device> out(hosts_.size());
  for (std::size_t i = 0; i < hosts_.size(); ++i) out[i].name = hosts_[i];
  for (const auto& l : loads) {
    const std::string& name = hosts_[l.host];
    {
      const std::lock_guard hold(lock_);
      if (const auto at = known_.find(name); at != known_.end()) {
        out[l.host] = at->second;
        continue;
      }
    }
    auto measured = measure_device(name, options_);
    if (!measured) return measured.error();
    const std::lock_guard hold(lock_);
    ledgers_.emplace(name, core::ledger(*measured));
    out[l.host] = known_.emplace(name, std::move(*measured)).first->second;
  }
  return out;
}

std::uint64_t memory_book::taken_without(const core::ledger& l, const std::set<std::string>& leaving) const {
  std::uint64_t sum = 0;
  for (const auto& [id, e] : l.entries())
    if (!leaving.contains(e.model)) sum = core::sum_of(sum, core::bytes_of(e.measured.value_or(e.predicted)));
  return sum;
}

core::result<core::memory_plan> memory_book::plan_of(std::span<const load_step> loads,
                                                     const std::set<std::string>& leaving) {
  auto devices = devices_of(loads);
  if (!devices) return devices.error();
  {
    const std::lock_guard hold(lock_);
    for (auto& d : *devices) {
      const auto at = ledgers_.find(d.name);
      if (at == ledgers_.end()) continue;
      static_cast<core::device_share&>(d) = at->second.device();
      d.loaded = taken_without(at->second, leaving);
    }
  }
  return plan_memory(loads, options_, *devices);
}

memory_book::planned memory_book::plan(std::span<const load_step> loads,
                                       const std::set<std::string>& leaving) {
  auto p = plan_of(loads, leaving);
  if (!p) return order_error{p.error(), {}};
  return std::move(*p);
}

bool memory_book::is_alone(const core::memory_plan& p, const core::planned_model& m) const {
  const auto& device = p.devices[m.device];
  return device.loaded == 0 && std::ranges::count(p.models, m.device, &core::planned_model::device) == 1;
}

memory_book::promises memory_book::book(std::span<const load_step> loads) {
  auto p = plan_of(loads, {});
  if (!p) return order_error{p.error(), {}};
  if (!p->fits())
    return order_error{core::make_error(core::errc::does_not_fit, "{}", core::shortage_text(*p)),
                       core::plan_json(*p)};
  booking out;
  for (const auto& m : p->models)
    if (std::ranges::find(out.order, m.name) == out.order.end()) out.order.push_back(m.name);
  std::vector<const core::planned_model*> by_load(loads.size());  // as the places of a model come
  for (const auto& m : p->models) by_load[m.needs] = &m;
  const std::lock_guard hold(lock_);
  for (const auto* m : by_load) {
    auto& ledger = ledgers_.at(p->devices[m->device].name);
    auto& promise = out.of[m->name];
    const auto id = ledger.grant(m->name, m->lines);
    if (!id) {  // measured since the plan was made: there is less than it says
      for (auto& [name, made] : out.of) take_back(made);
      return order_error{id.error(), core::plan_json(*p)};
    }
    promise.parts.push_back({ledger.device().name, *id, m->lines});
    if (is_alone(*p, *m) || m->lines.pages == 0) continue;
    const auto pages = static_cast<std::uint32_t>(m->pages);
    promise.pages = std::min(promise.pages.value_or(pages), pages);
  }
  return out;
}

void memory_book::take_back(memory_promise& p) {
  for (const auto& part : p.parts) ledgers_.at(part.device).release(part.id);
  p.parts.clear();
}

void memory_book::release(memory_promise& p) {
  const std::lock_guard hold(lock_);
  take_back(p);
}

std::string memory_book::settle(memory_promise& p, std::size_t place, const memory_use& measured) {
  const std::lock_guard hold(lock_);
  const auto& part = p.parts.at(place);
  auto& ledger = ledgers_.at(part.device);
  core::memory_lines lines;
  lines.weights = measured.weights;
  lines.workspaces = measured.workspaces;
  lines.runtime = measured.runtime;
  lines.pages = measured.pages;
  // Free memory is compared with the account only once every promised model is there. The host's memory is
  // not compared: other processes use it, too.
  const bool last = std::ranges::all_of(
      ledger.entries(), [&](const auto& e) { return e.first == part.id || e.second.measured.has_value(); });
  const bool says = measured.total != 0 && last;
  const auto off = ledger.settle(part.id, lines, says ? std::optional(measured.free) : std::nullopt);
  if (!off) return {};
  return fmt::format("{} has {} free, and its account says {}; the account follows the measurement",
                     part.device, core::size_text(off->measured_free), core::size_text(off->predicted_free));
}

std::uint64_t memory_book::taken_by(std::string_view model, std::string_view device) const {
  const std::lock_guard hold(lock_);
  std::uint64_t sum = 0;
  for (const auto& [name, l] : ledgers_)
    for (const auto& [id, e] : l.entries())
      if (name == device && e.model == model)
        sum = core::sum_of(sum, core::bytes_of(e.measured.value_or(e.predicted)));
  return sum;
}

std::vector<device_account> memory_book::accounts() const {
  const std::lock_guard hold(lock_);
  std::vector<device_account> out;
  for (const auto& [name, l] : ledgers_) {
    const auto& d = l.device();
    out.push_back({name, d.total, d.outside, d.context, d.reserve, l.taken(), d.total == 0 ? 0 : l.free()});
  }
  return out;
}

}  // namespace weir::actors
