// decoder_needs.h — the memory that a decoder_model takes of its device beside its weights: pages, workspaces
// of steps, and the backend's own. It is known before the weights are read. decoder_shape_of() describes the
// model to a backend that has a whole decoder (kernels/decoder.h).
//
// Thread safety: pure functions of their arguments. The functions do not read the data of weights.
#pragma once

#include <array>
#include <cstdint>

#include "core/model/config.h"
#include "core/model/kv_choice.h"
#include "core/model/weights.h"
#include "kernels/decoder.h"
#include "kernels/pool_steps.h"

namespace weir::core {

// Bytes of the keys and values of one page in all layers, as the single operations store them, scales
// included.
std::uint64_t page_bytes(const kernels::model_shape& shape, kernels::kv_type kv) noexcept;
// The same where the model runs on `on`: by a decoder of that backend, if it has one for the model. Data of
// `weights` is not read. Error: invalid_param where `on` does not store this model's keys and values so.
result<std::uint64_t> page_bytes(const model_config& config, const model_weights& weights,
                                 const kernels::backend& on, kv_choice kv);

// In which steps a pool of these pages can change its size on `on` (kernels/pool_steps.h). REQUIRES:
// page_bytes() of the same is no error
kernels::pool_steps pool_steps_of(const model_config& config, const model_weights& weights,
                                  const kernels::backend& on, kv_choice kv);

// What a model takes of its device beside weights and pages, once it is warm.
struct step_needs {
  std::uint32_t prompt_rows = 0;  // model_info::prompt_rows
  std::uint64_t workspaces = 0;   // bytes that steps compute in, those of the backend itself included; exact
  std::uint64_t runtime = 0;      // bytes of code and recorded steps; an estimate, 0 on the host
};
// Of a model on `on`, for steps of up to `max_batch` sequences. Data of `weights` is not read. REQUIRES:
// page_bytes() of the same is no error
step_needs step_needs_of(const model_config& config, const model_weights& weights, const kernels::backend& on,
                         kv_choice kv, std::uint32_t max_batch);

// The factor of the embedding as it was trained: rounded to the type of the weights that it multiplies.
float embed_factor(const model_config& config, const model_weights& weights);

kernels::decoder_shape decoder_shape_of(const model_config& config, const model_weights& weights,
                                        kv_choice kv);

// How many numbers each buffer of activations of a decoder_model holds, for steps of `rows` rows of which
// `logits_rows` have logits. The order is that of the members of decoder_model.
std::array<std::uint64_t, 11> activations_of(const kernels::model_shape& shape, std::uint64_t rows,
                                             std::uint64_t logits_rows);

}  // namespace weir::core
