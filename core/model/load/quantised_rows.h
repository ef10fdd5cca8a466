// quantised_rows.h — reads rows of a quantised linear (quantised.h) as blocks.
//
// Thread safety: immutable; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/model/load/checkpoint.h"
#include "core/model/load/exl2.h"
#include "core/model/load/quant_config.h"
#include "kernels/tensor.h"

namespace weir::core {

// A linear's tensors, which are checked already: their types and shapes agree with the other members.
struct quantised_linear {
  quant_config config;
  kernels::dtype type = kernels::dtype::fp8;  // of the blocks that it becomes
  std::uint32_t outputs = 0, inputs = 0;
  std::uint32_t group = 0, groups = 0;  // inputs that share a scale, and how many such groups there are
  stored_tensor codes, scales, zeros;   // zeros: where its dtype is empty, there are none
  // The input of each column; null: column c is of input c, and the number of inputs is a multiple of 32. For
  // packed, columns from `inputs` on are padding.
  std::shared_ptr<const std::vector<std::uint32_t>> order;
  exl2_layout exl2;        // where config.form is exl2: `group` then means nothing
  stored_tensor largest;   // exl2: q_scale_max, an f16 for each group
  std::string codes_name;  // for errors

  std::uint32_t columns() const noexcept {
    return order ? static_cast<std::uint32_t>(order->size()) : inputs;
  }
  // The group of columns 32 * block to 32 * block + 31.
  std::uint32_t group_of(std::uint32_t block) const noexcept {
    return exl2.groups.empty() ? block * 32 / group : exl2.group_of_block[block];
  }
};

std::shared_ptr<const converted_tensor> make_converted(quantised_linear linear);

}  // namespace weir::core
