#include "core/model/families.h"

#include <algorithm>
#include <array>

namespace weir::core {
namespace {

using kernels::activation;
using kernels::head_norms;
using kernels::norm_place;

// Defaults are those of the family's class in transformers, where files leave the key out.
constexpr std::string_view gemma2_defaults =
    R"({"head_dim":256,"rms_norm_eps":1e-6,"rope_theta":10000,"query_pre_attn_scalar":256,
        "max_position_embeddings":8192,"sliding_window":4096,"attn_logit_softcapping":50,
        "final_logit_softcapping":30,"tie_word_embeddings":true})";
constexpr std::string_view gemma3_defaults =
    R"({"vocab_size":262208,"hidden_size":2304,"intermediate_size":9216,"num_hidden_layers":26,
        "num_attention_heads":8,"num_key_value_heads":4,"head_dim":256,"max_position_embeddings":131072,
        "rms_norm_eps":1e-6,"rope_theta":1000000,"rope_local_base_freq":10000,"sliding_window":4096,
        "query_pre_attn_scalar":256,"tie_word_embeddings":true})";
constexpr std::string_view mistral3_defaults =
    R"({"vocab_size":131072,"hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":34,
        "num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,"max_position_embeddings":262144,
        "rms_norm_eps":1e-5,"sliding_window":null,"tie_word_embeddings":false})";
constexpr std::string_view muse_defaults =
    R"({"vocab_size":202048,"hidden_size":6656,"intermediate_size":19968,"num_hidden_layers":52,
        "num_attention_heads":32,"num_key_value_heads":2,"head_dim":128,"max_position_embeddings":131072,
        "rms_norm_eps":1e-5,"rope_theta":500000,"sliding_window":2048,"final_logit_softcapping":20,
        "qk_scale_factor":3.87,"output_multiplier":0.19611613513818404,"post_norm_eps":1e-8,
        "eos_token_id":200001,"bos_token_id":200000})";
constexpr std::string_view gpt_oss_defaults =
    R"({"num_hidden_layers":36,"num_local_experts":128,"num_experts_per_tok":4,"vocab_size":201088,
        "hidden_size":2880,"intermediate_size":2880,"head_dim":64,"num_attention_heads":64,
        "num_key_value_heads":8,"sliding_window":128,"rms_norm_eps":1e-5,"attention_bias":true,
        "max_position_embeddings":131072,"rope_theta":150000,
        "rope_scaling":{"rope_type":"yarn","factor":32,"beta_fast":32,"beta_slow":1,"truncate":false,
                        "original_max_position_embeddings":4096}})";
constexpr std::string_view granite_keys =
    " attention_bias mlp_bias embedding_multiplier attention_multiplier residual_multiplier logits_scaling ";

// The text half of a model that also sees.
constexpr family inside(family text, std::string_view wrapper) {
  text.architecture = wrapper;
  text.wrapped = true;
  return text;
}

constexpr family ministral3{.architecture = "Ministral3ForCausalLM",
                            .keys = " llama_4_scaling_beta ",
                            .defaults = mistral3_defaults,
                            .slides = windows::all_layers};
constexpr family gemma3{
    .architecture = "Gemma3ForCausalLM",
    .keys = " attention_bias query_pre_attn_scalar attn_logit_softcapping final_logit_softcapping ",
    .defaults = gemma3_defaults,
    .norms = norm_place::both,
    .names = names_both,
    .head_norms = head_norms::each,
    .activation = activation::gelu,
    .activation_key = "hidden_activation",
    .plus_one = true,
    .embed_root = true,
    .two_tables = true,
    .slides = windows::cycle,
    .full_every = 6};

