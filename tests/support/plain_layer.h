// plain_layer.h — the layer of a Llama of given sizes, for models with random weights.
#pragma once

#include <cmath>

#include "kernels/model_shape.h"

namespace weir::tests {

inline kernels::layer_shape plain_layer(std::uint32_t inter, std::uint32_t heads, std::uint32_t kv_heads,
                                        std::uint32_t head_dim) {
  kernels::layer_shape l;
  l.mixer.heads = heads;
  l.mixer.kv_heads = kv_heads;
  l.mixer.head_dim = head_dim;
  l.mixer.rule.scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  l.mlp.inter = inter;
  return l;
}

}  // namespace weir::tests
