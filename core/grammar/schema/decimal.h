// decimal.h — numbers as JSON writes them, compared exactly: 0.1 is one tenth, and 30 digits are 30 digits.
//
// Thread safety: values; any thread.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::core::grammar {

struct decimal {
  bool negative = false;
  std::string digits;         // of the value, without zeros at both ends; empty: the value is 0
  std::int64_t exponent = 0;  // value = ± digits × 10^exponent

  // A number as JSON writes it. nullopt: not such a number, or an exponent beyond ±1,000,000.
  static std::optional<decimal> parse(std::string_view text);
  // The same. REQUIRES: parse(text) succeeds.
  static decimal of(std::string_view text);
  static decimal of(std::int64_t value);

  bool zero() const { return digits.empty(); }
  bool integer() const { return exponent >= 0; }
  decimal minus() const { return {!negative && !zero(), digits, exponent}; }
  decimal magnitude() const { return {false, digits, exponent}; }
  // The digits before the point ("0" if there are none) and behind it, without the sign. REQUIRES:
  // digit_count() is not more than the caller can hold.
  std::string whole_digits() const;
  std::string fraction_digits() const;
  std::uint64_t digit_count() const;  // of whole_digits() and fraction_digits() together
  std::string text() const;           // in JSON, without an exponent

  friend bool operator==(const decimal&, const decimal&) = default;
  friend std::strong_ordering operator<=>(const decimal& a, const decimal& b);
};

// Whether `value` is a whole multiple of `of`, which is above 0. nullopt: `of` has more than 18 digits, or
// the two exponents are too far apart.
std::optional<bool> is_multiple(const decimal& value, const decimal& of);

}  // namespace weir::core::grammar
