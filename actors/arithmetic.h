// arithmetic.h — what decides the bits of the tokens that a place makes (core/fleet/arithmetic_class.h).
//
// Thread safety: any thread.
#pragma once

#include "actors/host.h"
#include "core/fleet/arithmetic_class.h"
#include "core/model/model.h"
#include "kernels/ops.h"

namespace weir::actors {

struct owner_options;

// Of a model that is loaded. `on`: its backend; null: simulated. Reads samples of the model's files. Errors:
// those of core::weights_digest().
core::result<core::fleet::arithmetic_facts> arithmetic_of(const model_spec& spec, const owner_options& o,
                                                          const kernels::backend* on,
                                                          const core::model_info& info);

}  // namespace weir::actors
