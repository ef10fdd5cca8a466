// id_table.h — finds the ids of things by a hash of what they are; the things lie elsewhere.
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

  // The id that is stored under this hash and for which `is_it(id)` is true; `none` where there is none.
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
    std::uint32_t low = 0, hash = 0;  // of the hash, its lower and its upper half
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

  std::vector<place> places_;  // as many as a power of two
  std::size_t count_ = 0;
};

// One more number in a hash.
inline std::uint64_t mixed(std::uint64_t hash, std::uint64_t n) {
  hash = (hash ^ n) * 0x9E37'79B9'7F4A'7C15;
  return hash ^ hash >> 29;
}

}  // namespace weir::core::grammar
