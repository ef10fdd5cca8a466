#include "core/model/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/model/load/strict_json.h"
#include "core/model/mixture.h"
#include "core/model/token_ids.h"
#include "core/shortened.h"

namespace weir::core {
namespace json = boost::json;
namespace {

using kernels::activation;
using kernels::head_norms;
using kernels::layer_shape;

constexpr std::uint32_t max_layers = 1024, max_heads = 4096, max_head_dim = 1024;
// Every expert has tensors of its own, however small the file is.
constexpr std::uint64_t most_experts_of_all = 1u << 17;
constexpr std::uint32_t default_window = 4096, default_max_window_layers = 28, max_window = 1u << 30;
// Keys that stand outside of text_config in some files and inside in others.
constexpr std::array outer_keys{"tie_word_embeddings", "eos_token_id", "bos_token_id", "quantization_config"};

const family* read_family(json_reader& in, model_config& c) {
  const json::value* names = in.find("architectures");
  const bool one =
      names && names->is_array() && names->get_array().size() == 1 && names->get_array()[0].is_string();
  if (!one) return bad(in, "'architectures' must be a list of one name"), nullptr;
  c.architecture = std::string(names->get_array()[0].get_string());
  if (const family* f = find_family(c.architecture)) return f;
  std::string there;
  for (const family& f : all_families())
    there += fmt::format("{}{}", there.empty() ? "" : ", ", f.architecture);
  in.fail(errc::not_supported, fmt::format("{}: architecture {} is not supported; these are: {}", in.what(),
                                           shortened(c.architecture), there));
  return nullptr;
}

void fill_in(json::object& to, const json::object& from) {
  for (const auto& [key, value] : from)
    if (!to.contains(key)) to[key] = value;
}

// The keys of the text model: those of text_config where the family has one, those outside where text_config
// leaves them out, and the family's defaults.
json::object text_keys(json_reader& in, const json::object& document, const family& f) {
  json::object keys = document;
  if (f.wrapped) {
    const json::value* inner = document.if_contains("text_config");
    if (!inner || !inner->is_object()) return bad(in, "'text_config' must be an object"), json::object();
    keys = inner->get_object();
    for (const char* key : outer_keys)
      if (const json::value* v = document.if_contains(key); v && !keys.contains(key)) keys[key] = *v;
  } else if (document.contains("text_config")) {
    not_supported(in, fmt::format("text_config in {}", f.architecture));
  }
  fill_in(keys, json::parse(f.defaults).get_object());
  return keys;
}

// A key that changes the arithmetic, in a family that does not have it.
void refuse_switch(json_reader& in, const family& f, const char* key, double neutral) {
  if (has_key(f, key) || !in.has(key)) return;
  const json::value& v = *in.find(key);
  const bool idle = v.is_bool() ? !v.get_bool() : v.is_number() ? v.to_number<double>() == neutral : false;
  if (!idle) not_supported(in, fmt::format("{} in {}", key, f.architecture));
}

void refuse_other_arithmetic(json_reader& in, const family& f) {
  if (in.has("compression_config")) not_supported(in, "compression_config");
  for (const char* key : {"embedding_multiplier", "residual_multiplier", "logits_scaling", "logit_scale",
                          "output_multiplier", "qk_scale_factor", "partial_rotary_factor"})
    refuse_switch(in, f, key, 1);
  constexpr double never = std::numeric_limits<double>::quiet_NaN();
  for (const char* key : {"attention_bias", "mlp_bias", "attention_out_bias", "use_bias", "use_qk_norm",
                          "attention_multiplier", "query_pre_attn_scalar", "attn_logit_softcapping",
                          "final_logit_softcapping", "no_rope_layers", "layer_rope_theta", "post_norm_eps"})
    refuse_switch(in, f, key, never);
}

void read_quantisation(json_reader& in, model_config& c) {
  const json::value* v = in.find("quantization_config");
  if (!v) return;
  if (!v->is_object()) return bad(in, "'quantization_config' must be an object");
  json_reader q(v->get_object(), in.what() + ": quantization_config");
  c.quantised = read_quant_config(q);
  if (q.failure()) in.fail(q.failure()->code, q.failure()->message);
}

void read_activation(json_reader& in, const family& f, layer_shape& l) {
  const std::string key(f.activation_key);
  l.mlp.kind = f.activation;
  l.mlp.gated = f.gated_mlp;
  const auto said = in.text(key);
  if (!said) return;
  if (*said == "silu" || *said == "swish")
    l.mlp.kind = activation::silu;
  else if (*said == "gelu_pytorch_tanh" || *said == "gelu_new")
    l.mlp.kind = activation::gelu;
  else if (*said == "relu2")
    l.mlp.kind = activation::relu2;
  else
    not_supported(in, fmt::format("{} '{}'", key, shortened(*said)));
}

// Checks what is read before anything is multiplied or allocated.
void read_sizes(json_reader& in, const family& f, model_config& c, layer_shape& l) {
  auto& a = l.mixer;
  c.shape.vocab = in.required_count("vocab_size", max_size).value_or(1);
  c.context = in.required_count("max_position_embeddings", max_size).value_or(1);
  c.shape.hidden = in.required_count("hidden_size", max_size).value_or(1);
  l.mlp.inter = in.required_count(f.inter_key, max_size).value_or(1);
  a.heads = in.required_count("num_attention_heads", max_heads).value_or(1);
  a.kv_heads = in.count("num_key_value_heads", max_heads).value_or(a.heads);
  a.head_dim = in.count("head_dim", max_head_dim).value_or(0);
  if (a.head_dim == 0 && c.shape.hidden % a.heads == 0) a.head_dim = c.shape.hidden / a.heads;
  if (a.heads % a.kv_heads != 0)
    bad(in, fmt::format("num_attention_heads {} is not a multiple of num_key_value_heads {}", a.heads,
                        a.kv_heads));
  if (a.head_dim == 0 || a.head_dim % 2 != 0 || a.head_dim > max_head_dim)
    bad(in, fmt::format("heads of {} elements (hidden_size {}, num_attention_heads {}): must be an even "
                        "number up to {}",
                        a.head_dim, c.shape.hidden, a.heads, max_head_dim));
}

void read_norms(json_reader& in, const family& f, model_config& c, layer_shape& l) {
  const auto above_zero = [&](std::string_view key, double otherwise) {
    const double eps = in.number(key).value_or(otherwise);
    if (!(eps > 0)) bad(in, fmt::format("'{}' must be above 0", key));
    return static_cast<float>(eps);
  };
  c.shape.norm_eps = above_zero(f.eps_key, 1e-6);
  c.shape.behind_eps = above_zero("post_norm_eps", double{c.shape.norm_eps});
  c.shape.centred_norms = f.centred_norms;
  c.shape.embed_norm = f.embed_norm;
  l.norms = f.norms;
  l.mixer.norms = f.head_norms;
  if (const auto asked = in.boolean("use_qk_norm")) l.mixer.norms = *asked ? f.asked_norms : head_norms::none;
  l.mixer.sinks = f.sinks;
  c.stored.norms = f.names;
  c.stored.norm_bias = f.norm_bias;
  c.stored.plus_one = f.plus_one;
  c.stored.final_plain = f.final_plain;
  c.stored.weightless_heads = f.weightless_heads;
}

void read_biases(json_reader& in, const family& f, stored_form& s) {
  const bool attention = in.boolean("attention_bias").value_or(false);
  const bool all = in.boolean("use_bias").value_or(false);
  s.qkv_bias = in.boolean("qkv_bias").value_or(f.qkv_bias) || attention || all;
  s.out_bias = (attention && f.out_bias) || in.boolean("attention_out_bias").value_or(false) || all;
  s.mlp_bias = in.boolean("mlp_bias").value_or(false) || all;
  s.tied = in.boolean("tie_word_embeddings").value_or(false);
  s.side_by_side = f.side_by_side;
  s.router_bias = f.router_bias;
  s.expert_bias = f.expert_bias;
  s.inputs_first = f.inputs_first;
  s.draft_layers = read_draft_layers(in);
}

// A number that others are multiplied by. An attention of scale 0 would be no error, but no model either.
float multiplier(json_reader& in, const char* key, double otherwise) {
  const double x = in.number(key).value_or(otherwise);
  if (!(std::abs(x) > 1e-9 && std::abs(x) < 1e9)) bad(in, fmt::format("'{}' must not be 0", key));
  return static_cast<float>(x);
}

float cap(json_reader& in, const char* key) {
  const double x = in.number(key).value_or(0);
  if (in.has(key) && !(x > 0 && x < 1e9)) bad(in, fmt::format("'{}' must be above 0 and below 1e9", key));
  return static_cast<float>(x);
}

void read_multipliers(json_reader& in, const family& f, model_config& c, layer_shape& l) {
  auto& shape = c.shape;
  auto& rule = l.mixer.rule;
  shape.embed_factor = multiplier(in, "embedding_multiplier", 1);
  c.stored.rounds_embed_factor = f.embed_root;
  if (f.embed_root) shape.embed_factor *= std::sqrt(static_cast<float>(shape.hidden));
  l.branch_factor = multiplier(in, "residual_multiplier", 1);
  shape.logit_factor = multiplier(in, "logit_scale", 1) * multiplier(in, "output_multiplier", 1) /
                       multiplier(in, "logits_scaling", 1);
  shape.logit_cap = cap(in, "final_logit_softcapping");
  const double width = in.number("query_pre_attn_scalar").value_or(l.mixer.head_dim);
  if (!(width > 0)) bad(in, "'query_pre_attn_scalar' must be above 0");
  rule.scale = in.has("attention_multiplier") ? multiplier(in, "attention_multiplier", 1)
                                              : 1.0f / std::sqrt(static_cast<float>(width));
  rule.scale *= multiplier(in, "qk_scale_factor", 1);
  rule.cap = cap(in, "attn_logit_softcapping");
  l.mixer.gated = f.gated_attention;
}

void check_rope(json_reader& in, const family& f, const model_config& c, std::uint32_t head_dim) {
  for (const rope_config& r : c.ropes) {
    if (!(r.theta > 0)) bad(in, "'rope_theta' must be above 0");
    if (!(r.partial > 0 && r.partial <= 1 && r.turned(head_dim) % 2 == 0))
      bad(in, fmt::format("'partial_rotary_factor' {}: an even number of a head's {} elements must turn",
                          r.partial, head_dim));
    else if (r.partial != 1 && r.type != rope_type::proportional && !has_key(f, "partial_rotary_factor"))
      not_supported(in, fmt::format("partial_rotary_factor in {}", f.architecture));
    if (r.growth != 0 && !has_key(f, "llama_4_scaling_beta"))
      not_supported(in, fmt::format("llama_4_scaling_beta in {}", f.architecture));
    if (r.by_context() && r.short_divisors.size() != r.turned(head_dim) / 2)
      bad(in, fmt::format("'short_factor' has {} numbers, and {} pairs turn", r.short_divisors.size(),
                          r.turned(head_dim) / 2));
  }
}

// Reads an object that may have one table, or one for each kind of layer.
void read_rope_tables(json_reader& in, const char* key, const json::object& from, const family& f,
                      rope_config base, model_config& c) {
  const auto read = [&](const json::object& o, const std::string& what) {
    rope_config r = base;
    json_reader reader(o, what);
    read_rope_object(reader, c.context, r);
    if (reader.failure()) in.fail(reader.failure()->code, reader.failure()->message);
    return r;
  };
  const std::string what = fmt::format("{}: {}", in.what(), key);
  constexpr std::array kinds{"full_attention", "sliding_attention"};
  if (std::ranges::none_of(kinds, [&](const char* kind) { return from.contains(kind); })) {
    c.ropes[0] = read(from, what);
    if (!f.two_tables) c.ropes.resize(1);
    return;
  }
  if (!f.two_tables) return not_supported(in, fmt::format("{} of {} in {}", key, kinds[1], f.architecture));
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const json::value* own = from.if_contains(kinds[i]);
    if (!own || own->is_null()) continue;
    if (!own->is_object()) return bad(in, fmt::format("'{}' must have objects", key));
    c.ropes[i] = read(own->get_object(), fmt::format("{}: {}", what, kinds[i]));
  }
}

// ropes[0] is of full layers, or of all; ropes[1] of layers with a window.
void read_rope(json_reader& in, const family& f, model_config& c, std::uint32_t head_dim) {
  rope_config base;
  base.theta = in.number("rope_theta").value_or(base.theta);
  const double turned = in.number("rotary_dim").value_or(head_dim);
  base.partial = in.number("partial_rotary_factor").value_or(turned / head_dim);
  base.original_context = in.number("original_max_position_embeddings").value_or(0);
  c.ropes.assign(f.two_tables ? 2 : 1, base);
  if (f.two_tables) c.ropes[1].theta = in.number("rope_local_base_freq").value_or(base.theta);
  // A file for old and new readers has both keys. The newer one is complete, so the older one is not read.
  const char* key = in.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (const json::value* v = in.find(key)) {
    if (!v->is_object()) return bad(in, fmt::format("'{}' must be an object", key));
    read_rope_tables(in, key, v->get_object(), f, base, c);
  }
  check_rope(in, f, c, head_dim);
}

// The window that the family's keys give; 0: none. A missing sliding_window means the default, null means
// none.
std::uint32_t read_window(json_reader& in, const family& f) {
  if (f.slides == windows::none) {
    if (in.has("sliding_window")) not_supported(in, fmt::format("sliding_window in {}", f.architecture));
    return 0;
  }
  const bool switched = f.slides == windows::switched || f.slides == windows::listed;
  if (switched && !in.boolean("use_sliding_window").value_or(false)) return 0;
  if (!in.mentions("sliding_window")) return default_window;
  return in.count("sliding_window", max_window).value_or(0);
}

// Every how many layers one is full: a number, or its spelling as in LLLG.
std::uint32_t read_cycle(json_reader& in, const family& f) {
  const json::value* v = in.find("sliding_window_pattern");
  if (!v) return f.full_every;
  if (!v->is_string()) return in.count("sliding_window_pattern", max_layers).value_or(f.full_every);
  const std::string_view text = v->get_string();
  const std::size_t first = text.find('G');
  if (first == text.npos || first + 1 != text.size() || text.find_first_not_of('L') != first)
    not_supported(in, fmt::format("sliding_window_pattern '{}'", shortened(text)));
  return static_cast<std::uint32_t>(std::min<std::size_t>(text.size(), max_layers));
}

bool slides_by_family(json_reader& in, const family& f, std::uint32_t i, std::uint32_t layers,
                      std::uint32_t cycle) {
  if (f.slides == windows::switched)
    return i >= in.number("max_window_layers").value_or(default_max_window_layers);
  if (f.slides != windows::cycle) return true;
  return f.from_end ? (layers - 1 - i) % cycle != 0 : (i + 1) % cycle != 0;
}

// If layer_types exists, it says which layers have the window.
std::vector<bool> read_sliding(json_reader& in, const family& f, std::uint32_t layers, std::uint32_t window) {
  std::vector<bool> out(layers);
  const json::value* kinds = in.find("layer_types");
  const std::uint32_t cycle = read_cycle(in, f);
  if (!kinds && window != 0 && f.slides == windows::listed)
    return not_supported(in, "use_sliding_window without layer_types"), out;
  if (!kinds) {
    for (std::uint32_t i = 0; i < layers; ++i)
      out[i] = window != 0 && slides_by_family(in, f, i, layers, cycle);
    return out;
  }
  if (!kinds->is_array() || kinds->get_array().size() != layers)
    return bad(in, fmt::format("'layer_types' must have an entry a layer ({})", layers)), out;
  for (std::uint32_t i = 0; i < layers; ++i) {
    const json::value& kind = kinds->get_array()[i];
    out[i] = kind == "sliding_attention";
    if (!out[i] && kind != "full_attention" && kind != "attention")
      not_supported(in, fmt::format("layer type {}", json::serialize(kind).substr(0, 60)));
    if (out[i] && window == 0)
      bad(in, fmt::format("layer_types[{}] slides, but there is no sliding_window", i));
  }
  return out;
}

// Whether each layer turns, as numbers of a list say: 0 where a layer does not.
std::vector<bool> read_listed(json_reader& in, const char* key, std::uint32_t layers) {
  std::vector<bool> out(layers, true);
  const json::value* v = in.find(key);
  if (!v->is_array() || v->get_array().size() != layers)
    return bad(in, fmt::format("'{}' must have a number a layer ({})", key, layers)), out;
  for (std::uint32_t i = 0; i < layers; ++i) {
    const json::value& each = v->get_array()[i];
    if (!each.is_number()) return bad(in, fmt::format("'{}' must have a number a layer", key)), out;
    out[i] = each.to_number<double>() != 0;
  }
  return out;
}

std::vector<bool> read_turning(json_reader& in, const family& f, std::uint32_t layers, std::uint32_t window,
                               const std::vector<bool>& sliding) {
  if (in.text("position_embedding_type").value_or("rope") == "nope") return std::vector<bool>(layers, false);
  if (in.has("layer_rope_theta")) return read_listed(in, "layer_rope_theta", layers);
  if (f.rotation == turns::listed && in.has("no_rope_layers"))
    return read_listed(in, "no_rope_layers", layers);
  std::vector<bool> out(layers, true);
  if (f.rotation == turns::sliding && window != 0) out = sliding;
  if (f.rotation == turns::listed) {
    const std::uint32_t every = in.count("no_rope_layer_interval", max_layers).value_or(1);
    for (std::uint32_t i = 0; i < layers; ++i) out[i] = (i + 1) % every != 0;
  }
  return out;
}

// Makes the layers with experts mixtures.
void read_experts(json_reader& in, const family& f, model_config& c, const kernels::feed_forward& dense) {
  const auto mixture = read_mixture(in, f, dense, c.shape.hidden);
  if (!mixture) return;
  if (const auto said = in.number("swiglu_limit"); said && *said != double{mixture->limit})
    c.notes.push_back(fmt::format("swiglu_limit is {}, and every model of {} is computed with {}", *said,
                                  f.architecture, mixture->limit));
  const auto sparse = read_sparse_layers(in, c.layers());
  const auto mixtures = static_cast<std::uint64_t>(std::ranges::count(sparse, true));
  if (mixtures * mixture->router.experts > most_experts_of_all)
    return bad(in, fmt::format("'num_experts' {} in {} layers: at most {} experts in all are taken",
                               mixture->router.experts, mixtures, most_experts_of_all));
  for (std::uint32_t i = 0; i < c.layers(); ++i)
    if (sparse[i]) c.shape.layers[i].mlp = *mixture;
}

void read_layers(json_reader& in, const family& f, model_config& c, const layer_shape& kind) {
  const std::uint32_t layers = in.required_count("num_hidden_layers", max_layers).value_or(1);
  const std::uint32_t window = read_window(in, f);
  const auto sliding = read_sliding(in, f, layers, window);
  const auto turning = read_turning(in, f, layers, window, sliding);
  set_layers(c, layers, kind);
  read_experts(in, f, c, kind.mlp);
  for (std::uint32_t i = 0; i < layers; ++i) {
    auto& a = c.shape.layers[i].mixer;
    a.rule.window = sliding[i] ? window : 0;
    a.rotary = !turning[i] ? -1 : c.ropes.size() > 1 && sliding[i] ? 1 : 0;
    const rope_config& rope = c.ropes[static_cast<std::size_t>(std::max(a.rotary, 0))];
    if (rope.growth == 0) continue;
    a.rule.growth = static_cast<float>(rope.growth);
    a.rule.growth_unit = static_cast<std::uint32_t>(rope.original_context);
  }
}

}  // namespace

