// families.h — the families of models, one row of data each: what config.json leaves unsaid.
//
// A reader that knows the rows (config.cpp) has no other word about any family. What a family adds to them is
// a key of its config (key_use) or a member of `family`. docs/models.md lists the families.
//
// Thread safety: constants; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/model_shape.h"

namespace weir::core {

// Which layers have a sliding window. switched: use_sliding_window and max_window_layers decide. listed:
// use_sliding_window and layer_types decide. cycle: all but every n-th layer, where layer_types does not say.
enum class windows { none, all_layers, switched, listed, cycle };

// Whether layers are mixtures of experts. optional: where the config says that there are experts.
enum class mixtures { none, optional, needed };

// Which layers turn queries and keys. sliding: those with a window, or all where the model has none.
// listed: no_rope_layers says.
enum class turns { all, sliding, listed };

// Names of a layer's norms between "model.layers.N." and ".weight"; empty: it has no such norm.
struct norm_names {
  std::string_view attention, attention_behind, mlp, mlp_behind;
};
inline constexpr norm_names names_before{"input_layernorm", "", "post_attention_layernorm", ""};
inline constexpr norm_names names_behind{"", "post_attention_layernorm", "", "post_feedforward_layernorm"};
inline constexpr norm_names names_both{"input_layernorm", "post_attention_layernorm",
                                       "pre_feedforward_layernorm", "post_feedforward_layernorm"};
inline constexpr norm_names names_both_glm{"input_layernorm", "post_self_attn_layernorm",
                                           "post_attention_layernorm", "post_mlp_layernorm"};
inline constexpr norm_names names_parallel{"input_layernorm", "", "", ""};

struct family {
  std::string_view architecture;
  // Keys that change the arithmetic and that models of this family have, with spaces around each. Any other
  // such key is refused unless its value changes nothing (config.cpp, switches).
  std::string_view keys = " ";
  std::string_view defaults = "{}";  // JSON: keys that files of this family may leave out
  bool wrapped = false;  // the keys are in text_config, inside the config of a model that also sees
  kernels::norm_place norms = kernels::norm_place::before;
  norm_names names = names_before;
  kernels::head_norms head_norms = kernels::head_norms::none;
  kernels::activation activation = kernels::activation::silu;
  std::string_view activation_key = "hidden_act";
  std::string_view eps_key = "rms_norm_eps";
  std::string_view inter_key = "intermediate_size";
  bool gated_mlp = true;          // the feed-forward has a gate
  bool gated_attention = false;   // a gate_proj beside q, k and v
  bool centred_norms = false;     // LayerNorm
  bool norm_bias = false;         // norms have biases
  bool plus_one = false;          // norms multiply by 1 + weight
  bool final_plain = false;       // the last norm does not, where the others do
  bool weightless_heads = false;  // norms of queries and keys have no weights
  bool embed_root = false;        // the embedding times the root of its width
  bool embed_norm = false;        // the embedding is normed
  bool side_by_side = false;      // a rotation turns neighbours, and not element i with i + half
  bool qkv_bias = false;          // every model of the family has these
  bool out_bias = true;           // attention_bias means out_proj's as well
  bool sinks = false;             // each head has a score without a key
  kernels::head_norms asked_norms = kernels::head_norms::own;  // what use_qk_norm asks for
  bool two_tables = false;  // rope_scaling is of full layers alone, rope_local_base_freq of the others
  windows slides = windows::none;
  std::uint32_t full_every = 0;  // cycle: layer i is full where i + 1 is a multiple of this
  bool from_end = false;         // cycle: counted from the last layer, which is full
  turns rotation = turns::all;
  mixtures experts = mixtures::none;
  std::string_view expert_inter_key = "moe_intermediate_size";
  bool sigmoid_router = false;  // scores are sigmoids
  bool choice_bias = false;     // a bias is added to scores for the choice alone
  bool router_bias = false;
  bool expert_bias = false;
  bool shared_gate = false;     // the shared expert is multiplied by a sigmoid
  bool inputs_first = false;    // merged experts are [experts, inputs, outputs], gate and up alternate
  bool union_of_stops = false;  // stop tokens are those of config.json and of generation_config.json
};

std::span<const family> all_families();
const family* find_family(std::string_view architecture);

// Names of tensors that a wrapper has beside its text half. They are passed over.
std::span<const std::string_view> passed_over_prefixes();

// Names of tensors of draft layers that stand outside of the model's layers. They are passed over.
std::span<const std::string_view> draft_prefixes();

}  // namespace weir::core
