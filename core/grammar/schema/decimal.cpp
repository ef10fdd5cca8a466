#include "core/grammar/schema/decimal.h"

#include <algorithm>
#include <cassert>

namespace weir::core::grammar {
namespace {

constexpr std::int64_t max_exponent = 1'000'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes the digits at the beginning of `text`.
std::string_view take_digits(std::string_view& text) {
  std::size_t n = 0;
  while (n < text.size() && is_digit(text[n])) ++n;
  const std::string_view digits = text.substr(0, n);
  text.remove_prefix(n);
  return digits;
}

// An exponent with its sign. nullopt: none, or too large.
std::optional<std::int64_t> take_exponent(std::string_view& text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  const std::string_view digits = take_digits(text);
  if (digits.empty()) return std::nullopt;
  std::int64_t value = 0;
  for (char c : digits) {
    value = value * 10 + (c - '0');
    if (value > max_exponent) return std::nullopt;
  }
  return negative ? -value : value;
}

// Position of the first digit: the value is below 10^order and at least 10^(order - 1).
std::int64_t order_of(const decimal& d) { return static_cast<std::int64_t>(d.digits.size()) + d.exponent; }

std::strong_ordering compare_magnitudes(const decimal& a, const decimal& b) {
  if (a.zero() || b.zero()) return !a.zero() <=> !b.zero();
  if (const auto by_order = order_of(a) <=> order_of(b); by_order != 0) return by_order;
  // Neither ends with a zero, so a text that is the beginning of the other is the smaller value.
  return a.digits.compare(b.digits) <=> 0;
}

}  // namespace

std::optional<decimal> decimal::parse(std::string_view text) {
  decimal d;
  if (!text.empty() && text.front() == '-') {
    d.negative = true;
    text.remove_prefix(1);
  }
  const std::string_view whole = take_digits(text);
  if (whole.empty()) return std::nullopt;
  d.digits = whole;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    const std::string_view fraction = take_digits(text);
    if (fraction.empty()) return std::nullopt;
    d.digits += fraction;
    d.exponent = -static_cast<std::int64_t>(fraction.size());
  }
  if (!text.empty() && (text.front() == 'e' || text.front() == 'E')) {
    text.remove_prefix(1);
    const auto exponent = take_exponent(text);
    if (!exponent) return std::nullopt;
    d.exponent += *exponent;
  }
  if (!text.empty()) return std::nullopt;
  const std::size_t end = d.digits.find_last_not_of('0') + 1;  // npos + 1 is 0: all are zeros
  d.exponent += static_cast<std::int64_t>(d.digits.size() - end);
  d.digits.resize(end);
  d.digits.erase(0, d.digits.find_first_not_of('0'));
  if (d.zero()) return decimal();
  return d;
}

decimal decimal::of(std::string_view text) {
  auto d = parse(text);
  assert(d);
  return std::move(*d);
}

decimal decimal::of(std::int64_t value) { return of(std::to_string(value)); }

std::string decimal::whole_digits() const {
  if (order_of(*this) <= 0) return "0";
  if (exponent >= 0) return digits + std::string(static_cast<std::size_t>(exponent), '0');
  return digits.substr(0, static_cast<std::size_t>(order_of(*this)));
}

std::string decimal::fraction_digits() const {
  if (exponent >= 0) return "";
  if (order_of(*this) <= 0) return std::string(static_cast<std::size_t>(-order_of(*this)), '0') + digits;
  return digits.substr(static_cast<std::size_t>(order_of(*this)));
}

std::uint64_t decimal::digit_count() const {
  const std::int64_t before = std::max<std::int64_t>(order_of(*this), 1);
  return static_cast<std::uint64_t>(before + std::max<std::int64_t>(-exponent, 0));
}

std::string decimal::text() const {
  std::string out(negative ? 1 : 0, '-');
  out += whole_digits();
  if (const std::string fraction = fraction_digits(); !fraction.empty()) out.append(1, '.').append(fraction);
  return out;
}

std::strong_ordering operator<=>(const decimal& a, const decimal& b) {
  if (a.negative != b.negative) return b.negative <=> a.negative;
  return a.negative ? compare_magnitudes(b, a) : compare_magnitudes(a, b);
}

std::optional<bool> is_multiple(const decimal& value, const decimal& of) {
  if (value.zero()) return true;
  constexpr std::int64_t most_zeros = 20'000;
  if (of.digits.size() > 18) return std::nullopt;
  const std::int64_t zeros = value.exponent - of.exponent;  // value = digits × 10^zeros in units of `of`
  if (zeros < 0) {
    // `value` has digits below the last one of `of`; a multiple has none.
    return false;
  }
  if (zeros > most_zeros) return std::nullopt;
  std::uint64_t divisor = 0;
  for (char c : of.digits) divisor = divisor * 10 + static_cast<std::uint64_t>(c - '0');
  unsigned __int128 rest = 0;
  for (char c : value.digits) rest = (rest * 10 + static_cast<unsigned>(c - '0')) % divisor;
  for (std::int64_t i = 0; i < zeros; ++i) rest = rest * 10 % divisor;
  return rest == 0;
}

}  // namespace weir::core::grammar
