// api_keys.h — the bearer keys of clients: the file of keys, and which client a key belongs to.
//
// The identity of a key is the first eight bytes of its SHA-256. The identity does not depend on the other
// keys or on their order, and does not reveal the key. No key has the identity 0.
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

// The keys of a file: one key in each line, without the blanks around it. Empty lines and lines that begin
// with # are ignored. Error: the file has no key, or has a key twice (the message names both lines). `file`:
// name of the file, for the message.
core::result<std::vector<std::string>> parse_api_keys(std::string_view text, std::string_view file);

class key_ring {
 public:
  explicit key_ring(std::span<const std::string> keys);

  bool empty() const noexcept { return known_.empty(); }  // the server then asks nobody for a key
  // The identity of a known key; 0 for any other. The time that this takes does not reveal how much of the
  // key is right.
  std::uint64_t identity_of(std::string_view key) const;
  std::vector<std::uint64_t> identities() const;  // of all keys

 private:
  std::vector<std::array<unsigned char, 32>> known_;  // SHA-256 of each
};

}  // namespace weir::net
