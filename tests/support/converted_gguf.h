// converted_gguf.h — a model directory as the GGUF file in f32 that llama.cpp's converter would make of it.
//
// It knows nothing of the loader: rows, norms, names and keys are turned here by rules of their own. Where
// the format has no key for a setting that a converter therefore loses, the setting is put into weights or
// into a key that readers know, so that the file is the same model.
#pragma once

#include <bit>
#include <boost/json.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/model/load/safetensors.h"
#include "tests/support/converted_experts.h"
#include "tests/support/data.h"
#include "tests/support/gguf_bytes.h"

namespace weir::tests {

// How the converter's class for one architecture of Hugging Face differs from the plain one.
struct gguf_rules {
  std::string name;
  bool permutes = false;  // rows of heads of q and k, from halves to neighbours
  bool adds_one = false;  // to norms whose names end with `shifted`
  std::string shifted = "norm.weight";
  std::map<std::string, std::string> norms;  // that are not input_layernorm: attn_norm
};

class gguf_conversion {
 public:
  // The architecture of the file that would be made; empty where this code makes none.
  static std::string architecture_of(const std::filesystem::path& dir) {
    const auto found = all_rules().find(class_of(config_of(dir)));
    return found == all_rules().end() ? "" : found->second.name;
  }

  explicit gguf_conversion(const std::filesystem::path& dir) {
    const auto document = config_of(dir);
    class_ = class_of(document);
    config_ = document;
    if (const auto* inner = document.if_contains("text_config"))
      for (const auto& [key, value] : inner->as_object()) config_[key] = value;
    rules_ = all_rules().at(class_);
    read_tensors(dir);
  }

  gguf_writer write() {
    keep_what_has_no_key();
    write_keys();
    for (const auto& [name, tensor] : take_experts(tensors_, is("gpt-oss"))) put(name, tensor);
    for (auto& [name, tensor] : tensors_) write_tensor(name, std::move(tensor));
    return std::move(out_);
  }

 private:
  static boost::json::object config_of(const std::filesystem::path& dir) {
    return boost::json::parse(read_file(dir / "config.json")).as_object();
  }
  static std::string class_of(const boost::json::object& config) {
    return std::string(config.at("architectures").as_array().at(0).as_string());
  }

  static const std::map<std::string, gguf_rules>& all_rules() {
    using names = std::map<std::string, std::string>;
    const names plain{{"post_attention_layernorm", "ffn_norm"}};
    const names behind{{"post_attention_layernorm", "post_attention_norm"},
                       {"post_feedforward_layernorm", "post_ffw_norm"}};
    names both = behind;
    both["pre_feedforward_layernorm"] = "ffn_norm";
    const names gated{{"post_attention_layernorm", "post_attention_norm"}};
    const names glm{{"post_self_attn_layernorm", "post_attention_norm"},
                    {"post_attention_layernorm", "ffn_norm"},
                    {"post_mlp_layernorm", "post_ffw_norm"}};
    static const std::map<std::string, gguf_rules> all{
        {"LlamaForCausalLM", {"llama", true, false, "", plain}},
        {"MistralForCausalLM", {"llama", true, false, "", plain}},
        {"Ministral3ForCausalLM", {"mistral3", true, false, "", plain}},
        {"Mistral3ForConditionalGeneration", {"mistral3", true, false, "", plain}},
        {"Gemma2ForCausalLM", {"gemma2", false, true, "norm.weight", both}},
        {"Gemma3ForCausalLM", {"gemma3", false, true, "norm.weight", both}},
        {"Gemma3ForConditionalGeneration", {"gemma3", false, true, "norm.weight", both}},
        {"Phi3ForCausalLM", {"phi3", false, false, "", plain}},
        {"Olmo2ForCausalLM", {"olmo2", false, false, "", behind}},
        {"Olmo3ForCausalLM", {"olmo2", false, false, "", behind}},
        {"GraniteForCausalLM", {"granite", true, false, "", plain}},
        {"GraniteMoeHybridForCausalLM", {"granite", true, false, "", plain}},
        {"SmolLM3ForCausalLM", {"smollm3", true, false, "", plain}},
        {"Glm4ForCausalLM", {"glm4", false, false, "", glm}},
        {"CohereForCausalLM", {"command-r", false, false, "", {}}},
        {"Cohere2ForCausalLM", {"cohere2", false, false, "", {}}},
        {"SeedOssForCausalLM",
         {"seed_oss", false, false, "", {{"post_attention_layernorm", "post_attention_norm"}}}},
        {"Exaone4ForCausalLM", {"exaone4", false, false, "", behind}},
        {"Ernie4_5ForCausalLM", {"ernie4_5", false, false, "", plain}},
        {"NemotronForCausalLM", {"nemotron", false, true, "norm.weight", plain}},
        {"MixtralForCausalLM", {"llama", true, false, "", plain}},
        {"Qwen2MoeForCausalLM", {"qwen2moe", false, false, "", plain}},
        {"Qwen3MoeForCausalLM", {"qwen3moe", false, false, "", plain}},
        {"GraniteMoeForCausalLM", {"granitemoe", true, false, "", plain}},
        {"Glm4MoeForCausalLM", {"glm4moe", false, false, "", gated}},
        {"MiniMaxM2ForCausalLM", {"minimax-m2", false, false, "", plain}},
        {"Ernie4_5_MoeForCausalLM", {"ernie4_5-moe", false, false, "", plain}},
        {"GptOssForCausalLM", {"gpt-oss", false, false, "", gated}},
        {"MuseGlimmerForConditionalGeneration", {"muse-glimmer", true, true, "layernorm.weight", both}},
    };
    return all;
  }

