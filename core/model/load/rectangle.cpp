#include "core/model/load/rectangle.h"

#include "core/model/load/fill.h"
#include "kernels/tensor.h"

namespace weir::core {

result<void> read_floats(const checkpoint& from, const stored_tensor& t, const rectangle& r,
                         std::vector<float>& to) {
  const kernels::dtype type = *supported_type(t.dtype);
  if (type == kernels::dtype::f32) return read_rectangle(from, t, r, to);
  std::vector<std::uint16_t> halves;
  if (auto ok = read_rectangle(from, t, r, halves); !ok) return ok;
  to.resize(halves.size());
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = kernels::load(halves.data(), type, i);
  return {};
}

}  // namespace weir::core
