// pick_class.h — the order of places for a job that moves: those whose arithmetic is the job's come first,
// each group in the order of pick().
//
// Thread safety: a pure function; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/fleet/pick.h"

namespace weir::core {

// `classes`: of each place, as core::fleet::class_of(); 0: not known. `wanted`: the class on which the job
// began; 0: the class does not matter. `strict`: places of other classes are left out, and so are those whose
// class is not known. The rest as pick().
std::vector<std::uint32_t> pick_in_class(std::span<const place_load> places,
                                         std::span<const std::uint64_t> classes, std::uint64_t wanted,
                                         bool strict, std::uint32_t prompt_tokens, std::uint64_t beginning);

}  // namespace weir::core
