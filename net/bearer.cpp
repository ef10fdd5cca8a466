#include "net/bearer.h"

#include <openssl/rand.h>

#include <stdexcept>

#include "net/handshake.h"

namespace weir::net {
namespace {

std::string random_secret(int bytes) {
  std::string out(static_cast<std::size_t>(bytes), '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), bytes) != 1)
    throw std::runtime_error("the system has no random bytes");
  return out;
}

}  // namespace

known_bearers::known_bearers(std::span<const std::string> keys, std::string token_secret)
    : keys_(keys), secret_(token_secret.empty() ? random_secret(32) : std::move(token_secret)) {
  for (const auto key : keys_.identities()) key_of_alias_.emplace(alias_of_key(key, secret_), key);
}

boost::system::result<bearer, token_fault> known_bearers::judge(std::string_view text,
                                                                std::int64_t now_ms) const {
  if (everybody()) return bearer{};
  if (const auto key = keys_.identity_of(text)) return bearer{{key, 0}, std::nullopt};
  auto claims = open_token(text, secret_, now_ms);
  if (!claims) return claims.error();
  const auto key = key_of_alias_.find(claims->key_alias);
  if (key == key_of_alias_.end()) return token_fault::forged;  // its key is no longer in the file
  const auto user = user_of_sub(key->second, claims->sub, secret_);
  return bearer{{key->second, user}, std::move(*claims)};
}

std::string known_bearers::issue(std::uint64_t key, token_claims claims) const {
  claims.key_alias = alias_of_key(key, secret_);
  if (claims.sub.empty()) claims.sub = encode_base64url(random_secret(16));
  return seal_token(claims, secret_);
}

}  // namespace weir::net
