#include "core/model/load/gguf_architectures.h"

#include <algorithm>
#include <array>

namespace weir::core {
namespace {

constexpr std::array caps{
    gguf_number{"attn_logit_softcapping", "attn_logit_softcapping", if_missing::of_family},
    gguf_number{"final_logit_softcapping", "final_logit_softcapping", if_missing::of_family},
};
constexpr std::array last_cap{gguf_number{"final_logit_softcapping", "final_logit_softcapping"}};
constexpr std::array granite_numbers{
    gguf_number{"logit_scale", "logits_scaling", if_missing::refused},
    gguf_number{"embedding_scale", "embedding_multiplier"},
    gguf_number{"residual_scale", "residual_multiplier"},
    gguf_number{"attention.scale", "attention_multiplier"},
};
constexpr std::array cohere_numbers{gguf_number{"logit_scale", "logit_scale"}};
constexpr std::array cohere2_numbers{gguf_number{"logit_scale", "logit_scale", if_missing::refused}};
constexpr std::array muse_numbers{
    gguf_number{"logit_scale", "output_multiplier", if_missing::refused},
    gguf_number{"final_logit_softcapping", "final_logit_softcapping", if_missing::refused},
};

// Files of the dense models of a family that may also have state space layers have the keys of those.
constexpr std::string_view state_space_keys =
    " ssm.conv_kernel ssm.state_size ssm.group_count ssm.inner_size ssm.time_step_rank "
    "expert_shared_feed_forward_length ";

constexpr gguf_architecture granite{.name = "granite",
                                    .family = "GraniteForCausalLM",
                                    .neighbours = true,
                                    .may_not_turn = true,
                                    .numbers = granite_numbers,
                                    .other_keys = state_space_keys};
constexpr gguf_architecture called(gguf_architecture a, std::string_view name) {
  a.name = name;
  return a;
}

constexpr std::array architectures{
    gguf_architecture{.name = "llama",
                      .family = "LlamaForCausalLM",
                      .windowed = "MistralForCausalLM",
                      .mixture = "MixtralForCausalLM",
                      .neighbours = true,
                      .windows = gguf_windows::all_layers},
    gguf_architecture{
        .name = "mistral3", .family = "Ministral3ForCausalLM", .neighbours = true, .growing_queries = true},
    gguf_architecture{.name = "qwen2", .family = "Qwen2ForCausalLM"},
    gguf_architecture{.name = "qwen3", .family = "Qwen3ForCausalLM"},
    gguf_architecture{.name = "gemma2",
                      .family = "Gemma2ForCausalLM",
                      .numbers = caps,
                      .windows = gguf_windows::cycle,
                      .window = 4096,
                      .full_every = 2,
                      .wide_scale_layers = 46},
    gguf_architecture{.name = "gemma3",
                      .family = "Gemma3ForCausalLM",
                      .numbers = last_cap,
                      .windows = gguf_windows::cycle,
                      .full_every = 6,
                      .window_theta = 10000,
                      .wide_scale_layers = 62},
    gguf_architecture{.name = "phi3",
                      .family = "Phi3ForCausalLM",
                      .fused_up = true,
                      .part_turns = true,
                      .windows = gguf_windows::all_layers},
    gguf_architecture{.name = "olmo2",
                      .family = "Olmo2ForCausalLM",
                      .windowed = "Olmo3ForCausalLM",
                      .windows = gguf_windows::cycle,
                      .full_every = 4},
    granite,
    called(granite, "granitehybrid"),
    gguf_architecture{.name = "granitemoe",
                      .family = "GraniteMoeForCausalLM",
                      .neighbours = true,
                      .may_not_turn = true,
                      .numbers = granite_numbers},
    gguf_architecture{.name = "qwen2moe",
                      .family = "Qwen2MoeForCausalLM",
                      .implied = R"({"norm_topk_prob":false,"qkv_bias":false})"},
    gguf_architecture{
        .name = "qwen3moe", .family = "Qwen3MoeForCausalLM", .implied = R"({"norm_topk_prob":true})"},
    gguf_architecture{.name = "glm4moe",
                      .family = "Glm4MoeForCausalLM",
                      .part_turns = true,
                      .may_norm_heads = true,
                      .mlp_norm = "post_attention_norm"},
    gguf_architecture{.name = "minimax-m2", .family = "MiniMaxM2ForCausalLM", .part_turns = true},
    gguf_architecture{.name = "gpt-oss",
                      .family = "GptOssForCausalLM",
                      .exact_yarn = true,
                      .mlp_norm = "post_attention_norm",
                      .windows = gguf_windows::cycle,
                      .window_needed = true,
                      .full_every = 2},
    gguf_architecture{.name = "smollm3", .family = "SmolLM3ForCausalLM", .neighbours = true},
    gguf_architecture{.name = "glm4",
                      .family = "Glm4ForCausalLM",
                      .neighbours = true,
                      .fused_up = true,
                      .part_turns = true},
    gguf_architecture{.name = "command-r",
                      .family = "CohereForCausalLM",
                      .neighbours = true,
                      .may_norm_heads = true,
                      .numbers = cohere_numbers},
    gguf_architecture{.name = "cohere2",
                      .family = "Cohere2ForCausalLM",
                      .neighbours = true,
                      .numbers = cohere2_numbers,
                      .windows = gguf_windows::cycle,
                      .window_needed = true,
                      .full_every = 4},
    gguf_architecture{.name = "seed_oss", .family = "SeedOssForCausalLM", .mlp_norm = "post_attention_norm"},
    gguf_architecture{
        .name = "exaone4", .family = "Exaone4ForCausalLM", .windows = gguf_windows::cycle, .full_every = 4},
    gguf_architecture{.name = "ernie4_5", .family = "Ernie4_5ForCausalLM", .neighbours = true},
    gguf_architecture{.name = "ernie4_5-moe", .family = "Ernie4_5_MoeForCausalLM", .neighbours = true},
    gguf_architecture{.name = "nemotron", .family = "NemotronForCausalLM", .part_turns = true},
    // The norms of its queries have the factor of scores as their weights.
    gguf_architecture{.name = "muse-glimmer",
                      .family = "MuseGlimmerForConditionalGeneration",
                      .neighbours = true,
                      .numbers = muse_numbers,
                      .implied = R"({"qk_scale_factor":1})",
                      .windows = gguf_windows::cycle,
                      .window_needed = true,
                      .full_every = 4},
};

}  // namespace

const gguf_architecture* find_gguf_architecture(std::string_view name) {
  const auto* found = std::ranges::find(architectures, name, &gguf_architecture::name);
  return found == architectures.end() ? nullptr : found;
}

std::string gguf_architecture_names() {
  std::string all;
  for (const gguf_architecture& a : architectures) {
    if (!all.empty()) all += ", ";
    all += a.name;
  }
  return all;
}

}  // namespace weir::core
