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

#include "core/grammar/regex/regex_pool.h"
#include "core/grammar/schema/constraints.h"

namespace weir::core::grammar {

inline constexpr std::uint32_t most_digits = 64;  // before the point, and behind it

struct number_limits {
  std::optional<number_bound> low, high;
  bool integers = true;   // whole numbers; written without a fraction if `fractions` is false
  bool fractions = true;  // numbers that are not whole
};

// Texts of both signs. `magnitudes` makes the texts of the magnitudes between two bounds; negative numbers
// get a minus before them.
using magnitude_texts =
    std::function<regex_id(const std::optional<number_bound>&, const std::optional<number_bound>&)>;
regex_id with_signs(regex_pool& pool, const number_limits& limits, const magnitude_texts& magnitudes);

regex_id numbers_within(regex_pool& pool, const number_limits& limits);
// The whole multiples of `of` > 0, told by their last digits: all texts of them that numbers_within() has,
// and longer texts. nullopt: the digits of `of` are no product of twos and fives, or too many last digits
// decide. Such multiples are told by remainders (multiples.h) or by a list.
std::optional<regex_id> multiples(regex_pool& pool, const decimal& of);
// The whole multiples of `of` between two bounds, as a list. nullopt: there are more than `most`, or the
// numbers have too many digits.
std::optional<regex_id> listed_multiples(regex_pool& pool, const decimal& of, const number_bound& low,
                                         const number_bound& high, std::uint32_t most);

}  // namespace weir::core::grammar
