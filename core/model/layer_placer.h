// layer_placer.h — lays out the weights of one layer: which tensors it has, and what is stacked.
//
// Thread safety: as of its placer.
#pragma once

#include <string>
#include <vector>

#include "core/model/placer.h"

namespace weir::core {

class layer_placer {
 public:
  // REQUIRES: both outlive it; `number` is that of a layer
  layer_placer(const model_config& c, std::uint32_t number, placer& place);

  layer_weights lay_out();

 private:
  float more() const { return c_.stored.plus_one ? 1.0f : 0.0f; }
  kernels::norm_weight norm(std::string_view name);
  const float* head_norm(const std::string& name, std::uint32_t heads);
  void place_attention(layer_weights& w);
  void place_feed_forward(layer_weights& w);
  void place_router(kernels::expert_weights& e);
  std::vector<weight_part> gate_up_of(const std::string& expert, const char* ending) const;
  void place_experts(kernels::expert_weights& e);
  void place_mlp(layer_weights& w, const std::string& mlp, std::uint32_t inter, bool bias);

  const model_config& c_;
  const kernels::layer_shape& layer_;
  const std::string at_;
  placer& place_;
};

}  // namespace weir::core
