#include "core/grammar/schema/multiples.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace weir::core::grammar {
namespace {

constexpr std::int64_t most_scale = 60;
constexpr std::uint32_t many_remainders = 1'000, few_digits = 15;

// value × 10^scale is a whole multiple of `modulus`.
struct multiple_of {
  std::uint32_t modulus = 1, scale = 0;
  bool fraction = true;  // texts may have a point
};

std::uint32_t digit_behind(std::uint32_t rest, std::uint32_t digit, std::uint32_t modulus) {
  return static_cast<std::uint32_t>((std::uint64_t{rest} * 10 + digit) % modulus);
}

std::uint32_t zeros_behind(std::uint32_t rest, std::uint32_t count, std::uint32_t modulus) {
  for (std::uint32_t i = 0; i < count && rest != 0; ++i) rest = digit_behind(rest, 0, modulus);
  return rest;
}

enum : std::uint32_t { in_whole, at_point, in_fraction };

// What is left of a number, behind its first digit.
struct position {
  std::uint32_t phase = in_whole, rest = 0;
  std::uint32_t whole_min = 0, whole_max = 0;  // digits that still come before the point
  std::uint32_t scale = 0;                     // digits behind the point that still count
  std::uint32_t behind = most_digits;          // digits that may still come behind the point

  static position of(const automaton::state& s) { return {s[0], s[1], s[2], s[3], s[4], s[5]}; }
  automaton::state state() const { return {phase, rest, whole_min, whole_max, scale, behind}; }
};

std::uint32_t one_less(std::uint32_t count) {
  return count == unbounded ? unbounded : count - std::min(count, 1u);
}

class multiples_automaton final : public automaton {
 public:
  explicit multiples_automaton(const multiple_of& of)
      : of_(of), key_(fmt::format("multiples {} {} {}", of.modulus, of.scale, of.fraction)) {}

  std::string_view key() const override { return key_; }
  std::size_t bytes() const override { return sizeof *this; }
  bool finite() const override { return false; }

  // Whether the digits that may still come can make the remainder 0. With more digits there are more ways.
  bool live(const position& p) const {
    if (p.phase == in_whole && p.whole_max >= enough) return true;
    const std::uint32_t free = p.scale + (p.phase == in_whole ? p.whole_max : 0);
    std::uint64_t power = 1;
    for (std::uint32_t i = 0; i < free && power < of_.modulus; ++i) power *= 10;
    return power >= of_.modulus || missing(zeros_behind(p.rest, free, of_.modulus)) < power;
  }

  std::optional<state> next(const state& s, unsigned char b) const override {
    position p = position::of(s);
    if (b == '.') {
      if (p.phase != in_whole || p.whole_min > 0 || !of_.fraction) return std::nullopt;
      p.phase = at_point;
      p.whole_max = 0;
    } else if (b < '0' || b > '9' || !take(p, static_cast<std::uint32_t>(b - '0'))) {
      return std::nullopt;
    }
    return live(p) ? std::optional(p.state()) : std::nullopt;
  }

  bool may_end(const state& s) const override {
    const position p = position::of(s);
    return p.phase != at_point && p.whole_min == 0 && zeros_behind(p.rest, p.scale, of_.modulus) == 0;
  }

  std::vector<std::bitset<256>> firsts(const state& s) const override {
    std::vector<std::bitset<256>> out;
    for (const char c : std::string_view(".0123456789"))
      if (next(s, static_cast<unsigned char>(c))) out.emplace_back().set(static_cast<unsigned char>(c));
    return out;
  }

  // whole_max is cut only if the digits that are left behind the horizon can make any remainder 0.
  state within(const state& s, std::uint32_t horizon) const override {
    position p = position::of(s);
    if (p.whole_max > horizon && p.whole_max - horizon >= enough) p.whole_max = unbounded;
    p.whole_min = std::min(p.whole_min, horizon + 1);
    if (p.behind > horizon) p.behind = unbounded;
    return p.state();
  }
  bool counted(const state& s) const override { return s[3] != unbounded || s[5] != unbounded || s[2] > 0; }