  void read_tensors(const std::filesystem::path& dir) {
    const std::string file = read_file(dir / "model.safetensors");
    const auto parsed = core::parse_safetensors(std::as_bytes(std::span(file)), "model.safetensors").value();
    for (const auto& [name, t] : parsed) {
      std::string own = name;
      for (const char* prefix : {"model.language_model.", "language_model.model."})
        if (own.starts_with(prefix)) own = "model." + own.substr(std::strlen(prefix));
      if (own.starts_with("language_model.lm_head.")) own = own.substr(std::strlen("language_model."));
      if (own.starts_with("model.layers.") || own.starts_with("model.embed_tokens.") ||
          own.starts_with("model.norm.") || own.starts_with("lm_head."))
        tensors_[own] = widened(t);
    }
    if (flag("tie_word_embeddings")) tensors_.erase("lm_head.weight");
  }

  static float_tensor widened(const core::stored_tensor& t) {
    const bool whole = t.dtype == "F32";
    float_tensor out{t.shape, std::vector<float>(t.bytes.size() / (whole ? 4 : 2))};
    for (std::size_t i = 0; i < out.values.size(); ++i) {
      std::uint32_t bits = 0;
      if (whole)
        std::memcpy(&bits, t.bytes.data() + 4 * i, 4);
      else
        std::memcpy(reinterpret_cast<std::byte*>(&bits) + 2, t.bytes.data() + 2 * i, 2);
      out.values[i] = std::bit_cast<float>(bits);
    }
    return out;
  }

  const boost::json::value* find(const char* key) const {
    const auto* v = config_.if_contains(key);
    return v && !v->is_null() ? v : nullptr;
  }
  double value_of(const char* key, double otherwise = 0) const {
    const auto* v = find(key);
    return v ? v->to_number<double>() : otherwise;
  }
  std::uint32_t count(const char* key, std::uint32_t otherwise = 0) const {
    return static_cast<std::uint32_t>(value_of(key, otherwise));
  }
  bool flag(const char* key) const { return find(key) && find(key)->as_bool(); }
  bool is(const char* architecture) const { return rules_.name == architecture; }

  std::uint32_t heads() const { return count("num_attention_heads"); }
  std::uint32_t kv_heads() const { return count("num_key_value_heads", heads()); }
  std::uint32_t head_dim() const { return count("head_dim", count("hidden_size") / heads()); }

  // The settings of rotation of full layers, or of all.
  boost::json::object rope() const {
    const auto* v = find("rope_parameters");
    if (!v) v = find("rope_scaling");
    boost::json::object o = v ? v->as_object() : boost::json::object();
    if (const auto* full = o.if_contains("full_attention")) o = full->as_object();
    if (!o.contains("rope_theta") && find("rope_theta")) o["rope_theta"] = *find("rope_theta");
    return o;
  }

  gguf_conversion& number(const std::string& key, std::uint32_t x) {
    out_.number(rules_.name + "." + key, x);
    return *this;
  }
  gguf_conversion& real(const std::string& key, double x) {
    out_.real(rules_.name + "." + key, static_cast<float>(x));
    return *this;
  }

