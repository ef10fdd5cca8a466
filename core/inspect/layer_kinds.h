// layer_kinds.h — the layers of a model, folded into kinds of layers that are alike.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/model_shape.h"

namespace weir::core {

struct layer_kind {
  kernels::layer_shape shape;     // with the place of the first one
  std::vector<std::uint32_t> at;  // which layers
};

// In the order of their first layers.
std::vector<layer_kind> layer_kinds(std::span<const kernels::layer_shape> layers);

// In words, with what is the same in all layers once: "24 layers: 20 with a window of 512, 4 full, without
// rotation".
std::string layers_text(std::span<const layer_kind> kinds);

}  // namespace weir::core
