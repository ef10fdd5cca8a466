// host_blocks.h — for tests of quantised weights on the cpu backend: random blocks, packed blocks, a product
// into poisoned memory, and the bits of its results.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "kernels/blocks.h"
#include "kernels/buffer.h"
#include "tests/kernels/random_data.h"

namespace weir::tests {

using backend_ptr = std::shared_ptr<const kernels::backend>;

struct random_blocks {
  std::vector<std::byte> memory;
  kernels::matrix view;

  random_blocks(rng& r, kernels::dtype type, std::uint32_t rows, std::uint32_t cols)
      : memory(kernels::bytes_of(type, std::uint64_t{rows} * cols)),
        view{memory.data(), type, rows, cols} {
    kernels::fill_random_blocks(memory.data(), type, std::uint64_t{rows} * cols, r());
  }
};

struct host_packed_blocks {
  kernels::buffer memory;
  kernels::matrix view;

  host_packed_blocks(const backend_ptr& b, const kernels::matrix& rows)
      : memory(b, b->weight_bytes(b->self, rows.type, rows.rows, rows.cols)), view(rows) {
    std::memset(memory.data(), 0xff, memory.size());
    b->do_pack(b->self, rows, memory.data());
    view.data = memory.data();
    view.order = kernels::layout::packed;
  }
};

inline std::vector<float> product_of(const kernels::backend& b, const kernels::matrix& w, const float* bias,
                                     const float* x, std::uint32_t rows) {
  auto out = poison(std::size_t{rows} * w.rows);
  b.run(kernels::linear{w, bias, x, out.data(), rows});
  return out;
}

inline std::vector<std::uint32_t> bits_of(const std::vector<float>& v) {
  std::vector<std::uint32_t> out(v.size());
  std::memcpy(out.data(), v.data(), v.size() * sizeof(float));
  return out;
}

}  // namespace weir::tests
