#include "core/text/tokenizer/charsmap.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/text/json_field.h"
#include "core/text/tokenizer/unicode.h"

namespace weir::core {
namespace {

// The parts of a unit, as Darts-clone packs them. A unit leads to a block of units: the child for byte `b` is
// the block's place XOR b, and unit 0 of the block is the leaf, if there is one.
bool has_leaf(std::uint32_t unit) noexcept { return (unit >> 8 & 1) != 0; }
std::uint32_t value_of(std::uint32_t leaf) noexcept { return leaf & 0x7FFF'FFFF; }
std::uint32_t label_of(std::uint32_t unit) noexcept { return unit & 0x8000'00FF; }
std::uint32_t offset_of(std::uint32_t unit) noexcept { return unit >> 10 << ((unit & 1u << 9) >> 6); }

std::uint32_t little_endian(const char* bytes) noexcept {
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

constexpr std::size_t space_bytes = std::string_view("\u2581").size();

}  // namespace

// Goes through the array level by level, each block once, so that a damaged array with cycles ends too. The
// level at which a leaf is first met is the length of its shortest string, which grows the most.
class charsmap::checker {
 public:
  checker(charsmap& map, const std::string& path) : map_(map), path_(path), seen_(map.units_.size()) {}

  void run() {
    std::vector<std::uint32_t> level, next;
    enter(map_.units_[0], 0, 0, level);
    for (std::size_t depth = 1; !level.empty(); ++depth, level.swap(next)) {
      next.clear();
      for (const std::uint32_t block : level) {
        for (std::uint32_t byte = 1; byte < 256; ++byte) {
          const std::uint32_t child = block ^ byte;
          if (child >= map_.units_.size() || label_of(map_.units_[child]) != byte) continue;
          enter(map_.units_[child], child, depth, next);
        }
      }
    }
  }

 private:
  void enter(std::uint32_t unit, std::uint32_t at, std::size_t depth, std::vector<std::uint32_t>& next) {
    const std::uint32_t block = at ^ offset_of(unit);
    if (block >= map_.units_.size()) {
      if (has_leaf(unit)) bad_field(path_, "its array leads outside");
      return;
    }
    if (has_leaf(unit) && depth > 0) check_leaf(map_.units_[block], depth);
    if (seen_[block]) return;
    seen_[block] = true;
    next.push_back(block);
  }

  void check_leaf(std::uint32_t leaf, std::size_t depth) {
    if (value_of(leaf) >= map_.replacements_.size()) bad_field(path_, "a replacement is outside");
    const std::string_view by = map_.replacement(leaf);
    if (by.size() > most_replacement_bytes)
      bad_field(path_, fmt::format("a replacement has more than {} bytes", most_replacement_bytes));
    if (!is_valid_utf8(by)) bad_field(path_, "a replacement is not UTF-8");
    const auto spaces = static_cast<double>(std::ranges::count(by, ' '));
    const auto size = static_cast<double>(by.size()), from = static_cast<double>(depth);
    map_.growth_ = std::max(map_.growth_, size / from);
    map_.growth_with_wide_spaces_ =
        std::max(map_.growth_with_wide_spaces_, (size + spaces * (space_bytes - 1)) / from);
  }

  charsmap& map_;
  const std::string& path_;
  std::vector<bool> seen_;  // [block]
};

charsmap::charsmap(std::string_view table, const std::string& path) {
  if (table.size() > most_bytes)
    bad_field(path, fmt::format("has {} bytes, {} are the most", table.size(), most_bytes));
  const std::size_t size = table.size() < 4 ? 0 : little_endian(table.data());
  if (size == 0 || size % 4 != 0 || size >= table.size() - 4)
    bad_field(path, "its first four bytes are not the size of an array that follows");
  for (std::size_t i = 0; i < size; i += 4) units_.push_back(little_endian(table.data() + 4 + i));
  replacements_ = table.substr(4 + size);
  checker(*this, path).run();
}

std::string_view charsmap::replacement(std::uint32_t leaf) const noexcept {
  const std::string_view all = std::string_view(replacements_).substr(value_of(leaf));
  const std::string_view near = all.substr(0, most_replacement_bytes + 1);
  return near.substr(0, near.find('\0'));
}

void charsmap::walk(std::string_view text, const auto& found) const noexcept {
  std::uint32_t at = offset_of(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    at ^= byte;
    if (byte == 0 || at >= units_.size() || label_of(units_[at]) != byte) return;
    const std::uint32_t unit = units_[at];
    at ^= offset_of(unit);
    if (at >= units_.size()) return;
    if (has_leaf(unit) && !found(i + 1, replacement(units_[at]))) return;
  }
}

charsmap::match charsmap::longest(std::string_view text) const noexcept {
  match best;
  walk(text, [&](std::size_t size, std::string_view by) {
    best = {size, by};
    return true;
  });
  return best;
}

charsmap::match charsmap::shortest(std::string_view text) const noexcept {
  match best;
  walk(text, [&](std::size_t size, std::string_view by) {
    best = {size, by};
    return false;
  });
  return best;
}

}  // namespace weir::core
