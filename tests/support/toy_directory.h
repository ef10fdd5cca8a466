// toy_directory.h — writes a tiny model directory as Hugging Face lays one out: random weights, byte-level
// tokenizer.
//
// For tests that need files and no meaning. Vocabulary: the 256 bytes in the order of their symbols, then
// <s>, </s>.
#pragma once

#include <boost/json.hpp>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/tensor.h"
#include "tests/support/data.h"

namespace weir::tests {

struct toy_tensor {
  std::string name, dtype;
  std::vector<std::uint64_t> shape;
  std::string bytes;
};

// The file format: length, JSON header, data.
inline std::string safetensors_bytes(const std::vector<toy_tensor>& tensors) {
  boost::json::object header;
  std::string data;
  for (const toy_tensor& t : tensors) {
    boost::json::array shape(t.shape.begin(), t.shape.end());
    boost::json::array offsets{data.size(), data.size() + t.bytes.size()};
    header[t.name] = boost::json::object{{"dtype", t.dtype}, {"shape", shape}, {"data_offsets", offsets}};
    data += t.bytes;
  }
  const std::string text = boost::json::serialize(header);
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(text.size() >> (8 * i));
  return length + text + data;
}

// `dtype` is F32, BF16 or F16; values are small and never zero.
inline toy_tensor random_tensor(std::mt19937& r, std::string name, const std::string& dtype,
                                std::vector<std::uint64_t> shape) {
  toy_tensor t{std::move(name), dtype, std::move(shape), {}};
  std::uint64_t count = 1;
  for (const auto n : t.shape) count *= n;
  const bool norm = t.shape.size() == 1 && t.name.find("norm") != t.name.npos;
  std::normal_distribution<float> normal(norm ? 1.0f : 0.0f, norm ? 0.1f : 0.25f);
  for (std::uint64_t i = 0; i < count; ++i) {
    const float x = normal(r) + 1e-4f;
    const std::uint16_t half = dtype == "BF16"
                                   ? kernels::to_bf16(x)
                                   // F16: sign, an exponent of 2^-4 to 2^-1, random mantissa
                                   : static_cast<std::uint16_t>((r() & 0x8fffu) | (norm ? 0x3800u : 0x2c00u));
    char raw[4];
    std::memcpy(raw, dtype == "F32" ? static_cast<const void*>(&x) : &half, dtype == "F32" ? 4 : 2);
    t.bytes.append(raw, dtype == "F32" ? 4 : 2);
  }
  return t;
}

struct toy_options {
  std::string architecture = "LlamaForCausalLM";
  std::string dtype = "F32";
  std::uint32_t hidden = 32, inter = 48, layers = 2, heads = 4, kv_heads = 2, head_dim = 8, context = 512;
  bool tied = false, qkv_bias = false, out_bias = false, mlp_bias = false, qk_norm = false;
  unsigned seed = 1;
  boost::json::object config;  // laid over the rest of config.json
};

constexpr std::uint32_t toy_vocab = 258, toy_bos = 256, toy_eos = 257;

inline std::vector<toy_tensor> toy_tensors(const toy_options& o) {
  std::mt19937 r(o.seed);
  std::vector<toy_tensor> out;
  const auto add = [&](const std::string& name, std::vector<std::uint64_t> shape) {
    out.push_back(random_tensor(r, name, o.dtype, std::move(shape)));
  };
  const std::uint64_t q = o.heads * o.head_dim, kv = o.kv_heads * o.head_dim;
  add("model.embed_tokens.weight", {toy_vocab, o.hidden});
  for (std::uint32_t i = 0; i < o.layers; ++i) {
    const std::string at = "model.layers." + std::to_string(i) + ".", attn = at + "self_attn.",
                      mlp = at + "mlp.";
    const auto linear = [&](const std::string& name, std::uint64_t rows, std::uint64_t cols, bool bias) {
      add(name + ".weight", {rows, cols});
      if (bias) add(name + ".bias", {rows});
    };
    add(at + "input_layernorm.weight", {o.hidden});
    linear(attn + "q_proj", q, o.hidden, o.qkv_bias);
    linear(attn + "k_proj", kv, o.hidden, o.qkv_bias);
    linear(attn + "v_proj", kv, o.hidden, o.qkv_bias);
    linear(attn + "o_proj", o.hidden, q, o.out_bias);
    if (o.qk_norm) add(attn + "q_norm.weight", {o.head_dim});
    if (o.qk_norm) add(attn + "k_norm.weight", {o.head_dim});
    add(at + "post_attention_layernorm.weight", {o.hidden});
    linear(mlp + "gate_proj", o.inter, o.hidden, o.mlp_bias);
    linear(mlp + "up_proj", o.inter, o.hidden, o.mlp_bias);
    linear(mlp + "down_proj", o.hidden, o.inter, o.mlp_bias);
  }
  add("model.norm.weight", {o.hidden});
  if (!o.tied) add("lm_head.weight", {toy_vocab, o.hidden});
  return out;
}

inline boost::json::object toy_config(const toy_options& o) {
  boost::json::object c{{"architectures", boost::json::array{o.architecture}},
                        {"hidden_act", "silu"},
                        {"hidden_size", o.hidden},
                        {"intermediate_size", o.inter},
                        {"num_hidden_layers", o.layers},
                        {"num_attention_heads", o.heads},
                        {"num_key_value_heads", o.kv_heads},
                        {"head_dim", o.head_dim},
                        {"max_position_embeddings", o.context},
                        {"rms_norm_eps", 1e-5},
                        {"rope_theta", 10000.0},
                        {"vocab_size", toy_vocab},
                        {"tie_word_embeddings", o.tied},
                        {"attention_bias", o.qkv_bias && o.out_bias},
                        {"mlp_bias", o.mlp_bias},
                        {"bos_token_id", toy_bos},
                        {"eos_token_id", toy_eos}};
  for (const auto& [key, value] : o.config) c[key] = value;
  return c;
}

namespace detail {

inline std::string utf8(unsigned code) {
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xc0 | (code >> 6)), static_cast<char>(0x80 | (code & 63))};
}

