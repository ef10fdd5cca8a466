#include "core/grammar/schema/numbers.h"

#include <algorithm>

namespace weir::core::grammar {
namespace {

// Pieces of the texts of numbers, without the sign: a whole part, and a fraction that may be missing.
class digit_texts {
 public:
  explicit digit_texts(regex_pool& pool) : pool_(pool) {}

  regex_id range(char first, char last) {
    byte_set set;
    for (int c = first; c <= last; ++c) set.set(static_cast<std::size_t>(c));
    return first <= last ? pool_.bytes(set) : regex_pool::nothing;
  }
  regex_id digit() { return range('0', '9'); }
  regex_id digits(std::uint32_t min, std::uint32_t max = unbounded) {
    return pool_.repeat(digit(), min, max);
  }
  regex_id zeros() { return pool_.any_number(pool_.byte('0')); }
  regex_id not_all_zeros() { return join({digits(0), range('1', '9'), digits(0)}); }
  regex_id join(std::initializer_list<regex_id> parts) {
    return pool_.concat(std::span(parts.begin(), parts.size()));
  }
  regex_id whole() {
    return pool_.either(pool_.byte('0'), join({range('1', '9'), digits(0, most_digits - 1)}));
  }
  regex_id fraction(regex_id behind_the_point) { return join({pool_.byte('.'), behind_the_point}); }
  regex_id any_fraction() { return pool_.maybe(fraction(digits(1))); }
  regex_id any() { return join({whole(), pool_.maybe(fraction(digits(1, most_digits)))}); }

  // Texts of values at least `m`, or above it; at most `m`, or below it.
  regex_id at_least(const decimal& m, bool above) {
    const std::string i = m.whole_digits(), f = m.fraction_digits();
    return pool_.either(join({whole_above(i), any_fraction()}),
                        join({pool_.literal(i), fraction_at_least(f, above)}));
  }
  regex_id at_most(const decimal& m, bool below) {
    const std::string i = m.whole_digits(), f = m.fraction_digits();
    return pool_.either(join({whole_below(i), any_fraction()}),
                        join({pool_.literal(i), fraction_at_most(f, below)}));
  }

 private:
  regex_id whole_above(const std::string& i) {
    const auto n = static_cast<std::uint32_t>(i.size());
    std::vector<regex_id> out{join({range('1', '9'), digits(n)})};  // longer
    for (std::uint32_t k = 0; k < n; ++k)
      out.push_back(join({pool_.literal(i.substr(0, k)), range(static_cast<char>(i[k] + 1), '9'),
                          digits(n - k - 1, n - k - 1)}));
    return pool_.either(out);
  }
  regex_id whole_below(const std::string& i) {
    const auto n = static_cast<std::uint32_t>(i.size());
    std::vector<regex_id> out;
    if (n > 1) out.push_back(pool_.either(pool_.byte('0'), join({range('1', '9'), digits(0, n - 2)})));
    for (std::uint32_t k = 0; k < n; ++k)
      out.push_back(join({pool_.literal(i.substr(0, k)),
                          range(k == 0 && n > 1 ? '1' : '0', static_cast<char>(i[k] - 1)),
                          digits(n - k - 1, n - k - 1)}));
    return pool_.either(out);
  }
  regex_id fraction_at_least(const std::string& f, bool above) {
    if (f.empty()) return above ? fraction(not_all_zeros()) : any_fraction();
    regex_id behind = above ? not_all_zeros() : digits(0);
    for (auto c = f.rbegin(); c != f.rend(); ++c)
      behind = pool_.either(join({range(static_cast<char>(*c + 1), '9'), digits(0)}),
                            join({pool_.byte(static_cast<unsigned char>(*c)), behind}));
    return fraction(behind);
  }
  regex_id fraction_at_most(const std::string& f, bool below) {
    if (f.empty())
      return below ? regex_pool::nothing : pool_.maybe(fraction(join({pool_.byte('0'), zeros()})));
    regex_id behind = below ? regex_pool::nothing : zeros();
    for (std::size_t k = f.size(); k-- > 0;) {
      // A text that ends before the last digit is smaller, for that digit is not 0.
      const regex_id rest = k + 1 < f.size() ? pool_.maybe(behind) : behind;
      behind = pool_.either(join({range('0', static_cast<char>(f[k] - 1)), digits(0)}),
                            join({pool_.byte(static_cast<unsigned char>(f[k])), rest}));
    }
    return pool_.maybe(fraction(behind));
  }

