// memory_plan.h — plans of memory for the models of a service. A plan is computed from the headers of the
// models' files. `weir plan` prints it, and memory_book.h promises memory by it.
//
// Thread safety: any thread. Functions read headers of files and, where they say so, open a device; they
// allocate no memory of a device that is still there when they return.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "actors/gpu_owner.h"
#include "actors/load_plan.h"
#include "core/memory/plan.h"
#include "kernels/ops.h"

namespace weir::actors {

// A device as plans see it.
struct planned_device : core::plan_device {
  std::shared_ptr<const kernels::backend> sizes;  // says what models take there; null: sim
  std::vector<std::string> assumed;               // what is not measured, for people
  std::vector<std::string> notes;                 // what models cannot do there, for people
};

// Measures a device: cpu, reference, cuda:N or sim, as owner_options::device. On cuda it is opened for a
// moment; the context of the process stays. Its reserve is that of the options; `loaded` is 0. Errors: those
// of core::make_backend().
core::result<planned_device> measure_device(const std::string& device, const owner_options& o);

// A cuda device that need not be there, with `total` bytes and the facts of an H100.
planned_device assume_device(std::string name, std::uint64_t total, const owner_options& o);

// What one model needs of a device, whose index is left 0. Errors: those of core::inspect_model(); the
// message names the file.
core::result<core::model_needs> needs_of(const model_spec& spec, const owner_options& o,
                                         const planned_device& on);

// Plans loads: load_step::host is an index of `devices`. Devices of the same name are one, as the copies of a
// model on `cpu,cpu` share its memory. The plan's models have the indices of their loads as `needs`. Errors:
// those of needs_of(), and does_not_fit as core::make_plan() has it; a plan whose models do not fit is no
// error.
core::result<core::memory_plan> plan_memory(std::span<const load_step> loads, const owner_options& o,
                                            std::span<const planned_device> devices);

}  // namespace weir::actors
