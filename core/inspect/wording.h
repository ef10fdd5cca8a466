// wording.h — names and phrases that reports of models share.
//
// Thread safety: pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/config.h"

namespace weir::core {

std::string grouped(std::uint64_t n);      // 1,234,567
std::string short_count(std::uint64_t n);  // 4.02 billion, 110 million, 15,872

std::string_view name_of(rope_type t) noexcept;
std::string_view name_of(quant_form f) noexcept;
std::string_view name_of(kernels::norm_place p) noexcept;
std::string_view name_of(kernels::activation a) noexcept;
std::string_view name_of(kernels::head_norms n) noexcept;

// The tables that some layer turns by, as indices of config.ropes.
std::vector<std::size_t> used_ropes(const model_config& config);

// The first layer's experts, of those that have some; null: no layer has.
const kernels::feed_forward* mixture_of(const kernels::model_shape& shape) noexcept;

}  // namespace weir::core
