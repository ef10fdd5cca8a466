// load.h — a model directory, or a random model's name, made into a model on a device.
//
// Thread safety: any thread; loads are independent of each other. Nothing is kept between calls.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/model/config.h"
#include "core/model/generation_config.h"
#include "core/model/model.h"
#include "core/model/weights.h"
#include "kernels/ops.h"

namespace weir::core {

// A device by its name: cpu, reference, or cuda:N (cuda alone is cuda:0). On the host `threads` compute, the
// owner's own included. `deterministic`: a row's bits depend on that row alone, on cuda too; on the host they
// always do. The error says why it cannot be had.
result<std::shared_ptr<const kernels::backend>> make_backend(const std::string& device, unsigned threads,
                                                             bool deterministic = false);

// What «auto» is here: cuda:0 where there is a device, else cpu, and then `why` says why.
std::string best_device(std::string& why);

// What a directory says before any weight is read: its config, its defaults, and to the byte what it will
// take on a backend.
struct model_summary {
  model_config config;
  generation_config generation;
  std::uint64_t weight_bytes = 0;
  std::uint64_t page_bytes = 0;  // of the keys and values of one page, all layers
};
result<model_summary> inspect_model(const std::string& dir, const kernels::backend& on);

struct loaded_model {
  std::unique_ptr<model> weights;
  generation_config generation;  // its stop ids are the model's info().stop_ids too
};
result<loaded_model> load_model(const std::string& dir, std::shared_ptr<const kernels::backend> backend,
                                const load_progress& progress = {});

// «tiny-110m», «llama-3.2-1b» or «llama-3.1-8b», then «:f32», «:bf16» (the default) or «:f16»: that shape,
// random weights, the same numbers in each type.
struct random_model {
  model_config config;
  kernels::dtype type = kernels::dtype::bf16;
};
result<random_model> parse_random_model(std::string_view spec, std::uint32_t context);
result<loaded_model> make_random_model(const random_model& shape,
                                       std::shared_ptr<const kernels::backend> backend,
                                       std::uint64_t seed = 1);

}  // namespace weir::core
