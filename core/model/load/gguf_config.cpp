#include "core/model/load/gguf_config.h"

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <cmath>

#include "core/model/families.h"
#include "core/model/mixture.h"
#include "core/shortened.h"

namespace weir::core {
namespace json = boost::json;
namespace {

constexpr std::uint32_t most = 1u << 24;  // as in config.cpp, which checks the ranges
constexpr std::uint32_t most_layers = 1024, most_window = 1u << 30;

// Keys below the architecture's name that are read, here or in gguf_rope.cpp, and those that do not change
// the arithmetic. A row may have more. Any other is refused.
constexpr std::array known_keys{
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "vocab_size",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.layer_norm_epsilon",
    "attention.layer_norm_rms_epsilon",
    "attention.sliding_window",
    "attention.causal",
    "rope.freq_base",
    "rope.freq_base_swa",
    "rope.dimension_count",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scale_linear",
    "rope.scaling.finetuned",
    "rope.scaling.attn_factor",
    "rope.scaling.original_context_length",
    "rope.scaling.yarn_attn_factor",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    "rope.scaling.yarn_ext_factor",
    "rope.scaling.yarn_log_multiplier",
    "expert_count",
    "expert_used_count",
    "nextn_predict_layers",
    "tensor_data_layout",
};

// The same of models with experts. How many layers are dense, and the width of the shared expert, the tensors
// say: some writers compute these keys otherwise.
constexpr std::array expert_keys{
    "expert_feed_forward_length", "expert_shared_feed_forward_length",
    "expert_shared_count",        "expert_weights_norm",
    "expert_weights_scale",       "expert_gating_func",
    "expert_group_count",         "expert_group_used_count",
    "leading_dense_block_count",  "interleave_moe_layer_step",
};

bool may_have_experts(const gguf_architecture& a) {
  return !a.mixture.empty() || find_family(a.family)->experts != mixtures::none;
}

bool knows(const gguf_architecture& a, std::string_view key) {
  if (std::ranges::find(known_keys, key) != known_keys.end()) return true;
  if (may_have_experts(a) && std::ranges::find(expert_keys, key) != expert_keys.end()) return true;
  if (std::ranges::find(a.numbers, key, &gguf_number::key) != a.numbers.end()) return true;
  if (a.growing_queries && key == "attention.temperature_scale") return true;
  if (a.windows == gguf_windows::cycle && key == "attention.sliding_window_pattern") return true;
  return a.other_keys.find(fmt::format(" {} ", key)) != a.other_keys.npos;
}

class config_writer {
 public:
  config_writer(gguf_reader& in, const gguf_architecture& a, const tensor_map& tensors)
      : keys_(in, a.name), in_(in), a_(a), tensors_(tensors) {}

  json::object write(const read_tensor& read) {
    refuse_unknown_keys();
    out_ = json::parse(a_.implied).get_object();
    write_sizes();
    write_windows();
    const std::string_view name = experts_ > 0 && !a_.mixture.empty()   ? a_.mixture
                                  : window_ > 0 && !a_.windowed.empty() ? a_.windowed
                                                                        : a_.family;
    const family& f = *find_family(name);
    if (experts_ > 0) write_experts(f);
    write_norms(f);
    write_numbers();
    out_["rope_parameters"] = gguf_rope(keys_, a_, {head_dim_, context_, f.two_tables}, tensors_, read);
    if (a_.may_not_turn && !keys_.boolean("rope.scaling.finetuned").value_or(true))
      out_["position_embedding_type"] = "nope";
    out_["tie_word_embeddings"] = !tensors_.contains("output.weight");
    for (const char* token : {"bos_token_id", "eos_token_id"})
      out_[token] = nullptr;  // keys of the tokenizer
    if (f.wrapped) return {{"architectures", json::array{name}}, {"text_config", std::move(out_)}};
    out_["architectures"] = json::array{name};
    return std::move(out_);
  }

 private:
  void refuse_unknown_keys() {
    for (const auto& [name, value] : in_.keys()) {
      if (!name.starts_with(keys_.prefix())) continue;
      if (knows(a_, std::string_view(name).substr(keys_.prefix().size()))) continue;
      in_.fail(errc::not_supported, fmt::format("{}: key '{}' is not supported yet", in_.what(), name));
    }
    if (!keys_.boolean("attention.causal").value_or(true)) keys_.refuse("attention.causal", "false");
  }

  std::uint32_t required(std::string_view name, std::uint32_t limit = most) {
    const auto n = keys_.count(name, limit);
    if (!n) keys_.missing(name);  // no effect if its value was wrong: the first error is kept
    return n.value_or(1);
  }

