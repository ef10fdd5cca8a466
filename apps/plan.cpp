#include "apps/plan.h"

#include <spdlog/spdlog.h>
#include <CLI/CLI.hpp>

#include <iostream>
#include <memory>
#include <sstream>

#include "actors/memory_plan.h"
#include "apps/commands.h"
#include "apps/engine_options.h"
#include "apps/local_service.h"
#include "apps/options.h"
#include "apps/progress.h"
#include "core/memory/plan_text.h"
#include "core/visible.h"

namespace weir::apps {
namespace {

struct plan_options {
  core::engine_settings engine;
  core::server_settings server;
  std::string gpu_memory, reserve;
  bool json = false;
};

constexpr std::size_t most_devices = 64;

// Parses numbers of bytes with commas between them. `option`: its name.
core::result<std::vector<std::uint64_t>> parse_bytes(const char* option, const std::string& text) {
  const core::setting one{option, "", "bytes", 0, 0, "", true};
  std::vector<std::uint64_t> out;
  std::istringstream in(text + ",");
  for (std::string part; std::getline(in, part, ',');) {
    const auto n = core::parse_number(one, part);
    if (!n) return n.error();
    out.push_back(*n);
  }
  if (out.size() > most_devices)
    return core::bad_param(option, "--{} has {} numbers, {} are the most", option, out.size(), most_devices);
  return out;
}

// The devices of a plan for other cards than this machine's. REQUIRES: no device of `o` is sim
core::result<std::vector<actors::planned_device>> assumed_devices(actors::service_options& o, bool named,
                                                                  const std::vector<std::uint64_t>& totals) {
  if (!named) {
    o.devices.clear();
    for (std::size_t i = 0; i < totals.size(); ++i) o.devices.push_back(fmt::format("cuda:{}", i));
  }
  if (o.devices.size() != totals.size())
    return core::bad_param("gpu-memory", "--gpu-memory has {} numbers, and --device names {}", totals.size(),
                           o.devices.size());
  std::vector<actors::planned_device> out;
  for (std::size_t i = 0; i < totals.size(); ++i) {
    if (!o.devices[i].starts_with("cuda:"))
      return core::bad_param("gpu-memory", "--gpu-memory: {} has the memory of this machine", o.devices[i]);
    if (totals[i] == 0) return core::bad_param("gpu-memory", "--gpu-memory must be bytes above 0");
    out.push_back(actors::assume_device(o.devices[i], totals[i], o.owner));
  }
  return out;
}

core::result<std::vector<actors::planned_device>> measured_devices(const actors::service_options& o) {
  std::vector<actors::planned_device> out;
  for (const auto& name : o.devices) {
    auto one = actors::measure_device(name, o.owner);
    if (!one) return one.error();
    out.push_back(std::move(*one));
  }
  return out;
}

// Each device keeps free what its number of --reserve-vram says; one number is for all of them.
core::result<> set_reserves(std::vector<actors::planned_device>& devices,
                            const std::vector<std::uint64_t>& bytes) {
  if (bytes.size() != 1 && bytes.size() != devices.size())
    return core::bad_param("reserve-vram", "--reserve-vram has {} numbers, and there are {} devices",
                           bytes.size(), devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i)
    if (devices[i].kind == core::memory_kind::device) devices[i].reserve = bytes[bytes.size() == 1 ? 0 : i];
  return {};
}

core::result<core::memory_plan> plan_of(const plan_options& p) {
  std::string why_cpu;
  auto engine = p.engine;
  const bool named = engine.device != "auto";
  if (!p.gpu_memory.empty() && !named) engine.device = "cuda:0";
  auto o = service_options_of(engine, p.server.queue, why_cpu, p.server.models_dir);
  if (!o) return o.error();
  const auto totals = p.gpu_memory.empty() ? core::result<std::vector<std::uint64_t>>({})
                                           : parse_bytes("gpu-memory", p.gpu_memory);
  if (!totals) return totals.error();
  auto devices = p.gpu_memory.empty() ? measured_devices(*o) : assumed_devices(*o, named, *totals);
  if (!devices) return devices.error();
  if (const auto ok = set_copies(*o, p.server.replicas); !ok) return ok.error();
  if (const auto ok = set_limits(*o, p.server.limit); !ok) return ok.error();
  while (devices->size() < o->devices.size()) devices->push_back(devices->back());  // copies of a sim
  if (!p.reserve.empty()) {
    const auto bytes = parse_bytes("reserve-vram", p.reserve);
    if (!bytes) return bytes.error();
    if (const auto ok = set_reserves(*devices, *bytes); !ok) return ok.error();
  }
  return actors::plan_memory(actors::plan_loads(o->models, o->copies, o->devices.size()), o->owner, *devices);
}

int run(const plan_options& p) {
  const auto plan = plan_of(p);
  if (!plan) {
    std::cerr << core::visible(plan.error().message) << '\n';
    return exit_of(plan.error());
  }
  if (p.json) {
    std::cout << core::plan_json(*plan) << '\n';
  } else {
    for (const auto& line : core::plan_lines(*plan)) std::cout << core::visible(line) << '\n';
  }
  if (!plan->fits()) std::cerr << core::visible(core::shortage_text(*plan)) << '\n';
  return plan->fits() ? exit_code::done : exit_code::does_not_fit;
}

}  // namespace

core::result<> plan_before_load(actors::service_options& o) {
  auto devices = measured_devices(o);
  if (!devices) return devices.error();
  const auto loads = actors::plan_loads(o.models, o.copies, o.devices.size());
  const auto plan = actors::plan_memory(loads, o.owner, *devices);
  if (!plan) return plan.error();
  for (const auto& line : core::plan_lines(*plan)) spdlog::info("plan: {}", line);
  if (!plan->fits()) return core::make_error(core::errc::does_not_fit, "{}", core::shortage_text(*plan));
  o.measured = std::move(*devices);
  return {};
}

command add_plan(CLI::App& app) {
  auto o = std::make_shared<plan_options>();
  add_settings(app, o->engine);
  add_settings(app, o->server);
  for (auto* option : app.get_options())  // of a server's file, which may be given here
    if (const auto& group = option->get_group(); group != "Models" && group != "Memory and batching")
      option->group("");
  app.remove_option(app.get_option("--reserve-vram"));  // a number for each device, here
  app.add_option(
         "--gpu-memory", o->gpu_memory,
         "plan for cuda devices with so much memory each in place of this machine's; none needs to be "
         "there; K, M and G are powers of 1024")
      ->type_name("BYTES[,BYTES...]")
      ->group("Memory and batching");
  app.add_option("--reserve-vram", o->reserve,
                 "memory of a cuda device that is left free, one number for all or one for each")
      ->type_name("BYTES[,BYTES...]")
      ->default_str("512M")
      ->envname("WEIR_RESERVE_VRAM")
      ->group("Memory and batching");
  app.add_flag("--json", o->json, "the plan as JSON, in bytes");
  add_common(app);
  return [o] { return run(*o); };
}

}  // namespace weir::apps
