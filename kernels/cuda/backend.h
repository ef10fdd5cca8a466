// backend.h — CUDA devices as backends. In a build without CUDA these functions report that there are none
// (none.cpp).
//
// Thread safety: cuda_devices() from any thread; a backend as kernels/ops.h says.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/decoder.h"
#include "kernels/ops.h"

namespace weir::kernels {

// The number of CUDA devices. Where it is 0, `why_none` is set to the reason.
int cuda_devices(std::string& why_none);

// Opens device `index` as a backend. Returns null where that fails, and sets `why_not` to the reason. With
// `deterministic` a row's bits depend on that row alone, whatever is computed beside it; the faster kernels
// for few and for many rows are then not used (docs/kernels.md).
std::shared_ptr<const backend> cuda_backend(int index, std::string& why_not, bool deterministic = false);

// Measures each piece of the decoder of `shape` alone, for benchmarks: with `rows` rows and contexts of
// `context` tokens. Of the shape's matrices only the embedding's type is used. Empty where `b` is no CUDA
// backend, or where its decoder does not support the shape.
std::vector<decoder_piece> time_cuda_decoder(const backend& b, const decoder_shape& shape, std::uint32_t rows,
                                             std::uint32_t context);

}  // namespace weir::kernels
