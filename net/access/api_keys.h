// api_keys.h — API keys as the file of keys has them: each key and what its holder may do.
//
// A line of the file is KEY [name=N priority=P jobs=N tokens_per_min=N models=A,B admin], words with blanks
// between them, the fields in any order. Empty lines and lines that begin with # are ignored.
//
// A key is known by its SHA-256. The identity of a key is the first eight bytes of that hash. It does not
// depend on the other keys or on their order, and does not reveal the key. No key has the identity 0.
//
// Thread safety: plain data and pure functions; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace weir::net {

// What the holder of a key may do.
struct key_rights {
  std::string name;                      // under which its use is counted; empty: the key has none
  std::optional<int> priority;           // of its jobs; a request may only lower it. Unset: requests choose
  std::uint32_t jobs = 0;                // most unfinished jobs; 0: no limit
  std::uint64_t tokens_per_min = 0;      // prompt and answer together; 0: no limit
  std::vector<std::string> models = {};  // that it may use, in the file's order; empty: all
  bool admin = false;                    // sees and cancels the jobs of all keys
  bool operator==(const key_rights&) const = default;
};

using key_hash = std::array<unsigned char, 32>;  // SHA-256 of a key
key_hash hash_of_key(std::string_view key);
std::uint64_t identity_of(const key_hash& h);
// The time that this takes does not depend on where the two differ.
bool same_key(const key_hash& a, const key_hash& b);

struct api_key {
  key_hash hash{};
  key_rights rights;

  // A key without limits, which is no admin's. An empty text is no key: nobody has it. Not explicit, so that
  // a list of texts is a list of keys.
  api_key(std::string_view key);
  api_key(const char* key) : api_key(std::string_view(key)) {}
  api_key(std::string_view key, key_rights r) : api_key(key) { rights = std::move(r); }
};

inline constexpr std::size_t most_keys = 4096;  // of a file: every stranger's key is compared with all

// The keys of a file. Error: a line has a fault, the file has a key twice, no key or too many. The message
// names `file`, the line and the field, and shows nothing that may be a part of a key.
core::result<std::vector<api_key>> parse_api_keys(std::string_view text, std::string_view file);

}  // namespace weir::net