// How byte-level tokenizers spell bytes: printable ones as themselves, the others as code points from 256 on.
inline std::vector<std::string> byte_symbols() {
  std::vector<std::string> out;
  unsigned next = 256;
  for (unsigned b = 0; b < 256; ++b) {
    const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    out.push_back(utf8(printable ? b : next++));
  }
  return out;
}

}  // namespace detail

inline boost::json::object toy_tokenizer_json() {
  using namespace boost::json;
  object vocab;
  const auto symbols = detail::byte_symbols();
  for (std::size_t b = 0; b < symbols.size(); ++b) vocab[symbols[b]] = b;
  array added;
  for (const auto& [content, id] : {std::pair{"<s>", toy_bos}, std::pair{"</s>", toy_eos}})
    added.push_back(object{{"id", id},
                           {"content", content},
                           {"single_word", false},
                           {"lstrip", false},
                           {"rstrip", false},
                           {"normalized", false},
                           {"special", true}});
  const object byte_level{
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", byte_level},
          {"post_processor", nullptr},
          {"decoder", byte_level},
          {"model", object{{"type", "BPE"},
                           {"dropout", nullptr},
                           {"unk_token", nullptr},
                           {"continuing_subword_prefix", nullptr},
                           {"end_of_word_suffix", nullptr},
                           {"fuse_unk", false},
                           {"byte_fallback", false},
                           {"ignore_merges", false},
                           {"vocab", vocab},
                           {"merges", array{}}}}};
}

// Writes the whole directory. REQUIRES: `dir` exists
inline void write_toy_directory(const std::filesystem::path& dir, const toy_options& o = {}) {
  using boost::json::object;
  using boost::json::serialize;
  write_file(dir / "config.json", serialize(toy_config(o)));
  write_file(dir / "model.safetensors", safetensors_bytes(toy_tensors(o)));
  write_file(dir / "tokenizer.json", serialize(toy_tokenizer_json()));
  write_file(dir / "tokenizer_config.json", serialize(object{{"bos_token", "<s>"}, {"eos_token", "</s>"}}));
  write_file(dir / "generation_config.json",
             serialize(object{{"bos_token_id", toy_bos}, {"eos_token_id", toy_eos}}));
}

}  // namespace weir::tests
