#include "actors/inspect_devices.h"

#include <algorithm>

#include "core/memory/plan_text.h"
#include "kernels/cuda/backend.h"

namespace weir::actors {
namespace {

constexpr std::uint64_t usual_memory = 80ull << 30;

core::device_report report_of(const std::string& device, core::error wrong) {
  core::device_report out;
  out.device = device;
  out.wrong = std::move(wrong);
  return out;
}

// What models may take, without the reserve; 0: the device does not say.
std::uint64_t free_for_models(const planned_device& d) {
  const std::uint64_t taken = core::sum_of(core::sum_of(d.outside, d.context), d.reserve);
  return d.total - std::min(d.total, taken);
}

bool is_assumed(const std::string& device, std::uint64_t gpu_memory) {
  return device.starts_with("cuda") &&
         (gpu_memory != 0 || kernels::find_cuda().presence == kernels::cuda_presence::none);
}

}  // namespace

core::device_report inspect_on(const model_spec& spec, const owner_options& o, const planned_device& device) {
  const auto needs = needs_of(spec, o, device);
  if (!needs) return report_of(device.name, needs.error());
  const auto plan = core::make_plan({device}, {*needs});
  if (!plan) return report_of(device.name, plan.error());
  const core::planned_model& planned = plan->models.front();
  core::device_report out;
  out.device = device.name;
  out.lines = planned.lines;
  out.page_bytes = core::page_bytes(needs->pool);
  out.free = free_for_models(device);
  out.kv_tokens = planned.kv_tokens;
  out.context = planned.context;
  if (!plan->fits()) out.lacks = core::shortage_text(*plan);
  out.assumed = device.assumed;
  return out;
}

std::vector<core::device_report> inspect_on(const model_spec& spec, const owner_options& o,
                                            const std::vector<std::string>& devices,
                                            std::uint64_t gpu_memory) {
  std::vector<core::device_report> out;
  for (const std::string& name : devices) {
    if (is_assumed(name, gpu_memory)) {
      const auto device = assume_device(name, gpu_memory != 0 ? gpu_memory : usual_memory, o);
      out.push_back(inspect_on(spec, o, device));
    } else if (const auto device = measure_device(name, o)) {
      out.push_back(inspect_on(spec, o, *device));
    } else {
      out.push_back(report_of(name, device.error()));
    }
  }
  return out;
}

}  // namespace weir::actors
