#include "kernels/cpu/backend.h"

#include <algorithm>

#include "kernels/host_memory.h"

namespace weir::kernels {
namespace {

void cpu_read(void* self, const void* at, std::uint64_t bytes) {
  constexpr std::uint64_t piece = 1u << 20;
  const auto* from = static_cast<const std::byte*>(at);
  static_cast<cpu_state*>(self)->workers.run(
      static_cast<std::uint32_t>((bytes + piece - 1) / piece), [&](std::uint32_t item, unsigned) {
        host_read(nullptr, from + item * piece, std::min(piece, bytes - item * piece));
      });
}

// The table, its name and the state that its entries get as `self`: one allocation, shared by all who use it.
struct cpu_device {
  cpu_device(unsigned threads, const simd_kernels& kernels, bool library) : state(threads, kernels, library) {
    name = std::string("cpu (") + kernels.name + (state.library.available() ? ", oneDNN)" : ")");
    table = backend{
        .name = name,
        .self = &state,
        .do_gather = cpu_gather,
        .do_rms_norm = cpu_rms_norm,
        .do_head_norm = cpu_head_norm,
        .do_linear = cpu_linear,
        .do_rotary_angles = reference_backend()->do_rotary_angles,  // once a step: the plain loop will do
        .do_rotary = cpu_rotary,
        .do_kv_write = cpu_kv_write,
        .do_attention = cpu_attention,
        .do_silu_mul = cpu_silu_mul,
        .do_add = cpu_add,
        .on_host = true,
        .do_allocate = host_allocate,
        .do_free = host_free,
        .do_upload = host_copy,
        .do_download = host_copy,
        .do_copy = host_copy,
        .free_bytes = host_free_bytes,
        .weight_bytes = host_rows_bytes,
        .do_pack = host_pack_rows,
        .do_read = cpu_read,
        .peak_flops = [](void*, dtype) { return 0.0; },
    };
  }

  cpu_state state;
  std::string name;
  backend table;
};

}  // namespace

cpu_state::cpu_state(unsigned threads, const simd_kernels& kernels, bool use_library)
    : simd(kernels), workers(threads), library(use_library), scratch(workers.size()) {}

std::shared_ptr<const backend> make_cpu_backend(unsigned threads, const simd_kernels& kernels, bool library) {
  auto device = std::make_shared<cpu_device>(threads, kernels, library);
  const backend* table = &device->table;
  return {std::move(device), table};
}

std::shared_ptr<const backend> cpu_backend(unsigned threads) {
  return make_cpu_backend(threads, *simd_choices().front(), true);
}

}  // namespace weir::kernels
