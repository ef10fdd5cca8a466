// backend.h — CUDA devices as backends; in a build without CUDA the same functions say so (none.cpp).
//
// Thread safety: cuda_devices() from any thread; a backend as kernels/ops.h says.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/decoder.h"
#include "kernels/ops.h"

namespace weir::kernels {

// How many devices there are; 0: `why_none` says why.
int cuda_devices(std::string& why_none);

// Null where it cannot be had, and `why_not` says why. `deterministic`: a row's bits depend on that row
// alone, whatever is computed beside it, at the cost of what is quicker for few rows or many.
std::shared_ptr<const backend> cuda_backend(int index, std::string& why_not, bool deterministic = false);

// For benchmarks: each piece of its decoder of that shape alone. Of the matrices only the embedding's type is
// looked at. Empty where `b` is no such backend, or has no such decoder.
std::vector<decoder_piece> time_cuda_decoder(const backend& b, const decoder_shape& shape, std::uint32_t rows,
                                             std::uint32_t context);

}  // namespace weir::kernels
