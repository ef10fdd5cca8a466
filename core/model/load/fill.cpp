#include "core/model/load/fill.h"

#include <algorithm>
#include <array>
#include <memory>

#include "kernels/tensor.h"

namespace weir::core {
namespace {

using kernels::dtype;
using u64 = std::uint64_t;

}  // namespace

std::optional<dtype> supported_type(std::string_view stored) {
  if (stored == "F32") return dtype::f32;
  if (stored == "BF16") return dtype::bf16;
  if (stored == "F16") return dtype::f16;
  return std::nullopt;
}

result<void> read_elements(const checkpoint& from, const stored_tensor& t, dtype type, u64 first, u64 count,
                           std::byte* to) {
  const dtype stored = *supported_type(t.dtype);
  const u64 wide = kernels::size_of(stored);
  if (stored == type) return from.read(t, first * wide, {to, count * wide});
  std::array<std::byte, 1 << 16> some;
  const u64 most = some.size() / wide;
  for (u64 at = 0; at < count; at += most) {
    const u64 n = std::min(most, count - at);
    if (auto ok = from.read(t, (first + at) * wide, std::span(some).first(n * wide)); !ok) return ok;
    for (u64 i = 0; i < n; ++i) reinterpret_cast<float*>(to)[at + i] = kernels::load(some.data(), stored, i);
  }
  return {};
}

// Reads in slices, so that progress is reported inside a large tensor too.
result<void> read_piece(const checkpoint& from, const piece& p, dtype type, std::byte* to,
                        const moved_bytes& moved) {
  const u64 slice = 4u << 20;
  for (u64 at = 0; at < p.elements; at += slice) {
    const u64 count = std::min(slice, p.elements - at);
    if (auto ok = read_elements(from, *p.from, type, at, count, to + at * kernels::size_of(type)); !ok)
      return ok;
    moved(count * kernels::size_of(type));
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
      at += q.elements * kernels::size_of(p.rows.type);
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
