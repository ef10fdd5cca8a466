// device_experts.h — for tests of mixtures of experts on a device: matrices of experts of any type, on the
// host and packed on the device, and the experts of slots.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/blocks.h"
#include "kernels/buffer.h"
#include "kernels/ops.h"
#include "tests/kernels/random_data.h"

namespace weir::tests {

// `count` random matrices of one type and shape.
struct expert_set {
  kernels::expert_matrices on_host, there;
  std::vector<std::byte> memory;
  kernels::buffer packed;

  expert_set(rng& r, const std::shared_ptr<const kernels::backend>& b, kernels::dtype type,
             std::uint32_t count, std::uint32_t rows, std::uint32_t cols) {
    const auto up = [](std::uint64_t bytes) { return (bytes + 255) / 256 * 256; };
    kernels::matrix one{nullptr, type, rows, cols};
    const std::uint64_t here = up(one.bytes()), far = up(b->weight_bytes(b->self, type, rows, cols)) + 256;
    memory.resize(here * count);
    packed = kernels::buffer(b, far * count);
    const std::vector<std::byte> poison(packed.size(), std::byte{0xff});
    b->do_upload(b->self, packed.data(), poison.data(), poison.size());
    for (std::uint32_t e = 0; e < count; ++e) {
      std::byte* at = memory.data() + e * here;
      if (kernels::is_plain(type)) {
        const random_matrix m(r, type, rows, cols);
        std::memcpy(at, m.view.data, one.bytes());
      } else {
        kernels::fill_random_blocks(at, type, std::uint64_t{rows} * cols, r());
        make_some_extreme(r, type, rows, cols, at);
      }
      one.data = at;
      b->do_pack(b->self, one, packed.data() + e * far);
    }
    one.data = memory.data();
    on_host = {one, count, here};
    one.data = packed.data();
    one.order = kernels::layout::packed;
    there = {one, count, far};
  }

  // The numbers of row `row` of an expert's matrix.
  std::vector<float> row(std::uint32_t expert, std::uint32_t row) const {
    const kernels::matrix m = on_host.of(expert);
    std::vector<float> out(m.cols);
    const auto* at = static_cast<const std::byte*>(m.data) + row * kernels::bytes_of(m.type, m.cols);
    if (!kernels::is_plain(m.type)) {
      kernels::dequantise(m.type, at, m.cols, out.data());
      return out;
    }
    for (std::uint32_t i = 0; i < m.cols; ++i) out[i] = kernels::load(at, m.type, i);
    return out;
  }
};

// How many slots an expert has.
enum class slot_histogram { random, one_expert, one_each, few_experts };
constexpr slot_histogram slot_histograms[] = {slot_histogram::random, slot_histogram::one_expert,
                                              slot_histogram::one_each, slot_histogram::few_experts};

// The experts of `slots` slots.
inline std::vector<std::int32_t> draw_experts(rng& r, std::uint32_t slots, std::uint32_t experts,
                                              slot_histogram how) {
  std::vector<std::int32_t> ids(slots);
  const std::uint32_t only = pick(r, 0, experts - 1), few = std::min(experts, 3u);
  for (std::uint32_t s = 0; s < slots; ++s)
    ids[s] =
        static_cast<std::int32_t>(how == slot_histogram::random       ? pick(r, 0, experts - 1)
                                  : how == slot_histogram::one_expert ? only
                                  : how == slot_histogram::one_each   ? s % experts
                                                                    : (only + pick(r, 0, few - 1)) % experts);
  return ids;
}

}  // namespace weir::tests
