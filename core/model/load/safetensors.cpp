#include "core/model/load/safetensors.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <set>

#include "core/model/load/strict_json.h"

namespace weir::core {
namespace json = boost::json;
namespace {

using u64 = std::uint64_t;
constexpr u64 length_bytes = 8;
constexpr u64 max_header = 100'000'000;  // the format's own limit
constexpr std::size_t max_dimensions = 8;

struct element_type {
  std::string_view name;
  u64 bytes;
};
constexpr std::array element_types{
    element_type{"F32", 4},     element_type{"F16", 2},     element_type{"BF16", 2},
    element_type{"F64", 8},     element_type{"F8_E4M3", 1}, element_type{"F8_E5M2", 1},
    element_type{"F8_E8M0", 1}, element_type{"BOOL", 1},    element_type{"I8", 1},
    element_type{"U8", 1},      element_type{"I16", 2},     element_type{"U16", 2},
    element_type{"I32", 4},     element_type{"U32", 4},     element_type{"I64", 8},
    element_type{"U64", 8},     element_type{"C64", 8},
};

std::optional<u64> element_bytes(std::string_view dtype) {
  const auto* found = std::ranges::find(element_types, dtype, &element_type::name);
  if (found == element_types.end()) return std::nullopt;
  return found->bytes;
}

std::optional<u64> whole_number(const json::value& v) {
  if (v.is_uint64()) return v.get_uint64();
  if (v.is_int64() && v.get_int64() >= 0) return static_cast<u64>(v.get_int64());
  return std::nullopt;
}

std::optional<std::vector<u64>> whole_numbers(const json::value* v, std::size_t most) {
  if (!v || !v->is_array() || v->get_array().size() > most) return std::nullopt;
  std::vector<u64> out;
  for (const json::value& item : v->get_array()) {
    const auto n = whole_number(item);
    if (!n) return std::nullopt;
    out.push_back(*n);
  }
  return out;
}

// The product of `shape` and the element size; nullopt if it exceeds 64 bits.
std::optional<u64> bytes_of(const std::vector<u64>& shape, u64 element) {
  u64 bytes = element;
  for (const u64 n : shape)
    if (__builtin_mul_overflow(bytes, n, &bytes)) return std::nullopt;
  return bytes;
}

result<stored_tensor> parse_tensor(const std::string& name, const json::value& v,
                                   std::span<const std::byte> data, std::string_view what) {
  const auto bad = [&](std::string_view why) {
    return make_error(errc::bad_file, "{}: tensor '{}': {}", what, name, why);
  };
  const json::object* entry = v.if_object();
  if (!entry) return bad("its entry is not an object");
  const json::value* dtype = entry->if_contains("dtype");
  if (!dtype || !dtype->is_string()) return bad("'dtype' is missing or not a string");
  const auto element = element_bytes(std::string_view(dtype->get_string()));
  if (!element) return bad(fmt::format("dtype {} is not supported yet", json::serialize(*dtype)));
  auto shape = whole_numbers(entry->if_contains("shape"), max_dimensions);
  if (!shape) return bad("'shape' is missing or not at most 8 whole numbers");
  const auto offsets = whole_numbers(entry->if_contains("data_offsets"), 2);
  if (!offsets || offsets->size() != 2) return bad("'data_offsets' is missing or not two whole numbers");
  const u64 begin = (*offsets)[0], end = (*offsets)[1];
  if (begin > end || end > data.size())
    return bad(fmt::format("bytes {} to {} are not inside the {} bytes of data", begin, end, data.size()));
  stored_tensor t{std::string(dtype->get_string()), std::move(*shape), data.subspan(begin, end - begin)};
  const auto wanted = bytes_of(t.shape, *element);
  if (!wanted || *wanted != end - begin)
    return bad(
        fmt::format("{} {} does not take the {} bytes it is given", t.dtype, t.shape_text(), end - begin));
  return t;
}

// Checks that each tensor, in the order of their offsets, begins where the one before it ends, and that the
// last one ends with the file.
result<void> check_coverage(const tensor_map& tensors, std::span<const std::byte> data,
                            std::string_view what) {
  std::vector<const tensor_map::value_type*> order;
  for (const auto& t : tensors) order.push_back(&t);
  std::ranges::sort(order, [](const auto* a, const auto* b) {
    return std::pair{a->second.bytes.data(), a->second.bytes.size()} <
           std::pair{b->second.bytes.data(), b->second.bytes.size()};
  });
  const std::byte* at = data.data();
  for (const auto* t : order) {
    if (t->second.bytes.data() != at)
      return make_error(errc::bad_file, "{}: tensor '{}' {}", what, t->first,
                        t->second.bytes.data() < at ? "overlaps another" : "leaves a gap before it");
    at += t->second.bytes.size();
  }
  if (at != data.data() + data.size())
    return make_error(errc::bad_file, "{}: {} bytes after the last tensor", what,
                      data.data() + data.size() - at);
  return {};
}

result<void> add_file(checkpoint& to, const std::string& path) {
  auto file = opened_file::open(path);
  if (!file) return file.error();
  auto tensors = parse_safetensors(file->bytes(), path, fetching(*file));
  if (!tensors) return tensors.error();
  return to.add(std::move(*file), std::move(*tensors), path);
}

result<void> add_shards(checkpoint& to, const std::string& dir, const std::string& index_path) {
  auto text = read_text_file(index_path);
  if (!text) return text.error();
  auto places = parse_shard_index(*text, index_path);
  if (!places) return places.error();
  std::set<std::string> shards;
  for (const auto& [name, shard] : *places) shards.insert(shard);
  for (const std::string& shard : shards)
    if (auto added = add_file(to, dir + "/" + shard); !added) return added;
  for (const auto& [name, shard] : *places)
    if (!to.find(name))
      return make_error(errc::bad_file, "{}: tensor '{}' is not in {}", index_path, name, shard);
  return {};
}

}  // namespace

result<tensor_map> parse_safetensors(std::span<const std::byte> file, std::string_view what,
                                     const fetch_bytes& fetch) {
  if (file.size() < length_bytes)
    return make_error(errc::bad_file, "{}: {} bytes are too few for a safetensors file", what, file.size());
  if (fetch)
    if (auto ok = fetch(length_bytes); !ok) return ok.error();
  u64 length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= static_cast<u64>(file[i]) << (8 * i);
  if (length > max_header || length > file.size() - length_bytes)
    return make_error(errc::bad_file, "{}: a header of {} bytes does not fit (file {}, limit {})", what,
                      length, file.size(), max_header);
  if (fetch)
    if (auto ok = fetch(length_bytes + length); !ok) return ok.error();
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + length_bytes, length);
  auto header = parse_strict_json(text, fmt::format("{}: header", what));
  if (!header) return header.error();

