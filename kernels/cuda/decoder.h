// decoder.h — kernels/decoder.h for bf16, f16 or quantised weights on a CUDA device. Kernels between the
// products are fused; rows have the type of the layers' plain weights, or bf16 where most are quantised
// (rows_type() in decoder_room.h), and so have keys and values unless they are fp8 or q8; steps of
// decoding are replayed as graphs; draws run on the device.
#pragma once

#include <memory>

#include "kernels/cuda/device/device.h"
#include "kernels/decoder.h"

namespace weir::kernels::cuda {

// The entry backend::make_decoder. Returns null where the device has failed, and for a model that this
// decoder does not support (why_not() in decoder_room.h). Such a model runs by single operations, or not at
// all.
std::unique_ptr<decoder> make_decoder(void* self, const decoder_shape& shape);

}  // namespace weir::kernels::cuda