  regex_pool& pool_;
};

bool too_long(const decimal& d) { return d.digit_count() > 2 * most_digits + 400; }

// The texts of the magnitudes between two bounds. A bound beyond every text that is generated always holds,
// or never.
regex_id magnitudes(regex_pool& pool, const std::optional<number_bound>& low,
                    const std::optional<number_bound>& high) {
  digit_texts d(pool);
  regex_id out = d.any();
  if (low && !(low->at.zero() && !low->exclusive)) {
    if (too_long(low->at)) {
      // A bound of so many digits is above all texts, or so near to 0 that it asks for more than 0.
      if (low->at > decimal::of(std::int64_t{1})) return regex_pool::nothing;
      out = pool.both(out, d.at_least(decimal(), true));
    } else {
      out = pool.both(out, d.at_least(low->at, low->exclusive));
    }
  }
  if (high) {
    if (too_long(high->at)) {
      if (high->at < decimal::of(std::int64_t{1})) out = pool.both(out, d.at_most(decimal(), false));
    } else {
      out = pool.both(out, d.at_most(high->at, high->exclusive));
    }
  }
  return out;
}

regex_id of_kind(regex_pool& pool, regex_id texts, const number_limits& limits) {
  digit_texts d(pool);
  if (!limits.fractions) return pool.both(texts, d.whole());
  if (!limits.integers) return pool.both(texts, d.join({d.whole(), d.fraction(d.not_all_zeros())}));
  return texts;
}

}  // namespace

regex_id with_signs(regex_pool& pool, const number_limits& limits, const magnitude_texts& magnitudes_of) {
  std::vector<regex_id> out;
  const auto &low = limits.low, &high = limits.high;
  if (!high || !(high->at.negative || (high->at.zero() && high->exclusive))) {
    std::optional<number_bound> from;
    if (low && !low->at.negative) from = low;
    out.push_back(magnitudes_of(from, high));
  }
  if (!low || low->at.negative || (low->at.zero() && !low->exclusive)) {
    std::optional<number_bound> from, to;
    if (low) to = {low->at.magnitude(), low->exclusive};
    if (high && (high->at.negative || high->at.zero())) from = {high->at.magnitude(), high->exclusive};
    if (!limits.fractions && (!from || from->at.zero())) from = {decimal(), true};  // no -0
    out.push_back(pool.concat(pool.byte('-'), magnitudes_of(from, to)));
  }
  return pool.either(out);
}

regex_id numbers_within(regex_pool& pool, const number_limits& limits) {
  return with_signs(pool, limits, [&](const auto& low, const auto& high) {
    return of_kind(pool, magnitudes(pool, low, high), limits);
  });
}

namespace {

// `n` as a text of `width` digits.
std::string padded(std::uint64_t n, std::size_t width) {
  const std::string text = std::to_string(n);
  return std::string(width - std::min(width, text.size()), '0') + text;
}

std::string without_leading_zeros(const std::string& text) {
  const std::size_t first = text.find_first_not_of('0');
  return first == text.npos ? "0" : text.substr(first);
}

struct last_digits {
  std::size_t count = 0;             // number of last digits that decide
  std::vector<std::string> endings;  // of that many digits
};

// Which last digits the multiples of a product of twos and fives have.
std::optional<last_digits> endings_of(std::uint64_t m) {
  std::uint64_t power = 1;
  last_digits out;
  while (power % m != 0) {
    if (out.count == 9) return std::nullopt;
    power *= 10;
    ++out.count;
  }
  if (power / m > 10'000) return std::nullopt;
  if (out.count == 0) {
    out.endings.emplace_back();
    return out;
  }
  for (std::uint64_t n = 0; n < power; n += m) out.endings.push_back(padded(n, out.count));
  return out;
}

// Texts of the fractions that have `free` digits and then the digits `f`: with more zeros at the end, or
// without the last zeros.
regex_id fraction_texts(regex_pool& pool, digit_texts& d, std::uint32_t free, const std::string& f) {
  std::vector<regex_id> out{d.fraction(d.join({d.digits(free, free), pool.literal(f), d.zeros()}))};
  std::string shorter = f;
  while (!shorter.empty() && shorter.back() == '0') {
    shorter.pop_back();
    if (free + shorter.size() == 0) break;
    out.push_back(d.fraction(d.join({d.digits(free, free), pool.literal(shorter)})));
  }
  if (f.find_first_not_of('0') == f.npos) {
    if (free > 1) out.push_back(d.fraction(d.digits(1, free - 1)));
    out.push_back(regex_pool::empty);
  }
  return pool.either(out);
}

}  // namespace

std::optional<regex_id> multiples(regex_pool& pool, const decimal& of) {
  if (of.digits.size() > 9 || of.exponent > 60 || of.exponent < -60) return std::nullopt;
  const auto last = endings_of(std::stoull(of.digits));
  if (!last) return std::nullopt;
  digit_texts d(pool);
  const auto behind = static_cast<std::size_t>(std::max<std::int64_t>(-of.exponent, 0));
  const std::string zeros(static_cast<std::size_t>(std::max<std::int64_t>(of.exponent, 0)), '0');
  std::vector<regex_id> out;
  for (const std::string& ending : last->endings) {
    const std::size_t in_fraction = std::min(ending.size(), behind);
    const std::string before = ending.substr(0, ending.size() - in_fraction) + zeros;
    regex_id whole = d.whole();
    if (!before.empty())
      whole = pool.both(whole, pool.either(d.join({d.digits(0), pool.literal(before)}),
                                           pool.literal(without_leading_zeros(before))));
    const regex_id fraction = behind == 0
                                  ? pool.maybe(d.fraction(d.join({pool.byte('0'), d.zeros()})))
                                  : fraction_texts(pool, d, static_cast<std::uint32_t>(behind - in_fraction),
                                                   ending.substr(ending.size() - in_fraction));
    out.push_back(d.join({whole, fraction}));
  }
  const regex_id texts = pool.either(out);
  return pool.either(texts, pool.concat(pool.byte('-'), texts));
}

std::optional<regex_id> listed_multiples(regex_pool& pool, const decimal& of, const number_bound& low,
                                         const number_bound& high, std::uint32_t most) {
  // In units of the last digit of `of`, as 64-bit numbers.
  if (of.digits.size() > 9) return std::nullopt;
  const auto scaled = [&](const decimal& v) -> std::optional<double> {
    return v.digit_count() > 18 ? std::nullopt : std::optional(std::stod(v.text()));
  };
  const auto a = scaled(low.at), b = scaled(high.at), step = scaled(of);
  if (!a || !b || !step || *step <= 0 || (*b - *a) / *step > most) return std::nullopt;
  // Candidates around the bounds are compared exactly.
  const auto unit = std::stoll(of.digits);
  std::vector<std::string> texts;
  const auto first = static_cast<std::int64_t>(*a / *step) - 2;
  const auto last = static_cast<std::int64_t>(*b / *step) + 2;
  for (std::int64_t k = first; k <= last; ++k) {
    decimal v = decimal::of(k * unit);
    if (!v.zero()) v.exponent += of.exponent;
    if (v < low.at || high.at < v || (low.exclusive && v == low.at) || (high.exclusive && v == high.at))
      continue;
    texts.push_back(v.text());
  }
  return pool.literals(std::move(texts));
}

}  // namespace weir::core::grammar
