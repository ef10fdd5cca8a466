// fingerprint.h — a 64-bit hash of a list of values, the same in every process and in every build.
//
// It tells apart what differs by chance or by mistake. Who wants two equal fingerprints can make them.
//
// Thread safety: none.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "kernels/random_weights.h"

namespace weir::core {

static_assert(std::endian::native == std::endian::little);

class fingerprint {
 public:
  void add(std::uint64_t v) noexcept { now_ = kernels::mix_bits(now_ ^ v) + step; }
  // The length goes in, too: "a", "bc" and "ab", "c" are different.
  void add(std::string_view s) noexcept {
    add(std::uint64_t{s.size()});
    while (!s.empty()) {
      std::uint64_t word = 0;
      const auto n = s.copy(reinterpret_cast<char*>(&word), sizeof word);
      s.remove_prefix(n);
      add(word);
    }
  }
  void add(std::span<const std::byte> bytes) noexcept {
    add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  std::uint64_t value() const noexcept { return now_; }

 private:
  static constexpr std::uint64_t step = 0x9E37'79B9'7F4A'7C15;
  std::uint64_t now_ = step;
};

}  // namespace weir::core
