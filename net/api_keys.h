// api_keys.h — the keys that let clients in: their file, and who somebody is by the key that he brings.
//
// A key's identity is the first eight bytes of its SHA-256. It does not depend on the other keys or on their
// order, and tells nothing of the key; 0 is nobody's.
//
// Thread safety: immutable once made; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace weir::net {

// A file's keys, one a line, without the blanks around them; empty lines and lines that begin with # are
// none. Refuses a file without a key, and one that has a key twice, naming both lines. `file` is for the
// message.
core::result<std::vector<std::string>> parse_api_keys(std::string_view text, std::string_view file);

class key_ring {
 public:
  // Nobody is let in by an empty one.
  explicit key_ring(std::span<const std::string> keys);

  bool empty() const noexcept { return known_.empty(); }  // everybody may come in
  // The identity of a key that is known, or 0; in a time that does not tell how much of it was right.
  std::uint64_t identity_of(std::string_view key) const;

 private:
  std::vector<std::array<unsigned char, 32>> known_;  // SHA-256 of each
};

}  // namespace weir::net
