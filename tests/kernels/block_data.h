// block_data.h — for tests of quantised weights on a device: random blocks on the host, packed blocks on the
// device, and the inputs of their columns.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/blocks.h"
#include "kernels/buffer.h"
#include "tests/kernels/on_device.h"
#include "tests/kernels/random_data.h"

namespace weir::tests {

using backend_ptr = std::shared_ptr<const kernels::backend>;

inline void for_block_types(const std::function<void(kernels::dtype)>& f) {
  for (std::size_t i = 0; i < kernels::dtype_count; ++i) {
    const auto type = static_cast<kernels::dtype>(i);
    if (kernels::is_plain(type)) continue;
    CAPTURE(name(type));
    f(type);
  }
}

// Random blocks, some of them all zeros and some with codes at one end; their numbers.
struct blocks_matrix {
  std::vector<std::byte> memory;
  kernels::matrix view;
  std::vector<float> numbers;

  blocks_matrix(rng& r, kernels::dtype type, std::uint32_t rows, std::uint32_t cols)
      : memory(kernels::bytes_of(type, std::uint64_t{rows} * cols)),
        view{memory.data(), type, rows, cols},
        numbers(std::size_t{rows} * cols) {
    kernels::fill_random_blocks(memory.data(), type, numbers.size(), r());
    make_some_extreme(r, type, rows, cols, memory.data());
    kernels::dequantise(type, memory.data(), numbers.size(), numbers.data());
  }
};

struct packed_blocks {
  kernels::buffer memory;
  kernels::matrix view;

  packed_blocks(const backend_ptr& b, const kernels::matrix& rows)
      : memory(b, b->weight_bytes(b->self, rows.type, rows.rows, rows.cols)), view(rows) {
    const std::vector<std::byte> poison(memory.size(), std::byte{0xff});
    b->do_upload(b->self, memory.data(), poison.data(), poison.size());
    b->do_pack(b->self, rows, memory.data());
    view.data = memory.data();
    view.order = kernels::layout::packed;
  }
  std::vector<std::byte> bytes(const backend_ptr& b) const {
    std::vector<std::byte> v(memory.size());
    b->do_download(b->self, v.data(), memory.data(), v.size());
    return v;
  }
};

inline std::uint32_t columns_of(rng& r, kernels::dtype type) {
  return kernels::facts(type).block_weights * pick(r, 1, kernels::facts(type).block_weights == 32 ? 21 : 5);
}

inline std::vector<kernels::cuda::element> random_elements(rng& r, std::size_t count) {
  std::vector<kernels::cuda::element> out(count);
  const auto v = random_floats(r, count);
  for (std::size_t i = 0; i < count; ++i) out[i] = rounded(kernels::dtype::bf16, v[i]);
  return out;
}

// The inputs of a matrix' columns, on the device.
struct ordered_inputs {
  std::vector<std::uint32_t> numbers;
  kernels::buffer memory;

  ordered_inputs(rng& r, const backend_ptr& b, std::uint32_t columns, std::uint32_t count)
      : numbers(columns), memory(b, columns * sizeof(std::uint32_t)) {
    for (auto& i : numbers) i = pick(r, 0, count - 1);
    b->do_upload(b->self, memory.data(), numbers.data(), memory.size());
  }
  void give(kernels::matrix& m, std::uint32_t count) const {
    m.input_count = count;
    m.inputs = reinterpret_cast<const std::uint32_t*>(memory.data());
  }
};

}  // namespace weir::tests
