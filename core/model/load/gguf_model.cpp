#include "core/model/load/gguf_model.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <optional>

#include "core/model/load/arrange.h"
#include "core/model/load/experts.h"
#include "core/model/load/gguf_config.h"
#include "core/model/load/gguf_header.h"
#include "core/model/load/gguf_names.h"

namespace weir::core {
namespace {

constexpr std::uint32_t most_parts = 99999;
constexpr std::string_view divisors_name = "rope_freqs.weight";

struct split_numbers {
  std::uint32_t number = 0, count = 1;
  std::optional<std::uint32_t> tensors;  // of all parts
};

result<split_numbers> read_split(const gguf_keys& keys, const std::string& path) {
  gguf_reader in(keys, path);
  split_numbers s;
  s.number = in.count("split.no", most_parts).value_or(0);
  s.count = in.count("split.count", most_parts).value_or(1);
  s.tensors = in.count("split.tensors.count", 1u << 24);
  if (in.failure()) return *in.failure();
  if (s.count == 0 || s.number >= s.count)
    return make_error(errc::bad_file, "{}: 'split.no' is {} of {}", path, s.number, s.count);
  return s;
}

// The path of part `number` of a model, by the path of its first part.
result<std::string> path_of_part(const std::string& first, std::uint32_t number, std::uint32_t count) {
  const std::string ending = fmt::format("-{:05}-of-{:05}.gguf", 1, count);
  if (!first.ends_with(ending))
    return make_error(errc::bad_file, "{}: the first of {} files must be called NAME{}", first, count,
                      ending);
  return fmt::format("{}-{:05}-of-{:05}.gguf", first.substr(0, first.size() - ending.size()), number + 1,
                     count);
}

}  // namespace

result<gguf_parts> open_gguf_parts(const std::string& path) {
  auto first = open_gguf_header(path);
  if (!first) return first.error();
  const auto split = read_split(first->content.keys, path);
  if (!split) return split.error();
  if (split->number != 0)
    return make_error(errc::bad_file, "{}: this is file {} of {}; give the first", path, split->number + 1,
                      split->count);
  gguf_parts all;
  all.files.push_back(std::move(*first));
  for (std::uint32_t i = 1; i < split->count; ++i) {
    const auto name = path_of_part(path, i, split->count);
    if (!name) return name.error();
    auto next = open_gguf_header(*name);
    if (!next) return next.error();
    const auto own = read_split(next->content.keys, *name);
    if (!own) return own.error();
    if (own->number != i || own->count != split->count)
      return make_error(errc::bad_file, "{}: this is file {} of {}, not {} of {}", *name, own->number + 1,
                        own->count, i + 1, split->count);
    all.files.push_back(std::move(*next));
  }
  for (const gguf_header& f : all.files)
    for (const auto& [name, tensor] : f.content.tensors)
      if (!all.tensors.emplace(name, tensor).second)
        return make_error(errc::bad_file, "{}: tensor '{}' is in another file too", f.file.path(), name);
  if (split->count > 1 && split->tensors && *split->tensors != all.tensors.size())
    return make_error(errc::bad_file, "{}: 'split.tensors.count' is {}, the files have {}", path,
                      *split->tensors, all.tensors.size());
  return all;
}

namespace {

// Tensors that are no weights: they are read with the config.
bool is_read_already(std::string_view name) {
  return name == divisors_name || name == "rope_factors_long.weight" || name == "rope_factors_short.weight";
}

result<checkpoint> name_tensors(gguf_parts&& all, const gguf_names& names) {
  checkpoint weights;
  weights.call_by([names](std::string_view name) { return names.gguf_name(name); },
                  "the description in its keys");
  for (gguf_header& f : all.files) {
    const std::string path = f.file.path();
    tensor_map named;
    for (auto& [name, tensor] : f.content.tensors) {
      if (is_read_already(name)) continue;
      if (!named.emplace(names.hugging_face_name(name), std::move(tensor)).second)
        return make_error(errc::bad_file, "{}: tensor '{}' is there under two names", path, name);
    }
    if (auto added = weights.add(std::move(f.file), std::move(named), path); !added) return added.error();
  }
  return weights;
}

// Reads from the file that has a tensor.
read_tensor reader_of(const gguf_parts& all) {
  return [&all](const stored_tensor& t, std::span<std::byte> to) -> result<void> {
    const auto in = std::ranges::find_if(all.files, [&](const auto& f) { return f.file.has(t.bytes); });
    return in->file.read(t.bytes, 0, to);
  };
}

// The config that the keys describe, and how the files store it.
result<model_config> read_config(gguf_reader& keys, const gguf_architecture& a, const gguf_parts& all,
                                 const std::string& path) {
  const read_tensor read = reader_of(all);
  const auto document = gguf_config(keys, a, all.tensors, read);
  const auto stop_ids = gguf_stop_ids(keys);
  const auto bos = keys.count("tokenizer.ggml.bos_token_id", 1u << 24);
  if (keys.failure()) return *keys.failure();
  auto config = parse_config(boost::json::serialize(document), path);
  if (!config) return config.error();
  config->stored = gguf_form(config->stored, a, all.tensors);
  config->stop_ids = stop_ids;
  if (bos && *bos < config->shape.vocab) config->bos = static_cast<token_id>(*bos);
  if (all.tensors.contains(divisors_name)) {
    const std::size_t pairs = config->shape.tables.front().frequencies.size();
    auto divisors = read_rope_factors(all.tensors, divisors_name, pairs, read, path);
    if (!divisors) return divisors.error();
    config->ropes.front().divisors = std::move(*divisors);
    make_tables(*config);
  }
  return config;
}

}  // namespace

result<opened_model> open_gguf(const std::string& path) {
  auto all = open_gguf_parts(path);
  if (!all) return all.error();
  gguf_reader keys(all->files.front().content.keys, path);
  const gguf_architecture* a = gguf_architecture_of(keys);
  if (!a) return *keys.failure();
  auto config = read_config(keys, *a, *all, path);
  if (!config) return config.error();
  auto generation = default_generation(*config);
  auto weights = name_tensors(std::move(*all), gguf_names(*a, *find_family(config->architecture)));
  if (!weights) return weights.error();
  auto notes = drop_draft_layers(*weights, *config);
  if (const auto arranged = arrange_experts(*weights, *config); !arranged)
    return make_error(arranged.error().code, "{}: {}", path, arranged.error().message);
  if (const auto ordered = order_heads(*weights, *config); !ordered)
    return make_error(ordered.error().code, "{}: {}", path, ordered.error().message);
  return opened_model{std::move(*config), std::move(generation), std::move(*weights), std::move(notes)};
}

}  // namespace weir::core
