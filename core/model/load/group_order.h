// group_order.h — the order of a quantised linear's inputs in which the inputs of a group are neighbours.
//
// Writers of GPTQ that quantise the most active inputs first (desc_act) store the group of each input. Inputs
// sorted by group have groups side by side, as in files without such an order.
//
// Thread safety: pure function; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace weir::core {

// The inputs sorted by group, and inside a group in ascending order. `groups`: [inputs] the group of each;
// `size`: the inputs of a group, of which the last group may have fewer; `tensor`: the name of `groups`, for
// errors. Errors: bad_file for a group that does not exist, not_supported for groups of other sizes.
// REQUIRES: size >= 1
result<std::vector<std::uint32_t>> order_of_groups(std::span<const std::uint32_t> groups, std::uint32_t size,
                                                   std::string_view tensor);

}  // namespace weir::core