 private:
  static constexpr std::uint32_t enough = 5;  // digits: 10^5 > most_remainders

  std::uint64_t missing(std::uint32_t rest) const { return rest == 0 ? 0 : of_.modulus - rest; }

  bool take(position& p, std::uint32_t digit) const {
    if (p.phase == in_whole) {
      if (p.whole_max == 0) return false;
      p.whole_min = one_less(p.whole_min);
      p.whole_max = one_less(p.whole_max);
    } else {
      if (p.behind == 0 || (p.scale == 0 && digit != 0)) return false;
      p.phase = in_fraction;
      p.behind = one_less(p.behind);
      if (p.scale == 0) return true;
      --p.scale;
    }
    p.rest = digit_behind(p.rest, digit, of_.modulus);
    return true;
  }

  const multiple_of of_;
  const std::string key_;
};

// Magnitudes between bounds. A bound is a whole number in units of the last digit that counts, with at least
// one digit before the point.
class bounded_multiples {
 public:
  bounded_multiples(regex_pool& pool, const multiple_of& of)
      : pool_(pool), of_(of), automaton_(std::make_shared<const multiples_automaton>(of)) {}

  regex_id between(const std::optional<number_bound>& low, const std::optional<number_bound>& high) {
    auto from = low ? grid_low(*low) : padded("0");
    auto to = high ? grid_high(*high) : std::nullopt;
    if (!from || (high && !to)) return regex_pool::nothing;
    if (to && digits_before(*to) > most_digits) to.reset();
    const std::uint32_t least = digits_before(*from);
    if (least > most_digits) return regex_pool::nothing;
    const std::uint32_t most = to ? digits_before(*to) : std::max(least, digits_without_bound()) + 1;
    if (to && (most < least || (most == least && *to < *from))) return regex_pool::nothing;
    if (most == least) return path({*from, *to, least}, {0, 0, true, true});
    std::vector<regex_id> out{path({*from, "", least}, {0, 0, true, false})};
    if (to) out.push_back(path({"", *to, most}, {0, 0, false, true}));
    if (least + 1 < most)
      for (std::uint32_t d = 1; d <= 9; ++d)
        out.push_back(pool_.concat(
            digit(d), term({in_whole, d % of_.modulus, least, most - 2, of_.scale, most_digits})));
    return pool_.either(out);
  }

 private:
  struct bounds {
    std::string low, high;
    std::uint32_t whole;  // digits before the point
  };
  struct place {
    std::uint32_t at, rest;
    bool low, high;  // the digits so far are those of the bound
  };

  // There are as many states as remainders times digits that may still come. A constraint must be able to
  // remember all of them.
  std::uint32_t digits_without_bound() const {
    return of_.modulus * (of_.scale + 1) <= many_remainders ? most_digits : few_digits;
  }
  std::uint32_t digits_before(const std::string& n) const {
    return static_cast<std::uint32_t>(n.size()) - of_.scale;
  }
  std::string padded(const std::string& n) const {
    return std::string(of_.scale + 1 - std::min<std::size_t>(n.size(), of_.scale + 1), '0') + n;
  }
  regex_id digit(std::uint32_t d) { return pool_.byte(static_cast<unsigned char>('0' + d)); }
  regex_id term(const position& p) {
    return automaton_->live(p) ? pool_.language(automaton_, p.state()) : regex_pool::nothing;
  }

