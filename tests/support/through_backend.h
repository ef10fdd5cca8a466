// through_backend.h — what a backend makes of quantised weights.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/buffer.h"
#include "kernels/ops.h"

namespace weir::tests {

inline std::vector<std::uint32_t> bits_of(const std::vector<float>& v) {
  std::vector<std::uint32_t> out(v.size());
  std::memcpy(out.data(), v.data(), v.size() * sizeof(float));
  return out;
}

// The rows of a quantised matrix as floats, after the backend has packed them in its own layout.
inline std::vector<float> through(const std::shared_ptr<const kernels::backend>& b,
                                  const kernels::matrix& rows) {
  const kernels::buffer memory(b, b->weight_bytes(b->self, rows.type, rows.rows, rows.cols));
  b->do_pack(b->self, rows, memory.data());
  kernels::matrix packed = rows;
  packed.data = memory.data();
  packed.order = kernels::layout::packed;
  std::vector<std::int32_t> ids(rows.rows);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i);
  const std::vector<float> poison(std::size_t{rows.rows} * rows.cols, NAN);
  const kernels::buffer there(b, poison.size() * sizeof(float));
  b->do_upload(b->self, there.data(), poison.data(), there.size());
  b->run(kernels::gather{packed, ids, there.floats()});
  std::vector<float> out(poison.size());
  b->do_download(b->self, out.data(), there.data(), there.size());
  return out;
}

}  // namespace weir::tests
