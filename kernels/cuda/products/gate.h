// gate.h — what a product of gate and up makes of the two: f(gate) * up.
//
// silu(g) and gelu(g), its tanh form, are both g / (1 + exp(-z)). For silu z is g, and for gelu it is
// 2 * 0.7978845608 * (g + 0.044715 g³). The choice is the same in all threads.
#pragma once

#include "kernels/model_shape.h"

namespace weir::kernels::cuda {

// Whether products can do this activation themselves (product_out::gated).
constexpr bool can_gate(activation f) { return f == activation::silu || f == activation::gelu; }

__device__ __forceinline__ float gate_power(activation f, float g) {
  return f == activation::gelu ? g * __fmaf_rn(0.0713548163f * g, g, 1.5957691216f) : g;
}

__device__ __forceinline__ float gated(activation f, float gate, float up) {
  return gate / (1.0f + __expf(-gate_power(f, gate))) * up;
}

// The same with a quick division, which differs from the exact one by less than rounding to an element does.
__device__ __forceinline__ float gated_quickly(activation f, float gate, float up) {
  return __fdividef(gate, 1.0f + __expf(-gate_power(f, gate))) * up;
}

// activation::clamped of a gate and an up (model_shape.h). A NaN stays one.
__device__ __forceinline__ float clamped(float gate, float up, float limit) {
  if (gate > limit) gate = limit;
  if (up > limit) up = limit;
  if (up < -limit) up = -limit;
  return gate / (1.0f + expf(-1.702f * gate)) * (up + 1.0f);
}

}  // namespace weir::kernels::cuda
