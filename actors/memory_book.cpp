#include "actors/memory_book.h"

#include <algorithm>
#include <utility>

#include "core/cache/page.h"
#include "core/memory/plan_text.h"
#include "core/size_text.h"

namespace weir::actors {
namespace {

// Whether all fit, and each auto pool has its floor.
bool is_enough(const core::memory_plan& p) {
  return p.fits() &&
         std::ranges::all_of(p.models, [](const core::planned_model& m) { return m.pages >= m.floor; });
}

// The pools of a device that give way. `left_with`: the pages of each then; empty: none gives way.
void add_gives(std::vector<pool_change>& to, const std::string& device,
               std::span<const core::giving_pool> pools, std::span<const std::uint64_t> left_with) {
  for (std::size_t i = 0; i < left_with.size(); ++i)
    if (const auto& pool = pools[i]; left_with[i] < pool.pages)
      to.push_back({device, pool.model, pool.grant, pool.pages, left_with[i]});
}

std::vector<pool_change> gives_of(const core::memory_plan& p) {
  std::vector<pool_change> out;
  for (const auto& d : p.devices) add_gives(out, d.name, d.pools, d.left_with);
  return out;
}

}  // namespace

memory_book::memory_book(owner_options o, std::vector<std::string> hosts,
                         std::vector<planned_device> measured, std::uint64_t sleep_bytes)
    : options_(std::move(o)), hosts_(std::move(hosts)), sleep_{sleep_bytes, 0} {
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

std::uint64_t memory_book::taken_without(const core::ledger& l, const std::set<std::string>& leaving,
                                         const std::set<std::string>& sleeping) {
  std::uint64_t sum = 0;
  for (const auto& [id, e] : l.entries()) {
    if (leaving.contains(e.model)) continue;
    sum = core::sum_of(sum, sleeping.contains(e.model) ? l.asleep_bytes(e) : l.held_by(e));
  }
  return sum;
}

std::vector<core::giving_pool> memory_book::pools_without(const core::ledger& l,
                                                          const std::set<std::string>& leaving,
                                                          const std::set<std::string>& sleeping) {
  std::vector<core::giving_pool> out;
  for (const auto& [id, e] : l.entries())
    if (e.pool && !e.asleep && !leaving.contains(e.model) && !sleeping.contains(e.model))
      out.push_back({*e.pool, e.model, id});
  return out;
}

core::result<core::memory_plan> memory_book::plan_of(std::span<const load_step> loads,
                                                     const std::set<std::string>& leaving,
                                                     const std::set<std::string>& sleeping) {
  auto devices = devices_of(loads);
  if (!devices) return devices.error();
  {
    const std::lock_guard hold(lock_);
    for (auto& d : *devices) {
      const auto at = ledgers_.find(d.name);
      if (at == ledgers_.end()) continue;
      static_cast<core::device_share&>(d) = at->second.device();
      d.loaded = taken_without(at->second, leaving, sleeping);
      if (d.kind != core::memory_kind::host) d.pools = pools_without(at->second, leaving, sleeping);
    }
  }
  auto calm = plan_memory(loads, options_, *devices);
  const bool on_host = std::ranges::any_of(
      *devices, [](const planned_device& d) { return d.kind == core::memory_kind::host; });
  if (!calm || !on_host || is_enough(*calm)) return calm;
  // On the host a pool has a part of what is free: others give way only where newcomers lack their floors.
  {
    const std::lock_guard hold(lock_);
    for (auto& d : *devices)
      if (const auto at = ledgers_.find(d.name); at != ledgers_.end())
        d.pools = pools_without(at->second, leaving, sleeping);
  }
  return plan_memory(loads, options_, *devices);
}

memory_book::planned memory_book::plan(std::span<const load_step> loads, const std::set<std::string>& leaving,
                                       const std::set<std::string>& sleeping) {
  auto p = plan_of(loads, leaving, sleeping);
  if (!p) return order_error{p.error(), {}};
  return std::move(*p);
}

bool memory_book::is_alone(const core::memory_plan& p, const core::planned_model& m) const {
  const auto& device = p.devices[m.device];
  return device.loaded == 0 && std::ranges::count(p.models, m.device, &core::planned_model::device) == 1;
}

memory_book::promises memory_book::book(std::span<const load_step> loads) {
  auto p = plan_of(loads, {}, {});
  if (!p) return order_error{p.error(), {}};
  if (!p->fits())
    return order_error{core::make_error(core::errc::does_not_fit, "{}", core::shortage_text(*p)),
                       core::plan_json(*p)};
  booking out;
  out.gives = gives_of(*p);
  if (!out.gives.empty()) return out;
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
    promise.parts.push_back({ledger.device().name, *id, m->lines, m->floor, m->useful});
    const bool measured = p->devices[m->device].name != "sim";  // whose free memory is known by its account
    if ((is_alone(*p, *m) && measured) || m->lines.pages == 0) continue;
    const auto pages = static_cast<std::uint32_t>(m->pages);
    promise.pages = std::min(promise.pages.value_or(pages), pages);
  }
  return out;
}

void memory_book::take_back(memory_promise& p) {
  for (const auto& part : p.parts) ledgers_.at(part.device).release(part.id);
  p.parts.clear();
  sleep_.taken -= std::exchange(p.asleep, 0);
  p.copied = false;
}

void memory_book::release(memory_promise& p) {
  const std::lock_guard hold(lock_);
  take_back(p);
}

std::string memory_book::settle(memory_promise& p, std::size_t place, const model_place& at) {
  const memory_use& measured = at.memory;
  const std::lock_guard hold(lock_);
  const auto& part = p.parts.at(place);
  auto& ledger = ledgers_.at(part.device);
  core::memory_lines lines;
  lines.weights = measured.weights;
  lines.workspaces = measured.workspaces;
  lines.runtime = measured.runtime;
  lines.pages = measured.pages;
  if (part.useful > 0 && at.page_bytes > 0) {
    core::auto_pool pool;
    pool.page_bytes = at.page_bytes;
    pool.pages = at.pages;
    pool.floor =
        std::min<std::uint64_t>(at.pages, std::max<std::uint64_t>(part.floor, core::pages_for(at.context)));
    pool.most = std::max<std::uint64_t>(at.pages, std::min<std::uint64_t>(part.useful, at.most_pages));
    pool.step = at.page_step;
    ledger.set_pool(part.id, pool);
  }
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

void memory_book::note_used(const memory_promise& p, std::size_t place, std::uint64_t pages) {
  const std::lock_guard hold(lock_);
  const auto& part = p.parts.at(place);
  ledgers_.at(part.device).note_used(part.id, pages);
}

core::result<void> memory_book::resize(const pool_change& c, std::uint64_t pages) {
  const std::lock_guard hold(lock_);
  auto& ledger = ledgers_.at(c.device);
  const auto at = ledger.entries().find(c.grant);
  if (at == ledger.entries().end() || !at->second.pool || at->second.asleep)
    return core::make_error(core::errc::does_not_fit, "{} is not loaded any more", c.model);
  return ledger.resize(c.grant, pages);
}

std::map<std::string, std::uint64_t> memory_book::needs_of_wake(const memory_promise& p) const {
  std::map<std::string, std::uint64_t> needs;
  for (const auto& part : p.parts) {
    const auto& l = ledgers_.at(part.device);
    const auto at = l.entries().find(part.id);
    if (at == l.entries().end() || !at->second.asleep) continue;
    auto& sum = needs[part.device];
    sum = core::sum_of(sum, l.freed_by_sleep(at->second));
  }
  return needs;
}

core::result<std::vector<pool_change>> memory_book::gives_for_wake(const memory_promise& p) const {
  const std::lock_guard hold(lock_);
  std::vector<pool_change> out;
  for (const auto& [device, bytes] : needs_of_wake(p)) {
    const auto& l = ledgers_.at(device);
    const auto free = l.free();
    if (bytes <= free) continue;
    const auto pools = pools_without(l, {}, {});
    const std::vector<core::auto_pool> all(pools.begin(), pools.end());
    const auto left_with = core::give_way(all, bytes - free);
    if (!left_with)
      return core::make_error(core::errc::does_not_fit,
                              "{} lacks {} bytes for the weights and pages of a wake", device, bytes - free);
    add_gives(out, device, pools, *left_with);
  }
  return out;
}

std::optional<pool_change> memory_book::next_growth(const std::set<pool_key>& barred) const {
  constexpr std::uint64_t piece = std::uint64_t{1} << 30;
  const std::lock_guard hold(lock_);
  for (const auto& [device, l] : ledgers_) {
    if (l.device().total == 0) continue;
    auto pools = pools_without(l, {}, {});
    auto free = l.free();
    if (core::weights_stay(device)) {  // the host's own memory: a quarter of it is for pages
      std::uint64_t pages = 0;
      for (const auto& p : pools) pages = core::sum_of(pages, p.pages * p.page_bytes);
      const auto part = core::sum_of(free, pages) / 4;
      free = part - std::min(part, pages);
    }
    std::erase_if(pools, [&](const core::giving_pool& p) { return barred.contains({device, p.grant}); });
    const std::vector<core::auto_pool> all(pools.begin(), pools.end());
    if (const auto next = core::next_to_grow(all, free, piece)) {
      const auto& p = pools[next->pool];
      return pool_change{device, p.model, p.grant, p.pages, next->pages};
    }
  }
  return std::nullopt;
}

std::uint64_t memory_book::taken_by(std::string_view model, std::string_view device) const {
  const std::lock_guard hold(lock_);
  std::uint64_t sum = 0;
  for (const auto& [name, l] : ledgers_)
    for (const auto& [id, e] : l.entries())
      if (name == device && e.model == model) sum = core::sum_of(sum, l.held_by(e));
  return sum;
}

memory_book::sleep_room memory_book::sleep_account() const {
  const std::lock_guard hold(lock_);
  return sleep_;
}

core::result<void> memory_book::hold_sleep(memory_promise& p, std::string_view model, std::uint64_t bytes) {
  const std::lock_guard hold(lock_);
  core::error why;
  why.param = "level";
  if (sleep_.total == 0) {
    why.code = core::errc::not_supported;
    why.message = "level 'host' needs --sleep-mb: this server has no host memory for models that sleep";
    return why;
  }
  if (p.asleep > 0) return {};  // an earlier sleep's, which the model has kept
  if (bytes > sleep_.free()) {
    why.code = core::errc::does_not_fit;
    why.message = fmt::format("{}: its weights take {} bytes of host memory, and {} of --sleep-mb are free",
                              model, bytes, sleep_.free());
    return why;
  }
  sleep_.taken += bytes;
  p.asleep = bytes;
  return {};
}

void memory_book::end_hold(memory_promise& p) {
  const std::lock_guard hold(lock_);
  if (p.copied) return;
  sleep_.taken -= std::exchange(p.asleep, 0);
}

void memory_book::sleep(const memory_promise& p) {
  const std::lock_guard hold(lock_);
  for (const auto& part : p.parts) ledgers_.at(part.device).sleep(part.id);
}

core::result<void> memory_book::wake(const memory_promise& p) {
  const std::lock_guard hold(lock_);
  for (std::size_t i = 0; i < p.parts.size(); ++i) {
    auto woken = ledgers_.at(p.parts[i].device).wake(p.parts[i].id);
    if (woken) continue;
    for (std::size_t k = 0; k < i; ++k) ledgers_.at(p.parts[k].device).sleep(p.parts[k].id);
    return woken;
  }
  return {};
}

std::uint64_t memory_book::freed_by_sleep(std::string_view model, std::string_view device) const {
  const std::lock_guard hold(lock_);
  std::uint64_t sum = 0;
  for (const auto& [name, l] : ledgers_)
    for (const auto& [id, e] : l.entries())
      if (name == device && e.model == model && !e.asleep) sum = core::sum_of(sum, l.freed_by_sleep(e));
  return sum;
}

std::optional<memory_book::shortage> memory_book::lacks_to_wake(const memory_promise& p,
                                                                const std::set<std::string>& leaving,
                                                                const std::set<std::string>& sleeping) const {
  const std::lock_guard hold(lock_);
  for (const auto& [device, bytes] : needs_of_wake(p)) {
    const auto& l = ledgers_.at(device);
    const auto& d = l.device();
    if (d.total == 0) continue;
    const auto fixed = core::sum_of(core::sum_of(d.outside, d.context), d.reserve);
    const auto taken = core::sum_of(fixed, taken_without(l, leaving, sleeping));
    auto free = d.total - std::min(d.total, taken);
    for (const auto& pool : pools_without(l, leaving, sleeping))
      free = core::sum_of(free, core::most_given(pool));
    if (bytes > free)
      return shortage{
          device, bytes - free,
          fmt::format("{} lacks {} bytes for the weights and pages of a wake", device, bytes - free)};
  }
  return std::nullopt;
}

std::vector<device_account> memory_book::accounts() const {
  const std::lock_guard hold(lock_);
  std::vector<device_account> out;
  for (const auto& [name, l] : ledgers_) {
    const auto& d = l.device();
    out.push_back({name, d.total, d.outside, d.context, d.reserve, l.taken(), d.total == 0 ? 0 : l.free(),
                   l.taken_lines()});
  }
  return out;
}

}  // namespace weir::actors
