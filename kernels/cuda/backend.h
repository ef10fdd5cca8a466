// backend.h — CUDA devices as backends. In a build without CUDA these functions report that there are none
// (none.cpp).
//
// Thread safety: find_cuda() and cuda_devices() from any thread; a backend as kernels/ops.h says.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cuda/device/facts.h"
#include "kernels/cuda/device/machine.h"
#include "kernels/cuda/device/nvml.h"
#include "kernels/decoder.h"
#include "kernels/ops.h"

namespace weir::kernels {

// Asks the CUDA driver for its devices.
cuda_machine find_cuda();

// The number of CUDA devices that find_cuda() finds. Where it is 0, `why_none` is set to the reason.
int cuda_devices(std::string& why_none);

// Opens device `index` as a backend. Returns null where that fails, and sets `why_not` to the reason. With
// `deterministic` a row's bits depend on that row alone, whatever is computed beside it; the faster kernels
// for few and for many rows are then not used (docs/kernels.md). The environment's WEIR_CUDA_PATH=general
// chooses the kernels of compute capability 8.0 on every device, and WEIR_CUDA_BLAS=off does without
// cuBLASLt, for tests.
std::shared_ptr<const backend> cuda_backend(int index, std::string& why_not, bool deterministic = false);

// The facts that sizes in the memory of this backend's device depend on; nullopt: it is no CUDA backend.
std::optional<cuda_facts> facts_of(const backend& b);

// A backend that computes nothing: its table has the entries alone that say which weights, pages and decoders
// a device with these facts takes, and how many bytes these have there. It needs no device, nor a build with
// CUDA. Any thread may use it.
std::shared_ptr<const backend> cuda_sizes(const cuda_facts& facts);

// Reads the state of CUDA device `index` (nvml.h).
device_state cuda_state(int index);

// The same for the device of backend `b`. Where `b` is no CUDA backend, `why_unknown` says so.
device_state state_of(const backend& b);

// Measures each piece of the decoder of `shape` alone, for benchmarks: with `rows` rows and contexts of
// `context` tokens. Of the shape's matrices only the embedding's type is used. Empty where `b` is no CUDA
// backend, or where its decoder does not support the shape.
std::vector<decoder_piece> time_cuda_decoder(const backend& b, const decoder_shape& shape, std::uint32_t rows,
                                             std::uint32_t context);

}  // namespace weir::kernels
