// The weights of mixtures of experts: which they are, and where they lie.
#include <algorithm>
#include <iterator>

#include "core/model/layer_placer.h"

namespace weir::core {
namespace {

using kernels::dtype;
using u64 = std::uint64_t;

}  // namespace

void layer_placer::place_router(kernels::expert_weights& e) {
  const std::string gate = at_ + "mlp.gate.";
  const std::uint32_t experts = layer_.mlp.router.experts, hidden = c_.shape.hidden;
  const weight_part router{gate + "weight", experts}, shared{at_ + "mlp.shared_expert_gate.weight", 1};
  e.router = layer_.mlp.shared_gate ? place_.rows({router, shared}, hidden) : place_.rows({router}, hidden);
  if (c_.stored.router_bias) e.router_bias = place_.vector({{gate + "bias", experts}});
  if (layer_.mlp.router.choice_bias)
    e.choice_bias = place_.vector({{gate + "e_score_correction_bias", experts}});
}

// The parts that an expert's gate and up have in the files.
std::vector<weight_part> layer_placer::gate_up_of(const std::string& expert, const char* ending) const {
  const std::uint32_t inter = layer_.mlp.inter;
  const weight_part fused{expert + "gate_up_proj" + ending, layer_.mlp.width()};
  if (place_.has(fused.name)) return {fused};
  if (!layer_.mlp.gated) return {{expert + "up_proj" + ending, inter}};
  return {{expert + "gate_proj" + ending, inter}, {expert + "up_proj" + ending, inter}};
}

void layer_placer::place_experts(kernels::expert_weights& e) {
  std::vector<std::vector<weight_part>> first, second;
  std::vector<weight_part> first_bias, second_bias;
  for (std::uint32_t i = 0; i < layer_.mlp.router.experts; ++i) {
    const std::string expert = fmt::format("{}mlp.experts.{}.", at_, i);
    first.push_back(gate_up_of(expert, ".weight"));
    second.push_back({{expert + "down_proj.weight", c_.shape.hidden}});
    std::ranges::move(gate_up_of(expert, ".bias"), std::back_inserter(first_bias));
    second_bias.push_back({expert + "down_proj.bias", c_.shape.hidden});
  }
  e.gate_up = place_.experts(first, c_.shape.hidden);
  e.down = place_.experts(second, layer_.mlp.inter);
  if (!c_.stored.expert_bias) return;
  e.gate_up_bias = place_.vector(first_bias);
  e.down_bias = place_.vector(second_bias);
}

kernels::expert_matrices placer::experts(const std::vector<std::vector<weight_part>>& all,
                                         std::uint32_t cols) {
  const dtype type = type_of_all(all, cols);
  kernels::expert_matrices out;
  out.count = static_cast<std::uint32_t>(all.size());
  for (const std::vector<weight_part>& parts : all) {
    const kernels::matrix m = one(parts, cols, type);
    if (&parts == &all.front()) out.first = m;
  }
  const u64 bytes = on_.weight_bytes(on_.self, out.first.type, out.first.rows, out.first.cols);
  out.stride = (bytes + alignment - 1) / alignment * alignment;
  return out;
}

void placer::need_experts() {
  if (on_.do_route && on_.do_expert_linear && on_.do_mix_experts) return;
  fail(errc::not_supported, fmt::format("device {} does not run mixtures of experts yet", on_.name));
}

// The type of the matrices of experts.
dtype placer::type_of_all(const std::vector<std::vector<weight_part>>& all, std::uint32_t cols) {
  std::optional<dtype> type;
  const weight_part* of = nullptr;
  for (const std::vector<weight_part>& parts : all)
    for (const weight_part& p : parts) {
      const dtype found = check(p.name, {p.rows, cols});
      refuse_order(p);
      if (!type) of = &p;
      if (type.value_or(found) != found && kernels::is_plain(*type) && kernels::is_plain(found))
        type = dtype::f32;
      else if (type.value_or(found) != found)
        refuse_types(*of, *type, p, found);
      else
        type = found;
    }
  return *type;
}

void placer::refuse_types(const weight_part& a, dtype first, const weight_part& b, dtype second) {
  fail(errc::not_supported,
       fmt::format("tensors '{}' and '{}': experts of types {} and {} are not supported yet",
                   from_->spelled(a.name), from_->spelled(b.name), kernels::name(first),
                   kernels::name(second)));
}

void placer::refuse_order(const weight_part& p) {
  if (inputs_of(p))
    fail(errc::not_supported,
         fmt::format("tensor '{}': experts whose inputs are in groups of another order, or do not fill "
                     "blocks of 32, are not supported yet",
                     from_->spelled(p.name)));
}

}  // namespace weir::core
