// backend.h — what the cpu backend's operations share: instruction set, threads, scratch memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/products.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/team.h"
#include "kernels/ops.h"

namespace weir::kernels {

// Consecutive rows of one slice.
struct row_block {
  std::uint32_t slice = 0, first = 0, rows = 0;
};

struct cpu_state {
  cpu_state(unsigned threads, const simd_kernels& kernels, bool library);

  const simd_kernels& simd;
  team workers;
  products library;                         // oneDNN's matrix products, or nothing
  std::vector<std::vector<float>> scratch;  // one a worker
  std::vector<row_block> blocks;            // of the operation at hand
  std::vector<float> parts;                 // of attention that several workers share
};

// The same as cpu_backend with a choice of instruction set, with or without the library: for tests.
std::shared_ptr<const backend> make_cpu_backend(unsigned threads, const simd_kernels& kernels, bool library);

void cpu_gather(void* self, const gather&);
void cpu_rms_norm(void* self, const rms_norm&);
void cpu_head_norm(void* self, const head_norm&);
void cpu_linear(void* self, const linear&);
void cpu_rotary(void* self, const rotary&);
void cpu_kv_write(void* self, const kv_write&);
void cpu_attention(void* self, const attention&);
void cpu_silu_mul(void* self, const silu_mul&);
void cpu_add(void* self, const add&);

}  // namespace weir::kernels
