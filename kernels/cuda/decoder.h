// decoder.h — a decoder of bf16 weights on a CUDA device: fused kernels between the products, keys and values
// in bf16, steps of decoding replayed as graphs, draws on the device.
#pragma once

#include <memory>

#include "kernels/decoder.h"

namespace weir::kernels::cuda {

// Null where the model is not one of these: other weights than bf16, head sizes that the attention kernels do
// not have. It then runs by single operations.
std::unique_ptr<decoder> make_decoder(void* self, const decoder_shape& shape);

}  // namespace weir::kernels::cuda
