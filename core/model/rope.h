// rope.h — rotary tables: which frequencies the pairs of a head's elements turn at.
//
// One maker for all kinds of rotary embedding. Frequencies are computed in f32, as those that the models were
// trained with. Sources: RoFormer (arXiv 2104.09864); position interpolation, «linear» (arXiv 2306.15595);
// YaRN (arXiv 2309.00071); LongRoPE (arXiv 2402.13753); Llama 3.1's and Gemma 4's («proportional») are those
// of their published configs.
//
// Thread safety: pure functions and plain data; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/load/strict_json.h"
#include "kernels/model_shape.h"

namespace weir::core {

enum class rope_type { plain, linear, llama3, yarn, longrope, proportional };

struct rope_config {
  rope_type type = rope_type::plain;
  double theta = 10000;
  double partial = 1;           // the part of a head's elements that turns
  double factor = 1;            // linear, llama3, yarn, longrope: context / original context
  double original_context = 0;  // llama3, yarn, longrope
  double attention_factor = 0;  // yarn, longrope: of cosine and sine; 0: follows from the factor
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;              // yarn
  double mscale = 0, mscale_all_dim = 0;             // yarn
  bool truncate = true;                              // yarn: the ends of its ramp are whole pairs
  // longrope: divisors of the plain frequencies, [pairs that turn], for a served context up to the original
  // one and beyond it; and factors of cosine and sine that such a file may give in place of its own.
  std::vector<float> short_divisors, long_divisors;
  double short_mscale = 0, long_mscale = 0;
  // Divisors that a GGUF file gives in place of a type, [pairs that turn]; empty: none.
  std::vector<float> divisors;
  double growth = 0;  // attention_rule::growth, with original_context as its unit

  // The elements of a head that turn; even.
  std::uint32_t turned(std::uint32_t head_dim) const noexcept;
  // Whether a table depends on the context that is served.
  bool by_context() const noexcept { return type == rope_type::longrope; }
  bool takes_long(std::uint32_t context) const noexcept { return context > original_context; }
};

// Reads an object of config.json: rope_parameters, or the older rope_scaling, which has rope_theta beside it.
// `context`: max_position_embeddings. Values that `rope` has already are its defaults. Errors name the key.
void read_rope_object(json_reader& in, double context, rope_config& rope);

// The table of heads of `head_dim` elements for sequences of up to `context` tokens.
// REQUIRES: divisors have as many numbers as pairs turn
kernels::rotary_table make_rotary_table(const rope_config& rope, std::uint32_t head_dim,
                                        std::uint32_t context);

}  // namespace weir::core
