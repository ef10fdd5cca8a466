#include "core/model/layer_placer.h"

namespace weir::core {

layer_placer::layer_placer(const model_config& c, std::uint32_t number, placer& place)
    : c_(c), layer_(c.shape.layers[number]), at_(fmt::format("model.layers.{}.", number)), place_(place) {}

layer_weights layer_placer::lay_out() {
  const norm_names& names = c_.stored.norms;
  layer_weights w;
  w.attention_norm = norm(names.attention);
  place_attention(w);
  w.attention_behind = norm(names.attention_behind);
  w.mlp_norm = norm(names.mlp);
  place_feed_forward(w);
  w.mlp_behind = norm(names.mlp_behind);
  return w;
}

kernels::norm_weight layer_placer::norm(std::string_view name) {
  if (name.empty()) return {};
  const std::string full = at_ + std::string(name);
  kernels::norm_weight n{place_.norm(full + ".weight", 1, c_.shape.hidden, more()), nullptr};
  if (c_.stored.norm_bias) n.bias = place_.vector({{full + ".bias", c_.shape.hidden}});
  return n;
}

const float* layer_placer::head_norm(const std::string& name, std::uint32_t heads) {
  const kernels::attention_mixer& a = layer_.mixer;
  if (c_.stored.weightless_heads) return place_.ones(a.head_dim);
  const bool row = a.norms == kernels::head_norms::row, own = a.norms == kernels::head_norms::own;
  return place_.norm(name, own ? heads : 1, row ? heads * a.head_dim : a.head_dim, more());
}

void layer_placer::place_attention(layer_weights& w) {
  const kernels::attention_mixer& a = layer_.mixer;
  const std::uint32_t q = a.q_width(), kv = a.kv_width(), hidden = c_.shape.hidden;
  const std::string attn = at_ + "self_attn.", fused = attn + "qkv_proj";
  if (place_.has(fused + ".weight")) {
    w.qkv = place_.stack({{fused + ".weight", a.width()}}, hidden);
    if (c_.stored.qkv_bias) w.qkv.bias = place_.vector({{fused + ".bias", a.width()}});
  } else {
    std::vector<weight_part> parts{
        {attn + "q_proj.weight", q}, {attn + "k_proj.weight", kv}, {attn + "v_proj.weight", kv}};
    if (a.gated) parts.push_back({attn + "gate_proj.weight", q});
    w.qkv = place_.stack(parts, hidden);
    if (c_.stored.qkv_bias && a.gated)
      place_.refuse(fmt::format("biases of queries, keys and values beside {}gate_proj", attn));
    if (c_.stored.qkv_bias)
      w.qkv.bias =
          place_.vector({{attn + "q_proj.bias", q}, {attn + "k_proj.bias", kv}, {attn + "v_proj.bias", kv}});
  }
  if (a.norms != kernels::head_norms::none) {
    w.q_norm = head_norm(attn + "q_norm.weight", a.heads);
    w.k_norm = head_norm(attn + "k_norm.weight", a.kv_heads);
  }
  if (a.sinks) w.sinks = place_.vector({{attn + "sinks", a.heads}});
  w.out.w = place_.matrix({attn + "o_proj.weight", hidden}, q);
  if (c_.stored.out_bias) w.out.bias = place_.vector({{attn + "o_proj.bias", hidden}});
}

void layer_placer::place_feed_forward(layer_weights& w) {
  if (!layer_.mlp.is_mixture()) return place_mlp(w, at_ + "mlp.", layer_.mlp.inter, c_.stored.mlp_bias);
  place_.need_experts();
  place_router(w.experts);
  place_experts(w.experts);
  if (layer_.mlp.shared) place_mlp(w, at_ + "mlp.shared_expert.", layer_.mlp.shared, c_.stored.mlp_bias);
}

// A dense feed-forward, or the shared expert of a mixture, of `inter`.
void layer_placer::place_mlp(layer_weights& w, const std::string& mlp, std::uint32_t inter, bool bias) {
  const std::uint32_t width = layer_.mlp.gated ? 2 * inter : inter, hidden = c_.shape.hidden;
  const bool shared = place_.has(at_ + "shared_mlp.input_linear.weight");
  const std::string fused = shared ? at_ + "shared_mlp.input_linear" : mlp + "gate_up_proj";
  const std::string gate = mlp + "gate_proj", up = mlp + "up_proj";
  const std::string down = shared ? at_ + "shared_mlp.output_linear" : mlp + "down_proj";
  if (place_.has(fused + ".weight")) {
    w.gate_up = place_.stack({{fused + ".weight", width}}, hidden);
    if (bias) w.gate_up.bias = place_.vector({{fused + ".bias", width}});
  } else if (layer_.mlp.gated) {
    w.gate_up = place_.stack({{gate + ".weight", inter}, {up + ".weight", inter}}, hidden);
    if (bias) w.gate_up.bias = place_.vector({{gate + ".bias", inter}, {up + ".bias", inter}});
  } else {
    w.gate_up = place_.stack({{up + ".weight", inter}}, hidden);
    if (bias) w.gate_up.bias = place_.vector({{up + ".bias", inter}});
  }
  w.down.w = place_.matrix({down + ".weight", hidden}, inter);
  if (bias) w.down.bias = place_.vector({{down + ".bias", hidden}});
}

}  // namespace weir::core
