// inspect_devices.h — what devices say of a model that is not loaded: the bytes that a server's own plan
// would give it there.
//
// Thread safety: any thread. Functions read headers of files; a device may be opened for a moment, as in
// memory_plan.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/memory_plan.h"
#include "core/inspect/device_report.h"

namespace weir::actors {

// What a model takes of a device that it has for itself.
core::device_report inspect_on(const model_spec& spec, const owner_options& o, const planned_device& device);

// The same for each device of a list: cpu, reference, or cuda[:N]. A cuda device is this machine's where
// there is one; where there is none, or `gpu_memory` is not 0, one with so many bytes (80 GiB where it is 0)
// is assumed. A name that is none, and a device that cannot be opened, are errors of their reports.
std::vector<core::device_report> inspect_on(const model_spec& spec, const owner_options& o,
                                            const std::vector<std::string>& devices,
                                            std::uint64_t gpu_memory);

}  // namespace weir::actors
