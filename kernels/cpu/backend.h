// backend.h — what the operations of the cpu backend share: instruction set, threads, scratch memory.
//
// Thread safety: one thread at a time, as kernels/ops.h says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/activations.h"
#include "kernels/cpu/amx.h"
#include "kernels/cpu/experts.h"
#include "kernels/cpu/products.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/team.h"
#include "kernels/ops.h"

namespace weir::kernels {

// Consecutive rows of one slice.
struct row_block {
  std::uint32_t slice = 0, first = 0, rows = 0;
};

// What `backend::self` points to.
struct cpu_state {
  cpu_state(unsigned threads, const simd_kernels& kernels, const product_path* amx, activation_type x);

  // The way in which weights of a type are multiplied.
  const product_path& path_of(dtype type) const noexcept {
    if (activations == activation_type::int8)
      if (const product_path* dots = simd.dots(type)) return *dots;
    if (!is_plain(type)) return *simd.blocks;
    return type == dtype::bf16 && amx ? *amx : *simd.products;
  }

  const simd_kernels& simd;
  team workers;
  const product_path* amx;  // null where it is not used
  const activation_type activations;
  products multiplier;
  expert_products experts;
  scratch<float> router_products;
  std::vector<scratch<float>> attention_scratch;  // one for each worker
  std::vector<row_block> blocks;                  // of the present operation
  scratch<float> attention_parts;                 // of attention that several workers share
};

// What a backend uses: the first of `simd` whose products pass the self-test, and the matrix unit where it
// passes. `name` says which these are and which failed (backend::name).
struct cpu_paths {
  const simd_kernels* simd = nullptr;
  const product_path* amx = nullptr;
  std::string name;
};

// Chooses the paths of a backend with these activations. Throws std::runtime_error where none of `simd`
// passes. `amx` may be null.
cpu_paths choose_paths(std::span<const simd_kernels* const> simd, const product_path* amx,
                       activation_type x = activation_type::f32);

// As cpu_backend, with the given instruction set, and with the matrix unit (where there is one) or without
// it. For tests.
std::shared_ptr<const backend> make_cpu_backend(unsigned threads, const simd_kernels& kernels,
                                                bool matrix_unit, activation_type x = activation_type::f32);

std::uint64_t cpu_weight_bytes(void* self, dtype, std::uint32_t rows, std::uint32_t cols);
void cpu_pack(void* self, const matrix& rows_on_host, void* to);
void cpu_read(void* self, const void* at, std::uint64_t bytes);
double cpu_peak_flops(void* self, dtype weights);
void cpu_gather(void* self, const gather&);
void cpu_row_norm(void* self, const row_norm&);
void cpu_head_norm(void* self, const head_norm&);
void cpu_linear(void* self, const linear&);
void cpu_rotary(void* self, const rotary&);
void cpu_kv_write(void* self, const kv_write&);
void cpu_attention(void* self, const attention&);
void cpu_activate(void* self, const activate&);
void cpu_sigmoid_mul(void* self, const sigmoid_mul&);
void cpu_route(void* self, const route&);
void cpu_expert_linear(void* self, const expert_linear&);
void cpu_mix_experts(void* self, const mix_experts&);
void cpu_add(void* self, const add&);
void cpu_soft_cap(void* self, const soft_cap&);

}  // namespace weir::kernels
