// charsmap.h — SentencePiece's table of replacements, `precompiled_charsmap`: a double array that finds the
// strings to replace, and behind it the replacements.
//
// Thread safety: immutable once built; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::core {

class charsmap {
 public:
  static constexpr std::size_t most_bytes = std::size_t{4} << 20;
  static constexpr std::size_t most_replacement_bytes = 256;

  // `path`: the field, for errors. Throws refusal: every string that can be found has a replacement that is
  // valid UTF-8.
  charsmap(std::string_view table, const std::string& path);

  struct match {
    std::size_t size = 0;  // bytes of the string to replace; 0: none
    std::string_view by;
  };
  // The longest string, or the shortest, that `text` starts with.
  match longest(std::string_view text) const noexcept;
  match shortest(std::string_view text) const noexcept;

  // How many times as long a replacement may be as what it replaces. `space_size`: the bytes in which a space
  // of the replacement is counted.
  double growth(std::size_t space_size) const noexcept {
    return space_size > 1 ? growth_with_wide_spaces_ : growth_;
  }

 private:
  class checker;
  // Calls found(length, replacement) for each string that `text` starts with; it returns whether to go on.
  void walk(std::string_view text, const auto& found) const noexcept;
  std::string_view replacement(std::uint32_t leaf) const noexcept;

  std::vector<std::uint32_t> units_;
  std::string replacements_;  // each ends with a NUL, or with the text
  double growth_ = 1, growth_with_wide_spaces_ = 1;
};

}  // namespace weir::core
