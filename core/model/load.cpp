#include "core/model/load.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <thread>

#include "core/model/decoder_model.h"
#include "core/model/load/arrange.h"
#include "core/model/load/experts.h"
#include "core/model/load/gguf_header.h"
#include "core/model/load/gguf_model.h"
#include "core/model/load/model_path.h"
#include "core/model/load/opened_file.h"
#include "core/model/load/quantised.h"
#include "core/model/load/safetensors.h"
#include "core/text/read_file.h"
#include "kernels/cuda/backend.h"

namespace weir::core {
namespace {

// Adds the model's path to an error whose message does not begin with it, since errors of weights name only
// tensors.
error in_model(const std::string& path, error e) {
  if (!e.message.starts_with(path)) e.message = path + ": " + e.message;
  return e;
}

// What the JSON files of a directory say.
result<model_facts> read_directory(const std::string& dir) {
  const std::string config_path = dir + "/config.json", generation_path = dir + "/generation_config.json";
  auto text = read_text_file(config_path);
  if (!text) return text.error();
  auto config = parse_config(*text, config_path);
  if (!config) return config.error();

  auto generation = default_generation(*config);
  const auto more = read_file(generation_path);
  if (!more) return more.error();
  if (*more) {
    auto parsed = parse_generation_config(**more, *config, generation_path);
    if (!parsed) return parsed.error();
    generation = std::move(*parsed);
  }
  return model_facts{std::move(*config), std::move(generation)};
}

result<opened_model> open_directory(const std::string& dir) {
  auto facts = read_directory(dir);
  if (!facts) return facts.error();
  auto* const config = &facts->config;
  auto& generation = facts->generation;

  auto weights = open_safetensors(dir);
  if (!weights) return weights.error();
  auto notes = strip_wrapper(*weights, *find_family(config->architecture));
  if (!notes) return in_model(dir, notes.error());
  std::ranges::copy(config->notes, std::back_inserter(*notes));
  std::ranges::move(drop_draft_layers(*weights, *config), std::back_inserter(*notes));
  if (const auto joined = join_quantised(*weights, *config); !joined) return in_model(dir, joined.error());
  if (const auto arranged = arrange_experts(*weights, *config); !arranged)
    return in_model(dir, arranged.error());
  if (const auto ordered = order_heads(*weights, *config); !ordered) return in_model(dir, ordered.error());
  return opened_model{std::move(*config), std::move(generation), std::move(*weights), std::move(*notes)};
}

void note_context(opened_model& m, std::uint32_t asked) {
  if (asked > m.whole_context)
    m.notes.push_back(fmt::format("a context of {} tokens was asked for, and the model has {}, which count",
                                  asked, m.whole_context));
}

// Says which of its tables a model computes with, where the served context decides.
void note_tables(opened_model& m) {
  for (const rope_config& rope : m.config.ropes)
    if (rope.by_context())
      m.notes.push_back(fmt::format(
          "longrope: {} tables, since the served context of {} tokens is {} the original one of {}; the "
          "model "
          "has {}",
          rope.takes_long(m.config.context) ? "long" : "short", m.config.context,
          rope.takes_long(m.config.context) ? "beyond" : "within", rope.original_context, m.whole_context));
}

// N of "cuda:N"; 0 for "cuda"; nullopt for anything else.
std::optional<int> cuda_index(std::string_view device) {
  if (device == "cuda") return 0;
  if (!device.starts_with("cuda:")) return std::nullopt;
  int n = -1;
  const auto [end, ec] = std::from_chars(device.data() + 5, device.data() + device.size(), n);
  if (ec != std::errc{} || end != device.data() + device.size() || n < 0) return std::nullopt;
  return n;
}

}  // namespace

result<opened_model> open_model(const std::string& path, std::uint32_t context) {
  if (const auto fine = check_model_path(path); !fine) return fine.error();
  auto m = is_gguf_path(path) ? open_gguf(path) : open_directory(path);
  if (!m) return m;
  m->whole_context = m->config.context;
  limit_context(m->config, context);
  note_context(*m, context);
  note_tables(*m);
  return m;
}

result<kernels::activation_type> parse_activations(std::string_view text) {
  if (text == "f32") return kernels::activation_type::f32;
  if (text == "int8") return kernels::activation_type::int8;
  return bad_param("activations", "--activations must be f32 or int8, not '{}'", text);
}

result<void> check_activations(const std::string& device, kernels::activation_type activations) {
  if (activations == kernels::activation_type::f32 || device == "cpu") return {};
  return bad_param("activations", "--activations int8: only --device cpu has them; {} takes f32", device);
}

result<std::shared_ptr<const kernels::backend>> make_backend(const std::string& device, unsigned threads,
                                                             bool deterministic,
                                                             kernels::activation_type activations) {
  if (device == "cpu" && threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  if (device == "cpu") return kernels::cpu_backend(threads, activations);
  const auto index = cuda_index(device);
  if (device != "reference" && !index)
    return bad_param("device", "--device must be cpu, reference or cuda[:N], not '{}'", device);
  if (const auto ok = check_activations(device, activations); !ok) return ok.error();
  if (device == "reference") return kernels::reference_backend();
  std::string why;
  auto b = kernels::cuda_backend(*index, why, deterministic);
  if (!b) return make_error(errc::unavailable, "--device {}: {}", device, why);
  return b;
}

std::string best_device(const kernels::cuda_machine& found, std::string& why) {
  if (found.presence != kernels::cuda_presence::none) return "cuda:0";
  why = found.why;
  return "cpu";
}

std::string best_device(std::string& why) { return best_device(kernels::find_cuda(), why); }

result<model_facts> read_model_facts(const std::string& path) {
  if (!is_gguf_path(path)) return read_directory(path);
  auto m = open_gguf(path);
  if (!m) return m.error();
  return model_facts{std::move(m->config), std::move(m->generation)};
}

result<model_summary> inspect_model(const std::string& path, const kernels::backend& on, kv_choice kv,
                                    std::uint32_t max_batch, std::uint32_t context) {
  if (const auto ok = check_kv_type(on, kv); !ok) return ok.error();
  auto m = open_model(path, context);
  if (!m) return m.error();
  const auto plan = plan_weights(m->config, m->weights, on);
  if (!plan) return in_model(path, plan.error());
  const auto page = page_bytes(m->config, plan->weights, on, kv);
  if (!page) return in_model(path, page.error());
  const auto steps = step_needs_of(m->config, plan->weights, on, kv, max_batch);
  const auto pool = pool_steps_of(m->config, plan->weights, on, kv);
  return model_summary{std::move(m->config), std::move(m->generation), plan->bytes, *page, steps.workspaces,
                       steps.runtime,        std::move(m->notes),      pool};
}

result<loaded_model> load_model(const std::string& path, std::shared_ptr<const kernels::backend> backend,
                                const load_progress& progress, kv_choice kv, std::uint32_t context) {
  if (const auto ok = check_kv_type(*backend, kv); !ok) return ok.error();
  auto m = open_model(path, context);
  if (!m) return m.error();
  if (kv) {  // whether this model has such pages is known before its weights are read
    const auto plan = plan_weights(m->config, m->weights, *backend);
    if (!plan) return in_model(path, plan.error());
    const auto page = page_bytes(m->config, plan->weights, *backend, kv);
    if (!page) return in_model(path, page.error());
  }
  auto weights = load_weights(m->config, m->weights, backend, progress);
  if (!weights) return in_model(path, weights.error());
  auto made = std::make_unique<decoder_model>(std::move(m->config), m->generation.stop_ids,
                                              std::move(*weights), std::move(backend), kv);
  return loaded_model{std::move(made), std::move(m->generation), std::move(m->notes)};
}

}  // namespace weir::core