  // The scale of Gemma's scores goes into the queries, and its pattern of layers into the key that llama.cpp
  // reads without ever writing it.
  void keep_what_has_no_key() {
    const double scalar = value_of("query_pre_attn_scalar", head_dim());
    const auto factor = static_cast<float>(std::sqrt(head_dim() / scalar));
    for (auto& [name, t] : tensors_) {
      if (is("gemma2") && name.ends_with("self_attn.q_proj.weight"))
        for (float& x : t.values) x *= factor;
      if (is("gemma3") && name.ends_with("self_attn.q_norm.weight"))
        for (float& x : t.values) x = (x + 1) * factor - 1;
    }
  }

  void write_keys() {
    out_.text("general.architecture", rules_.name);
    number("block_count", count("num_hidden_layers") + count("num_nextn_predict_layers"))
        .number("context_length", count("max_position_embeddings"));
    number("embedding_length", count("hidden_size"))
        .number("feed_forward_length", count("intermediate_size"));
    number("attention.head_count", heads());
    if (class_ == "GraniteMoeHybridForCausalLM") {
      out_.numbers<std::uint32_t>("granite.attention.head_count_kv", 4,
                                  std::vector<std::uint32_t>(count("num_hidden_layers"), kv_heads()));
      number("ssm.conv_kernel", 4).number("ssm.inner_size", 128);
      number("expert_count", 0).number("expert_used_count", 0);
      number("expert_shared_feed_forward_length", count("shared_intermediate_size"));
      out_.flag("granite.rope.scaling.finetuned", true);
    } else {
      number("attention.head_count_kv", kv_heads());
    }
    if (find("head_dim") && !is("granite"))
      number("attention.key_length", head_dim()).number("attention.value_length", head_dim());
    for (const char* eps : {"rms_norm_eps", "norm_eps"})
      if (find(eps)) real("attention.layer_norm_rms_epsilon", value_of(eps));
    for (const char* eps : {"layer_norm_eps", "norm_eps"})
      if (find(eps)) real("attention.layer_norm_epsilon", value_of(eps));
    write_experts();
    write_rope();
    write_windows();
    write_scales();
    write_tokens();
  }

  // As the converters' classes do, also where a key says something else than its name: ernie's.
  void write_experts() {
    const auto write = [&](const char* key, std::initializer_list<const char*> configs) {
      for (const char* config : configs)
        if (find(config)) return void(number(key, count(config)));
    };
    if (class_ == "GraniteMoeHybridForCausalLM") return;
    write("expert_count", {"num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"});
    write("expert_used_count", {"num_experts_per_tok", "moe_k"});
    write("expert_feed_forward_length", {"moe_intermediate_size"});
    if (is("minimax-m2") || is("gpt-oss")) write("expert_feed_forward_length", {"intermediate_size"});
    write("expert_shared_feed_forward_length", {"shared_expert_intermediate_size"});
    write("expert_shared_count", {"n_shared_experts", "moe_num_shared_experts"});
    write("leading_dense_block_count", {"first_k_dense_replace", "moe_layer_start_index"});
    write("interleave_moe_layer_step", {"moe_layer_interval"});
    write("expert_group_count", {"n_group"});
    write("expert_group_used_count", {"topk_group"});
    if (is("ernie4_5-moe"))
      number("expert_shared_feed_forward_length", count("intermediate_size") / kv_heads());
    if (!is("glm4moe")) return;
    number("expert_gating_func", 2);
    number("nextn_predict_layers", count("num_nextn_predict_layers"));
    real("expert_weights_scale", value_of("routed_scaling_factor"));
    out_.flag("glm4moe.expert_weights_norm", flag("norm_topk_prob"));
  }

  void write_rope() {
    const auto rope_object = rope();
    const auto of = [&](const char* key) {
      const auto* v = rope_object.if_contains(key);
      return v && !v->is_null() ? v->to_number<double>() : 0;
    };
    const auto* type = rope_object.if_contains("rope_type");
    const std::string kind = type ? std::string(type->as_string()) : "default";
    if (!is("gemma2")) real("rope.freq_base", of("rope_theta"));
    if (is("gemma3")) real("rope.freq_base_swa", 10000);
    if (rules_.permutes) number("rope.dimension_count", head_dim());
    if (is("glm4") || is("phi3") || is("nemotron") || is("glm4moe") || is("minimax-m2"))
      number("rope.dimension_count", static_cast<std::uint32_t>(of("partial_rotary_factor") * head_dim()));
    if (is("command-r") || is("cohere2") || is("nemotron"))
      out_.text(rules_.name + ".rope.scaling.type", "none");
    if (kind == "linear" || kind == "yarn") {
      out_.text(rules_.name + ".rope.scaling.type", kind);
      real("rope.scaling.factor", of("factor"));
    }
    if (kind == "yarn") write_yarn(of);
    if (kind == "longrope") write_longrope(rope_object);
  }

