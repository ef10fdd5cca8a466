#include "core/inspect/loose_keys.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <map>

#include "core/model/load/gguf_reader.h"
#include "core/shortened.h"

namespace weir::core {
namespace json = boost::json;
namespace {

constexpr double largest_size = 1e15;  // of a size that is shown
constexpr std::size_t most_values = 8, most_items = 4096;

struct size_names {
  std::uint64_t model_sizes::*to;
  std::initializer_list<const char*> in_config;
  const char* in_gguf;
};
const std::array size_keys{
    size_names{&model_sizes::layers, {"num_hidden_layers", "n_layer", "num_layers"}, "block_count"},
    size_names{&model_sizes::hidden, {"hidden_size", "n_embd", "d_model"}, "embedding_length"},
    size_names{&model_sizes::heads, {"num_attention_heads", "n_head"}, "attention.head_count"},
    size_names{&model_sizes::kv_heads, {"num_key_value_heads"}, "attention.head_count_kv"},
    size_names{&model_sizes::head_dim, {"head_dim"}, "attention.key_length"},
    size_names{&model_sizes::inter, {"intermediate_size", "ffn_dim", "n_inner"}, "feed_forward_length"},
    size_names{&model_sizes::vocab, {"vocab_size"}, "vocab_size"},
    size_names{&model_sizes::context, {"max_position_embeddings", "n_positions"}, "context_length"},
    size_names{&model_sizes::experts,
               {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"},
               "expert_count"},
    size_names{&model_sizes::used,
               {"num_experts_per_tok", "moe_topk", "num_experts_per_token", "top_k_experts"},
               "expert_used_count"},
};

// Keys that say most of what a family computes.
constexpr std::array telling_keys{"model_type",
                                  "layer_types",
                                  "sliding_window",
                                  "rope_theta",
                                  "partial_rotary_factor",
                                  "hidden_act",
                                  "hidden_activation",
                                  "moe_intermediate_size",
                                  "n_shared_experts",
                                  "first_k_dense_replace",
                                  "q_lora_rank",
                                  "kv_lora_rank",
                                  "qk_nope_head_dim",
                                  "qk_rope_head_dim",
                                  "v_head_dim",
                                  "global_head_dim",
                                  "num_kv_shared_layers",
                                  "hidden_size_per_layer_input",
                                  "attention_chunk_size",
                                  "full_attention_interval",
                                  "linear_num_key_heads",
                                  "linear_num_value_heads",
                                  "linear_conv_kernel_dim",
                                  "conv_L_cache",
                                  "hybrid_override_pattern",
                                  "mamba_d_state",
                                  "mamba_n_heads",
                                  "ssm_state_size",
                                  "num_nextn_predict_layers"};

// A list as how often each value is there.
json::value counts_in(const json::array& list) {
  std::map<std::string, std::uint64_t> counts;
  for (const json::value& v : list) {
    if (&v - list.data() >= static_cast<std::ptrdiff_t>(most_items)) break;
    ++counts[shortened(v.is_string() ? std::string(v.get_string()) : json::serialize(v))];
  }
  json::object out;
  for (const auto& [value, count] : counts)
    if (out.size() < most_values) out[value] = count;
  return out;
}

void show(std::string_view key, const json::value& v, json::object& out) {
  if (v.is_string()) out[key] = shortened(v.get_string());
  if (v.is_number() || v.is_bool()) out[key] = v;
  if (v.is_array()) out[key] = counts_in(v.get_array());
}

void show_member(std::string_view key, const json::object& in, const char* member, json::object& out) {
  const json::value* v = in.if_contains(key);
  const json::value* inner = v && v->is_object() ? v->get_object().if_contains(member) : nullptr;
  if (inner) show(fmt::format("{}.{}", key, member), *inner, out);
}

std::uint64_t size_among(const json::object& in, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const json::value* v = in.if_contains(name); v && v->is_number())
      if (const double n = v->to_number<double>(); n > 0 && n < largest_size)
        return static_cast<std::uint64_t>(n);
  return 0;
}

}  // namespace

void describe_config(const json::object& document, model_report& out) {
  if (const json::value* names = document.if_contains("architectures"); names && names->is_array())
    for (const json::value& name : names->get_array())
      if (name.is_string() && out.architecture.empty()) out.architecture = shortened(name.get_string());
  const json::value* inner = document.if_contains("text_config");
  out.wrapped = inner && inner->is_object();
  const json::object& text = out.wrapped ? inner->get_object() : document;
  for (const size_names& s : size_keys) out.sizes.*s.to = size_among(text, s.in_config);
  for (const char* key : telling_keys)
    if (const json::value* v = text.if_contains(key)) show(key, *v, out.keys);
  for (const json::object* from : {&text, &document}) {
    for (const char* rope : {"rope_scaling", "rope_parameters"})
      for (const char* member : {"rope_type", "type", "factor"}) show_member(rope, *from, member, out.keys);
    show_member("quantization_config", *from, "quant_method", out.keys);
  }
}

void describe_gguf(const gguf_keys& keys, model_report& out) {
  gguf_reader in(keys, "");  // its errors are of no interest here
  const auto name = in.text("general.architecture");
  if (!name) return;
  out.architecture = shortened(*name);
  for (const size_names& s : size_keys)
    if (const auto n = in.number(fmt::format("{}.{}", *name, s.in_gguf)); n && *n > 0 && *n < largest_size)
      out.sizes.*s.to = static_cast<std::uint64_t>(*n);
  if (const auto* tokens = in.texts("tokenizer.ggml.tokens")) out.sizes.vocab = tokens->size();
  const std::string prefix = std::string(*name) + ".";
  for (const auto& [key, value] : keys) {
    if (!key.starts_with(prefix) || out.keys.size() >= telling_keys.size()) continue;
    const std::string known = shortened(key);
    if (const auto* n = std::get_if<std::uint64_t>(&value)) out.keys[known] = *n;
    if (const auto* n = std::get_if<double>(&value); n && std::isfinite(*n)) out.keys[known] = *n;
    if (const auto* text = std::get_if<std::string_view>(&value)) out.keys[known] = shortened(*text);
  }
}

}  // namespace weir::core
