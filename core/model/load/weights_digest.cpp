#include "core/model/load/weights_digest.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/fingerprint.h"
#include "core/model/load.h"
#include "core/model/load/gguf_model.h"
#include "core/model/load/safetensors.h"
#include "core/text/read_file.h"

namespace weir::core {
namespace {

using u64 = std::uint64_t;

constexpr u64 place_bytes = 64, places_of_a_tensor = 16;
constexpr u64 most_reads = 16'384;  // of all tensors together, beyond one each
constexpr u64 chunk = u64{1} << 20;

using read_bytes = std::function<result<void>(const stored_tensor&, u64 at, std::span<std::byte> to)>;

result<void> add_tensor(fingerprint& all, const std::string& name, const stored_tensor& t, u64 places,
                        const read_bytes& read) {
  all.add(name);
  all.add(t.dtype);
  for (const u64 n : t.shape) all.add(n);
  const u64 bytes = t.bytes.size(), each = std::min(bytes, place_bytes);
  all.add(bytes);
  if (bytes == 0) return {};
  const u64 count = std::min(places, std::max<u64>(1, bytes / place_bytes));
  std::array<std::byte, place_bytes> sample;
  for (u64 i = 0; i < count; ++i) {
    const u64 at = count == 1 ? 0 : (bytes - each) / (count - 1) * i;
    const auto to = std::span(sample).first(each);
    if (auto ok = read(t, at, to); !ok) return ok;
    all.add(std::span<const std::byte>(to));
  }
  return {};
}

result<void> add_tensors(fingerprint& all, const tensor_map& tensors, const read_bytes& read) {
  const u64 places = std::clamp<u64>(most_reads / std::max<u64>(1, tensors.size()), 1, places_of_a_tensor);
  for (const auto& [name, t] : tensors)
    if (auto ok = add_tensor(all, name, t, places, read); !ok) return ok;
  return {};
}

// Everything before the first tensor: keys, tokenizer and the table of tensors.
result<void> add_header(fingerprint& all, const opened_file& file, const tensor_map& tensors) {
  u64 header = file.bytes().size();
  for (const auto& [name, t] : tensors)
    if (file.has(t.bytes)) header = std::min(header, static_cast<u64>(t.bytes.data() - file.bytes().data()));
  std::vector<std::byte> piece(std::min(header, chunk));
  for (u64 at = 0; at < header; at += piece.size()) {
    piece.resize(std::min(chunk, header - at));
    if (auto ok = file.read(file.bytes(), at, piece); !ok) return ok;
    all.add(std::span<const std::byte>(piece));
  }
  return {};
}

result<void> add_gguf(fingerprint& all, const std::string& path) {
  const auto parts = open_gguf_parts(path);
  if (!parts) return parts.error();
  const auto read = [&](const stored_tensor& t, u64 at, std::span<std::byte> to) -> result<void> {
    for (const auto& f : parts->files)
      if (f.file.has(t.bytes)) return f.file.read(t.bytes, at, to);
    return make_error(errc::bad_file, "{}: a tensor is in none of the model's files", path);
  };
  if (!parts->files.empty())
    if (auto ok = add_header(all, parts->files.front().file, parts->tensors); !ok) return ok;
  return add_tensors(all, parts->tensors, read);
}

result<void> add_directory(fingerprint& all, const std::string& dir) {
  const auto config = read_text_file(dir + "/config.json");
  if (!config) return config.error();
  all.add(*config);
  const auto weights = open_safetensors(dir);
  if (!weights) return weights.error();
  return add_tensors(all, weights->tensors(), [&](const stored_tensor& t, u64 at, std::span<std::byte> to) {
    return weights->read(t, at, to);
  });
}

}  // namespace

result<u64> weights_digest(const std::string& path, std::uint32_t context) {
  const auto facts = read_model_facts(path);
  if (!facts) return facts.error();
  fingerprint all;
  const auto served = context == 0 ? facts->config.context : std::min(context, facts->config.context);
  for (const rope_config& rope : facts->config.ropes)
    if (rope.by_context()) all.add(u64{rope.takes_long(served)});
  const auto ok = is_gguf_path(path) ? add_gguf(all, path) : add_directory(all, path);
  if (!ok) return ok.error();
  return std::max<u64>(all.value(), 1);
}

}  // namespace weir::core
