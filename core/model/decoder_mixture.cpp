// The feed-forwards of a decoder_model, dense ones and mixtures of experts; and its totals that depend on
// experts: the type of its linears, and the bytes that a step reads.
#include "core/model/decoder_model.h"

#include <cmath>

namespace weir::core {

kernels::dtype decoder_model::linear_type() const noexcept {
  for (const layer_weights& l : weights_.layers)
    if (l.experts.down.count > 0) return l.experts.down.first.type;
  return weights_.layers.front().down.w.type;
}

std::uint64_t decoder_model::bytes_of_a_step(std::uint32_t rows) const noexcept {
  double left_out = 0;  // of experts that no row chooses
  for (std::size_t i = 0; i < weights_.layers.size(); ++i) {
    const kernels::expert_router& router = config_.shape.layers[i].mlp.router;
    if (router.experts == 0) continue;
    const kernels::expert_weights& e = weights_.layers[i].experts;
    const double none = std::pow(1 - double{1} * router.chosen / router.experts, rows);
    left_out += static_cast<double>(e.gate_up.stride + e.down.stride) * router.experts * none;
  }
  return weights_of_a_step().size() - static_cast<std::uint64_t>(left_out);
}

void decoder_model::feed_forward(std::uint32_t layer, std::uint32_t rows) {
  const layer_weights& w = weights_.layers[layer];
  const kernels::layer_shape& shape = config_.shape.layers[layer];
  const bool parallel = shape.norms == kernels::norm_place::parallel;
  if (shape.norm_before() && !parallel) normalise(x_, w.mlp_norm, normed_, rows, config_.shape.norm_eps);
  const kernels::buffer& x = shape.norm_before() ? normed_ : x_;
  if (shape.mlp.is_mixture())
    mix_experts(layer, x, rows);
  else
    run_mlp(w, shape.mlp, shape.mlp.inter, x, branch_.floats(), rows);
  add_branch(layer, w.mlp_behind, rows);
}

// Runs a dense feed-forward, or the shared expert of a mixture, whose inner width is `inter`.
void decoder_model::run_mlp(const layer_weights& w, const kernels::feed_forward& mlp, std::uint32_t inter,
                            const kernels::buffer& x, float* out, std::uint32_t rows) {
  multiply(w.gate_up, x, gate_up_.floats(), rows);
  backend_->run(
      kernels::activate{gate_up_.floats(), inner_.floats(), rows, inter, mlp.kind, mlp.gated, mlp.limit});
  multiply(w.down, inner_, out, rows);
}

void decoder_model::mix_experts(std::uint32_t layer, const kernels::buffer& x, std::uint32_t rows) {
  const layer_weights& w = weights_.layers[layer];
  const kernels::expert_weights& e = w.experts;
  const kernels::feed_forward& mlp = config_.shape.layers[layer].mlp;
  const std::uint32_t chosen = mlp.router.chosen, slots = rows * chosen, hidden = config_.shape.hidden;
  auto* const ids = reinterpret_cast<std::int32_t*>(experts_.data());
  float* const weights = experts_.floats() + slots;
  float* const gate = mlp.shared_gate ? weights + slots : nullptr;
  backend_->run(kernels::route{x.floats(), e.router, e.router_bias, e.choice_bias, mlp.router, ids, weights,
                               gate, rows, hidden});
  float* const shared = mlp.shared ? made_.floats() + std::size_t{slots} * hidden : nullptr;
  if (shared) run_mlp(w, mlp, mlp.shared, x, shared, rows);
  backend_->run(
      kernels::expert_linear{e.gate_up, e.gate_up_bias, x.floats(), ids, gate_up_.floats(), slots, chosen});
  backend_->run(kernels::activate{gate_up_.floats(), inner_.floats(), slots, mlp.inter, mlp.kind, mlp.gated,
                                  mlp.limit});
  backend_->run(kernels::expert_linear{e.down, e.down_bias, inner_.floats(), ids, made_.floats(), slots, 1});
  backend_->run(
      kernels::mix_experts{made_.floats(), weights, shared, gate, branch_.floats(), rows, hidden, chosen});
}

}  // namespace weir::core
