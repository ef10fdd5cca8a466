// load.h — loads a model onto a device, from a directory, from a GGUF file or with random weights.
//
// Errors of a path: bad_file, not_supported, does_not_fit, internal. The message names the file.
//
// Thread safety: any thread. Calls are independent of each other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/model/config.h"
#include "core/model/generation_config.h"
#include "core/model/kv_choice.h"
#include "core/model/model.h"
#include "core/model/weights.h"
#include "kernels/activations.h"
#include "kernels/cuda/device/machine.h"
#include "kernels/ops.h"
#include "kernels/pool_steps.h"

namespace weir::core {

// The backend with this name: cpu, reference, or cuda:N (cuda means cuda:0). `threads`: threads that
// compute on cpu, including the owner's; 0: one per core. `deterministic`: on cuda too, the bits of a row's
// result depend on that row alone; on cpu and reference they always do. `activations`: what quantised
// weights multiply (kernels/activations.h). Errors: invalid_param for an unknown name, and for activations
// that the device does not have; unavailable, with the reason.
result<std::shared_ptr<const kernels::backend>> make_backend(
    const std::string& device, unsigned threads, bool deterministic = false,
    kernels::activation_type activations = kernels::activation_type::f32);

// Parses f32 or int8, a value of --activations. Error: invalid_param.
result<kernels::activation_type> parse_activations(std::string_view text);
// Whether a device, as in make_backend() or "sim", has such activations. Error: invalid_param.
result<void> check_activations(const std::string& device, kernels::activation_type activations);

// The device that "auto" means on this machine: cpu where there is no CUDA device, with the reason in `why`;
// otherwise cuda:0. That is so even where cuda:0 cannot be used: make_backend() then says why.
std::string best_device(std::string& why);
// The same for a machine whose CUDA devices are `found`.
std::string best_device(const kernels::cuda_machine& found, std::string& why);

// What a model is, without its weights. `path`: a directory, in which no file of weights is looked for, or a
// GGUF file.
struct model_facts {
  model_config config;
  generation_config generation;
};
result<model_facts> read_model_facts(const std::string& path);

// Facts about a model that are known before any weight is read. `path`: a directory in Hugging Face layout,
// or a GGUF file. `kv`: what its pages store; a backend that has no such type is an error of invalid_param.
// `context`: the most tokens of a sequence that will be served, 0 for all that the model has; a model may
// compute with other rotary tables for it (longrope).
struct model_summary {
  model_config config;
  generation_config generation;
  std::uint64_t weight_bytes = 0;  // exact, on the backend
  std::uint64_t page_bytes = 0;    // of the keys and values of one page in all layers; exact, on the backend
  // What steps of up to `max_batch` sequences need beside these (decoder_model.h): exact; estimated.
  std::uint64_t workspaces = 0, runtime = 0;
  std::vector<std::string> notes;  // those of loaded_model
  kernels::pool_steps pool;        // how a pool of its pages can change
};
result<model_summary> inspect_model(const std::string& path, const kernels::backend& on, kv_choice kv = {},
                                    std::uint32_t max_batch = 1, std::uint32_t context = 0);

// Loads a model. `path`, `kv` and `context` as above; `progress` is called on the calling thread.
struct loaded_model {
  std::unique_ptr<model> weights;
  generation_config generation;  // stop_ids are those of the model's info()
  // For the log: what the files have and the model leaves out, and what the served context decides.
  std::vector<std::string> notes;
};
result<loaded_model> load_model(const std::string& path, std::shared_ptr<const kernels::backend> backend,
                                const load_progress& progress = {}, kv_choice kv = {},
                                std::uint32_t context = 0);

// A model of a real shape with random weights. The spec is one of random_model_names(), then ":f32", ":bf16"
// (the default), ":f16" or a quantised type, such as ":q8_0". The weights are the same numbers in each of the
// first three. Error of parse_random_model(): invalid_param.
struct random_model {
  model_config config;
  kernels::dtype type = kernels::dtype::bf16;
};
std::string random_model_names();  // "tiny-110m, llama-3.2-1b, …"
result<random_model> parse_random_model(std::string_view spec, std::uint32_t context);
result<model_summary> inspect_random_model(const random_model& shape, const kernels::backend& on,
                                           kv_choice kv = {}, std::uint32_t max_batch = 1);
result<loaded_model> make_random_model(const random_model& shape,
                                       std::shared_ptr<const kernels::backend> backend,
                                       std::uint64_t seed = 1, kv_choice kv = {});

}  // namespace weir::core
