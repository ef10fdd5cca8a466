// expert_data.h — for tests of mixtures of experts: matrices of random weights of any type, as rows and
// packed by a backend; who chooses which experts.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "kernels/blocks.h"
#include "kernels/buffer.h"
#include "tests/kernels/random_data.h"

namespace weir::tests {

inline std::uint64_t apart(std::uint64_t bytes) { return (bytes + 255) / 256 * 256; }

// Experts whose matrices are rows. What lies between two of them is poison.
struct random_experts {
  std::vector<std::byte> memory;
  kernels::expert_matrices view;

  random_experts(rng& r, kernels::dtype type, std::uint32_t count, std::uint32_t n, std::uint32_t k) {
    const std::uint64_t bytes = kernels::bytes_of(type, std::uint64_t{n} * k), stride = apart(bytes);
    memory.assign(count * stride, std::byte{0xff});
    for (std::uint32_t e = 0; e < count; ++e) {
      std::byte* to = memory.data() + e * stride;
      if (is_plain(type)) {
        std::memcpy(to, random_matrix(r, type, n, k).memory.data(), bytes);
      } else {
        kernels::fill_random_blocks(to, type, std::uint64_t{n} * k, r());
        make_some_extreme(r, type, n, k, to);
      }
    }
    view = {{memory.data(), type, n, k}, count, stride};
  }

  std::vector<float> numbers(std::uint32_t expert) const {
    std::vector<float> out(std::size_t{view.first.rows} * view.first.cols);
    kernels::dequantise(view.first.type, view.of(expert).data, out.size(), out.data());
    return out;
  }
};

// The same in a backend's layout, each packed by itself.
struct packed_experts {
  kernels::buffer memory;
  kernels::expert_matrices view;

  packed_experts(const std::shared_ptr<const kernels::backend>& b, const kernels::expert_matrices& rows)
      : memory(b, rows.count *
                      apart(b->weight_bytes(b->self, rows.first.type, rows.first.rows, rows.first.cols))),
        view(rows) {
    const std::vector<std::byte> poison(memory.size(), std::byte{0xff});
    b->do_upload(b->self, memory.data(), poison.data(), poison.size());
    view.stride = memory.size() / rows.count;
    for (std::uint32_t e = 0; e < rows.count; ++e)
      b->do_pack(b->self, rows.of(e), static_cast<std::byte*>(memory.data()) + e * view.stride);
    view.first.data = memory.data();
    view.first.order = kernels::layout::packed;
  }
};

// How rows choose.
enum class histogram { any, all_the_same, one_row_each, few_experts, uneven };
inline constexpr histogram histograms[] = {histogram::any, histogram::all_the_same, histogram::one_row_each,
                                           histogram::few_experts, histogram::uneven};

// The experts of `rows` rows, `chosen` each, no expert twice in a row.
// REQUIRES: chosen <= experts
inline std::vector<std::int32_t> chosen_experts(rng& r, histogram how, std::uint32_t rows,
                                                std::uint32_t chosen, std::uint32_t experts) {
  std::vector<std::int32_t> ids, all(experts);
  std::iota(all.begin(), all.end(), 0);
  for (std::uint32_t row = 0; row < rows; ++row) {
    if (how == histogram::any) std::shuffle(all.begin(), all.end(), r);
    if (how == histogram::few_experts)  // half of them at most, and these lie apart
      std::shuffle(all.begin(), all.begin() + std::max(chosen, experts / 2), r);
    if (how == histogram::uneven) std::swap(all[0], all[pick(r, 0, experts - 1)]);
    for (std::uint32_t i = 0; i < chosen; ++i)
      ids.push_back(how == histogram::one_row_each ? static_cast<std::int32_t>((row * chosen + i) % experts)
                                                   : all[i]);
  }
  if (how == histogram::few_experts)
    for (auto& id : ids)
      id = static_cast<std::int32_t>((static_cast<std::uint32_t>(id) * 2 + 1) % (experts | 1));
  return ids;
}

}  // namespace weir::tests
