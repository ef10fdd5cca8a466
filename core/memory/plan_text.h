// plan_text.h — a plan of memory for people and for programs, as `weir plan` writes it.
//
// Thread safety: pure functions, any thread.
#pragma once

#include <string>
#include <vector>

#include "core/memory/plan.h"

namespace weir::core {

// A plan in lines, in 10⁹ bytes: each device, below it its models in the order of their loads; then whether
// all fit, with what is missing where they do not; then what was assumed, and notes.
std::vector<std::string> plan_lines(const memory_plan& p);

// What a plan lacks, in one sentence that names the device, the line and the bytes. REQUIRES: !p.fits()
std::string shortage_text(const memory_plan& p);

// A plan as JSON on one line, in bytes:
//   {"weir_plan":1,"fits":true,"devices":[{"device","total","outside","context","reserve","free"}],
//    "models":[{"name","order","device":["cuda:0"],"layers":[32],"weights","workspaces","runtime","pages",
//    "kv_tokens","context"}],"short":{"device","bytes","for"},"assumed":["…"],
//    "notes":["…"]}
// `total` is 0 where it is unknown. A device has `loaded` where models stay there, and `gives`,
// [{"name","pages","bytes"}], where pools of these models give pages to the newcomers; `short` is there where
// the models do not fit, and `assumed` and `notes` where there are some.
std::string plan_json(const memory_plan& p);

}  // namespace weir::core