  void write_sizes() {
    const std::uint32_t hidden = required("embedding_length"), heads = required("attention.head_count");
    const std::uint32_t drafts = keys_.count("nextn_predict_layers", most_layers).value_or(0);
    layers_ = required("block_count", most_layers);
    if (drafts > 0 && drafts >= layers_) keys_.refuse("nextn_predict_layers", "of all layers");
    layers_ -= std::min(drafts, layers_);
    out_["num_nextn_predict_layers"] = drafts;
    context_ = required("context_length");
    out_["hidden_size"] = hidden;
    out_["num_attention_heads"] = heads;
    out_["num_hidden_layers"] = layers_;
    out_["max_position_embeddings"] = context_;
    out_["intermediate_size"] = required("feed_forward_length");
    out_["num_key_value_heads"] = keys_.count("attention.head_count_kv", most).value_or(heads);
    const std::uint32_t usual = heads > 0 && hidden % heads == 0 ? hidden / heads : 0;
    head_dim_ = keys_.count("attention.key_length", most).value_or(usual);
    out_["head_dim"] = head_dim_;
    if (keys_.count("attention.value_length", most).value_or(head_dim_) != head_dim_)
      keys_.refuse("attention.value_length", "other than key_length");
    experts_ = keys_.count("expert_count", most).value_or(0);
    if (experts_ > 0 && !may_have_experts(a_)) keys_.refuse("expert_count", "above 0, a mixture of experts,");
    if (experts_ == 0 && find_family(a_.family)->experts == mixtures::needed) keys_.missing("expert_count");
    if (a_.wide_scale_layers > 0)
      out_["query_pre_attn_scalar"] = layers_ == a_.wide_scale_layers ? usual : head_dim_;
    write_vocabulary();
  }

  void write_experts(const family& f) {
    for (const char* key : expert_count_keys) out_[key] = experts_;
    out_["num_experts_per_tok"] = required("expert_used_count");
    const bool own = f.expert_inter_key != f.inter_key;
    if (own || keys_.find("expert_feed_forward_length"))
      out_[f.expert_inter_key] = required("expert_feed_forward_length");
    for (const auto& [key, config] :
         {std::pair{"expert_group_count", "n_group"}, std::pair{"expert_group_used_count", "topk_group"}})
      if (const auto n = keys_.count(key, most)) out_[config] = std::max(*n, 1u);
    if (const auto norm = keys_.boolean("expert_weights_norm")) out_["norm_topk_prob"] = *norm;
    if (const auto scale = keys_.number("expert_weights_scale"); scale && *scale != 0)
      out_["routed_scaling_factor"] = *scale;
    write_scores(f);
    write_dense_layers();
  }

  // 1 and 3 are the softmax, of all experts and of the chosen ones; 2 is the sigmoid.
  void write_scores(const family& f) {
    constexpr std::string_view key = "expert_gating_func";
    const std::uint32_t said = keys_.count(key, most).value_or(0);
    if (said > 3 || (said != 0 && f.sigmoid_router != (said == 2)))
      keys_.refuse(key, fmt::format("{} in {}", said, a_.name));
  }

  // Layers without a router are dense. The tensors of a layer tell the width of its shared expert.
  void write_dense_layers() {
    json::array dense;
    std::uint64_t shared = 0;
    for (std::uint32_t i = 0; i < layers_; ++i) {
      if (!tensors_.contains(fmt::format("blk.{}.ffn_gate_inp.weight", i))) dense.push_back(i);
      const auto up = tensors_.find(fmt::format("blk.{}.ffn_up_shexp.weight", i));
      if (up != tensors_.end() && up->second.shape.size() == 2) shared = up->second.shape[0];
    }
    out_["mlp_only_layers"] = std::move(dense);
    out_["first_k_dense_replace"] = 0;
    out_["moe_layer_start_index"] = 0;
    out_["shared_expert_intermediate_size"] = shared;
  }

  void write_vocabulary() {
    const auto* tokens = in_.texts("tokenizer.ggml.tokens");
    const auto vocab = keys_.count("vocab_size", most);
    if (!tokens) in_.missing("tokenizer.ggml.tokens");
    if (vocab && tokens && *vocab != tokens->size())
      in_.fail(errc::bad_file, fmt::format("{}: '{}' is {}, but there are {} tokens", in_.what(),
                                           keys_.full("vocab_size"), *vocab, tokens->size()));
    out_["vocab_size"] = tokens ? tokens->size() : 1;
  }

  void write_norms(const family& f) {
    const std::string_view key =
        f.centred_norms ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon";
    const auto eps = keys_.number(key);
    if (!eps) keys_.missing(key);
    out_[f.eps_key] = eps.value_or(1);
    if (a_.may_norm_heads) out_["use_qk_norm"] = tensors_.contains("blk.0.attn_q_norm.weight");
  }

