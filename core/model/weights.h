// weights.h — the matrices and vectors of a decoder-only model, in one buffer of a backend.
//
// Matrices keep the type that the file stores; norms and biases are widened to f32. Matrices with the same
// input are stacked into one (q, k, v; gate, up), so that a step needs one product for them. If their types
// differ, and all are plain, the stacked matrix is f32. If one is quantised, each keeps its type, and
// neighbours of one type whose columns are of the same inputs (kernels/tensor.h) are one matrix. load/fill.h
// copies the weights from the files.
//
// Thread safety: immutable once filled; any thread.
//
// Invariants:
//   1. plan_weights() returns exactly the size of the buffer.
//   2. Every tensor of the checkpoint is used or known to be superfluous. Every tensor that the config
//      implies is in the checkpoint.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/model/config.h"
#include "core/model/load/checkpoint.h"
#include "kernels/buffer.h"
#include "kernels/decoder.h"

namespace weir::core {

struct linear_weight {
  kernels::matrix w;                  // all outputs, or the first ones where types or inputs differ
  std::vector<kernels::matrix> rest;  // the other outputs, in order; of other types or inputs
  const float* bias = nullptr;        // [outputs]; null: none
};

// Shapes are those of kernels::decoder_layer.
struct layer_weights {
  kernels::norm_weight attention_norm, attention_behind;
  linear_weight qkv;
  const float *q_norm = nullptr, *k_norm = nullptr;
  linear_weight out;
  kernels::norm_weight mlp_norm, mlp_behind;
  linear_weight gate_up;
  linear_weight down;
  const float* sinks = nullptr;
  kernels::expert_weights experts;
};

// Consecutive bytes of a model's weights that belong together: a matrix or a vector, with the padding behind
// it.
struct weight_area {
  std::uint64_t first = 0, bytes = 0;  // in model_weights::memory
  std::uint32_t tensors = 1;           // that are stacked in it
};

struct model_weights {
  kernels::buffer memory;
  std::vector<weight_area> areas;  // of all the memory, in order
  kernels::matrix embedding;  // [vocab, hidden]
  std::vector<layer_weights> layers;
  const float* embed_norm = nullptr;  // [hidden], ones; null: the embedding is not normed
  kernels::norm_weight norm;          // [hidden]
  kernels::matrix head;               // [vocab, hidden]; the embedding if they are tied
  // Where the embedding and its norm end and the weights that every step reads begin, in `memory`.
  std::uint64_t read_by_steps = 0;
};

// Is called with the bytes copied so far and in all.
using load_progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

using backend_ptr = std::shared_ptr<const kernels::backend>;

// The weights as they will lie on a backend: sizes and types without data.
struct weight_plan {
  model_weights weights;  // every pointer is null
  std::uint64_t bytes = 0;
};
// Reads the files' headers only. Errors: bad_file for a tensor that is missing, unknown or of the wrong
// shape; not_supported for a type that weir, or this backend, has no products for. The message names the
// tensor.
result<weight_plan> plan_weights(const model_config& config, const checkpoint& from,
                                 const kernels::backend& on);
// The same of random weights.
result<weight_plan> plan_random_weights(const model_config& config, kernels::dtype type,
                                        const kernels::backend& on);

// Errors: those of plan_weights(), does_not_fit, internal.
result<model_weights> load_weights(const model_config& config, const checkpoint& from, const backend_ptr& to,
                                   const load_progress& progress);

// Random weights: a function of the seed, small enough to keep activations finite. Those of plain types are
// never zero.
result<model_weights> random_weights(const model_config& config, kernels::dtype type, std::uint64_t seed,
                                     const backend_ptr& to);

}  // namespace weir::core
