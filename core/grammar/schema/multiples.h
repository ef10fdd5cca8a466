// multiples.h — the multiples of a number between bounds, as an automaton over remainders.
//
// Texts are those of numbers.h, with one exception: with more than 1,000 remainders and no bound above the
// magnitude, there are at most 15 digits before the point, or as many as the bound below has. A text is read
// digit by digit; its remainder, and how many digits may still come, are the state. Between bounds the digits
// are first compared with those of the bounds, as far as they are the same.
//
// Thread safety: one thread builds; the automaton is immutable.
#pragma once

#include <optional>

#include "core/grammar/schema/numbers.h"

namespace weir::core::grammar {

inline constexpr std::uint32_t most_remainders = 10'000;  // counted anew for each digit behind the point

// The whole multiples of `of` > 0 within the bounds of `limits`, exactly; whole numbers are among them even
// if limits.integers is false. nullopt: `of` has more than `most_remainders`, or more than 60 digits behind
// the point.
std::optional<regex_id> multiples_within(regex_pool& pool, const decimal& of, const number_limits& limits);

}  // namespace weir::core::grammar
