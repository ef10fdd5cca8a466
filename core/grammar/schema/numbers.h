// numbers.h — numbers within bounds as a regular language of their digits. Everything is exact: bounds are
// compared digit by digit, never as floating point.
//
// Texts have at most 64 digits before and 64 behind the point, no exponent, and no -0 where only integers are
// allowed.
//
// Thread safety: one thread.
#pragma once

#include <optional>
#include <vector>

#include "core/grammar/regex_pool.h"
#include "core/grammar/schema/constraints.h"

namespace weir::core::grammar {

struct number_limits {
  std::optional<number_bound> low, high;
  bool integers = true;   // whole numbers; without fraction where `fractions` is false
  bool fractions = true;  // numbers that are not whole
};

regex_id numbers_within(regex_pool& pool, const number_limits& limits);
// The numbers that are whole multiples of `of` > 0, as a superset of all texts that numbers_within() has of
// them. nullopt: only where the digits of `of` are those of a product of twos and fives are they told by
// their last digits; others need a list.
std::optional<regex_id> multiples(regex_pool& pool, const decimal& of);
// The whole multiples of `of` between two bounds, as a list. nullopt: there are more than `most`.
std::optional<regex_id> listed_multiples(regex_pool& pool, const decimal& of, const number_bound& low,
                                         const number_bound& high, std::uint32_t most);

}  // namespace weir::core::grammar
