#include "net/access/bearer.h"

#include <openssl/rand.h>

#include <map>
#include <stdexcept>

#include "net/access/handshake.h"

namespace weir::net {
namespace {

std::string random_secret(int bytes) {
  std::string out(static_cast<std::size_t>(bytes), '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(out.data()), bytes) != 1)
    throw std::runtime_error("the system has no random bytes");
  return out;
}

}  // namespace

std::shared_ptr<known_key> known_bearers::table::find(const key_hash& h) const {
  std::shared_ptr<known_key> found;
  for (const auto& key : keys)  // all of them, so that the time does not tell which one it is
    if (same_key(key->hash, h)) found = key;
  return found;
}

known_bearers::known_bearers(std::span<const api_key> keys, std::string token_secret)
    : everybody_(keys.empty()), secret_(token_secret.empty() ? random_secret(32) : std::move(token_secret)) {
  if (!everybody_) replace(keys, {});
}

std::shared_ptr<const known_bearers::table> known_bearers::look() const {
  const std::lock_guard hold(lock_);
  return table_;
}

known_bearers::difference known_bearers::replace(std::span<const api_key> keys, core::time_point now) {
  std::map<key_hash, std::shared_ptr<known_key>> left;  // current keys that no line has named so far
  const auto before = look();
  for (const auto& key : before->keys) left.emplace(key->hash, key);
  const auto next = std::make_shared<table>();
  difference d;
  for (const auto& k : keys) {
    const auto was = left.extract(k.hash);
    const auto key = was ? was.mapped() : std::make_shared<known_key>(k.hash);
    if (!was) {
      ++d.added;
    } else if (*key->rights() != k.rights) {
      ++d.changed;
    }
    key->set(k.rights, counts_.of(k.rights.name), now);
    next->keys.push_back(key);
    next->of_alias.emplace(alias_of_key(key->identity, secret_), key);
  }
  {
    const std::lock_guard hold(lock_);
    table_ = next;
  }
  for (const auto& [hash, key] : left) key->remove();
  d.removed = left.size();
  return d;
}

boost::system::result<bearer, token_fault> known_bearers::judge(std::string_view text,
                                                                std::int64_t now_ms) const {
  if (everybody_) return bearer{};
  const auto known = look();
  if (const auto key = known->find(hash_of_key(text)); key && !text.empty())
    return bearer{{key->identity, 0}, std::nullopt, key};
  auto claims = open_token(text, secret_, now_ms);
  if (!claims) return claims.error();
  const auto at = known->of_alias.find(claims->key_alias);
  if (at == known->of_alias.end()) return token_fault::forged;  // its key is no longer in the file
  const auto& key = at->second;
  return bearer{{key->identity, user_of_sub(key->identity, claims->sub, secret_)}, std::move(*claims), key};
}

actors::job_accounts known_bearers::accounts_of(std::uint64_t key) const {
  const auto known = look();
  const auto at = std::ranges::find_if(known->keys, [&](const auto& k) { return k->identity == key; });
  return at == known->keys.end() ? actors::job_accounts() : (*at)->accounts();
}

std::string known_bearers::issue(std::uint64_t key, token_claims claims) const {
  claims.key_alias = alias_of_key(key, secret_);
  if (claims.sub.empty()) claims.sub = encode_base64url(random_secret(16));
  return seal_token(claims, secret_);
}

}  // namespace weir::net
