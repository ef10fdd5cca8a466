#include "core/model/load/gguf_names.h"

#include <array>
#include <optional>

namespace weir::core {
namespace {

struct pair_of_names {
  std::string_view gguf, hugging_face;
};
constexpr std::array whole{
    pair_of_names{"token_embd.weight", "model.embed_tokens.weight"},
    pair_of_names{"output_norm.weight", "model.norm.weight"},
    pair_of_names{"output.weight", "lm_head.weight"},
};
// Of a layer, between its number and ".weight" or ".bias".
constexpr std::array in_layer{
    pair_of_names{"attn_norm", "input_layernorm"},    pair_of_names{"attn_q", "self_attn.q_proj"},
    pair_of_names{"attn_k", "self_attn.k_proj"},      pair_of_names{"attn_v", "self_attn.v_proj"},
    pair_of_names{"attn_output", "self_attn.o_proj"}, pair_of_names{"attn_q_norm", "self_attn.q_norm"},
    pair_of_names{"attn_k_norm", "self_attn.k_norm"}, pair_of_names{"ffn_norm", "post_attention_layernorm"},
    pair_of_names{"ffn_gate", "mlp.gate_proj"},       pair_of_names{"ffn_up", "mlp.up_proj"},
    pair_of_names{"ffn_down", "mlp.down_proj"},
};

using spelling = std::string_view pair_of_names::*;

// "PREFIX" + layer + "." + part + "." + kind, with the part spelled otherwise.
std::optional<std::string> rename_in_layer(std::string_view name, std::string_view prefix,
                                           std::string_view new_prefix, spelling from, spelling to) {
  if (!name.starts_with(prefix)) return std::nullopt;
  const std::string_view rest = name.substr(prefix.size());
  const std::size_t dot = rest.find('.'), last = rest.rfind('.');
  if (dot == rest.npos || dot == last || dot == 0) return std::nullopt;
  const std::string_view part = rest.substr(dot + 1, last - dot - 1);
  for (const pair_of_names& p : in_layer)
    if (p.*from == part)
      return std::string(new_prefix) + std::string(rest.substr(0, dot + 1)) + std::string(p.*to) +
             std::string(rest.substr(last));
  return std::nullopt;
}

std::string rename(std::string_view name, std::string_view prefix, std::string_view new_prefix, spelling from,
                   spelling to) {
  for (const pair_of_names& p : whole)
    if (p.*from == name) return std::string(p.*to);
  return rename_in_layer(name, prefix, new_prefix, from, to).value_or(std::string(name));
}

}  // namespace

std::string hugging_face_name(std::string_view in_gguf) {
  return rename(in_gguf, "blk.", "model.layers.", &pair_of_names::gguf, &pair_of_names::hugging_face);
}

std::string gguf_name(std::string_view of_hugging_face) {
  return rename(of_hugging_face, "model.layers.", "blk.", &pair_of_names::hugging_face, &pair_of_names::gguf);
}

}  // namespace weir::core
