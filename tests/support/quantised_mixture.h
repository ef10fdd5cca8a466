// quantised_mixture.h — a tiny mixture of experts twice: as a quantised directory has it, and with the same
// weights in f32; and what its weights are.
//
// Thread safety: a writer has one owner.
#pragma once

#include <algorithm>
#include <boost/json.hpp>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/support/plain_mixture.h"
#include "tests/support/quantised_linears.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::quantised_mixture {

using u64 = std::uint64_t;

inline constexpr std::uint32_t experts = 5, layers = 2, heads = 4, kv_heads = 2, head_dim = 32;

enum class naming { qwen2, mixtral };

// How the directory of a test is made. `left_out` says whether a linear is plain, by its name in files of
// Qwen2-MoE.
struct recipe {
  const char* name;
  linear_format format;
  boost::json::object config;  // quantization_config
  std::uint32_t hidden = 256, inter = 128;
  naming of = naming::qwen2;
  std::function<bool(const std::string&)> left_out;
};

inline bool is_router(const std::string& name) {
  return name.ends_with("mlp.gate") || name.ends_with("shared_expert_gate");
}

// The files of one model in two forms, quantised and in f32, whose weights are equal; and these weights in
// double.
struct mixture_files {
  toy_options options;
  std::vector<toy_tensor> quantised, plain;
  plain_mixture wanted;
};

inline std::string name_in(naming of, std::string name) {
  if (of == naming::qwen2) return name;
  for (const auto& [from, to] :
       {std::pair{"mlp.", "block_sparse_moe."}, {"gate_proj", "w1"}, {"up_proj", "w3"}, {"down_proj", "w2"}})
    if (const auto at = name.find(from); at != name.npos) name.replace(at, std::strlen(from), to);
  return name;
}

class writer {
 public:
  // One seed: another one might put two scores of a router as close as rounding errors.
  explicit writer(const recipe& how) : how_(how), r_(77) {}

  mixture_files write() {
    configure();
    plain("model.embed_tokens", {toy_vocab, how_.hidden});
    for (std::uint32_t i = 0; i < layers; ++i) layer("model.layers." + std::to_string(i) + ".");
    plain("model.norm", {how_.hidden});
    plain("lm_head", {toy_vocab, how_.hidden});
    return std::move(files_);
  }

 private:
  void configure() {
    toy_options& o = files_.options;
    const bool qwen = how_.of == naming::qwen2;
    o.architecture = qwen ? "Qwen2MoeForCausalLM" : "MixtralForCausalLM";
    o.hidden = how_.hidden;
    o.inter = how_.inter;
    o.layers = layers;
    o.heads = heads;
    o.kv_heads = kv_heads;
    o.head_dim = head_dim;
    o.config = {{"num_experts_per_tok", 2}, {"quantization_config", how_.config}};
    if (qwen) {
      o.config["num_experts"] = experts;
      o.config["moe_intermediate_size"] = how_.inter;
      o.config["shared_expert_intermediate_size"] = how_.inter;
      o.config["qkv_bias"] = false;
    } else {
      o.config["num_local_experts"] = experts;
    }
    plain_mixture& w = files_.wanted;
    w.hidden = how_.hidden;
    w.layers = layers;
    w.heads = heads;
    w.kv_heads = kv_heads;
    w.head_dim = head_dim;
    w.experts = experts;
    w.chosen = 2;
    w.renormalised = !qwen;
  }

  void layer(const std::string& at) {
    const u64 hidden = how_.hidden, inter = how_.inter;
    plain(at + "input_layernorm", {hidden});
    linear(at + "self_attn.q_proj", heads * head_dim, hidden);
    linear(at + "self_attn.k_proj", kv_heads * head_dim, hidden);
    linear(at + "self_attn.v_proj", kv_heads * head_dim, hidden);
    linear(at + "self_attn.o_proj", hidden, heads * head_dim);
    plain(at + "post_attention_layernorm", {hidden});
    linear(at + "mlp.gate", experts, hidden);
    for (std::uint32_t e = 0; e < experts; ++e) mlp(at + "mlp.experts." + std::to_string(e) + ".", inter);
    if (how_.of == naming::mixtral) return;
    mlp(at + "mlp.shared_expert.", inter);
    plain(at + "mlp.shared_expert_gate", {1, hidden});
  }

  void mlp(const std::string& at, u64 inter) {
    linear(at + "gate_proj", inter, how_.hidden);
    linear(at + "up_proj", inter, how_.hidden);
    linear(at + "down_proj", how_.hidden, inter);
  }

  void plain(const std::string& name, std::vector<u64> shape) {
    const auto t = random_tensor(r_, name_in(how_.of, name) + ".weight", "F32", std::move(shape));
    std::vector<float> values(t.bytes.size() / sizeof(float));
    std::memcpy(values.data(), t.bytes.data(), t.bytes.size());
    files_.wanted.weights[name] = {values.begin(), values.end()};
    files_.quantised.push_back(t);
    files_.plain.push_back(t);
  }

  void linear(const std::string& name, u64 outputs, u64 inputs) {
    if (how_.left_out(name)) return plain(name, {outputs, inputs});
    auto w = write_linear(r_, name_in(how_.of, name), outputs, inputs, how_.format);
    std::ranges::move(w.tensors, std::back_inserter(files_.quantised));
    const std::vector<float> floats(w.weights.begin(), w.weights.end());
    files_.plain.push_back(
        {name_in(how_.of, name) + ".weight", "F32", {outputs, inputs}, detail::raw(floats)});
    files_.wanted.weights[name] = std::move(w.weights);
  }

  const recipe& how_;
  std::mt19937 r_;
  mixture_files files_;
};

}  // namespace weir::tests::quantised_mixture