  const auto data = file.subspan(length_bytes + length);
  tensor_map tensors;
  for (const auto& [key, value] : *header) {
    const std::string name(key);
    if (name == "__metadata__") continue;  // free text
    auto t = parse_tensor(name, value, data, what);
    if (!t) return t.error();
    tensors.emplace(name, std::move(*t));
  }
  if (auto covered = check_coverage(tensors, data, what); !covered) return covered.error();
  return tensors;
}

result<std::map<std::string, std::string>> parse_shard_index(std::string_view text, std::string_view what) {
  auto index = parse_strict_json(text, what);
  if (!index) return index.error();
  const json::value* places = index->if_contains("weight_map");
  if (!places || !places->is_object())
    return make_error(errc::bad_file, "{}: 'weight_map' is missing or not an object", what);
  std::map<std::string, std::string> out;
  for (const auto& [name, shard] : places->get_object()) {
    const std::string file = shard.is_string() ? std::string(shard.get_string()) : std::string();
    const bool plain =
        !file.empty() && file[0] != '.' && file.find_first_of(std::string_view("/\\\0", 3)) == file.npos;
    if (!plain)
      return make_error(errc::bad_file, "{}: 'weight_map': '{}' names {}, which is not a plain file name",
                        what, std::string_view(name), json::serialize(shard));
    out.emplace(name, file);
  }
  return out;
}

result<checkpoint> open_safetensors(const std::string& dir) {
  checkpoint c;
  const std::string single = dir + "/model.safetensors", index = dir + "/model.safetensors.index.json";
  const bool sharded = !file_exists(single);
  if (sharded && !file_exists(index))
    return make_error(
        errc::bad_file, "{}: neither model.safetensors nor model.safetensors.index.json is there{}", dir,
        file_exists(dir + "/pytorch_model.bin") ? " (pytorch_model.bin is not supported yet)" : "");
  const auto added = sharded ? add_shards(c, dir, index) : add_file(c, single);
  if (!added) return added.error();
  return c;
}

}  // namespace weir::core
