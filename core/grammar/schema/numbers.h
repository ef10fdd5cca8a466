// numbers.h — numbers within bounds as a regular language of their digits. Everything is exact: bounds are
// compared digit by digit, never as floating point.
//
// Texts have at most 64 digits before and 64 behind the point, no exponent, and no -0 where only integers are
// allowed.
//
// Thread safety: one thread.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/grammar/regex_pool.h"
#include "core/grammar/schema/constraints.h"

namespace weir::core::grammar {

inline constexpr std::uint32_t most_digits = 64;  // before the point, and behind it

struct number_limits {
  std::optional<number_bound> low, high;
  bool integers = true;   // whole numbers; without fraction where `fractions` is false
  bool fractions = true;  // numbers that are not whole
};

// Both signs: what `magnitudes` makes of bounds on the magnitude, and the same behind a minus.
using magnitude_texts =
    std::function<regex_id(const std::optional<number_bound>&, const std::optional<number_bound>&)>;
regex_id with_signs(regex_pool& pool, const number_limits& limits, const magnitude_texts& magnitudes);

regex_id numbers_within(regex_pool& pool, const number_limits& limits);
// The numbers that are whole multiples of `of` > 0, as a superset of all texts that numbers_within() has of
// them. nullopt: only where the digits of `of` are those of a product of twos and fives are they told by
// their last digits; others are told by remainders (multiples.h) or by a list.
std::optional<regex_id> multiples(regex_pool& pool, const decimal& of);
// The whole multiples of `of` between two bounds, as a list. nullopt: there are more than `most`.
std::optional<regex_id> listed_multiples(regex_pool& pool, const decimal& of, const number_bound& low,
                                         const number_bound& high, std::uint32_t most);

}  // namespace weir::core::grammar
