#include "core/model/generation_config.h"

#include "core/model/load/strict_json.h"
#include "core/model/token_ids.h"

namespace weir::core {
namespace {

void read_range(json_reader& in, std::string_view key, double above, double most, float& out) {
  const auto x = in.number(key);
  if (!x) return;
  if (!(*x > above && *x <= most))
    return in.fail(errc::bad_file,
                   fmt::format("{}: '{}' is {}, outside ({}, {}]", in.what(), key, *x, above, most));
  out = static_cast<float>(*x);
}

void read_sampling(json_reader& in, sampling_params& p) {
  constexpr double below_zero = -1e-30;  // so that 0 itself is inside
  read_range(in, "temperature", below_zero, 2, p.temperature);
  read_range(in, "top_p", 0, 1, p.top_p);
  read_range(in, "min_p", below_zero, 1, p.min_p);
  read_range(in, "repetition_penalty", 0, 2, p.repetition_penalty);
  if (const auto k = in.number("top_k"); k && *k >= 0 && *k < 4e9) p.top_k = static_cast<std::uint32_t>(*k);
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
