#include "core/model/load/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "core/model/load/gguf_types.h"

namespace weir::core {
namespace {

using u64 = std::uint64_t;

constexpr u64 most_key_bytes = 65535, most_name_bytes = 63, most_dimensions = 4;
constexpr u64 default_alignment = 32, most_alignment = 1u << 20;
constexpr u64 most_header = 256u << 20;  // the largest real ones have some 20 MiB

// The bytes of a value of this kind; 0 for strings, arrays and unknown kinds.
u64 width_of(gguf_kind k) noexcept {
  switch (k) {
    case gguf_kind::u8:
    case gguf_kind::i8:
    case gguf_kind::boolean:
      return 1;
    case gguf_kind::u16:
    case gguf_kind::i16:
      return 2;
    case gguf_kind::u32:
    case gguf_kind::i32:
    case gguf_kind::f32:
      return 4;
    case gguf_kind::u64:
    case gguf_kind::i64:
    case gguf_kind::f64:
      return 8;
    default:
      return 0;
  }
}

template <class T>
T read_as(const std::byte* at) noexcept {
  T x;
  std::memcpy(&x, at, sizeof x);
  return x;
}

// A number of any kind.  REQUIRES: width_of(kind) > 0
gguf_value read_number(gguf_kind kind, const std::byte* at) noexcept {
  switch (kind) {
    case gguf_kind::u8:
      return u64{read_as<std::uint8_t>(at)};
    case gguf_kind::i8:
      return std::int64_t{read_as<std::int8_t>(at)};
    case gguf_kind::u16:
      return u64{read_as<std::uint16_t>(at)};
    case gguf_kind::i16:
      return std::int64_t{read_as<std::int16_t>(at)};
    case gguf_kind::u32:
      return u64{read_as<std::uint32_t>(at)};
    case gguf_kind::i32:
      return std::int64_t{read_as<std::int32_t>(at)};
    case gguf_kind::f32:
      return double{read_as<float>(at)};
    case gguf_kind::boolean:
      return read_as<std::uint8_t>(at) != 0;
    case gguf_kind::u64:
      return read_as<u64>(at);
    case gguf_kind::i64:
      return read_as<std::int64_t>(at);
    default:
      return read_as<double>(at);
  }
}

// Walks through the bytes of a header. After the first error every read returns zeros.
class cursor {
 public:
  cursor(std::span<const std::byte> file, std::string_view what, const fetch_bytes& fetch)
      : file_(file), what_(what), fetch_(fetch) {}

  template <class T>
  T take(std::string_view thing) {
    const auto bytes = take_bytes(sizeof(T), thing);
    return failure_ ? T{} : read_as<T>(bytes.data());
  }

  std::span<const std::byte> take_bytes(u64 count, std::string_view thing) {
    if (failure_) return {};
    if (count > file_.size() - at_) {
      fail(errc::bad_file,
           fmt::format("{} does not fit: {} bytes at {}, the file has {}", thing, count, at_, file_.size()));
      return {};
    }
    if (at_ + count > most_header) {
      fail(errc::bad_file,
           fmt::format("{}: the keys and the table of tensors have more than {} bytes", thing, most_header));
      return {};
    }
    if (fetch_) {
      if (auto ok = fetch_(at_ + count); !ok) {
        failure_ = ok.error();
        return {};
      }
    }
    at_ += count;
    return file_.subspan(at_ - count, count);
  }

