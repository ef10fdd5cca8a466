// page.h — numbers of pages of KV memory, and how many pages a number of rows needs.
#pragma once

#include <concepts>
#include <cstdint>

#include "kernels/page.h"

namespace weir::core {

// Number of a page of KV memory: 0 to the number of pages - 1.
using page_id = std::int32_t;

// In place of a page where there is none.
inline constexpr page_id no_page = -1;

using kernels::page_tokens;

// Number of pages that hold `rows` rows (tokens).
template <std::unsigned_integral T>
constexpr T pages_for(T rows) {
  return rows / page_tokens + (rows % page_tokens != 0 ? 1 : 0);
}

}  // namespace weir::core
