#include "kernels/cpu/backend.h"

namespace weir::kernels {
namespace {

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
