// multiples.h — the multiples of a number between bounds, as an automaton over remainders.
//
// Texts are those of numbers.h, but where there are more than 1,000 remainders and no bound: then there are
// at most 15 digits before the point. A text is read digit by digit; its remainder, and how many digits may
// still come, are the state. Between bounds the digits are first compared with those of the bounds, as far as
// they are the same.
//
// Thread safety: one thread builds; the automaton is immutable.
#pragma once

#include <optional>

#include "core/grammar/schema/numbers.h"

namespace weir::core::grammar {

inline constexpr std::uint32_t most_remainders = 10'000;  // counted anew for each digit behind the point

// The whole multiples of `of` > 0 within the limits, exactly; `limits` must allow whole numbers. nullopt: it
// has more than `most_remainders`.
std::optional<regex_id> multiples_within(regex_pool& pool, const decimal& of, const number_limits& limits);

}  // namespace weir::core::grammar
