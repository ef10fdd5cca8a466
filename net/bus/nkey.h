// nkey.h — the key by which a process proves to a NATS server who it is: an Ed25519 key pair, as NATS writes
// such keys (https://docs.nats.io/running-a-nats-service/configuration/securing_nats/auth_intro/nkey_auth).
//
// A seed, SU and 56 characters of base32 more, is the secret half. Servers have the public half, U and 55
// characters.
//
// Thread safety: plain data and pure functions; any thread. read() reads a file.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.h"

namespace weir::net {

class nkey {
 public:
  using seed_bytes = std::array<unsigned char, 32>;
  using signature = std::array<unsigned char, 64>;

  // The one seed in a text, which may have other lines: `nsc` and `nk` write decorations around it. Error:
  // invalid_param; no message repeats the text.
  static core::result<nkey> parse(std::string_view text);
  // The same of a file. The error names the option.
  static core::result<nkey> read(const char* option, const std::string& file);
  // A key of these bytes, which are drawn from a source that nobody can guess.
  explicit nkey(const seed_bytes& seed) : seed_(seed) {}
  nkey(const nkey&) = default;
  nkey& operator=(const nkey&) = default;
  ~nkey();  // the seed leaves no trace in memory

  core::result<std::string> public_text() const;
  std::string seed_text() const;
  core::result<signature> sign(std::string_view bytes) const;

 private:
  seed_bytes seed_;
};

}  // namespace weir::net
