#include "kernels/cpu/backend.h"

#include <stdexcept>

#include "kernels/cpu/self_test.h"
#include "kernels/host_memory.h"

namespace weir::kernels {
namespace {

// The table, its name, and the state that its entries get as `self`: one allocation, shared by all users.
struct cpu_device {
  cpu_device(unsigned threads, const cpu_paths& paths, activation_type x)
      : state(threads, *paths.simd, paths.amx, x), name(paths.name) {
    table = backend{
        .name = name,
        .self = &state,
        .begin_step = [](void* self) { static_cast<cpu_state*>(self)->workers.begin_step(); },
        .end_step = [](void* self) { static_cast<cpu_state*>(self)->workers.end_step(); },
        .do_gather = cpu_gather,
        .do_row_norm = cpu_row_norm,
        .do_head_norm = cpu_head_norm,
        .do_linear = cpu_linear,
        .do_rotary_angles = reference_backend()->do_rotary_angles,  // once a step: the plain loop is enough
        .do_rotary = cpu_rotary,
        .do_kv_write = cpu_kv_write,
        .do_attention = cpu_attention,
        .do_activate = cpu_activate,
        .do_sigmoid_mul = cpu_sigmoid_mul,
        .do_route = cpu_route,
        .do_expert_linear = cpu_expert_linear,
        .do_mix_experts = cpu_mix_experts,
        .do_add = cpu_add,
        .do_soft_cap = cpu_soft_cap,
        .on_host = true,
        .do_allocate = host_allocate,
        .do_free = host_free,
        .do_reserve = host_reserve,
        .pieces = host_pieces,
        .do_give_back = host_give_back,
        .do_take_again = host_take_again,
        .do_upload = host_move,
        .do_download = host_move,
        .do_copy = host_copy,
        .free_bytes = host_free_bytes,
        .weight_bytes = cpu_weight_bytes,
        .do_pack = cpu_pack,
        .takes_blocks = [](void*, dtype) { return true; },
        .stores_kv = [](void*, kv_type) { return true; },
        .do_read = cpu_read,
        .peak_flops = cpu_peak_flops,
    };
  }

  cpu_state state;
  std::string name;
  backend table;
};

std::shared_ptr<const backend> make(unsigned threads, const cpu_paths& paths, activation_type x) {
  auto device = std::make_shared<cpu_device>(threads, paths, x);
  const backend* table = &device->table;
  return {std::move(device), table};
}

}  // namespace

cpu_state::cpu_state(unsigned threads, const simd_kernels& kernels, const product_path* matrix_unit,
                     activation_type x)
    : simd(kernels),
      workers(threads),
      amx(matrix_unit),
      activations(x),
      multiplier(workers.size()),
      experts(workers.size()),
      attention_scratch(workers.size()) {}

cpu_paths choose_paths(std::span<const simd_kernels* const> simd, const product_path* amx,
                       activation_type x) {
  cpu_paths p;
  std::string failed;
  for (const simd_kernels* each : simd) {
    bool exact = true;
    for (std::size_t i = 0; i < dtype_count; ++i) {
      const auto type = static_cast<dtype>(i);
      exact = exact && is_exact(is_plain(type) ? *each->products : *each->blocks, type);
      const product_path* dots = x == activation_type::int8 ? each->dots(type) : nullptr;
      exact = exact && (!dots || is_exact(*dots, type));
    }
    if (exact) {
      p.simd = each;
      break;
    }
    failed += std::string("; ") + each->name + " failed its self-test";
  }
  if (!p.simd) throw std::runtime_error("cpu" + failed);
  if (amx && is_exact(*amx, dtype::bf16)) p.amx = amx;
  if (amx && !p.amx) failed += "; amx-bf16 failed its self-test";
  p.name = std::string("cpu (") + p.simd->name + (p.amx ? ", amx-bf16" : "") +
           (x == activation_type::int8 ? ", int8 activations" : "") + failed + ")";
  return p;
}

std::shared_ptr<const backend> make_cpu_backend(unsigned threads, const simd_kernels& kernels,
                                                bool matrix_unit, activation_type x) {
  const simd_kernels* only[] = {&kernels};
  return make(threads, choose_paths(only, matrix_unit ? amx_products() : nullptr, x), x);
}

std::shared_ptr<const backend> cpu_backend(unsigned threads) {
  return cpu_backend(threads, activation_type::f32);
}

std::shared_ptr<const backend> cpu_backend(unsigned threads, activation_type x) {
  if (x == activation_type::int8) {
    static const cpu_paths found = choose_paths(simd_choices(), amx_products(), x);
    return make(threads, found, x);
  }
  static const cpu_paths found = choose_paths(simd_choices(), amx_products());
  return make(threads, found, x);
}

}  // namespace weir::kernels