  template <class Of>
  void write_yarn(const Of& of) {
    number("rope.scaling.original_context_length",
           static_cast<std::uint32_t>(of("original_max_position_embeddings")));
    if (of("attention_factor") > 0) real("rope.scaling.yarn_attn_factor", of("attention_factor"));
    if (of("beta_fast") > 0) real("rope.scaling.yarn_beta_fast", of("beta_fast"));
    if (of("beta_slow") > 0) real("rope.scaling.yarn_beta_slow", of("beta_slow"));
    if (!is("mistral3")) return;
    real("rope.scaling.yarn_log_multiplier", of("mscale_all_dim"));
    real("attention.temperature_scale", of("llama_4_scaling_beta"));
  }

  // The converter computes the factor of cosine and sine always; here a factor of the config counts.
  void write_longrope(const boost::json::object& rope_object) {
    const double original = rope_object.at("original_max_position_embeddings").to_number<double>(),
                 scale = count("max_position_embeddings") / original;
    number("rope.scaling.original_context_length", static_cast<std::uint32_t>(original));
    const auto* own = rope_object.if_contains("attention_factor");
    real("rope.scaling.attn_factor", own         ? own->to_number<double>()
                                     : scale > 1 ? std::sqrt(1 + std::log(scale) / std::log(original))
                                                 : 1);
    for (const char* kind : {"long", "short"}) {
      std::string bytes;
      const auto& list = rope_object.at(std::string(kind) + "_factor").as_array();
      for (const auto& x : list) bytes += raw(x.to_number<float>());
      out_.tensor({std::string("rope_factors_") + kind + ".weight", {list.size()}, 0, bytes});
    }
  }

  void write_windows() {
    if (is("phi3")) number("attention.sliding_window", count("sliding_window"));
    if (is("phi3") || count("sliding_window") == 0) return;
    number("attention.sliding_window", count("sliding_window"));
    const auto& kinds = config_.at("layer_types").as_array();
    std::string flags = raw(std::uint32_t{7}) + raw(std::uint64_t{kinds.size()});
    std::uint32_t first_full = 0;
    for (const auto& kind : kinds) {
      flags += kind == "sliding_attention" ? '\1' : '\0';
      if (first_full == 0 && kind != "sliding_attention")
        first_full = static_cast<std::uint32_t>(&kind - kinds.data()) + 1;
    }
    if (is("gemma3")) number("attention.sliding_window_pattern", first_full);
    if (is("olmo2") || is("exaone4") || is("muse-glimmer"))
      out_.value(rules_.name + ".attention.sliding_window_pattern", 9, flags);
  }

  void write_scales() {
    for (const auto& [key, config] :
         std::map<std::string, const char*>{{"attention.scale", "attention_multiplier"},
                                            {"embedding_scale", "embedding_multiplier"},
                                            {"residual_scale", "residual_multiplier"},
                                            {"attn_logit_softcapping", "attn_logit_softcapping"},
                                            {"final_logit_softcapping", "final_logit_softcapping"}})
      if (find(config)) real(key, value_of(config));
    for (const char* config : {"logits_scaling", "logit_scale", "output_multiplier"})
      if (find(config)) real("logit_scale", value_of(config));
  }

  void write_tokens() {
    std::vector<std::string> tokens(count("vocab_size"));
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = "t" + std::to_string(i);
    out_.texts("tokenizer.ggml.tokens", tokens);
    out_.number("tokenizer.ggml.bos_token_id", count("bos_token_id"));
    out_.number("tokenizer.ggml.eos_token_id", count("eos_token_id"));
  }

  // Element 2i + j of a head is its element j * half + i.
  float_tensor to_neighbours(float_tensor t, std::uint32_t of_heads) const {
    const std::size_t half = head_dim() / 2, wide = t.values.size() / (std::size_t{of_heads} * 2 * half);
    float_tensor out{t.shape, {}};
    for (std::size_t h = 0; h < of_heads; ++h)
      for (std::size_t i = 0; i < half; ++i)
        for (std::size_t j = 0; j < 2; ++j) {
          const auto row = t.values.begin() + static_cast<std::ptrdiff_t>(((h * 2 + j) * half + i) * wide);
          out.values.insert(out.values.end(), row, row + static_cast<std::ptrdiff_t>(wide));
        }
    return out;
  }

