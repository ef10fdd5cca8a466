// quantised.h — the quantised linears of a Hugging Face directory as tensors of blocks (kernels/blocks.h).
//
// The formats of such directories store a linear in several tensors: codes, scales, zeros. join_quantised()
// puts one tensor `NAME.weight` in their place, whose bytes are made as they are read: blocks of fp8, int4,
// int4_32, int8, mxfp4, q4_0 or q8_0. Their numbers are exactly those that the files define:
//
//   fp8, modelopt, compressed-tensors' float-quantized   scale * e4m3
//   int-quantized                                        scale * code
//   gptq, awq, pack-quantized                            scale * (code - zero)
//   exl2                                                 scale * (code - half of the codes' range)
//   mxfp4-pack-quantized                                 2^(scale - 127) * e2m1
//
// The layouts are those of the formats' own writers: AutoGPTQ and GPTQModel, AutoAWQ, compressed-tensors,
// DeepSeek-V3 (fp8 by blocks), TensorRT Model Optimizer, ExLlamaV2.
//
// The inputs of a group may be scattered (gptq's desc_act, compressed-tensors' actorder, exl2). The columns
// of the joined tensor are then the inputs sorted by group, and within a group in the order of the file.
// Where a group does not fill blocks, columns of zeros fill up its last block (stored_tensor::inputs).
//
// Thread safety: nobody else may use the checkpoint during join_quantised(); what it adds is immutable.
#pragma once

#include "core/model/config.h"
#include "core/model/load/checkpoint.h"

namespace weir::core {

// Joins all quantised linears of `c`, as c.quantised says. Removes tensors for rounding activations or the KV
// cache, and biases of gptq that are zero where the config implies no bias. Errors: bad_file for a tensor
// that is missing, has a wrong shape or type, or puts inputs in groups that do not exist. The message names
// the tensor. Reading a joined tensor fails with bad_file where an e4m3 is NaN.
result<void> join_quantised(checkpoint& all, const model_config& c);

}  // namespace weir::core
