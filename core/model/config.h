// config.h — a model's shape, read from Hugging Face's config.json.
//
// A setting that changes the arithmetic and is not supported is refused with an error that names it:
// architecture, rope type, activation, quantisation, kind of attention.
//
// Thread safety: pure functions and plain data; any thread.
//
// Invariants of a parsed config:
//   1. heads is a multiple of kv_heads; head_dim is even; every size is at least 1.
//   2. windows has one entry for each layer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/model/load/quant_config.h"
#include "core/token.h"
#include "kernels/attention_rule.h"

namespace weir::core {

enum class rope_type { plain, linear, llama3 };

struct rope_config {
  rope_type type = rope_type::plain;
  double theta = 10000;
  double factor = 1;            // linear, llama3: context / original context
  double low_freq_factor = 1;   // llama3
  double high_freq_factor = 4;  // llama3
  double original_context = 0;  // llama3
  // [head_dim / 2] the divisors of the plain frequencies; empty: none. A GGUF file gives them in place of a
  // type.
  std::vector<float> divisors;
};

struct model_config {
  std::string architecture;  // "LlamaForCausalLM", …
  std::uint32_t vocab_size = 0;
  std::uint32_t context = 0;  // max_position_embeddings
  std::uint32_t hidden = 0;
  std::uint32_t inter = 0;  // width inside the feed-forward
  std::uint32_t layers = 0;
  std::uint32_t heads = 0, kv_heads = 0, head_dim = 0;
  float norm_eps = 1e-6f;
  rope_config rope;
  bool tied = false;  // the output matrix is the embedding
  bool qkv_bias = false, out_bias = false, mlp_bias = false;
  bool qk_norm = false;                // RMS norm over each head of queries and keys
  std::vector<std::uint32_t> windows;  // [layers] tokens that a layer attends to; 0: all
  std::vector<token_id> stop_ids;      // eos_token_id, which generation_config.json overrides
  token_id bos = -1;                   // -1: none
  quant_config quantised;              // how the linears of a directory are stored

  // How layer `i` attends. REQUIRES: i < layers
  kernels::attention_rule rule(std::uint32_t i) const;
  std::uint32_t q_width() const noexcept { return heads * head_dim; }
  std::uint32_t kv_width() const noexcept { return kv_heads * head_dim; }
  std::uint32_t qkv_width() const noexcept { return q_width() + 2 * kv_width(); }
};

// Parses the content of a config.json. `what`: name of the file, for errors. Errors: bad_file, not_supported.
result<model_config> parse_config(std::string_view text, std::string_view what);

// Rotary frequencies [head_dim / 2], one for each pair of a head's elements. They are computed in f32, as
// those that the models were trained with.
std::vector<float> rope_frequencies(const rope_config& rope, std::uint32_t head_dim);

}  // namespace weir::core