  void put(const std::string& name, const float_tensor& t) {
    std::string bytes;
    for (const float x : t.values) bytes += raw(x);
    out_.tensor({name, {t.shape.rbegin(), t.shape.rend()}, 0, bytes});
  }

  void write_tensor(const std::string& name, float_tensor t) {
    if (rules_.adds_one && name.ends_with(rules_.shifted))
      for (float& x : t.values) x += 1;
    const bool q = name.find(".q_proj.") != name.npos, k = name.find(".k_proj.") != name.npos;
    if (rules_.permutes && (q || k)) t = to_neighbours(std::move(t), q ? heads() : kv_heads());
    if (!name.starts_with("model.layers.")) {
      const std::string kind = name.substr(name.rfind('.'));
      return put((name.starts_with("lm_head")      ? "output"
                  : name.starts_with("model.norm") ? "output_norm"
                                                   : "token_embd") +
                     kind,
                 t);
    }
    const std::string rest = name.substr(std::strlen("model.layers.")),
                      layer = rest.substr(0, rest.find('.'));
    const std::string at = "blk." + layer + ".", kind = rest.substr(rest.rfind('.'));
    const std::string part = rest.substr(layer.size() + 1, rest.size() - layer.size() - 1 - kind.size());
    if (part == "shared_mlp.input_linear") return put_halves(at, t);
    if (kind == ".sinks") return put(at + "attn_sinks.weight", t);
    if (kind == ".e_score_correction_bias") return put(at + "exp_probs_b.bias", without_ones(std::move(t)));
    if (part == "mlp.shared_expert_gate") t = without_ones(std::move(t));
    put(at + part_name(part) + kind, t);
    if (is("muse-glimmer") && q) {
      put(at + "attn_q_norm.weight",
          {{head_dim()}, std::vector<float>(head_dim(), static_cast<float>(value_of("qk_scale_factor")))});
      put(at + "attn_k_norm.weight", {{head_dim()}, std::vector<float>(head_dim(), 1)});
    }
  }

  static float_tensor without_ones(float_tensor t) {
    std::erase(t.shape, 1u);
    return t;
  }

  void put_halves(const std::string& at, const float_tensor& t) {
    const auto half = static_cast<std::ptrdiff_t>(t.values.size() / 2);
    const std::vector<std::uint64_t> shape{t.shape[0] / 2, t.shape[1]};
    put(at + "ffn_gate.weight", {shape, {t.values.begin(), t.values.begin() + half}});
    put(at + "ffn_up.weight", {shape, {t.values.begin() + half, t.values.end()}});
  }

  std::string part_name(const std::string& part) const {
    static const std::map<std::string, std::string> linears{
        {"input_layernorm", "attn_norm"},
        {"self_attn.q_proj", "attn_q"},
        {"self_attn.k_proj", "attn_k"},
        {"self_attn.v_proj", "attn_v"},
        {"self_attn.o_proj", "attn_output"},
        {"self_attn.qkv_proj", "attn_qkv"},
        {"self_attn.gate_proj", "attn_gate"},
        {"self_attn.q_norm", "attn_q_norm"},
        {"self_attn.k_norm", "attn_k_norm"},
        {"mlp.gate_proj", "ffn_gate"},
        {"mlp.up_proj", "ffn_up"},
        {"mlp.gate_up_proj", "ffn_up"},
        {"mlp.down_proj", "ffn_down"},
        {"mlp.gate", "ffn_gate_inp"},
        {"mlp.router", "ffn_gate_inp"},
        {"block_sparse_moe.gate", "ffn_gate_inp"},
        {"block_sparse_moe.router.layer", "ffn_gate_inp"},
        {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
        {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
        {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
        {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
        {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
        {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
        {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
        {"shared_mlp.output_linear", "ffn_down"}};
    const auto norm = rules_.norms.find(part);
    return norm != rules_.norms.end() ? norm->second : linears.at(part);
  }

  std::string class_;
  boost::json::object config_;
  gguf_rules rules_;
  std::map<std::string, float_tensor> tensors_;
  gguf_writer out_;
};

}  // namespace weir::tests
