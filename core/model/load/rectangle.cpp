#include "core/model/load/rectangle.h"

#include <algorithm>

#include "core/model/load/fill.h"
#include "kernels/tensor.h"

namespace weir::core {
namespace {

constexpr std::uint64_t most_halves = 1u << 14;  // that are read at once, so that a cache holds them

}  // namespace

result<void> read_floats(const checkpoint& from, const stored_tensor& t, const rectangle& r, float* to) {
  const kernels::dtype type = *supported_type(t.dtype);
  if (type == kernels::dtype::f32) return read_rectangle(from, t, r, to);
  std::vector<std::uint16_t> halves;
  const std::uint64_t most = std::max<std::uint64_t>(1, most_halves / r.columns);
  for (std::uint64_t row = 0; row < r.rows; row += most) {
    const rectangle some{r.row + row, std::min(most, r.rows - row), r.column, r.columns};
    if (auto ok = read_rectangle(from, t, some, halves); !ok) return ok;
    if (type == kernels::dtype::f16)
      for (const std::uint16_t half : halves) *to++ = kernels::from_f16(half);
    else
      for (const std::uint16_t half : halves) *to++ = kernels::from_bf16(half);
  }
  return {};
}

}  // namespace weir::core
