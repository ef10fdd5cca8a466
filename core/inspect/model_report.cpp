#include "core/inspect/model_report.h"

#include <algorithm>

#include "core/inspect/loose_keys.h"
#include "core/inspect/wording.h"
#include "core/model/load.h"
#include "core/model/load/gguf_model.h"
#include "core/model/load/model_path.h"
#include "core/model/load/opened_model.h"
#include "core/model/load/safetensors.h"
#include "core/model/load/strict_json.h"
#include "core/text/chat/chat_template.h"
#include "core/text/chat/special_tokens.h"
#include "core/text/read_file.h"
#include "core/text/tokenizer/tokenizer.h"

namespace weir::core {
namespace json = boost::json;
namespace {

void add_refusal(model_report& out, const error& e) {
  if (std::ranges::find(out.refused, e.message) == out.refused.end()) out.refused.push_back(e.message);
}

// ---- as the files have it, whatever it describes

void fold_types(const tensor_map& tensors, model_report& out) {
  for (const auto& [name, t] : tensors) {
    auto at = std::ranges::find(out.tensors, t.dtype, &tensor_group::type);
    if (at == out.tensors.end()) at = out.tensors.insert(at, {t.dtype});
    ++at->tensors;
    at->bytes += t.bytes.size();
  }
  std::ranges::stable_sort(out.tensors, std::greater(), &tensor_group::bytes);
}

// Elements of all tensors, unless they are codes, of which a weight has not one each.
std::uint64_t elements_of(const tensor_map& tensors) {
  std::uint64_t sum = 0;
  for (const auto& [name, t] : tensors) {
    std::uint64_t count = 1;
    for (const auto n : t.shape) count *= n;  // parsed files have their elements, so this does not overflow
    sum += count;
  }
  return sum;
}

result<json::object> config_json_of(const std::string& dir) {
  const std::string path = dir + "/config.json";
  const auto text = read_file(path);
  if (!text) return text.error();
  if (!*text) return make_error(errc::bad_file, "{}: there is no such file", path);
  return parse_strict_json(**text, path);
}

result<> describe_gguf_file(const std::string& path, model_report& out) {
  const auto all = open_gguf_parts(path);
  if (!all) return all.error();
  describe_gguf(all->files.front().content.keys, out);
  fold_types(all->tensors, out);
  out.parameters = elements_of(all->tensors);
  return {};
}

result<> describe_directory(const std::string& dir, model_report& out) {
  bool plain = false;
  if (const auto document = config_json_of(dir)) {
    describe_config(*document, out);
    plain = !out.keys.contains("quantization_config.quant_method");
  }
  const auto weights = open_safetensors(dir);
  if (!weights) return weights.error();
  fold_types(weights->tensors(), out);
  if (plain) out.parameters = elements_of(weights->tensors());
  return {};
}

// ---- as a server would have it

model_sizes sizes_of(const model_config& c, std::uint32_t context) {
  const kernels::layer_shape& first = c.shape.layers.front();
  model_sizes s;
  s.layers = c.layers();
  s.hidden = c.shape.hidden;
  s.heads = first.mixer.heads;
  s.kv_heads = first.mixer.kv_heads;
  s.head_dim = first.mixer.head_dim;
  s.inter = first.mlp.inter;
  if (const kernels::feed_forward* m = mixture_of(c.shape)) {
    s.experts = m->router.experts;
    s.used = m->router.chosen;
  }
  s.vocab = c.shape.vocab;
  s.context = context;
  return s;
}

void describe_served(model_config config, std::uint32_t whole_context, model_report& out) {
  out.row = config.architecture;
  out.sizes = sizes_of(config, whole_context);
  out.keys.clear();
  out.config = std::move(config);
}

std::string stored_type(const checkpoint& weights, std::string_view name) {
  const stored_tensor* t = weights.find(name);
  return t ? t->dtype : std::string();
}

void describe_opened(opened_model m, model_report& out) {
  out.notes = std::move(m.notes);
  out.parameters = elements_of(m.weights.tensors());
  out.embedding_type = stored_type(m.weights, "model.embed_tokens.weight");
  out.head_type = m.config.stored.tied ? out.embedding_type : stored_type(m.weights, "lm_head.weight");
  out.generation = std::move(m.generation);
  describe_served(std::move(m.config), m.whole_context, out);
}

// The description of a directory whose weights cannot be opened.
void describe_config_alone(const std::string& dir, std::uint32_t context, model_report& out) {
  const auto text = read_file(dir + "/config.json");
  if (!text || !*text) return;
  auto config = parse_config(**text, dir + "/config.json");
  if (!config) return;
  const std::uint32_t whole = config->context;
  limit_context(*config, context);
  describe_served(std::move(*config), whole, out);
}

// ---- text

std::string tokenizer_kind(const tokenizer& t) {
  std::string out(t.model_type());
  const auto space = t.id_of("\xc4\xa0"), line = t.id_of("<0x0A>");
  if (space && t.token_bytes(*space) == " ") out += ", byte-level";
  if (line && t.is_byte_piece(*line)) out += ", with byte fallback";
  return out;
}

tokenizer_report tokenizer_report_of(const tokenizer& t, const json::object& special) {
  tokenizer_report out;
  out.kind = tokenizer_kind(t);
  out.vocab = t.vocab_size();
  for (std::uint32_t id = 0; id < out.vocab; ++id) out.control += t.is_special(static_cast<token_id>(id));
  out.adds_bos = t.adds_bos();
  for (const auto& [role, spelling] : special) {
    const std::string text(spelling.get_string());
    out.special.push_back({std::string(role), text, t.id_of(text).value_or(-1)});
  }
  return out;
}

void describe_text(const std::string& path, model_report& out) {
  const auto tokens = load_tokenizer(path);
  const auto special = special_tokens_of(path);
  if (!tokens) add_refusal(out, tokens.error());
  if (!special) return add_refusal(out, special.error());
  if (tokens) out.tokens = tokenizer_report_of(**tokens, *special);
  const auto chat = chat_template::load(path, tokens ? **tokens : *make_byte_tokenizer(), false);
  if (!chat) return add_refusal(out, chat.error());
  const error* fault = (*chat)->fault();
  out.chat = template_report{(*chat)->origin(), (*chat)->source().size(), (*chat)->format(true),
                             fault ? fault->message : std::string()};
  if (!out.generation || !tokens) return;
  for (const token_id id : out.generation->stop_ids) out.stops.emplace_back(id, (*tokens)->piece(id));
}

}  // namespace

bool model_report::served() const noexcept {
  return refused.empty() &&
         (devices.empty() || std::ranges::any_of(devices, [](const auto& d) { return !d.wrong; }));
}

model_report describe_model(const std::string& path, std::uint32_t context) {
  model_report out;
  out.path = path;
  if (const auto fine = check_model_path(path); !fine) return add_refusal(out, fine.error()), out;
  const bool gguf = is_gguf_path(path);
  out.container = gguf ? "GGUF" : "safetensors";
  const auto files = gguf ? describe_gguf_file(path, out) : describe_directory(path, out);
  if (auto m = open_model(path, context)) {
    describe_opened(std::move(*m), out);
    const auto summary = inspect_model(path, *kernels::reference_backend(), {}, 1, context);
    if (!summary) add_refusal(out, summary.error());
  } else {
    add_refusal(out, m.error());
    if (!files) add_refusal(out, files.error());
    if (!gguf) describe_config_alone(path, context, out);
  }
  describe_text(path, out);
  return out;
}

void add_devices(model_report& m, std::vector<device_report> devices) {
  m.devices = std::move(devices);
  const auto same = [&](const device_report& d) {
    return d.wrong && d.wrong->message == m.devices.front().wrong->message;
  };
  if (m.devices.empty() || !m.devices.front().wrong || !std::ranges::all_of(m.devices, same)) return;
  add_refusal(m, *m.devices.front().wrong);
  m.devices.clear();
}

}  // namespace weir::core
