// id_table.h — a hash table of ids. The caller stores the things that the ids stand for, and compares them.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weir::core::grammar {

class id_table {
 public:
  static constexpr std::uint32_t none = 0xFFFF'FFFF;

  // The id that was added with this hash and for which `is_it(id)` is true, or `none`.
  template <class Test>
  std::uint32_t find(std::uint64_t hash, Test is_it) const {
    if (places_.empty()) return none;
    const auto mask = places_.size() - 1;
    for (auto i = hash & mask; places_[i].id != none; i = (i + 1) & mask)
      if (places_[i].hash == static_cast<std::uint32_t>(hash >> 32) && is_it(places_[i].id))
        return places_[i].id;
    return none;
  }

  // REQUIRES: find() does not find it.
  void add(std::uint64_t hash, std::uint32_t id) {
    if (2 * (count_ + 1) > places_.size()) grow();
    put({static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(hash >> 32), id});
    ++count_;
  }

 private:
  struct place {
    std::uint32_t low = 0, hash = 0;  // lower and upper half of the hash
    std::uint32_t id = none;
  };

  void put(const place& p) {
    const auto mask = places_.size() - 1;
    std::size_t i = p.low & mask;
    while (places_[i].id != none) i = (i + 1) & mask;
    places_[i] = p;
  }
  void grow() {
    std::vector<place> old(places_.empty() ? 64 : 2 * places_.size());
    old.swap(places_);
    for (const auto& p : old)
      if (p.id != none) put(p);
  }

  std::vector<place> places_;  // [0, or a power of two]
  std::size_t count_ = 0;
};

// The hash, with one more number mixed in.
inline std::uint64_t mixed(std::uint64_t hash, std::uint64_t n) {
  hash = (hash ^ n) * 0x9E37'79B9'7F4A'7C15;
  return hash ^ hash >> 29;
}

}  // namespace weir::core::grammar
