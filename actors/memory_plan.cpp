#include "actors/memory_plan.h"

#include <unistd.h>

#include <algorithm>

#include "actors/open_model.h"
#include "core/model/load/model_path.h"
#include "core/size_text.h"
#include "kernels/cuda/backend.h"

namespace weir::actors {
namespace {

// The context of a process, with the code that the driver loads at once; 0.55 GB were measured of two H200.
constexpr std::uint64_t usual_context = 600'000'000;

std::uint64_t machine_memory() {
  const auto pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size) : 0;
}

// The host's memory: what is not free belongs to others.
void measure_host(planned_device& d) {
  const std::uint64_t free = d.sizes->free_bytes(d.sizes->self);
  d.kind = core::memory_kind::host;
  if (free == 0) return;  // unknown
  d.total = std::max(machine_memory(), free);
  d.outside = d.total - free;
}

// The memory of a device that is open: what is neither free nor the backend's own is the context, as far as
// it is not known to be another process'.
void measure_cuda(planned_device& d, const kernels::backend& open) {
  const auto now = open.memory(open.self);
  const std::uint64_t used = now.total - std::min(now.total, now.free + now.workspaces);
  d.total = now.total;
  d.outside = std::min(used, kernels::state_of(open).others_bytes.value_or(0));
  d.context = used - d.outside;
}

core::result<core::model_summary> summary_of(const model_spec& spec, const owner_options& o,
                                             const kernels::backend& on) {
  if (is_random(spec)) {
    const auto shape = random_shape(spec, o);
    if (!shape) return shape.error();
    return core::inspect_random_model(*shape, on, o.kv, o.max_batch);
  }
  if (const auto there = core::check_model_path(spec.source); !there)
    return core::bad_param("model", "--model {}", there.error().message);
  return core::inspect_model(spec.source, on, o.kv, o.max_batch, asked_context(spec, o));
}

}  // namespace

core::result<planned_device> measure_device(const std::string& device, const owner_options& o) {
  planned_device d;
  d.name = device;
  d.kind = core::memory_kind::unknown;
  if (device == "sim") return d;
  auto open = core::make_backend(device, 1, o.deterministic, o.activations);
  if (!open) return open.error();
  const auto facts = kernels::facts_of(**open);
  d.sizes = facts ? kernels::cuda_sizes(*facts) : *open;
  if ((*open)->on_host) {
    measure_host(d);
  } else {
    d.kind = core::memory_kind::device;
    d.reserve = o.reserve_bytes;
    measure_cuda(d, **open);
    if (!(*open)->do_give_back)
      d.notes.push_back(
          fmt::format("{} has no virtual memory management: its models cannot sleep, and their pools "
                      "keep their size: they give no way to newcomers",
                      d.name));
  }
  return d;
}

planned_device assume_device(std::string name, std::uint64_t total, const owner_options& o) {
  planned_device d;
  auto facts = kernels::hopper_facts;
  facts.deterministic = o.deterministic;
  d.name = std::move(name);
  d.total = total;
  d.context = usual_context;
  d.reserve = o.reserve_bytes;
  d.sizes = kernels::cuda_sizes(facts);
  d.assumed.push_back(fmt::format(
      "{} has the facts of an H100 ({} multiprocessors, {} KB of shared memory a block), a context of {}, "
      "and no other process",
      d.name, facts.multiprocessors, facts.shared_per_block >> 10, core::size_text(usual_context)));
  return d;
}

core::result<core::model_needs> needs_of(const model_spec& spec, const owner_options& all,
                                         const planned_device& on) {
  const auto own = options_for(spec, all);
  if (!own) return own.error();
  const owner_options& o = *own;
  core::model_needs out;
  out.name = spec.name;
  if (!on.sizes) {
    const auto sim = sim_shape(spec, o);
    if (!sim) return sim.error();
    out.lines.weights = sim->weight_bytes;
    std::vector<core::page_group> groups;
    if (sim->page_kb > 0) groups.push_back({std::uint64_t{sim->page_kb} << 10, 0, 1});
    out.pool = pool_of(spec, o, sim->context, std::move(groups));
    return out;
  }
  const auto found = summary_of(spec, o, *on.sizes);
  if (!found) return found.error();
  out.lines.weights = found->weight_bytes;
  out.lines.workspaces = found->workspaces;
  out.lines.runtime = found->runtime;
  out.pool = pool_of(spec, o, found->config.context, {{found->page_bytes, 0, found->config.layers()}});
  out.pool.steps = found->pool;
  return out;
}

core::result<core::memory_plan> plan_memory(std::span<const load_step> loads, const owner_options& o,
                                            std::span<const planned_device> devices) {
  std::vector<core::plan_device> rows;
  std::vector<std::size_t> row_of;  // by the index of a device
  std::vector<std::string> assumed, notes;
  for (const planned_device& d : devices) {
    const auto same = std::ranges::find(rows, d.name, &core::plan_device::name);
    row_of.push_back(static_cast<std::size_t>(same - rows.begin()));
    if (same != rows.end()) continue;
    rows.push_back(d);
    assumed.insert(assumed.end(), d.assumed.begin(), d.assumed.end());
    notes.insert(notes.end(), d.notes.begin(), d.notes.end());
  }
  std::vector<core::model_needs> needs;
  for (const load_step& l : loads) {
    auto one = needs_of(l.spec, o, devices[l.host]);
    if (!one) return one.error();
    one->device = row_of[l.host];
    needs.push_back(std::move(*one));
  }
  auto plan = core::make_plan(std::move(rows), needs);
  if (!plan) return plan;
  plan->assumed = std::move(assumed);
  plan->notes = std::move(notes);
  return plan;
}

}  // namespace weir::actors
