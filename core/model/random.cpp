// Models of real shapes with random weights, which need no file: for load tests and benchmarks.
#include <array>
#include <cmath>
#include <optional>

#include "core/model/decoder_model.h"
#include "core/model/load.h"

namespace weir::core {
namespace {

struct shape {
  std::string_view name;
  std::uint32_t vocab_size, hidden, inter, layers, heads, kv_heads, head_dim;
  bool tied;
};
constexpr std::array shapes{
    shape{"tiny-110m", 32000, 768, 2048, 12, 12, 12, 64, true},
    shape{"llama-3.2-1b", 128256, 2048, 8192, 16, 32, 8, 64, true},
    shape{"llama-3.1-8b", 128256, 4096, 14336, 32, 32, 8, 128, false},
};

model_config config_of(const shape& s, std::uint32_t context) {
  model_config c;
  c.architecture = "LlamaForCausalLM";
  c.shape.vocab = s.vocab_size;
  c.context = context;
  c.shape.hidden = s.hidden;
  c.shape.norm_eps = 1e-5f;
  c.stored.tied = s.tied;
  kernels::layer_shape layer;
  layer.mixer.heads = s.heads;
  layer.mixer.kv_heads = s.kv_heads;
  layer.mixer.head_dim = s.head_dim;
  layer.mixer.rule.scale = 1.0f / std::sqrt(static_cast<float>(s.head_dim));
  layer.mlp.inter = s.inter;
  set_layers(c, s.layers, layer);
  return c;
}

std::optional<kernels::dtype> type_named(std::string_view name) {
  for (std::size_t i = 0; i < kernels::dtype_count; ++i)
    if (name == kernels::all_dtypes[i].name) return static_cast<kernels::dtype>(i);
  return std::nullopt;
}

}  // namespace

result<random_model> parse_random_model(std::string_view spec, std::uint32_t context) {
  const std::size_t colon = spec.find(':');
  const std::string_view name = spec.substr(0, colon);
  const std::string_view said = colon == spec.npos ? "bf16" : spec.substr(colon + 1);
  const auto type = type_named(said);
  if (!type)
    return bad_param("model",
                     "random:{}: '{}' is not a type of random weights (f32, bf16, f16, q8_0, q4_k, …)", spec,
                     said);
  for (const shape& s : shapes)
    if (s.name == name) return random_model{config_of(s, context), *type};
  return bad_param("model", "random:{}: '{}' is not a random model (tiny-110m, llama-3.2-1b, llama-3.1-8b)",
                   spec, name);
}

result<model_summary> inspect_random_model(const random_model& shape, const kernels::backend& on,
                                           kv_choice kv, std::uint32_t max_batch) {
  if (const auto ok = check_kv_type(on, kv); !ok) return ok.error();
  const auto plan = plan_random_weights(shape.config, shape.type, on);
  if (!plan) return plan.error();
  const auto page = page_bytes(shape.config, plan->weights, on, kv);
  if (!page) return page.error();
  const auto steps = step_needs_of(shape.config, plan->weights, on, kv, max_batch);
  return model_summary{shape.config, default_generation(shape.config), plan->bytes, *page, steps.workspaces,
                       steps.runtime};
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
