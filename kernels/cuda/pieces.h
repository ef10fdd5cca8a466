// pieces.h — what decoder.cu puts a step together from, each piece measured alone.
#pragma once

#include <vector>

#include "kernels/decoder.h"

namespace weir::kernels::cuda {

std::vector<decoder_piece> time_decoder(void* self, const decoder_shape& shape, std::uint32_t rows,
                                        std::uint32_t context);

}  // namespace weir::kernels::cuda
