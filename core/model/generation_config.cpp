#include "core/model/generation_config.h"

#include "core/model/load/strict_json.h"
#include "core/model/token_ids.h"

namespace weir::core {
namespace {

constexpr std::uint32_t max_top_k = 1u << 24;  // the largest vocabulary that a config may have

enum class lower { included, excluded };

void read_range(json_reader& in, std::string_view key, lower zero, double most, float& out) {
  const auto x = in.number(key);
  if (!x) return;
  const bool fits = (zero == lower::included ? *x >= 0 : *x > 0) && *x <= most;
  if (!fits)
    return in.fail(errc::bad_file, fmt::format("{}: '{}' is {}, out of its range", in.what(), key, *x));
  out = static_cast<float>(*x);
}

// The ranges are those of sampling_params.
void read_sampling(json_reader& in, sampling_params& p) {
  read_range(in, "temperature", lower::included, 2, p.temperature);
  read_range(in, "top_p", lower::excluded, 1, p.top_p);
  read_range(in, "min_p", lower::included, 1, p.min_p);
  read_range(in, "repetition_penalty", lower::excluded, 2, p.repetition_penalty);
  if (in.number("top_k") == 0.0) {
    p.top_k = 0;
  } else {
    p.top_k = in.count("top_k", max_top_k).value_or(p.top_k);
  }
  if (!in.boolean("do_sample").value_or(true)) p.temperature = 0;
}

}  // namespace

generation_config default_generation(const model_config& config) {
  return generation_config{config.stop_ids, config.bos, {}};
}

result<generation_config> parse_generation_config(std::string_view text, const model_config& config,
                                                  std::string_view what) {
  auto document = parse_strict_json(text, what);
  if (!document) return document.error();
  json_reader in(*document, std::string(what));
  generation_config g = default_generation(config);
  if (in.has("eos_token_id")) g.stop_ids = read_token_ids(in, "eos_token_id", config.vocab_size);
  if (const auto bos = read_token_ids(in, "bos_token_id", config.vocab_size); !bos.empty())
    g.bos = bos.front();
  read_sampling(in, g.defaults);
  if (in.failure()) return *in.failure();
  return g;
}

}  // namespace weir::core
