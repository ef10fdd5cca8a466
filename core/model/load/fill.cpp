#include "core/model/load/fill.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>

#include "kernels/blocks.h"

namespace weir::core {
namespace {

using kernels::dtype;
using u64 = std::uint64_t;

constexpr u64 checked_at_once = 1u << 18;  // weights of a file's blocks

bool same_but_for_case(std::string_view upper, std::string_view lower) {
  return std::ranges::equal(
      upper, lower, {}, [](unsigned char c) { return std::tolower(c); },
      [](unsigned char c) { return static_cast<int>(c); });
}

// Refuses a scale that is not finite: it would make every activation of its row meaningless. `first`: the
// number of the first of these blocks in the tensor.
result<void> check_scales(const checkpoint& from, const stored_tensor& t, dtype type, const std::byte* blocks,
                          u64 bytes, u64 first) {
  if (kernels::is_plain(type)) return {};
  const u64 count = bytes / kernels::facts(type).block_bytes;
  const u64 bad = kernels::first_not_finite(type, blocks, count);
  if (bad == count) return {};
  for (const auto& [name, tensor] : from.tensors())
    if (&tensor == &t)
      return make_error(errc::bad_file, "tensor '{}': the scale of block {} is not finite",
                        from.spelled(name), first + bad);
  return make_error(errc::internal, "a tensor of another checkpoint");
}

}  // namespace

// Files spell a type in capitals.
std::optional<dtype> supported_type(std::string_view stored) {
  for (std::size_t i = 0; i < kernels::dtype_count; ++i)
    if (same_but_for_case(stored, kernels::all_dtypes[i].name)) return static_cast<dtype>(i);
  return std::nullopt;
}

result<void> read_elements(const checkpoint& from, const stored_tensor& t, dtype type, u64 first, u64 count,
                           std::byte* to) {
  const dtype stored = *supported_type(t.dtype);
  const auto bytes = [&](u64 elements) { return kernels::bytes_of(stored, elements); };
  const u64 block = kernels::facts(stored).block_weights;
  if (stored == type) {
    // Blocks of a file are checked while a cache has them. What is converted is cheaper in larger pieces.
    const u64 piece = kernels::is_plain(type) || t.made_by ? count : checked_at_once / block * block;
    for (u64 at = 0; at < count; at += piece) {
      const u64 n = std::min(piece, count - at);
      std::byte* const here = to + bytes(at);
      if (auto ok = from.read(t, bytes(first + at), {here, bytes(n)}); !ok) return ok;
      if (auto ok = check_scales(from, t, type, here, bytes(n), (first + at) / block); !ok) return ok;
    }
    return {};
  }
  std::array<std::byte, 1 << 16> some;
  const u64 most = some.size() / kernels::facts(stored).block_bytes * block;
  for (u64 at = 0; at < count; at += most) {
    const u64 n = std::min(most, count - at);
    if (auto ok = from.read(t, bytes(first + at), std::span(some).first(bytes(n))); !ok) return ok;
    if (auto ok = check_scales(from, t, stored, some.data(), bytes(n), (first + at) / block); !ok) return ok;
    kernels::dequantise(stored, some.data(), n, reinterpret_cast<float*>(to) + at);
  }
  return {};
}

void fill_constant(const piece& p, std::byte* to) {
  std::fill_n(reinterpret_cast<float*>(to), p.elements, p.plus);
}

result<void> read_some(const checkpoint& from, const piece& p, dtype type, u64 first, u64 count,
                       std::byte* to) {
  auto* const floats = reinterpret_cast<float*>(to);
  if (p.constant) return std::fill_n(floats, count, p.plus), result<void>();
  if (auto ok = read_elements(from, *p.from, type, first, count, to); !ok || p.plus == 0) return ok;
  for (u64 i = 0; i < count; ++i) floats[i] += p.plus;
  return {};
}

// Reads in slices, so that progress is reported inside a large tensor too.
result<void> read_piece(const checkpoint& from, const piece& p, dtype type, std::byte* to,
                        const moved_bytes& moved) {
  const u64 slice = 4u << 20;
  for (u64 at = 0; at < p.elements; at += slice) {
    const u64 count = std::min(slice, p.elements - at);
    if (auto ok = read_some(from, p, type, at, count, to + kernels::bytes_of(type, at)); !ok) return ok;
    moved(kernels::bytes_of(type, count));
  }
  return {};
}

result<void> fill_one_by_one(const std::vector<placed>& all, const kernels::backend& on,
                             const fill_piece& fill) {
  u64 largest = 0;
  for (const placed& p : all) largest = std::max(largest, p.rows.bytes());
  const auto staging = std::make_unique_for_overwrite<std::byte[]>(largest);
  for (const placed& p : all) {
    std::byte* at = staging.get();
    for (const piece& q : p.pieces) {
      if (auto ok = fill(q, at, p); !ok) return ok;
      at += kernels::bytes_of(p.rows.type, q.elements);
    }
    kernels::matrix rows = p.rows;
    rows.data = staging.get();
    if (p.weight) {
      on.do_pack(on.self, rows, p.to);
    } else {
      on.do_upload(on.self, p.to, rows.data, rows.bytes());
    }
  }
  return {};
}

}  // namespace weir::core
