// open_model.h — opens a model by the name given on the command line: weights, tokenizer and chat template,
// ready for an engine.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/host.h"
#include "core/engine.h"
#include "core/grammar/masks/job_mask.h"
#include "core/memory/plan.h"
#include "core/model/load.h"
#include "core/model/sim.h"

namespace weir::actors {

struct owner_options;

// A model that an owner can adopt.
struct ready_model {
  std::unique_ptr<core::engine> engine;  // null until make_engine()
  // With its KV pages allocated, and warmed up; null from make_engine() on.
  std::unique_ptr<core::model> weights;
  core::engine_config config;
  std::shared_ptr<served_model> served = std::make_shared<served_model>();  // has no place yet
  std::shared_ptr<model_place> place = std::make_shared<model_place>();     // has no port yet
};

// Default name of a model: the shape of random:SHAPE[:DTYPE], or the last part of its path without .gguf.
std::string name_of_source(const std::string& source);

// What a model's source says before anything is read or made. Errors: invalid_param, naming the option.
bool is_random(const model_spec& spec);
// REQUIRES: is_random(spec)
core::result<core::random_model> random_shape(const model_spec& spec, const owner_options& o);
// REQUIRES: o.device is sim
core::result<core::sim_spec> sim_shape(const model_spec& spec, const owner_options& o);

// Most tokens of a sequence that a model is to serve, as --context and --max-seq-len say; 0: all that it has.
std::uint32_t asked_context(const model_spec& spec, const owner_options& o);

// What decides the number of a model's pages. `context`: most tokens of a sequence, as its file says;
// `groups`: the bytes of its pages.
core::pool_needs pool_of(const model_spec& spec, const owner_options& o, std::uint32_t context,
                         std::vector<core::page_group> groups);

// The options as they are for one model: with its limits. Error: invalid_param about `limits`, where a limit
// is wider than that of the options.
core::result<owner_options> options_for(const model_spec& spec, const owner_options& o);

// Sets how many prompt rows a step may carry beside streams, as --slo and --prefill-ms say. `own_device`: the
// model does not share the host's processors.
void set_slices(core::engine_config& c, const owner_options& o, bool own_device);

// Loads a model, allocates its pages and warms it up. `spend` lets the time of a simulated model's step pass.
// `backend`, which the model keeps, is used by no other
// thread meanwhile, and is null for the simulated device. Errors name the file and field, or the option, that
// is wrong; does_not_fit where memory is short.
core::result<std::unique_ptr<ready_model>> open_model(const model_spec& spec, const owner_options& o,
                                                      std::shared_ptr<const kernels::backend> backend,
                                                      const model_progress& progress,
                                                      std::function<void(core::duration)> spend = {});

// A model without its weights: all that requests need of it. It has neither a place nor constraints yet.
// Errors as open_model(), but for those of weights and memory.
core::result<std::shared_ptr<served_model>> open_texts(const model_spec& spec, const owner_options& o);

// How long the load takes beside its work: what load= of a simulated model says.
core::duration simulated_load(const model_spec& spec, const owner_options& o);

// The same for a sleep and a wake: what sleep= says.
struct simulated_nap_times {
  core::duration sleep{}, wake{};
};
simulated_nap_times simulated_naps(const model_spec& spec, const owner_options& o);

// Makes the engine. `time` must outlive it.
void make_engine(ready_model& m, const core::clock& time, std::shared_ptr<core::grammar::mask_helpers> masks);

}  // namespace weir::actors
