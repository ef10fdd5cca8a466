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
  // The same. REQUIRES: it is one.
  static decimal of(std::string_view text);
  static decimal of(std::int64_t value);

  bool zero() const { return digits.empty(); }
  bool integer() const { return exponent >= 0; }
  decimal minus() const { return {!negative && !zero(), digits, exponent}; }
  decimal magnitude() const { return {false, digits, exponent}; }
  // The digits before the point, "0" if there are none, and those behind it. Without the sign. REQUIRES: both
  // together are not more than the caller can hold; see digit_count().
  std::string whole_digits() const;
  std::string fraction_digits() const;
  std::uint64_t digit_count() const;  // of both
  std::string text() const;           // in JSON, without an exponent

  friend bool operator==(const decimal&, const decimal&) = default;
  friend std::strong_ordering operator<=>(const decimal& a, const decimal& b);
};

// Whether `value` is a whole multiple of `of`, which is above 0. nullopt: the digits of `of` have no place in
// 18, or the two are too far apart to be compared.
std::optional<bool> is_multiple(const decimal& value, const decimal& of);

}  // namespace weir::core::grammar
