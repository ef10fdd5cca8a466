// decoder.h — a decoder of bf16 or f16 weights on a CUDA device: fused kernels between the products, rows,
// keys and values of the weights' type, steps of decoding replayed as graphs, draws on the device.
#pragma once

#include <memory>

#include "kernels/cuda/device.h"
#include "kernels/decoder.h"

namespace weir::kernels::cuda {

// Null where the model is not one of these: f32 weights, or of several types; head sizes that the attention
// kernels do not have. It then runs by single operations.
std::unique_ptr<decoder> make_decoder(void* self, const decoder_shape& shape);

// Whether it would, as far as a shape without its layers says.
bool decoder_takes(const device& d, const decoder_shape& shape);

}  // namespace weir::kernels::cuda
