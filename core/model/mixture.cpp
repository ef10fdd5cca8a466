#include "core/model/mixture.h"

#include <array>
#include <cmath>
#include <initializer_list>

namespace weir::core {
namespace json = boost::json;
namespace {

using kernels::feed_forward;

constexpr std::uint32_t most_layers = 1024;
// Of activation::clamped. Implementations of gpt-oss have both as constants: files whose swiglu_limit is
// another number are computed with this one, as transformers computes them.
constexpr double alpha = 1.702;
constexpr float limit = 7;

constexpr std::array chosen_keys{"num_experts_per_tok", "moe_k", "experts_per_token"};
constexpr std::array shared_keys{"n_shared_experts", "moe_num_shared_experts"};
constexpr std::array shared_width_keys{"shared_expert_intermediate_size", "shared_intermediate_size"};
constexpr std::array draft_keys{"num_nextn_predict_layers", "num_mtp_modules"};

// The first of some keys that the config has; null: it has none of them.
template <std::size_t n>
const char* key_among(const json_reader& in, const std::array<const char*, n>& keys) {
  for (const char* key : keys)
    if (in.has(key)) return key;
  return nullptr;
}

// A whole number from 0 on.
std::uint32_t number_from_0(json_reader& in, std::string_view key, std::uint32_t most) {
  if (const auto x = in.number(key); !x || *x == 0) return 0;
  return in.count(key, most).value_or(0);
}

// How many experts there are. Two keys of the same meaning must agree.
std::uint32_t read_experts(json_reader& in, const family& f) {
  const char* first = key_among(in, expert_count_keys);
  if (!first) {
    if (f.experts == mixtures::needed)
      bad(in, fmt::format("'num_experts' is missing, which {} needs", f.architecture));
    return 0;
  }
  if (f.experts != mixtures::needed && in.number(first) == 0.0) return 0;
  if (f.experts == mixtures::none)
    return not_supported(in, fmt::format("{}, a mixture of experts, in {}", first, f.architecture)), 0;
  const std::uint32_t experts = in.count(first, kernels::most_experts).value_or(0);
  for (const char* key : expert_count_keys)
    if (const auto other = in.number(key); other && *other != experts)
      bad(in, fmt::format("'{}' is {}, and '{}' is {}", first, experts, key, *other));
  return experts;
}

std::uint32_t read_chosen(json_reader& in, std::uint32_t experts) {
  const char* key = key_among(in, chosen_keys);
  if (!key) return bad(in, "'num_experts_per_tok' is missing"), 1;
  const std::uint32_t chosen = in.count(key, kernels::most_experts).value_or(1);
  if (chosen > experts && experts > 0)
    bad(in, fmt::format("'{}' is {}, and there are {} experts", key, chosen, experts));
  return chosen;
}

// Rows of the shared expert's gate: said by themselves, or as a number of experts.
std::uint32_t read_shared(json_reader& in, std::uint32_t inter) {
  if (const char* key = key_among(in, shared_width_keys)) return number_from_0(in, key, max_size);
  const char* key = key_among(in, shared_keys);
  if (!key) return 0;
  const std::uint64_t width = std::uint64_t{number_from_0(in, key, kernels::most_experts)} * inter;
  if (width > max_size) bad(in, fmt::format("'{}' gives a shared expert of {} rows", key, width));
  return static_cast<std::uint32_t>(width);
}

// Ways to choose that are others than what the family's row says.
void refuse_other_choices(json_reader& in, const family& f) {
  for (const char* key : {"n_group", "topk_group", "moe_layer_freq"})
    if (in.number(key).value_or(1) != 1) not_supported(in, fmt::format("{} other than 1", key));
  const std::string_view scores = f.sigmoid_router ? "sigmoid" : "softmax";
  if (const auto said = in.text("scoring_func"); said && *said != scores)
    not_supported(in, fmt::format("scoring_func '{}' in {}", said->substr(0, 60), f.architecture));
  if (!has_key(f, "norm_topk_prob") && !in.boolean("norm_topk_prob").value_or(true))
    not_supported(in, fmt::format("norm_topk_prob false in {}", f.architecture));
  if (!has_key(f, "routed_scaling_factor") && in.number("routed_scaling_factor").value_or(1) != 1)
    not_supported(in, fmt::format("routed_scaling_factor in {}", f.architecture));
  if (f.choice_bias && !in.boolean("use_routing_bias").value_or(true))
    not_supported(in, "use_routing_bias false");
}

kernels::expert_router read_router(json_reader& in, const family& f, std::uint32_t experts) {
  refuse_other_choices(in, f);
  kernels::expert_router r;
  r.experts = experts;
  r.chosen = read_chosen(in, experts);
  r.sigmoid = f.sigmoid_router;
  r.choice_bias = f.choice_bias;
  r.renormalised = in.boolean("norm_topk_prob").value_or(true);
  const double factor = in.number("routed_scaling_factor").value_or(1);
  if (!(factor > 1e-9 && factor < 1e9)) bad(in, "'routed_scaling_factor' must be above 0 and below 1e9");
  r.factor = static_cast<float>(factor);
  return r;
}

float read_limit(json_reader& in, const family& f) {
  if (!has_key(f, "swiglu_limit")) {
    if (in.has("swiglu_limit")) not_supported(in, fmt::format("swiglu_limit in {}", f.architecture));
    return 0;
  }
  if (in.number("swiglu_alpha").value_or(alpha) != alpha)
    not_supported(in, fmt::format("swiglu_alpha other than {}", alpha));
  if (const double said = in.number("swiglu_limit").value_or(limit); !(said > 0 && said < 1e9))
    bad(in, "'swiglu_limit' must be above 0 and below 1e9");
  return limit;
}

// The layers of a list are dense.
void take_out_listed(json_reader& in, const char* key, std::vector<bool>& sparse) {
  const json::value* v = in.find(key);
  if (!v) return;
  if (!v->is_array()) return bad(in, fmt::format("'{}' must be a list of layers", key));
  for (const json::value& each : v->get_array()) {
    json::error_code ec;
    const auto layer = each.is_number() ? each.to_number<std::uint64_t>(ec) : sparse.size();
    if (ec || layer >= sparse.size())
      return bad(in, fmt::format("'{}' must have numbers below the {} layers", key, sparse.size()));
    sparse[layer] = false;
  }
}

}  // namespace

bool has_key(const family& f, std::string_view key) {
  return f.keys.find(fmt::format(" {} ", key)) != f.keys.npos;
}

std::optional<feed_forward> read_mixture(json_reader& in, const family& f, const feed_forward& dense,
                                         std::uint32_t hidden) {
  const std::uint32_t experts = read_experts(in, f);
  const float bound = read_limit(in, f);
  if (experts == 0) return std::nullopt;
  feed_forward m = dense;
  m.router = read_router(in, f, experts);
  m.limit = bound;
  m.inter = in.required_count(f.expert_inter_key, max_size).value_or(1);
  for (const std::uint64_t side : {hidden, m.inter})
    if (side * experts > max_size)
      bad(in, fmt::format("{} experts of a side of {}: all together may have {}", experts, side, max_size));
  m.shared = read_shared(in, m.inter);
  m.shared_gate = f.shared_gate && m.shared > 0;
  return m;
}

std::vector<bool> read_sparse_layers(json_reader& in, std::uint32_t layers) {
  std::vector<bool> sparse(layers, true);
  const std::uint32_t dense = number_from_0(in, "first_k_dense_replace", most_layers),
                      first = number_from_0(in, "moe_layer_start_index", most_layers);
  const double said = in.number("moe_layer_end_index").value_or(-1);
  const std::uint32_t last = said == -1 ? layers : number_from_0(in, "moe_layer_end_index", most_layers);
  const std::uint32_t step = in.count("decoder_sparse_step", most_layers).value_or(1),
                      interval = in.count("moe_layer_interval", most_layers).value_or(1);
  for (std::uint32_t i = 0; i < layers; ++i)
    sparse[i] = i >= dense && i >= first && i <= last && (i + 1) % step == 0 && (i + 1) % interval == 0;
  take_out_listed(in, "mlp_only_layers", sparse);
  return sparse;
}

std::uint32_t read_draft_layers(json_reader& in) {
  const char* key = key_among(in, draft_keys);
  return key ? number_from_0(in, key, most_layers) : 0;
}

}  // namespace weir::core
