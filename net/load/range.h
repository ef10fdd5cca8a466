// range.h — a number of tokens in an option: `128`, or `64-256` for a random number in that range, uniformly
// distributed.
#pragma once

#include <charconv>
#include <cstdint>
#include <random>
#include <string_view>

#include "core/error.h"

namespace weir::load {

struct token_range {
  std::uint32_t low = 0, high = 0;

  template <class Random>
  std::uint32_t draw(Random& random) const {
    return std::uniform_int_distribution<std::uint32_t>(low, high)(random);
  }
};

// `option`: name of the option, for the error. Error: invalid_param.
inline core::result<token_range> parse_range(std::string_view option, std::string_view text) {
  const auto number = [](std::string_view part, std::uint32_t& out) {
    const auto [end, ec] = std::from_chars(part.data(), part.data() + part.size(), out);
    return ec == std::errc() && end == part.data() + part.size() && out >= 1 && out <= 1u << 24;
  };
  const auto dash = text.find('-');
  token_range r;
  bool good = number(text.substr(0, dash), r.low);
  r.high = r.low;
  if (dash != text.npos) good = good && number(text.substr(dash + 1), r.high);
  if (good && r.low <= r.high) return r;
  return core::bad_param(std::string(option), "--{} {}: not N or LOW-HIGH, with 1 <= LOW <= HIGH <= {}",
                         option, text, 1u << 24);
}

}  // namespace weir::load
