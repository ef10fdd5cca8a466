// activations.h — what the cpu backend multiplies quantised weights by.
//
// Thread safety: as ops.h.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/ops.h"

namespace weir::kernels {

// What activations are rounded to before they are multiplied by quantised weights.
enum class activation_type : std::uint8_t { f32, int8 };

// cpu_backend() of ops.h whose products with quantised weights multiply activations of type `x`; other
// products multiply f32. int8 changes results: each row of activations is rounded to 8 bits with a scale for
// every 32 inputs (cpu/simd/dot_activations.h). Weights of fp8 are multiplied by f32 in both cases.
// REQUIRES: threads >= 1
std::shared_ptr<const backend> cpu_backend(unsigned threads, activation_type x);

}  // namespace weir::kernels