  std::string_view take_text(std::string_view thing) {
    const auto length = take<u64>(thing);
    const auto bytes = take_bytes(length, thing);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // Records an error, unless there is one already.
  void fail(errc code, std::string_view message) {
    if (!failure_) failure_ = error{code, fmt::format("{}: {}", what_, message), {}};
  }

  u64 at() const noexcept { return at_; }
  const std::optional<error>& failure() const noexcept { return failure_; }

 private:
  std::span<const std::byte> file_;
  std::string_view what_;
  u64 at_ = 0;
  const fetch_bytes& fetch_;
  std::optional<error> failure_;
};

gguf_value take_value(cursor& in, std::uint32_t kind, const std::string& thing);

gguf_array take_array(cursor& in, const std::string& thing) {
  gguf_array a;
  const auto kind = in.take<std::uint32_t>(thing);
  a.kind = static_cast<gguf_kind>(kind);
  a.size = in.take<u64>(thing);
  if (a.kind == gguf_kind::text) {
    for (u64 i = 0; i < a.size && !in.failure(); ++i) a.texts.push_back(in.take_text(thing));
    return a;
  }
  const u64 width = width_of(a.kind);
  u64 bytes = 0;
  if (a.kind == gguf_kind::array) {
    in.fail(errc::not_supported, fmt::format("{}: an array of arrays is not supported yet", thing));
  } else if (width == 0) {
    in.fail(errc::bad_file, fmt::format("{}: {} is no kind of value", thing, kind));
  } else if (__builtin_mul_overflow(a.size, width, &bytes)) {
    in.fail(errc::bad_file, fmt::format("{}: {} items do not fit", thing, a.size));
  } else {
    a.numbers = in.take_bytes(bytes, thing);
    const bool truth = a.kind != gguf_kind::boolean ||
                       std::ranges::all_of(a.numbers, [](std::byte b) { return b <= std::byte{1}; });
    if (!truth) in.fail(errc::bad_file, fmt::format("{}: a bool that is neither 0 nor 1", thing));
  }
  return a;
}

gguf_value take_value(cursor& in, std::uint32_t kind, const std::string& thing) {
  const auto k = static_cast<gguf_kind>(kind);
  if (k == gguf_kind::text) return in.take_text(thing);
  if (k == gguf_kind::array) return take_array(in, thing);
  const u64 width = width_of(k);
  if (width == 0) in.fail(errc::bad_file, fmt::format("{}: {} is no kind of value", thing, kind));
  const auto bytes = in.take_bytes(width, thing);
  if (in.failure()) return u64{0};
  if (k == gguf_kind::boolean && bytes[0] > std::byte{1})
    in.fail(errc::bad_file, fmt::format("{}: a bool that is neither 0 nor 1", thing));
  return read_number(k, bytes.data());
}

void take_keys(cursor& in, u64 count, gguf_keys& to) {
  for (u64 i = 0; i < count && !in.failure(); ++i) {
    const std::string_view key = in.take_text(fmt::format("the name of key {}", i));
    if (in.failure()) return;
    if (key.empty() || key.size() > most_key_bytes)
      return in.fail(errc::bad_file, fmt::format("key {} has a name of {} bytes", i, key.size()));
    const std::string thing = fmt::format("'{}'", key.substr(0, 100));
    const auto kind = in.take<std::uint32_t>(thing);
    if (!to.emplace(std::string(key), take_value(in, kind, thing)).second)
      return in.fail(errc::bad_file, fmt::format("{} is there twice", thing));
  }
}

// A tensor as the table has it, without its data.
struct entry {
  std::string name;
  stored_tensor tensor;
  u64 offset = 0, bytes = 0;
};

std::optional<u64> bytes_of(const gguf_type& type, const std::vector<u64>& shape) {
  u64 blocks = shape.back() / type.block_weights, bytes = 0;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i)
    if (__builtin_mul_overflow(blocks, shape[i], &blocks)) return std::nullopt;
  if (__builtin_mul_overflow(blocks, type.block_bytes, &bytes)) return std::nullopt;
  return bytes;
}

std::optional<entry> take_entry(cursor& in, u64 index) {
  entry e;
  const std::string_view name = in.take_text(fmt::format("the name of tensor {}", index));
  if (in.failure()) return std::nullopt;
  if (name.empty() || name.size() > most_name_bytes)
    return in.fail(errc::bad_file, fmt::format("tensor {} has a name of {} bytes", index, name.size())),
           std::nullopt;
  e.name = name;
  const std::string thing = fmt::format("tensor '{}'", name);
  const auto bad = [&](errc code, std::string_view why) {
    in.fail(code, fmt::format("{}: {}", thing, why));
    return std::nullopt;
  };
  const auto dimensions = in.take<std::uint32_t>(thing);
  if (!in.failure() && (dimensions < 1 || dimensions > most_dimensions))
    return bad(errc::bad_file, fmt::format("{} dimensions, not 1 to 4", dimensions));
  for (std::uint32_t i = 0; i < dimensions && !in.failure(); ++i)
    e.tensor.shape.insert(e.tensor.shape.begin(), in.take<u64>(thing));  // the file's first is the innermost
  const auto id = in.take<std::uint32_t>(thing);
  e.offset = in.take<u64>(thing);
  if (in.failure()) return std::nullopt;

  const auto* type = std::ranges::find(gguf_types, id, &gguf_type::id);
  if (type == gguf_types.end()) return bad(errc::bad_file, fmt::format("type {} is unknown", id));
  if (type->block_weights == 0)
    return bad(errc::not_supported, fmt::format("type {} is not supported yet", type->name));
  e.tensor.dtype = type->name;
  if (std::ranges::count(e.tensor.shape, u64{0}) > 0) return bad(errc::bad_file, "a dimension is 0");
  if (e.tensor.shape.back() % type->block_weights != 0)
    return bad(errc::bad_file, fmt::format("rows of {} are no whole blocks of {} weights ({})",
                                           e.tensor.shape.back(), type->block_weights, type->name));
  const auto bytes = bytes_of(*type, e.tensor.shape);
  if (!bytes) return bad(errc::bad_file, fmt::format("{} is too large", e.tensor.shape_text()));
  e.bytes = *bytes;
  return e;
}

// The alignment of the data; 0 where the key is wrong.
u64 alignment_of(cursor& in, const gguf_keys& keys) {
  const auto found = keys.find("general.alignment");
  if (found == keys.end()) return default_alignment;
  const auto* n = std::get_if<u64>(&found->second);
  if (n && std::has_single_bit(*n) && *n <= most_alignment) return *n;
  in.fail(errc::bad_file, fmt::format("'general.alignment' must be a power of two up to {}", most_alignment));
  return 0;
}

// Gives each tensor its bytes. Every sum is checked, since offsets may be anything.
void place(cursor& in, std::span<const std::byte> file, u64 alignment, std::vector<entry>& entries,
           tensor_map& to) {
  const auto padded = [&](u64 n) { return (n + alignment - 1) / alignment * alignment; };
  const u64 start = padded(in.at());
  u64 next = 0;
  for (entry& e : entries) {
    const auto bad = [&](std::string_view why) {
      in.fail(errc::bad_file, fmt::format("tensor '{}': {}", e.name, why));
    };
    if (e.offset != next) return bad(fmt::format("begins at {} of the data, not at {}", e.offset, next));
    if (start > file.size() || next > file.size() - start || e.bytes > file.size() - start - next)
      return bad(
          fmt::format("{} bytes at {} are not inside the file's {}", e.bytes, start + next, file.size()));
    e.tensor.bytes = file.subspan(start + next, e.bytes);
    next = padded(next + e.bytes);
    if (!to.emplace(e.name, std::move(e.tensor)).second) return bad("is there twice");
  }
  if (start < file.size() && next < file.size() - start)
    in.fail(errc::bad_file, fmt::format("{} bytes after the last tensor", file.size() - start - next));
}

void check_version(cursor& in, std::uint32_t version) {
  if (version != 0 && version % 65536 == 0)
    return in.fail(errc::not_supported, "a big-endian file is not supported yet");
  if (version == 1) return in.fail(errc::not_supported, "version 1 is not supported yet (2 and 3 are)");
  if (version != 2 && version != 3)
    in.fail(errc::not_supported, fmt::format("version {} is not supported yet (2 and 3 are)", version));
}

}  // namespace

double gguf_array::number(u64 i) const noexcept {
  const gguf_value v = read_number(kind, numbers.data() + i * width_of(kind));
  return std::visit(
      [](const auto& x) -> double {
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(x)>>) return static_cast<double>(x);
        return 0;
      },
      v);
}

result<gguf_file> parse_gguf(std::span<const std::byte> file, std::string_view what,
                             const fetch_bytes& fetch) {
  cursor in(file, what, fetch);
  gguf_file out;
  const auto magic = in.take_bytes(4, "the magic number");
  if (!in.failure() && std::memcmp(magic.data(), "GGUF", 4) != 0)
    in.fail(errc::bad_file, "not a GGUF file: it does not begin with GGUF");
  out.version = in.take<std::uint32_t>("the version");
  if (!in.failure()) check_version(in, out.version);
  const auto tensors = in.take<u64>("the number of tensors");
  const auto keys = in.take<u64>("the number of keys");
  take_keys(in, keys, out.keys);
  std::vector<entry> entries;
  for (u64 i = 0; i < tensors && !in.failure(); ++i)
    if (auto e = take_entry(in, i)) entries.push_back(std::move(*e));
  const u64 alignment = in.failure() ? 0 : alignment_of(in, out.keys);
  if (!in.failure()) place(in, file, alignment, entries, out.tensors);
  if (in.failure()) return *in.failure();
  return out;
}

}  // namespace weir::core
