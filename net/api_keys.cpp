#include "net/api_keys.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <cstring>
#include <unordered_map>

namespace weir::net {
namespace {

using digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

digest digest_of(std::string_view key) {
  digest d;
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), d.data());
  return d;
}

std::uint64_t identity(const digest& d) {
  std::uint64_t id = 0;
  std::memcpy(&id, d.data(), sizeof id);
  return id == 0 ? 1 : id;
}

std::string_view without_blanks(std::string_view line) {
  constexpr std::string_view blanks = " \t\r\v\f";
  const auto begin = line.find_first_not_of(blanks);
  return begin == line.npos ? std::string_view()
                            : line.substr(begin, line.find_last_not_of(blanks) - begin + 1);
}

}  // namespace

core::result<std::vector<std::string>> parse_api_keys(std::string_view text, std::string_view file) {
  std::vector<std::string> keys;
  std::unordered_map<std::string_view, std::size_t> lines;  // where each key stands
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    const auto key = without_blanks(text.substr(0, end));
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
    if (key.empty() || key.front() == '#') continue;
    const auto [first, fresh] = lines.emplace(key, number);
    if (!fresh)
      return core::bad_param("api-key-file", "--api-key-file {}: lines {} and {} are the same key", file,
                             first->second, number);
    keys.emplace_back(key);
  }
  if (keys.empty()) return core::bad_param("api-key-file", "--api-key-file {}: there is no key in it", file);
  return keys;
}

key_ring::key_ring(std::span<const std::string> keys) {
  for (const auto& key : keys) known_.push_back(digest_of(key));
}

std::uint64_t key_ring::identity_of(std::string_view key) const {
  const digest asked = digest_of(key);
  bool found = false;
  for (const digest& d : known_) found |= CRYPTO_memcmp(d.data(), asked.data(), d.size()) == 0;
  return found && !key.empty() ? identity(asked) : 0;
}

std::vector<std::uint64_t> key_ring::identities() const {
  std::vector<std::uint64_t> all;
  for (const digest& d : known_) all.push_back(identity(d));
  return all;
}

}  // namespace weir::net