  void write_numbers() {
    for (const gguf_number& n : a_.numbers) {
      const auto x = keys_.number(n.key);
      if (!x && n.missing == if_missing::refused) keys_.missing(n.key);
      if (x && *x != 0)
        out_[n.config] = *x;
      else if (x || n.missing != if_missing::of_family)
        out_[n.config] = nullptr;
    }
  }

  void write_windows() {
    constexpr std::string_view key = "attention.sliding_window";
    const auto said = keys_.count(key, most_window);
    if (!said && a_.window_needed) keys_.missing(key);
    window_ = said.value_or(a_.window);
    if (a_.windows == gguf_windows::none) {
      if (window_ > 0) keys_.refuse(key, "above 0");
      return;
    }
    out_["sliding_window"] = window_ > 0 ? json::value(window_) : json::value(nullptr);
    if (window_ == 0 || a_.windows == gguf_windows::all_layers) return;
    json::array kinds;
    for (const bool slides : sliding_layers())
      kinds.push_back(slides ? "sliding_attention" : "full_attention");
    out_["layer_types"] = std::move(kinds);
  }

  // The pattern is a bool for each layer, or every how many layers one is full; of 0 layers none is.
  std::vector<bool> sliding_layers() {
    constexpr std::string_view key = "attention.sliding_window_pattern";
    std::vector<bool> out(layers_);
    const gguf_value* v = keys_.find(key);
    if (const auto* list = v ? std::get_if<gguf_array>(v) : nullptr) {
      if (list->kind == gguf_kind::text || list->size != layers_) {
        in_.fail(errc::bad_file, fmt::format("{}: '{}' must have a bool for each of {} layers", in_.what(),
                                             keys_.full(key), layers_));
        return out;
      }
      for (std::uint32_t i = 0; i < layers_; ++i) out[i] = list->number(i) != 0;
      return out;
    }
    const std::uint32_t every = keys_.count(key, most_layers).value_or(a_.full_every);
    for (std::uint32_t i = 0; i < layers_; ++i) out[i] = every == 0 || (i + 1) % every != 0;
    return out;
  }

  architecture_keys keys_;
  gguf_reader& in_;
  const gguf_architecture& a_;
  const tensor_map& tensors_;
  json::object out_;
  std::uint32_t layers_ = 0, head_dim_ = 0, context_ = 0, window_ = 0, experts_ = 0;
};

constexpr std::array stop_keys{"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                               "tokenizer.ggml.eom_token_id"};
constexpr std::array<std::string_view, 12> stop_spellings{
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<end_of_turn>",
    "</s>",
    "<EOT>",
    "<\xef\xbd\x9c"
    "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>"};

}  // namespace

const gguf_architecture* gguf_architecture_of(gguf_reader& keys) {
  const auto name = keys.text("general.architecture");
  if (!name) return keys.missing("general.architecture"), nullptr;
  const gguf_architecture* a = find_gguf_architecture(*name);
  if (!a)
    keys.fail(errc::not_supported, fmt::format("{}: architecture {} is not supported; these are: {}",
                                               keys.what(), shortened(*name), gguf_architecture_names()));
  return a;
}

json::object gguf_config(gguf_reader& keys, const gguf_architecture& a, const tensor_map& tensors,
                         const read_tensor& read) {
  return config_writer(keys, a, tensors).write(read);
}

stored_form gguf_form(stored_form s, const gguf_architecture& a, const tensor_map& tensors) {
  s.side_by_side = a.neighbours;
  s.plus_one = false;
  s.weightless_heads = false;
  s.inputs_first = false;
  s.qkv_bias |= tensors.contains("blk.0.attn_q.bias") || tensors.contains("blk.0.attn_qkv.bias");
  s.out_bias |= tensors.contains("blk.0.attn_output.bias");
  s.mlp_bias |= tensors.contains("blk.0.ffn_down.bias");
  return s;
}

std::vector<token_id> gguf_stop_ids(gguf_reader& keys) {
  std::vector<token_id> ids;
  const auto add = [&](token_id id) {
    if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
  };
  const auto* tokens = keys.texts("tokenizer.ggml.tokens");
  if (!tokens) return ids;
  for (const char* key : stop_keys)
    if (const auto id = keys.count(key, most)) {
      if (*id < tokens->size())
        add(static_cast<token_id>(*id));
      else
        keys.fail(errc::bad_file, fmt::format("{}: '{}' is {}, outside the vocabulary of {}", keys.what(),
                                              key, *id, tokens->size()));
    }
  for (std::size_t i = 0; i < tokens->size(); ++i)
    if (std::ranges::find(stop_spellings, (*tokens)[i]) != stop_spellings.end())
      add(static_cast<token_id>(i));
  return ids;
}

}  // namespace weir::core
