#include "core/model/load/gguf_config.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace weir::core {
namespace json = boost::json;
namespace {

constexpr std::uint32_t most = 1u << 24;  // as in config.cpp, which checks the ranges

// An architecture in a GGUF file, and the class of transformers that computes the same.
struct architecture {
  std::string_view gguf, hugging_face;
  bool windows;  // a key may give it a sliding window
};
constexpr std::array architectures{
    architecture{"llama", "LlamaForCausalLM", true},  // with a window it is Mistral's
    architecture{"qwen2", "Qwen2ForCausalLM", false},
    architecture{"qwen3", "Qwen3ForCausalLM", false},
};

// Keys below the architecture's name that are read here, and those that do not change the arithmetic. Any
// other is refused.
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
    "attention.layer_norm_rms_epsilon",
    "attention.sliding_window",
    "rope.freq_base",
    "rope.dimension_count",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scale_linear",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    "expert_count",
    "expert_used_count",
    "tensor_data_layout",
};

void not_supported(gguf_reader& in, std::string_view thing) {
  in.fail(errc::not_supported, fmt::format("{}: {} is not supported yet", in.what(), thing));
}

class config_writer {
 public:
  config_writer(gguf_reader& in, const architecture& a) : in_(in), a_(a) {}

  json::object write(const tensor_map& tensors) {
    refuse_unknown_keys();
    out_["architectures"] = json::array{a_.hugging_face};
    write_sizes();
    write_rope();
    write_window();
    const auto there = [&](const char* name) {
      return tensors.find(std::string_view(name)) != tensors.end();
    };
    out_["tie_word_embeddings"] = !there("output.weight");
    if (a_.gguf == "llama") {
      out_["attention_bias"] = there("blk.0.attn_q.bias");
      out_["mlp_bias"] = there("blk.0.ffn_gate.bias");
    }
    return std::move(out_);
  }

 private:
  std::string key(std::string_view name) const { return fmt::format("{}.{}", a_.gguf, name); }

  void refuse_unknown_keys() {
    const std::string prefix = key("");
    for (const auto& [name, value] : in_.keys()) {
      if (!name.starts_with(prefix)) continue;
      const std::string_view rest = std::string_view(name).substr(prefix.size());
      if (std::ranges::find(known_keys, rest) == known_keys.end())
        not_supported(in_, fmt::format("key '{}'", name));
    }
  }

  std::uint32_t required(std::string_view name) {
    const auto n = in_.count(key(name), most);
    if (!n) in_.missing(key(name));  // no effect if its value was wrong: the first error is kept
    return n.value_or(1);
  }

  void write_sizes() {
    const std::uint32_t hidden = required("embedding_length"), heads = required("attention.head_count");
    out_["hidden_size"] = hidden;
    out_["num_attention_heads"] = heads;
    out_["num_hidden_layers"] = required("block_count");
    out_["max_position_embeddings"] = required("context_length");
    out_["intermediate_size"] = required("feed_forward_length");
    out_["num_key_value_heads"] = in_.count(key("attention.head_count_kv"), most).value_or(heads);
    const std::uint32_t usual = heads > 0 && hidden % heads == 0 ? hidden / heads : 0;
    const std::uint32_t head_dim = in_.count(key("attention.key_length"), most).value_or(usual);
    out_["head_dim"] = head_dim;
    if (in_.count(key("attention.value_length"), most).value_or(head_dim) != head_dim)
      not_supported(in_, fmt::format("'{}' other than key_length", key("attention.value_length")));
    if (in_.count(key("rope.dimension_count"), most).value_or(head_dim) != head_dim)
      not_supported(in_, fmt::format("'{}' other than key_length", key("rope.dimension_count")));
    if (in_.count(key("expert_count"), most).value_or(0) > 0)
      not_supported(in_, fmt::format("'{}', a mixture of experts,", key("expert_count")));
    const auto eps = in_.number(key("attention.layer_norm_rms_epsilon"));
    if (!eps) in_.missing(key("attention.layer_norm_rms_epsilon"));
    out_["rms_norm_eps"] = eps.value_or(1);
    const auto* tokens = in_.texts("tokenizer.ggml.tokens");
    const auto vocab = in_.count(key("vocab_size"), most);
    if (!tokens) in_.missing("tokenizer.ggml.tokens");
    if (vocab && tokens && *vocab != tokens->size())
      in_.fail(errc::bad_file, fmt::format("{}: '{}' is {}, but there are {} tokens", in_.what(),
                                           key("vocab_size"), *vocab, tokens->size()));
    out_["vocab_size"] = tokens ? tokens->size() : 1;
  }

  void write_rope() {
    out_["rope_theta"] = in_.number(key("rope.freq_base")).value_or(10000);
    const auto type = in_.text(key("rope.scaling.type")).value_or("");
    const double old = in_.number(key("rope.scale_linear")).value_or(0);
    double factor = in_.number(key("rope.scaling.factor")).value_or(old);
    if (factor == 0) factor = 1;
    if (!type.empty() && type != "none" && type != "linear")
      return not_supported(in_, fmt::format("'{}' {}", key("rope.scaling.type"), type));
    if (type == "none" || factor == 1) return;
    out_["rope_parameters"] =
        json::object{{"rope_type", "linear"}, {"factor", factor}, {"rope_theta", out_["rope_theta"]}};
  }

  void write_window() {
    const std::string name = key("attention.sliding_window");
    const std::uint32_t window = in_.count(name, 1u << 30).value_or(0);
    if (window == 0) return;
    if (!a_.windows) return not_supported(in_, fmt::format("'{}'", name));
    out_["architectures"] = json::array{"MistralForCausalLM"};
    out_["sliding_window"] = window;
  }

  gguf_reader& in_;
  const architecture& a_;
  json::object out_;
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

json::object gguf_config(gguf_reader& keys, const tensor_map& tensors) {
  const auto name = keys.text("general.architecture");
  if (!name) return keys.missing("general.architecture"), json::object();
  const auto* a = std::ranges::find(architectures, *name, &architecture::gguf);
  if (a == architectures.end()) {
    std::string there;
    for (const architecture& known : architectures)
      there += fmt::format("{}{}", there.empty() ? "" : ", ", known.gguf);
    keys.fail(errc::not_supported, fmt::format("{}: architecture {} is not supported; these are: {}",
                                               keys.what(), name->substr(0, 60), there));
    return json::object();
  }
  return config_writer(keys, *a).write(tensors);
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

result<std::vector<float>> read_rope_divisors(const stored_tensor& t, const opened_file& in,
                                              std::size_t frequencies, std::string_view what) {
  if (t.dtype != "F32" || t.shape.size() != 1 || t.shape[0] != frequencies)
    return make_error(errc::bad_file, "{}: tensor 'rope_freqs.weight' is {} {}, not F32 [{}]", what, t.dtype,
                      t.shape_text(), frequencies);
  std::vector<float> out(frequencies);
  if (auto ok = in.read(t.bytes, 0, std::as_writable_bytes(std::span(out))); !ok) return ok.error();
  for (const float x : out)
    if (!(std::isfinite(x) && x > 0))
      return make_error(errc::bad_file, "{}: tensor 'rope_freqs.weight' has {}, which is not above 0", what,
                        x);
  return out;
}

}  // namespace weir::core
