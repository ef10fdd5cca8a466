#include "net/bus/nkey.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>
#include <vector>

namespace weir::net {
namespace {

constexpr unsigned char seed_prefix = 18 << 3, user_prefix = 20 << 3;
constexpr std::size_t seed_characters = 58, most_file_bytes = 4096;
constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

// CRC-16/XMODEM, which NATS puts behind the bytes of a key, low byte first.
std::uint16_t crc_of(const unsigned char* bytes, std::size_t n) {
  std::uint16_t crc = 0;
  for (std::size_t i = 0; i < n; ++i) {
    crc ^= static_cast<std::uint16_t>(bytes[i] << 8);
    for (int bit = 0; bit < 8; ++bit)
      crc = static_cast<std::uint16_t>(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
  }
  return crc;
}

std::string base32_of(const std::vector<unsigned char>& bytes) {
  std::string out;
  std::uint32_t held = 0;
  int bits = 0;
  for (const unsigned char b : bytes) {
    held = held << 8 | b;
    for (bits += 8; bits >= 5; bits -= 5) out += letters[held >> (bits - 5) & 31];
  }
  if (bits > 0) out += letters[held << (5 - bits) & 31];
  return out;
}

// A key's text: its prefix, its bytes, their CRC.
std::string key_text(std::vector<unsigned char> bytes) {
  const auto crc = crc_of(bytes.data(), bytes.size());
  bytes.push_back(static_cast<unsigned char>(crc & 255));
  bytes.push_back(static_cast<unsigned char>(crc >> 8));
  auto out = base32_of(bytes);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return out;
}

std::optional<nkey::seed_bytes> seed_of(std::string_view word) {
  if (word.size() != seed_characters || !word.starts_with("SU")) return std::nullopt;
  std::array<unsigned char, 36> bytes{};  // 2 of the prefixes, the seed, 2 of the CRC
  std::size_t n = 0;
  std::uint32_t held = 0;
  int bits = 0;
  for (const char c : word) {
    const std::size_t value = letters.find(c);
    if (value == letters.npos) return std::nullopt;
    held = held << 5 | static_cast<std::uint32_t>(value);
    bits += 5;
    if (bits >= 8) bytes[n++] = static_cast<unsigned char>(held >> (bits -= 8));
  }
  const bool is_user =
      (bytes[0] & 248) == seed_prefix && ((bytes[0] & 7) << 5 | bytes[1] >> 3) == user_prefix;
  const bool whole = crc_of(bytes.data(), 34) == (bytes[34] | bytes[35] << 8);
  std::optional<nkey::seed_bytes> out;
  if (is_user && whole) std::copy_n(bytes.begin() + 2, out.emplace().size(), out->begin());
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return out;
}

using pkey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using digest_context = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

pkey key_of(const nkey::seed_bytes& seed) {
  return {EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()), EVP_PKEY_free};
}

core::error no_ed25519() {
  return core::make_error(core::errc::internal, "this machine's OpenSSL does not make Ed25519 signatures");
}

}  // namespace

nkey::~nkey() { OPENSSL_cleanse(seed_.data(), seed_.size()); }

core::result<nkey> nkey::parse(std::string_view text) {
  std::optional<nkey> found;
  while (!text.empty()) {
    const std::size_t end = text.find_first_of(" \t\r\n");
    if (const auto seed = seed_of(text.substr(0, end))) {
      if (found) return core::bad_param({}, "more than one seed of a user's key");
      found.emplace(*seed);
    }
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  if (!found)
    return core::bad_param({}, "no seed of a user's key: SU and {} characters more", seed_characters - 2);
  return std::move(*found);
}

core::result<nkey> nkey::read(const char* option, const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text(most_file_bytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  auto key = !in.eof()      ? core::result<nkey>(core::bad_param({}, "cannot be read, or is too long"))
             : text.empty() ? core::result<nkey>(core::bad_param({}, "is empty"))
                            : parse(text);
  OPENSSL_cleanse(text.data(), text.size());
  if (!key) return core::bad_param(option, "--{} {}: {}", option, file, key.error().message);
  return key;
}

core::result<std::string> nkey::public_text() const {
  std::vector<unsigned char> bytes(33, user_prefix);
  std::size_t n = 32;
  const auto key = key_of(seed_);
  if (!key || EVP_PKEY_get_raw_public_key(key.get(), bytes.data() + 1, &n) != 1) return no_ed25519();
  return key_text(std::move(bytes));
}

std::string nkey::seed_text() const {
  std::vector<unsigned char> bytes{seed_prefix | user_prefix >> 5,
                                   static_cast<unsigned char>((user_prefix & 31) << 3)};
  bytes.insert(bytes.end(), seed_.begin(), seed_.end());
  return key_text(std::move(bytes));
}

core::result<nkey::signature> nkey::sign(std::string_view bytes) const {
  signature out;
  std::size_t n = out.size();
  const auto key = key_of(seed_);
  const digest_context context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (!key || !context || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key.get()) != 1 ||
      EVP_DigestSign(context.get(), out.data(), &n, reinterpret_cast<const unsigned char*>(bytes.data()),
                     bytes.size()) != 1)
    return no_ed25519();
  return out;
}

}  // namespace weir::net
