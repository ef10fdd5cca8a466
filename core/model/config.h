// config.h — a model's shape, read from Hugging Face's config.json.
//
// A setting that changes the arithmetic and is not supported is refused with an error that names it:
// architecture, rope type, activation, quantisation, kind of attention.
//
// Thread safety: pure functions and plain data; any thread.
//
// Invariants of a parsed config: those of kernels/model_shape.h, and
//   1. shape.tables are those of `ropes` for sequences of up to `context` tokens.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/model/families.h"
#include "core/model/load/quant_config.h"
#include "core/model/rope.h"
#include "core/token.h"
#include "kernels/model_shape.h"

namespace weir::core {

// How files store the weights of a model, where that does not follow from its shape.
struct stored_form {
  norm_names norms = names_before;
  bool tied = false;  // the output matrix is the embedding
  bool qkv_bias = false, out_bias = false, mlp_bias = false, norm_bias = false;
  bool plus_one = false, final_plain = false;     // as in family
  bool weightless_heads = false;                  // as in family
  bool rounds_embed_factor = false;               // to the type of the embedding
  bool side_by_side = false;                      // as in family: the rows of q and k are put in order
  bool router_bias = false, expert_bias = false;  // as in family
  bool inputs_first = false;                      // as in family
  std::uint32_t draft_layers = 0;  // behind the model's own layers, with tensors that are passed over
};

struct model_config {
  std::string architecture;   // "LlamaForCausalLM", …
  std::uint32_t context = 0;  // most tokens of a sequence
  kernels::model_shape shape;
  std::vector<rope_config> ropes;  // of shape.tables
  stored_form stored;
  std::vector<token_id> stop_ids;  // eos_token_id, which generation_config.json overrides
  token_id bos = -1;               // -1: none
  quant_config quantised;          // how the linears of a directory are stored
  std::vector<std::string> notes;  // what the file says and nothing is computed with, in sentences

  std::uint32_t layers() const noexcept { return static_cast<std::uint32_t>(shape.layers.size()); }
};

// Parses the content of a config.json. `what`: name of the file, for errors. Errors: bad_file, not_supported.
result<model_config> parse_config(std::string_view text, std::string_view what);

// Gives a config `count` layers of one kind, and what follows from them: one group of keys and values, and
// the tables of config.ropes, of which there is at least one.
void set_layers(model_config& config, std::uint32_t count, const kernels::layer_shape& kind);

// Makes shape.tables anew, after a change of `ropes` or `context`.
void make_tables(model_config& config);

// Serves sequences of up to `context` tokens, which is at most what the model has; 0: that. A table may
// depend on it (longrope).
void limit_context(model_config& config, std::uint32_t context);

}  // namespace weir::core
