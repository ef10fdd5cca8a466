#include "core/model/load.h"

#include "core/model/llama.h"
#include "core/model/load/mapped_file.h"
#include "core/model/load/safetensors.h"

namespace weir::core {
namespace {

// Errors of the weights name tensors; this puts the directory in front.
error in_directory(const std::string& dir, error e) {
  if (!e.message.starts_with(dir)) e.message = dir + ": " + e.message;
  return e;
}

struct opened_model {
  model_config config;
  generation_config generation;
  checkpoint weights;
};

result<opened_model> open_model(const std::string& dir) {
  const std::string config_path = dir + "/config.json", generation_path = dir + "/generation_config.json";
  auto text = read_text_file(config_path);
  if (!text) return text.error();
  auto config = parse_config(*text, config_path);
  if (!config) return config.error();

  auto generation = default_generation(*config);
  if (file_exists(generation_path)) {
    auto more = read_text_file(generation_path);
    if (!more) return more.error();
    auto parsed = parse_generation_config(*more, *config, generation_path);
    if (!parsed) return parsed.error();
    generation = std::move(*parsed);
  }

  auto weights = checkpoint::open(dir);
  if (!weights) return weights.error();
  return opened_model{std::move(*config), std::move(generation), std::move(*weights)};
}

}  // namespace

std::shared_ptr<const kernels::backend> make_backend(device_kind device, unsigned threads) {
  return device == device_kind::cpu ? kernels::cpu_backend(threads) : kernels::reference_backend();
}

result<model_summary> inspect_model(const std::string& dir, const kernels::backend& on) {
  auto m = open_model(dir);
  if (!m) return m.error();
  const auto weight_bytes = plan_weights(m->config, m->weights, on);
  if (!weight_bytes) return in_directory(dir, weight_bytes.error());
  const std::uint64_t page = page_bytes(m->config);
  return model_summary{std::move(m->config), std::move(m->generation), *weight_bytes, page};
}

result<loaded_model> load_model(const std::string& dir, std::shared_ptr<const kernels::backend> backend,
                                const load_progress& progress) {
  auto m = open_model(dir);
  if (!m) return m.error();
  auto weights = load_weights(m->config, m->weights, backend, progress);
  if (!weights) return in_directory(dir, weights.error());
  auto made = std::make_unique<llama>(std::move(m->config), m->generation.stop_ids, std::move(*weights),
                                      std::move(backend));
  return loaded_model{std::move(made), std::move(m->generation)};
}

}  // namespace weir::core