  // The digits of a bound in units of the last digit that counts, rounded down. nullopt: more digits than any
  // text has.
  std::optional<std::string> floor_of(decimal at, bool& exact) const {
    if (!at.zero()) at.exponent += of_.scale;
    exact = at.integer();
    const auto before = static_cast<std::int64_t>(at.digits.size()) + at.exponent;
    if (before > most_digits + most_scale + 1) return std::nullopt;
    return at.whole_digits();
  }
  std::optional<std::string> grid_low(const number_bound& b) const {
    bool exact = true;
    auto n = floor_of(b.at, exact);
    if (!n) return std::nullopt;
    if (!exact || b.exclusive) {
      auto nine = n->find_last_not_of('9');
      if (nine == n->npos) n->insert(0, 1, '0'), nine = 0;
      ++(*n)[nine];
      std::fill(n->begin() + static_cast<std::ptrdiff_t>(nine) + 1, n->end(), '0');
    }
    return padded(*n);
  }
  std::optional<std::string> grid_high(const number_bound& b) const {
    bool exact = true;
    auto n = floor_of(b.at, exact);
    if (!n) return std::string(most_digits + of_.scale + 1, '9');
    if (exact && b.exclusive) {
      const auto zero = n->find_last_not_of('0');
      if (zero == n->npos) return std::nullopt;
      --(*n)[zero];
      std::fill(n->begin() + static_cast<std::ptrdiff_t>(zero) + 1, n->end(), '9');
      if (n->size() > 1 && n->front() == '0') n->erase(0, 1);
    }
    return padded(*n);
  }

  // What may follow `p` if no further digit is limited by a bound: a state of the automaton.
  regex_id loose(const bounds& b, const place& p) {
    if (p.at <= b.whole) {
      const std::uint32_t left = b.whole - p.at;
      return term({in_whole, p.rest, left, left, of_.scale, most_digits});
    }
    const std::uint32_t behind = p.at - b.whole;
    return term({in_fraction, p.rest, 0, 0, of_.scale - behind, most_digits - behind});
  }

  // Recurses at most once for each digit and bound; at most 64 + 60 digits of a text count.
  regex_id path(const bounds& b, const place& p) {
    const std::uint32_t all = b.whole + of_.scale;
    if (p.at == all || (!p.low && !p.high)) return loose(b, p);
    const std::uint32_t least = p.at == 0 && b.whole > 1 ? 1 : 0;
    const std::uint32_t from = p.low ? static_cast<std::uint32_t>(b.low[p.at] - '0') : least;
    const std::uint32_t to = p.high ? static_cast<std::uint32_t>(b.high[p.at] - '0') : 9;
    std::vector<regex_id> ways;
    for (std::uint32_t d = from; d <= to; ++d)
      ways.push_back(pool_.concat(digit(d), path(b, {p.at + 1, digit_behind(p.rest, d, of_.modulus),
                                                     p.low && d == from, p.high && d == to})));
    regex_id out = pool_.either(ways);
    if (p.at < b.whole) return out;
    if (p.at == b.whole) out = pool_.concat(pool_.byte('.'), out);
    const bool ends = (!p.low || b.low.find_first_not_of('0', p.at) == std::string::npos) &&
                      zeros_behind(p.rest, all - p.at, of_.modulus) == 0;
    return ends ? pool_.either(out, regex_pool::empty) : out;
  }

  regex_pool& pool_;
  const multiple_of of_;
  const std::shared_ptr<const multiples_automaton> automaton_;
};

std::optional<multiple_of> remainders_of(const decimal& of, bool fractions) {
  if (of.digits.size() > 5 || of.exponent > 4 || of.exponent < -most_scale) return std::nullopt;
  auto modulus = static_cast<std::uint32_t>(std::stoul(of.digits));
  for (std::int64_t i = 0; i < of.exponent; ++i) modulus *= 10;
  auto scale = static_cast<std::uint32_t>(std::max<std::int64_t>(-of.exponent, 0));
  if (!fractions) {  // in whole numbers × 10^scale, the factors 2 and 5 of 10^scale are always there
    for (std::uint32_t i = 0; i < scale; ++i) modulus /= std::gcd(modulus, 10u);
    scale = 0;
  }
  if (std::uint64_t{modulus} * (scale + 1) > most_remainders) return std::nullopt;
  return multiple_of{modulus, scale, fractions};
}

}  // namespace

std::optional<regex_id> multiples_within(regex_pool& pool, const decimal& of, const number_limits& limits) {
  const auto remainders = remainders_of(of, limits.fractions);
  if (!remainders) return std::nullopt;
  bounded_multiples texts(pool, *remainders);
  return with_signs(pool, limits,
                    [&](const auto& low, const auto& high) { return texts.between(low, high); });
}

}  // namespace weir::core::grammar
