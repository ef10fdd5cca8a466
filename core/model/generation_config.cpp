#include "core/model/generation_config.h"

#include <algorithm>

#include "core/model/families.h"
#include "core/model/load/strict_json.h"
#include "core/model/token_ids.h"

namespace weir::core {
namespace {

// Reads a member, if there is one, over the default in `out`.
void read_default(json_reader& in, const char* key, const number_range& range, float& out) {
  const auto x = in.number(key);
  if (!x) return;
  if (!range.holds(*x))
    return in.fail(errc::bad_file, fmt::format("{}: '{}' is {}, out of its range", in.what(), key, *x));
  out = static_cast<float>(*x);
}

// The same for a whole number, of which 0 and -1 say that the field is off. REQUIRES: the range begins at 0.
void read_default(json_reader& in, const char* key, const number_range& range, std::uint32_t& out) {
  if (const auto x = in.number(key); x == 0.0 || x == -1.0) {
    out = 0;
  } else {
    out = in.count(key, static_cast<std::uint32_t>(range.high)).value_or(out);
  }
}

void read_sampling(json_reader& in, sampling_params& p) {
  visit_sampling([&](const sampling_field& f, auto, auto to) {
    if constexpr (requires { read_default(in, f.name, *f.file, p.*to); }) {
      if (f.file) read_default(in, f.name, *f.file, p.*to);
    }
  });
  if (!in.boolean("do_sample").value_or(true)) p.temperature = 0;
}

void add_missing(const std::vector<token_id>& from, std::vector<token_id>& to) {
  for (const token_id id : from)
    if (std::ranges::find(to, id) == to.end()) to.push_back(id);
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
  if (in.has("eos_token_id")) {
    g.stop_ids = read_token_ids(in, "eos_token_id", config.shape.vocab);
    if (const family* f = find_family(config.architecture); f && f->union_of_stops)
      add_missing(config.stop_ids, g.stop_ids);
  }
  if (const auto bos = read_token_ids(in, "bos_token_id", config.shape.vocab); !bos.empty())
    g.bos = bos.front();
  read_sampling(in, g.defaults);
  if (in.failure()) return *in.failure();
  return g;
}

}  // namespace weir::core
