#include "core/model/decoder_needs.h"

#include <algorithm>

#include "core/model/model.h"

namespace weir::core {

float embed_factor(const model_config& c, const model_weights& w) {
  const kernels::dtype type = w.embedding.type;
  if (!c.stored.rounds_embed_factor || type == kernels::dtype::f32 || !kernels::is_plain(type))
    return c.shape.embed_factor;
  return type == kernels::dtype::f16 ? kernels::from_f16(kernels::to_f16(c.shape.embed_factor))
                                     : kernels::from_bf16(kernels::to_bf16(c.shape.embed_factor));
}

kernels::decoder_shape decoder_shape_of(const model_config& c, const model_weights& w, kv_choice kv) {
  kernels::decoder_shape s;
  s.model = c.shape;
  s.model.embed_factor = embed_factor(c, w);
  s.page_tokens = page_tokens;
  s.embedding = w.embedding;
  s.embed_norm = w.embed_norm;
  s.norm = w.norm;
  s.head = w.head;
  s.kv = kv;
  for (const layer_weights& l : w.layers)
    s.layers.push_back({.attention_norm = l.attention_norm,
                        .qkv = l.qkv.w,
                        .qkv_rest = l.qkv.rest,
                        .q_norm = l.q_norm,
                        .k_norm = l.k_norm,
                        .out = l.out.w,
                        .attention_behind = l.attention_behind,
                        .mlp_norm = l.mlp_norm,
                        .gate_up = l.gate_up.w,
                        .gate_up_rest = l.gate_up.rest,
                        .down = l.down.w,
                        .mlp_behind = l.mlp_behind,
                        .qkv_bias = l.qkv.bias,
                        .out_bias = l.out.bias,
                        .gate_up_bias = l.gate_up.bias,
                        .down_bias = l.down.bias,
                        .sinks = l.sinks,
                        .experts = l.experts});
  return s;
}

std::array<std::uint64_t, 11> activations_of(const kernels::model_shape& s, std::uint64_t rows,
                                             std::uint64_t logits_rows) {
  std::uint64_t angles = 0, qkv = 0, attended = 0, gate_up = 0, inner = 0, experts = 0, made = 0;
  for (const kernels::rotary_table& t : s.tables) angles += 2 * t.frequencies.size();
  for (const kernels::layer_shape& l : s.layers) {
    qkv = std::max<std::uint64_t>(qkv, l.mixer.width());
    attended = std::max<std::uint64_t>(attended, l.mixer.q_width());
    const std::uint64_t slots = l.mlp.slots(), shared = l.mlp.shared;
    gate_up = std::max({gate_up, slots * l.mlp.width(), std::uint64_t{l.mlp.shared_width()}});
    inner = std::max({inner, slots * l.mlp.inter, shared});
    if (!l.mlp.is_mixture()) continue;
    experts = std::max(experts, 2 * slots + 1);
    made = std::max(made, (slots + (shared ? 1 : 0)) * s.hidden);
  }
  return {rows * s.hidden, rows * s.hidden, rows * angles,        rows * qkv,
          rows * attended, rows * gate_up,  rows * inner,         rows * experts,
          rows * made,     rows * s.hidden, logits_rows * s.vocab};
}

std::uint64_t page_bytes(const kernels::model_shape& s, kernels::kv_type kv) noexcept {
  std::uint64_t bytes = 0;
  for (const kernels::kv_layers& g : s.groups)
    bytes += std::uint64_t{g.layers} * 2 * g.kv_heads * page_tokens * kernels::kv_row_bytes(kv, g.head_dim);
  return bytes;
}

result<std::uint64_t> page_bytes(const model_config& c, const model_weights& w, const kernels::backend& on,
                                 kv_choice kv) {
  const auto whole = [&](kv_choice asked) {
    return on.decoder_page_bytes ? on.decoder_page_bytes(on.self, decoder_shape_of(c, w, asked)) : 0;
  };
  if (const std::uint64_t bytes = whole(kv); bytes > 0) return bytes;
  if (!kv || (on.stores_kv && on.stores_kv(on.self, *kv)))
    return page_bytes(c.shape, kv.value_or(kernels::kv_type::f32));
  const std::string why =
      whole({}) == 0 ? "this model runs by single operations, which store f32 alone: auto"
      : *kv == kernels::kv_type::q8
          ? fmt::format("heads have a size that is a multiple of 32, and this model's have {}",
                        c.shape.layers.front().mixer.head_dim)
          : "this model's keys and values are of another 16-bit type, which is auto";
  return bad_param("kv-type", "--kv-type {}: on {} {}", kernels::name(*kv), on.name, why);
}

kernels::pool_steps pool_steps_of(const model_config& c, const model_weights& w, const kernels::backend& on,
                                  kv_choice kv) {
  std::vector<std::uint64_t> parts;
  const std::uint64_t whole =
      on.decoder_page_bytes ? on.decoder_page_bytes(on.self, decoder_shape_of(c, w, kv)) : 0;
  if (whole > 0) parts.push_back(whole / (2 * c.shape.layers.size()));
  for (const kernels::kv_layers& g : c.shape.groups)
    if (whole == 0)
      parts.push_back(std::uint64_t{g.kv_heads} * page_tokens *
                      kernels::kv_row_bytes(kv.value_or(kernels::kv_type::f32), g.head_dim));
  return kernels::steps_of(on.pieces, parts);
}

step_needs step_needs_of(const model_config& c, const model_weights& w, const kernels::backend& on,
                         kv_choice kv, std::uint32_t max_batch) {
  // code_bytes: machine code, and what the driver keeps beside it. graph_bytes: of one recorded step; 0.92 MB
  // were measured for a step of 300 kernels.
  constexpr std::uint64_t code_bytes = 64u << 20, graph_bytes = 1u << 20;
  step_needs out;
  out.workspaces = on.own_bytes;
  if (!on.on_host) out.runtime = code_bytes;
  const kernels::decoder_shape shape = decoder_shape_of(c, w, kv);
  if (on.decoder_needs_of && on.decoder_page_bytes(on.self, shape) > 0) {
    const auto needs = on.decoder_needs_of(on.self, shape, max_batch, pages_for(c.context));
    out.prompt_rows = needs.prompt_rows;
    out.workspaces += needs.workspaces;
    out.runtime += needs.graphs * graph_bytes;
    return out;
  }
  out.prompt_rows = model_info().prompt_rows;
  for (const std::uint64_t elements :
       activations_of(c.shape, std::uint64_t{max_batch} + out.prompt_rows, max_batch))
    out.workspaces += elements * sizeof(float);
  return out;
}

}  // namespace weir::core
