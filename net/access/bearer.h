// bearer.h — who a client is, by the API key or the browser token that it sends, and what it may do.
//
// Thread safety: any thread; replace() one thread at a time. The lock is held for one copy of a pointer.
#pragma once

#include <boost/system/result.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "actors/request.h"
#include "net/access/api_keys.h"
#include "net/access/browser_token.h"
#include "net/access/key_counts.h"
#include "net/access/known_key.h"

namespace weir::net {

inline std::int64_t unix_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

struct bearer {
  actors::principal who;              // zeros: the server has no keys
  std::optional<token_claims> token;  // nullopt: the client has the API key itself, or needs none
  std::shared_ptr<known_key> key;     // null: the server has no keys, or the client has not said its key

  // Whether the client's token was accepted and has expired since. `now_ms`: Unix time in ms.
  bool expired(std::int64_t now_ms) const { return token && token->expires_ms <= now_ms; }
  // `origin`: the Origin header; empty if there is none.
  bool allows_origin(std::string_view origin) const {
    return !token || token->origin.empty() || token->origin == origin;
  }
  bool allows_model(std::string_view name) const {
    return token_allows_model(name) && (!key || key->allows_model(name));
  }
  bool token_allows_model(std::string_view name) const {
    return !token || token->model.empty() || token->model == name;
  }
  // The key has left the file of keys: the client is nobody any more.
  bool removed() const noexcept { return key && key->removed(); }
  // The client sent the key of an admin itself. known_bearers::is_admin() also holds where no key is needed.
  bool has_admin_key() const { return key && !token && !key->removed() && key->rights()->admin; }
};

class known_bearers {
 public:
  // `token_secret`: signs tokens. Empty: a random secret, so that tokens end with this object.
  known_bearers(std::span<const api_key> keys, std::string token_secret);

  bool everybody() const noexcept { return everybody_; }  // no key is needed; constant
  // The bearer of a key or a token. Where no key is needed, every text gives the same bearer. `now_ms`: Unix
  // time in ms.
  boost::system::result<bearer, token_fault> judge(std::string_view text, std::int64_t now_ms) const;
  // The accounts of a known key; empty where there is none of this identity.
  actors::job_accounts accounts_of(std::uint64_t key) const;
  // The text of a token with these claims under `key`, the identity of a known key. An empty sub becomes a
  // random one.
  std::string issue(std::uint64_t key, token_claims claims) const;

  // Whether this client may see and cancel the jobs of others, and read /metrics: it has the key of an admin,
  // or no key is needed.
  bool is_admin(const bearer& from) const { return everybody_ || from.has_admin_key(); }
  // Whose jobs this client sees and cancels.
  std::optional<actors::principal> asker_of(const bearer& from) const {  // nullopt: everybody's
    return from.has_admin_key() ? std::nullopt : std::optional(from.who);
  }

  // How many keys a new file has changed. `changed`: keys with other rights than before.
  struct difference {
    std::size_t added = 0, removed = 0, changed = 0;
  };
  // From now on these keys are known. A key that was known before keeps what was counted for it.
  // REQUIRES: !everybody(), and there is a key.
  difference replace(std::span<const api_key> keys, core::time_point now);

  const key_counts& counts() const noexcept { return counts_; }

 private:
  struct table {
    std::vector<std::shared_ptr<known_key>> keys;
    std::unordered_map<std::uint64_t, std::shared_ptr<known_key>> of_alias;
    std::shared_ptr<known_key> find(const key_hash& h) const;  // null: not known
  };
  std::shared_ptr<const table> look() const;

  const bool everybody_;
  const std::string secret_;
  key_counts counts_;
  mutable std::mutex lock_;  // of table_
  std::shared_ptr<const table> table_ = std::make_shared<table>();
};

}  // namespace weir::net