constexpr std::array families{
    family{.architecture = "LlamaForCausalLM", .keys = " attention_bias mlp_bias "},
    family{.architecture = "MistralForCausalLM", .slides = windows::all_layers},
    ministral3,
    inside(ministral3, "Mistral3ForConditionalGeneration"),
    family{.architecture = "Qwen2ForCausalLM", .qkv_bias = true, .slides = windows::switched},
    family{.architecture = "Qwen3ForCausalLM",
           .keys = " attention_bias ",
           .defaults = R"({"head_dim":128})",
           .head_norms = head_norms::each,
           .slides = windows::switched},
    family{.architecture = "Gemma2ForCausalLM",
           .keys = " attention_bias query_pre_attn_scalar attn_logit_softcapping final_logit_softcapping ",
           .defaults = gemma2_defaults,
           .norms = norm_place::both,
           .names = names_both,
           .activation = activation::gelu,
           .activation_key = "hidden_activation",
           .plus_one = true,
           .embed_root = true,
           .slides = windows::cycle,
           .full_every = 2},
    gemma3,
    inside(gemma3, "Gemma3ForConditionalGeneration"),
    family{.architecture = "Phi3ForCausalLM",
           .keys = " partial_rotary_factor ",
           .defaults = R"({"sliding_window":null,"rms_norm_eps":1e-5,"eos_token_id":32000})",
           .slides = windows::all_layers},
    family{.architecture = "Olmo2ForCausalLM",
           .keys = " attention_bias ",
           .defaults = R"({"rms_norm_eps":1e-5})",
           .norms = norm_place::behind,
           .names = names_behind,
           .head_norms = head_norms::row},
    family{.architecture = "Olmo3ForCausalLM",
           .keys = " attention_bias ",
           .defaults = R"({"rms_norm_eps":1e-5,"rope_theta":500000,"sliding_window":4096})",
           .norms = norm_place::behind,
           .names = names_behind,
           .head_norms = head_norms::row,
           .two_tables = true,
           .slides = windows::cycle,
           .full_every = 4},
    family{.architecture = "GraniteForCausalLM", .keys = granite_keys},
    family{.architecture = "GraniteMoeHybridForCausalLM",
           .keys = granite_keys,
           .inter_key = "shared_intermediate_size",
           .experts = mixtures::optional,
           .expert_inter_key = "intermediate_size"},
    family{.architecture = "GraniteMoeForCausalLM",
           .keys = granite_keys,
           .experts = mixtures::needed,
           .expert_inter_key = "intermediate_size"},
    family{.architecture = "GraniteMoeSharedForCausalLM",
           .keys = granite_keys,
           .defaults = R"({"shared_intermediate_size":1024,"num_local_experts":8,"num_experts_per_tok":2})",
           .experts = mixtures::needed,
           .expert_inter_key = "intermediate_size"},
    family{.architecture = "MixtralForCausalLM",
           .defaults = R"({"sliding_window":null,"rms_norm_eps":1e-5,"rope_theta":1000000,
                           "num_local_experts":8,"num_experts_per_tok":2})",
           .slides = windows::all_layers,
           .experts = mixtures::needed,
           .expert_inter_key = "intermediate_size"},
    family{.architecture = "Qwen2MoeForCausalLM",
           .keys = " norm_topk_prob ",
           .defaults = R"({"norm_topk_prob":false,"qkv_bias":true,"num_experts_per_tok":4})",
           .slides = windows::listed,
           .experts = mixtures::needed,
           .shared_gate = true},
    family{.architecture = "Qwen3MoeForCausalLM",
           .keys = " attention_bias norm_topk_prob ",
           .defaults = R"({"norm_topk_prob":false,"num_experts_per_tok":8})",
           .head_norms = head_norms::each,
           .slides = windows::listed,
           .experts = mixtures::needed},
    family{.architecture = "Glm4MoeForCausalLM",
           .keys = " attention_bias partial_rotary_factor use_qk_norm norm_topk_prob routed_scaling_factor ",
           .defaults = R"({"partial_rotary_factor":0.5,"rms_norm_eps":1e-5,"first_k_dense_replace":1,
                           "n_shared_experts":1,"num_experts_per_tok":8})",
           .out_bias = false,
           .asked_norms = head_norms::each,
           .experts = mixtures::needed,
           .sigmoid_router = true,
           .choice_bias = true,
           .union_of_stops = true},
    family{.architecture = "MiniMaxM2ForCausalLM",
           .keys = " partial_rotary_factor use_qk_norm ",
           .head_norms = head_norms::row,
           .asked_norms = head_norms::row,
           .experts = mixtures::needed,
           .expert_inter_key = "intermediate_size",
           .sigmoid_router = true,
           .choice_bias = true},
    family{.architecture = "GptOssForCausalLM",
           .keys = " attention_bias swiglu_limit ",
           .defaults = gpt_oss_defaults,
           .activation = activation::clamped,
           .activation_key = "",
           .sinks = true,
           .slides = windows::cycle,
           .full_every = 2,
           .experts = mixtures::needed,
           .expert_inter_key = "intermediate_size",
           .router_bias = true,
           .expert_bias = true,
           .inputs_first = true,
           .union_of_stops = true},
    family{.architecture = "SmolLM3ForCausalLM",
           .keys = " attention_bias mlp_bias no_rope_layers no_rope_layer_interval ",
           .defaults = R"({"rope_theta":2000000,"tie_word_embeddings":true,"no_rope_layer_interval":4})",
           .slides = windows::switched,
           .rotation = turns::listed},
    family{.architecture = "Glm4ForCausalLM",
           .keys = " attention_bias partial_rotary_factor ",
           .defaults = R"({"head_dim":128,"partial_rotary_factor":0.5,"rms_norm_eps":1.5625e-7})",
           .norms = norm_place::both,
           .names = names_both_glm,
           .side_by_side = true,
           .out_bias = false},
    family{.architecture = "CohereForCausalLM",
           .keys = " attention_bias logit_scale use_qk_norm ",
           .defaults = R"({"layer_norm_eps":1e-5,"logit_scale":0.0625,"tie_word_embeddings":true})",
           .norms = norm_place::parallel,
           .names = names_parallel,
           .eps_key = "layer_norm_eps",
           .centred_norms = true,
           .side_by_side = true},
    family{.architecture = "Cohere2ForCausalLM",
           .keys = " attention_bias logit_scale ",
           .defaults = R"({"layer_norm_eps":1e-5,"logit_scale":0.0625,"tie_word_embeddings":true,
                           "sliding_window":4096})",
           .norms = norm_place::parallel,
           .names = names_parallel,
           .eps_key = "layer_norm_eps",
           .centred_norms = true,
           .side_by_side = true,
           .slides = windows::cycle,
           .full_every = 4,
           .rotation = turns::sliding},
    family{.architecture = "SeedOssForCausalLM",
           .keys = " attention_bias attention_out_bias mlp_bias ",
           .defaults = R"({"head_dim":128,"attention_bias":true,"attention_out_bias":false})",
           .out_bias = false},
    family{.architecture = "Exaone4ForCausalLM",
           .defaults = R"({"rms_norm_eps":1e-5,"sliding_window":4096,"sliding_window_pattern":4})",
           .norms = norm_place::behind,
           .names = names_behind,
           .head_norms = head_norms::each,
           .slides = windows::cycle,
           .full_every = 4,
           .rotation = turns::sliding},
    family{
        .architecture = "Ernie4_5ForCausalLM",
        .keys = " use_bias ",
        .defaults = R"({"head_dim":128,"rms_norm_eps":1e-5,"rope_theta":500000,"tie_word_embeddings":true})",
        .side_by_side = true},
    family{.architecture = "Ernie4_5_MoeForCausalLM",
           .keys = " use_bias ",
           .defaults = R"({"rms_norm_eps":1e-5,"rope_theta":500000,"tie_word_embeddings":true,
                           "moe_num_experts":64,"moe_k":6,"moe_num_shared_experts":2,
                           "moe_layer_start_index":1,"moe_layer_end_index":-1,"moe_layer_interval":1})",
           .side_by_side = true,
           .experts = mixtures::needed,
           .choice_bias = true},
    family{.architecture = "NemotronForCausalLM",
           .keys = " attention_bias mlp_bias partial_rotary_factor ",
           .defaults = R"({"norm_eps":1e-5,"partial_rotary_factor":0.5,"hidden_act":"relu2"})",
           .activation = activation::relu2,
           .eps_key = "norm_eps",
           .gated_mlp = false,
           .centred_norms = true,
           .norm_bias = true,
           .plus_one = true},
    family{.architecture = "MuseGlimmerForConditionalGeneration",
           .keys = " attention_bias final_logit_softcapping qk_scale_factor output_multiplier post_norm_eps "
                   "layer_rope_theta ",
           .defaults = muse_defaults,
           .wrapped = true,
           .norms = norm_place::both,
           .names = names_both,
           .head_norms = head_norms::each,
           .activation_key = "hidden_activation",
           .gated_attention = true,
           .plus_one = true,
           .final_plain = true,
           .weightless_heads = true,
           .embed_norm = true,
           .slides = windows::cycle,
           .full_every = 4,
           .from_end = true,
           .rotation = turns::sliding},
};

constexpr std::array<std::string_view, 15> passed_over{"vision_tower.",
                                                       "vision_model.",
                                                       "visual.",
                                                       "multi_modal_projector.",
                                                       "audio_tower.",
                                                       "mtp.",
                                                       "model.visual.",
                                                       "model.vision_tower.",
                                                       "model.audio_tower.",
                                                       "model.embed_vision.",
                                                       "model.embed_audio.",
                                                       "model.multi_modal_projector.",
                                                       "model.vision_adapter.",
                                                       "model.vision_projection.",
                                                       "model.perception_emb_norm."};

constexpr std::array<std::string_view, 2> drafts{"mtp.", "model.mtp_"};

}  // namespace

std::span<const family> all_families() { return families; }

const family* find_family(std::string_view architecture) {
  const auto* found = std::ranges::find(families, architecture, &family::architecture);
  return found == families.end() ? nullptr : found;
}

std::span<const std::string_view> passed_over_prefixes() { return passed_over; }

std::span<const std::string_view> draft_prefixes() { return drafts; }

}  // namespace weir::core