void make_tables(model_config& c) {
  c.shape.tables.clear();
  const std::uint32_t head_dim = c.shape.layers.front().mixer.head_dim;
  for (const rope_config& rope : c.ropes)
    c.shape.tables.push_back(make_rotary_table(rope, head_dim, c.context));
}

void limit_context(model_config& c, std::uint32_t context) {
  if (context == 0 || context >= c.context) return;
  c.context = context;
  make_tables(c);
}

void set_layers(model_config& c, std::uint32_t count, const layer_shape& kind) {
  c.shape.layers.assign(count, kind);
  for (std::uint32_t i = 0; i < count; ++i) c.shape.layers[i].mixer.place = i;
  c.shape.groups = {{kind.mixer.kv_heads, kind.mixer.head_dim, count}};
  if (c.ropes.empty()) c.ropes.resize(1);
  make_tables(c);
}

result<model_config> parse_config(std::string_view text, std::string_view what) {
  auto document = parse_strict_json(text, what);
  if (!document) return document.error();
  json_reader outer(*document, std::string(what));
  model_config c;
  const family* f = read_family(outer, c);
  if (!f) return *outer.failure();
  const json::object keys = text_keys(outer, *document, *f);
  if (outer.failure()) return *outer.failure();
  json_reader in(keys, std::string(what));
  layer_shape kind;
  refuse_other_arithmetic(in, *f);
  read_activation(in, *f, kind);
  read_quantisation(in, c);
  read_sizes(in, *f, c, kind);
  read_norms(in, *f, c, kind);
  read_biases(in, *f, c.stored);
  read_multipliers(in, *f, c, kind);
  read_rope(in, *f, c, kind.mixer.head_dim);
  if (in.failure()) return *in.failure();
  read_layers(in, *f, c, kind);
  c.stop_ids = read_token_ids(in, "eos_token_id", c.shape.vocab);
  const auto bos = read_token_ids(in, "bos_token_id", c.shape.vocab);
  if (!bos.empty()) c.bos = bos.front();
  if (in.failure()) return *in.failure();
  return c;
}

}  // namespace weir::core
