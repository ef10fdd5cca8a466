#include "core/model/config.h"

#include <array>
#include <cmath>
#include <numbers>

#include "core/model/load/strict_json.h"
#include "core/model/token_ids.h"
#include "core/shortened.h"

namespace weir::core {
namespace json = boost::json;
namespace {

// Larger than any model's sizes, and so small that a product of two fits well into 64 bits.
constexpr std::uint32_t max_size = 1u << 24;
constexpr std::uint32_t max_layers = 1024, max_heads = 4096, max_head_dim = 1024;

// Which layers have a sliding window; switched: use_sliding_window and max_window_layers decide.
enum class windows { none, all_layers, switched };

// Fixed properties of a family of models, and the defaults that transformers uses for keys that are missing.
struct family {
  std::string_view architecture;
  bool attention_bias_key, mlp_bias_key;  // the family has these keys
  bool qkv_bias, qk_norm;                 // every model of the family has these
  windows slides;
  std::uint32_t head_dim;  // default; 0: hidden / heads
};
constexpr std::array families{
    family{"LlamaForCausalLM", true, true, false, false, windows::none, 0},
    family{"MistralForCausalLM", false, false, false, false, windows::all_layers, 0},
    family{"Qwen2ForCausalLM", false, false, true, false, windows::switched, 0},
    family{"Qwen3ForCausalLM", true, false, false, true, windows::switched, 128},
};
constexpr std::uint32_t default_window = 4096, default_max_window_layers = 28;

void not_supported(json_reader& in, std::string_view thing) {
  in.fail(errc::not_supported, fmt::format("{}: {} is not supported yet", in.what(), thing));
}

const family* read_family(json_reader& in, model_config& c) {
  const json::value* names = in.find("architectures");
  const bool one =
      names && names->is_array() && names->get_array().size() == 1 && names->get_array()[0].is_string();
  if (!one) {
    in.fail(errc::bad_file, fmt::format("{}: 'architectures' must be a list of one name", in.what()));
    return nullptr;
  }
  c.architecture = std::string(names->get_array()[0].get_string());
  for (const family& f : families)
    if (f.architecture == c.architecture) return &f;
  std::string there;
  for (const family& f : families) there += fmt::format("{}{}", there.empty() ? "" : ", ", f.architecture);
  in.fail(errc::not_supported, fmt::format("{}: architecture {} is not supported; these are: {}", in.what(),
                                           shortened(c.architecture), there));
  return nullptr;
}

void refuse_other_arithmetic(json_reader& in) {
  if (const auto act = in.text("hidden_act"); act && *act != "silu" && *act != "swish")
    not_supported(in, fmt::format("hidden_act '{}'", *act));
  if (in.has("compression_config")) not_supported(in, "compression_config");
  if (in.number("partial_rotary_factor").value_or(1) != 1) not_supported(in, "partial_rotary_factor");
}

void read_quantisation(json_reader& in, model_config& c) {
  const json::value* v = in.find("quantization_config");
  if (!v) return;
  if (!v->is_object())
    return in.fail(errc::bad_file, fmt::format("{}: 'quantization_config' must be an object", in.what()));
  json_reader q(v->get_object(), in.what() + ": quantization_config");
  c.quantised = read_quant_config(q);
  if (q.failure()) in.fail(q.failure()->code, q.failure()->message);
}

void read_sizes(json_reader& in, const family& f, model_config& c) {
  c.vocab_size = in.required_count("vocab_size", max_size).value_or(1);
  c.context = in.required_count("max_position_embeddings", max_size).value_or(1);
  c.hidden = in.required_count("hidden_size", max_size).value_or(1);
  c.inter = in.required_count("intermediate_size", max_size).value_or(1);
  c.layers = in.required_count("num_hidden_layers", max_layers).value_or(1);
  c.heads = in.required_count("num_attention_heads", max_heads).value_or(1);
  c.kv_heads = in.count("num_key_value_heads", max_heads).value_or(c.heads);
  c.head_dim = in.count("head_dim", max_head_dim).value_or(f.head_dim);
  if (c.head_dim == 0 && c.hidden % c.heads == 0) c.head_dim = c.hidden / c.heads;
  c.norm_eps = static_cast<float>(in.number("rms_norm_eps").value_or(1e-6));
  if (c.heads % c.kv_heads != 0)
    in.fail(errc::bad_file,
            fmt::format("{}: num_attention_heads {} is not a multiple of num_key_value_heads {}", in.what(),
                        c.heads, c.kv_heads));
  if (c.head_dim == 0 || c.head_dim % 2 != 0 || c.head_dim > max_head_dim)
    in.fail(errc::bad_file,
            fmt::format("{}: heads of {} elements (hidden_size {}, num_attention_heads {}): must be "
                        "an even number up to {}",
                        in.what(), c.head_dim, c.hidden, c.heads, max_head_dim));
  if (!(c.norm_eps > 0))
    in.fail(errc::bad_file, fmt::format("{}: 'rms_norm_eps' must be above 0", in.what()));
}

void read_switches(json_reader& in, const family& f, model_config& c) {
  const bool attention_bias = in.boolean("attention_bias").value_or(false);
  const bool mlp_bias = in.boolean("mlp_bias").value_or(false);
  if (attention_bias && !f.attention_bias_key) not_supported(in, "attention_bias in " + c.architecture);
  if (mlp_bias && !f.mlp_bias_key) not_supported(in, "mlp_bias in " + c.architecture);
  c.qkv_bias = f.qkv_bias || attention_bias;
  c.out_bias = attention_bias;
  c.mlp_bias = mlp_bias;
  c.qk_norm = f.qk_norm;
  c.tied = in.boolean("tie_word_embeddings").value_or(false);
}

// llama3 mixes plain and scaled frequencies between two bounds. The bounds must differ, since the mix divides
// by their difference.
void read_llama3(json_reader& in, rope_config& rope) {
  for (const char* key : {"low_freq_factor", "high_freq_factor", "original_max_position_embeddings"})
    if (!in.has(key)) in.fail(errc::bad_file, fmt::format("{}: '{}' is missing", in.what(), key));
  rope.low_freq_factor = in.number("low_freq_factor").value_or(1);
  rope.high_freq_factor = in.number("high_freq_factor").value_or(4);
  rope.original_context = in.number("original_max_position_embeddings").value_or(1);
  if (!(rope.low_freq_factor > 0 && rope.high_freq_factor > rope.low_freq_factor &&
        rope.original_context >= 1))
    in.fail(errc::bad_file, fmt::format("{}: needs 0 < low_freq_factor < high_freq_factor and "
                                        "original_max_position_embeddings >= 1",
                                        in.what()));
}

// `in`: rope_parameters, which contains rope_theta, or the older rope_scaling, which has rope_theta beside
// it.
void read_rope_object(json_reader& in, rope_config& rope) {
  const auto old_key = in.text("type"), key = in.text("rope_type");
  const std::string type = key ? *key : old_key.value_or("default");
  rope.theta = in.number("rope_theta").value_or(rope.theta);
  if (in.number("partial_rotary_factor").value_or(1) != 1) not_supported(in, "partial_rotary_factor");
  if (type == "default") return;
  if (type != "linear" && type != "llama3") return not_supported(in, fmt::format("rope type '{}'", type));
  rope.type = type == "linear" ? rope_type::linear : rope_type::llama3;
  if (!in.has("factor")) in.fail(errc::bad_file, fmt::format("{}: 'factor' is missing", in.what()));
  rope.factor = in.number("factor").value_or(1);
  if (!(rope.factor >= 1)) in.fail(errc::bad_file, fmt::format("{}: 'factor' must be at least 1", in.what()));
  if (rope.type == rope_type::llama3) read_llama3(in, rope);
}

void read_rope(json_reader& in, model_config& c) {
  c.rope.theta = in.number("rope_theta").value_or(c.rope.theta);
  // A file for old and new readers has both keys. The newer one is complete, so the older one is not read.
  const char* key = in.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  if (const json::value* v = in.find(key)) {
    if (!v->is_object())
      return in.fail(errc::bad_file, fmt::format("{}: '{}' must be an object", in.what(), key));
    json_reader rope(v->get_object(), fmt::format("{}: {}", in.what(), key));
    read_rope_object(rope, c.rope);
    if (rope.failure()) in.fail(rope.failure()->code, rope.failure()->message);
  }
  if (!(c.rope.theta > 0))
    in.fail(errc::bad_file, fmt::format("{}: 'rope_theta' must be above 0", in.what()));
}

// The window that the family's keys give; 0: none. A missing sliding_window means the default, null means
// none.
std::uint32_t read_window(json_reader& in, const family& f, const model_config& c) {
  if (f.slides == windows::none) {
    if (in.has("sliding_window")) not_supported(in, "sliding_window in " + c.architecture);
    return 0;
  }
  if (f.slides == windows::switched && !in.boolean("use_sliding_window").value_or(false)) return 0;
  if (!in.mentions("sliding_window")) return default_window;
  return in.count("sliding_window", 1u << 30).value_or(0);
}

// If layer_types exists, it says which layers have the window. Otherwise all layers have it, or in Qwen's
// families those from max_window_layers on.
void read_windows(json_reader& in, const family& f, model_config& c) {
  const std::uint32_t window = read_window(in, f, c);
  c.windows.assign(c.layers, window);
  if (f.slides == windows::switched) {
    const double first = in.number("max_window_layers").value_or(default_max_window_layers);
    for (std::uint32_t i = 0; i < c.layers && i < first; ++i) c.windows[i] = 0;
  }
  const json::value* kinds = in.find("layer_types");
  if (!kinds) return;
  if (!kinds->is_array() || kinds->get_array().size() != c.layers)
    return in.fail(errc::bad_file,
                   fmt::format("{}: 'layer_types' must have an entry a layer ({})", in.what(), c.layers));
  for (std::uint32_t i = 0; i < c.layers; ++i) {
    const json::value& kind = kinds->get_array()[i];
    const bool slides = kind == "sliding_attention";
    if (!slides && kind != "full_attention")
      not_supported(in, fmt::format("layer type {}", json::serialize(kind).substr(0, 60)));
    if (slides && window == 0)
      in.fail(errc::bad_file,
              fmt::format("{}: layer_types[{}] slides, but there is no sliding_window", in.what(), i));
    c.windows[i] = slides ? window : 0;
  }
}

}  // namespace

kernels::attention_rule model_config::rule(std::uint32_t i) const {
  return {windows[i], 1.0f / std::sqrt(static_cast<float>(head_dim))};
}

result<model_config> parse_config(std::string_view text, std::string_view what) {
  auto document = parse_strict_json(text, what);
  if (!document) return document.error();
  json_reader in(*document, std::string(what));
  model_config c;
  const family* f = read_family(in, c);
  if (!f) return *in.failure();
  refuse_other_arithmetic(in);
  read_quantisation(in, c);
  read_sizes(in, *f, c);
  read_switches(in, *f, c);
  read_rope(in, c);
  read_windows(in, *f, c);
  c.stop_ids = read_token_ids(in, "eos_token_id", c.vocab_size);
  const auto bos = read_token_ids(in, "bos_token_id", c.vocab_size);
  if (!bos.empty()) c.bos = bos.front();
  if (in.failure()) return *in.failure();
  return c;
}

std::vector<float> rope_frequencies(const rope_config& rope, std::uint32_t head_dim) {
  std::vector<float> frequencies(head_dim / 2);
  for (std::uint32_t i = 0; i < frequencies.size(); ++i) {
    // In f32, as in transformers: the model was trained with these values.
    const auto theta = static_cast<float>(rope.theta);
    const float plain = 1.0f / std::pow(theta, static_cast<float>(2 * i) / static_cast<float>(head_dim));
    const auto slow = static_cast<float>(plain / rope.factor);
    frequencies[i] = rope.type == rope_type::plain ? plain : slow;
    if (!rope.divisors.empty()) frequencies[i] /= rope.divisors[i];
    if (rope.type != rope_type::llama3) continue;
    const double rotations =
        rope.original_context * plain / (2 * std::numbers::pi);  // within the original context
    if (rotations > rope.high_freq_factor) frequencies[i] = plain;
    if (rotations < rope.low_freq_factor || rotations > rope.high_freq_factor) continue;
    const double mix = (rotations - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
    frequencies[i] = static_cast<float>((1 - mix) * slow + mix * plain);
  }
  return frequencies;
}

}  // namespace weir::core
