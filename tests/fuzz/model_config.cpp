// Any bytes as config.json and as generation_config.json; a config that is accepted must be one that can be
// planned.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "core/model/decoder_model.h"
#include "core/model/generation_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  core::model_config known;
  known.shape.vocab = 1000;
  if (const auto g = core::parse_generation_config(text, known, "fuzz"))
    for (const core::token_id id : g->stop_ids)
      if (id < 0 || id >= 1000) std::abort();
  const auto c = core::parse_config(text, "fuzz");
  if (!c) return 0;
  std::uint64_t experts = 0;
  for (const kernels::layer_shape& l : c->shape.layers) {
    const kernels::expert_router& r = l.mlp.router;
    if (l.mlp.is_mixture() && (r.chosen < 1 || r.chosen > r.experts || r.experts > kernels::most_experts))
      std::abort();
    if (l.mlp.shared_gate && l.mlp.shared == 0) std::abort();
    experts += r.experts;
    const kernels::attention_mixer& a = l.mixer;
    if (a.heads % a.kv_heads != 0 || a.head_dim % 2 != 0 || a.place >= c->shape.groups[a.group].layers)
      std::abort();
    if (a.rotary >= 0 &&
        c->shape.tables[static_cast<std::size_t>(a.rotary)].frequencies.size() > a.head_dim / 2)
      std::abort();
  }
  if (experts > 1u << 12) return 0;  // whose plan takes too long here
  // Sizes are bounded so that no sum or product overflows, however large the model claims to be.
  if (core::plan_random_weights(*c, kernels::dtype::f32, *kernels::reference_backend()).value().bytes / 4 <
      std::uint64_t{c->shape.vocab} * c->shape.hidden)
    std::abort();
  if (core::page_bytes(c->shape, kernels::kv_type::f32) == 0) std::abort();
  return 0;
}
