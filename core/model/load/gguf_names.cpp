#include "core/model/load/gguf_names.h"

#include <array>
#include <optional>
#include <span>

namespace weir::core {
namespace {

using pair = gguf_names::pair;
using spelling = std::string_view pair::*;

constexpr std::array whole{
    pair{"token_embd.weight", "model.embed_tokens.weight"},
    pair{"output_norm.weight", "model.norm.weight"},
    pair{"output_norm.bias", "model.norm.bias"},
    pair{"output.weight", "lm_head.weight"},
};
constexpr std::array everywhere{
    pair{"attn_q", "self_attn.q_proj"},
    pair{"attn_k", "self_attn.k_proj"},
    pair{"attn_v", "self_attn.v_proj"},
    pair{"attn_qkv", "self_attn.qkv_proj"},
    pair{"attn_gate", "self_attn.gate_proj"},
    pair{"attn_output", "self_attn.o_proj"},
    pair{"attn_q_norm", "self_attn.q_norm"},
    pair{"attn_k_norm", "self_attn.k_norm"},
    pair{"ffn_gate", "mlp.gate_proj"},
    pair{"ffn_down", "mlp.down_proj"},
    pair{"attn_sinks", "self_attn.sinks"},
    pair{"ffn_gate_inp", "mlp.gate"},
    pair{"exp_probs_b", "mlp.gate.e_score_correction_bias"},
    pair{"ffn_gate_exps", "mlp.experts.gate_proj"},
    pair{"ffn_up_exps", "mlp.experts.up_proj"},
    pair{"ffn_gate_up_exps", "mlp.experts.gate_up_proj"},
    pair{"ffn_down_exps", "mlp.experts.down_proj"},
    pair{"ffn_gate_shexp", "mlp.shared_expert.gate_proj"},
    pair{"ffn_up_shexp", "mlp.shared_expert.up_proj"},
    pair{"ffn_down_shexp", "mlp.shared_expert.down_proj"},
    pair{"ffn_gate_inp_shexp", "mlp.shared_expert_gate"},
};

// "PREFIX" + layer + "." + part + "." + kind, with the part spelled otherwise.
std::optional<std::string> rename_in_layer(std::string_view name, std::string_view prefix,
                                           std::string_view new_prefix, std::span<const pair> parts,
                                           spelling from, spelling to) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string_view rest = name.substr(prefix.size());
  const std::size_t dot = rest.find('.'), last = rest.rfind('.');
  if (dot == rest.npos || dot == last || dot == 0) return std::nullopt;
  const std::string_view part = rest.substr(dot + 1, last - dot - 1);
  for (const pair& p : parts)
    if (p.*from == part)
      return std::string(new_prefix) + std::string(rest.substr(0, dot + 1)) + std::string(p.*to) +
             std::string(rest.substr(last));
  return std::nullopt;
}

std::string rename(std::string_view name, std::string_view prefix, std::string_view new_prefix,
                   std::span<const pair> parts, spelling from, spelling to) {
  for (const pair& p : whole)
    if (p.*from == name) return std::string(p.*to);
  return rename_in_layer(name, prefix, new_prefix, parts, from, to).value_or(std::string(name));
}

}  // namespace

gguf_names::gguf_names(const gguf_architecture& a, const family& f)
    : in_layer_(everywhere.begin(), everywhere.end()) {
  in_layer_.push_back({"ffn_up", a.fused_up ? "mlp.gate_up_proj" : "mlp.up_proj"});
  for (const pair& norm :
       {pair{"attn_norm", f.names.attention}, pair{"post_attention_norm", f.names.attention_behind},
        pair{a.mlp_norm, f.names.mlp}, pair{"post_ffw_norm", f.names.mlp_behind}})
    if (!norm.hugging_face.empty()) in_layer_.push_back(norm);
}

std::string gguf_names::hugging_face_name(std::string_view in_gguf) const {
  return rename(in_gguf, "blk.", "model.layers.", in_layer_, &pair::gguf, &pair::hugging_face);
}

std::string gguf_names::gguf_name(std::string_view of_hugging_face) const {
  return rename(of_hugging_face, "model.layers.", "blk.", in_layer_, &pair::hugging_face, &pair::gguf);
}

}  // namespace weir::core
