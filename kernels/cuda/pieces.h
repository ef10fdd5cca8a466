// pieces.h — measurements of the pieces of which decoder.cu makes a step, each alone (time_cuda_decoder in
// backend.h).
#pragma once

#include <vector>

#include "kernels/decoder.h"

namespace weir::kernels::cuda {

std::vector<decoder_piece> time_decoder(void* self, const decoder_shape& shape, std::uint32_t rows,
                                        std::uint32_t context);

}  // namespace weir::kernels::cuda
