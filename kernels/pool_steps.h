// pool_steps.h — in which steps a pool of pages can change its size while its addresses stay.
//
// A pool has the keys of all pages of a layer behind each other, and so their values. Each of these runs ends
// by itself, so a page more or less is a small piece of memory in each, while a device maps memory in pieces
// that are a multiple of its unit. A pool whose size is a multiple of `even` pages ends at such a multiple in
// every run: its memory is the bytes of its pages, and not a byte more.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <limits>
#include <numeric>
#include <span>

#include "kernels/ops.h"

namespace weir::kernels {

struct pool_steps {
  std::uint32_t step = 0;  // pages that come and go together; 0: pools keep the size they have
  std::uint32_t even = 1;  // a pool that changes has a multiple of so many pages

  // Whether a pool of so many pages can change its size.
  constexpr bool change(std::uint32_t pages) const noexcept {
    return step > 0 && pages % even == 0 && pages / 2 >= step;
  }
  // The most pages of a pool that can change, at most `pages`; or `pages`, where so few cannot, or where more
  // than a 64th of them would be lost.
  constexpr std::uint32_t rounded(std::uint32_t pages) const noexcept {
    const std::uint32_t lost = pages % even;
    return change(pages - lost) && lost <= pages / 64 ? pages - lost : pages;
  }
  // The pages that have memory in a pool of `most` pages of which `pages` are in use.
  constexpr std::uint32_t held(std::uint32_t pages, std::uint32_t most) const noexcept {
    const std::uint64_t whole = (std::uint64_t{pages} + step - 1) / step * step;
    return whole < most ? static_cast<std::uint32_t>(whole) : most;
  }
};

// `parts`: the bytes of one page in a run, for each kind of run.
constexpr pool_steps steps_of(const memory_pieces& pieces, std::span<const std::uint64_t> parts) noexcept {
  constexpr std::uint64_t most = std::numeric_limits<std::int32_t>::max();
  if (pieces.unit == 0 || parts.empty()) return {};
  std::uint64_t even = 1, least = ~std::uint64_t{0};
  for (const std::uint64_t part : parts) {
    if (part == 0) return {};
    even = std::lcm(even, pieces.unit / std::gcd(pieces.unit, part));
    if (even > most) return {};
    least = part < least ? part : least;
  }
  const std::uint64_t worth = (pieces.usual + least - 1) / least;
  const std::uint64_t step = (worth + even - 1) / even * even;
  if (step > most) return {};
  return {static_cast<std::uint32_t>(step > even ? step : even), static_cast<std::uint32_t>(even)};
}

}  // namespace weir::kernels
