// quant_config.h — how the linears of a Hugging Face directory are quantised, read from the object
// `quantization_config` of config.json.
//
// A method, format or setting that is not supported is refused with an error that names it. Lists of modules
// that are not quantised need not be read: a linear without quantised tensors is plain. Settings for rounding
// activations and the KV cache are ignored: neither is rounded here.
//
// Thread safety: pure functions and plain data; any thread. Errors: bad_file, not_supported.
#pragma once

#include <cstdint>

namespace weir::core {

class json_reader;

enum class quant_form : std::uint8_t {
  plain,          // no linear is quantised
  gptq,           // qweight, qzeros and scales, codes along the inputs
  awq,            // the same names, codes along the outputs, each eight in awq's own order
  packed,         // weight_packed of compressed-tensors, codes along the inputs
  whole_ints,     // weight is i8
  fp8,            // weight is e4m3
  mxfp4,          // weight_packed is e2m1, weight_scale are powers of two
  mxfp4_experts,  // merged experts alone: _blocks are e2m1, _scales are powers of two (experts.h)
  exl2            // q_weight, q_groups, q_scale, q_scale_max and q_invperm
};

struct quant_config {
  quant_form form = quant_form::plain;
  std::uint32_t bits = 8;   // of a code; 0: each tensor says (exl2)
  std::uint32_t group = 0;  // inputs that share a scale; 0: all
  bool less_one = false;    // gptq: stored zeros are one less (version 1 of the format)
  // fp8: how many outputs and inputs share a scale, where scales are a matrix; 0: all of them
  std::uint32_t block_rows = 0, block_columns = 0;
  bool indexed = false;  // gptq, packed: a tensor says which group an input is in
};

// `in`: the object. REQUIRES: in.what() names the file and the key
quant_config read_quant_config(json_reader& in);

}  // namespace weir::core
