// Models of real shapes with random weights, which need no file: for load tests and benchmarks.
#include <array>
#include <optional>

#include "core/model/decoder_model.h"
#include "core/model/load.h"

namespace weir::core {
namespace {

// A shape is what a config.json of such a model says.
struct shape {
  std::string_view name, config;
};
constexpr std::array shapes{
    shape{"tiny-110m",
          R"({"architectures":["LlamaForCausalLM"],"vocab_size":32000,"hidden_size":768,
              "intermediate_size":2048,"num_hidden_layers":12,"num_attention_heads":12,
              "max_position_embeddings":2048,"rms_norm_eps":1e-5,"tie_word_embeddings":true})"},
    shape{"llama-3.2-1b",
          R"({"architectures":["LlamaForCausalLM"],"vocab_size":128256,"hidden_size":2048,
              "intermediate_size":8192,"num_hidden_layers":16,"num_attention_heads":32,
              "num_key_value_heads":8,"head_dim":64,"max_position_embeddings":131072,"rms_norm_eps":1e-5,
              "tie_word_embeddings":true})"},
    shape{"llama-3.1-8b",
          R"({"architectures":["LlamaForCausalLM"],"vocab_size":128256,"hidden_size":4096,
              "intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,
              "num_key_value_heads":8,"max_position_embeddings":131072,"rms_norm_eps":1e-5})"},
    shape{"llama-3.1-70b",
          R"({"architectures":["LlamaForCausalLM"],"vocab_size":128256,"hidden_size":8192,
              "intermediate_size":28672,"num_hidden_layers":80,"num_attention_heads":64,
              "num_key_value_heads":8,"max_position_embeddings":131072,"rms_norm_eps":1e-5})"},
    shape{"gemma-3-12b",
          R"({"architectures":["Gemma3ForCausalLM"],"vocab_size":262208,"hidden_size":3840,
              "intermediate_size":15360,"num_hidden_layers":48,"num_attention_heads":16,
              "num_key_value_heads":8,"head_dim":256,"sliding_window":1024,"query_pre_attn_scalar":256,
              "rope_scaling":{"rope_type":"linear","factor":8}})"},
    shape{"tiny-moe-200m",
          R"({"architectures":["Qwen3MoeForCausalLM"],"vocab_size":32000,"hidden_size":768,
              "intermediate_size":2048,"num_hidden_layers":8,"num_attention_heads":12,
              "num_key_value_heads":4,"max_position_embeddings":2048,"rms_norm_eps":1e-6,
              "num_experts":32,"num_experts_per_tok":4,"moe_intermediate_size":256,
              "norm_topk_prob":true,"tie_word_embeddings":true})"},
    shape{"qwen3-30b-a3b",
          R"({"architectures":["Qwen3MoeForCausalLM"],"vocab_size":151936,"hidden_size":2048,
              "intermediate_size":6144,"num_hidden_layers":48,"num_attention_heads":32,
              "num_key_value_heads":4,"head_dim":128,"max_position_embeddings":40960,
              "rms_norm_eps":1e-6,"rope_theta":1000000,"num_experts":128,"num_experts_per_tok":8,
              "moe_intermediate_size":768,"norm_topk_prob":true})"},
    shape{"gpt-oss-20b", R"({"architectures":["GptOssForCausalLM"],"num_hidden_layers":24,
                             "num_local_experts":32})"},
};

std::string names() {
  std::string all;
  for (const shape& s : shapes) all += fmt::format("{}{}", all.empty() ? "" : ", ", s.name);
  return all;
}

model_config config_of(const shape& s, std::uint32_t context) {
  auto c = parse_config(s.config, s.name).value();
  c.context = context;
  make_tables(c);
  c.stop_ids.clear();
  return c;
}

std::optional<kernels::dtype> type_named(std::string_view name) {
  for (std::size_t i = 0; i < kernels::dtype_count; ++i)
    if (name == kernels::all_dtypes[i].name) return static_cast<kernels::dtype>(i);
  return std::nullopt;
}

// A number of inputs that some linear has and that fills no whole blocks of the type; 0: there is none.
std::uint32_t unfit_inputs(const kernels::model_shape& s, kernels::dtype type) {
  const std::uint32_t block = kernels::facts(type).block_weights;
  if (s.hidden % block != 0) return s.hidden;
  for (const kernels::layer_shape& l : s.layers)
    for (const std::uint32_t inputs : {l.mixer.q_width(), l.mlp.inter, l.mlp.shared})
      if (inputs % block != 0) return inputs;
  return 0;
}

}  // namespace

std::string random_model_names() { return names(); }

result<random_model> parse_random_model(std::string_view spec, std::uint32_t context) {
  const std::size_t colon = spec.find(':');
  const std::string_view name = spec.substr(0, colon);
  const std::string_view said = colon == spec.npos ? "bf16" : spec.substr(colon + 1);
  const auto type = type_named(said);
  if (!type)
    return bad_param("model",
                     "random:{}: '{}' is not a type of random weights (f32, bf16, f16, q8_0, q4_k, …)", spec,
                     said);
  for (const shape& s : shapes) {
    if (s.name != name) continue;
    random_model m{config_of(s, context), *type};
    if (const auto inputs = unfit_inputs(m.config.shape, *type))
      return bad_param("model", "random:{}: rows of {} weights are no whole blocks of {}", spec, inputs,
                       said);
    return m;
  }
  return bad_param("model", "random:{}: '{}' is not a random model ({})", spec, name, names());
}

result<model_summary> inspect_random_model(const random_model& shape, const kernels::backend& on,
                                           kv_choice kv, std::uint32_t max_batch) {
  if (const auto ok = check_kv_type(on, kv); !ok) return ok.error();
  const auto plan = plan_random_weights(shape.config, shape.type, on);
  if (!plan) return plan.error();
  const auto page = page_bytes(shape.config, plan->weights, on, kv);
  if (!page) return page.error();
  const auto steps = step_needs_of(shape.config, plan->weights, on, kv, max_batch);
  return model_summary{shape.config,
                       default_generation(shape.config),
                       plan->bytes,
                       *page,
                       steps.workspaces,
                       steps.runtime,
                       {},
                       pool_steps_of(shape.config, plan->weights, on, kv)};
}

result<loaded_model> make_random_model(const random_model& shape,
                                       std::shared_ptr<const kernels::backend> backend, std::uint64_t seed,
                                       kv_choice kv) {
  if (const auto ok = check_kv_type(*backend, kv); !ok) return ok.error();
  auto weights = random_weights(shape.config, shape.type, seed, backend);
  if (!weights) return weights.error();
  if (const auto page = page_bytes(shape.config, *weights, *backend, kv); !page) return page.error();
  auto made = std::make_unique<decoder_model>(shape.config, std::vector<token_id>{}, std::move(*weights),
                                              std::move(backend), kv);
  return loaded_model{std::move(made), default_generation(shape.config), {}};
}

}  // namespace weir::core
