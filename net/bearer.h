// bearer.h — who a client is, by the API key or the browser token that it sends, and what a token lets it do.
//
// Thread safety: plain data and immutable objects; any thread.
#pragma once

#include <boost/system/result.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "actors/request.h"
#include "net/api_keys.h"
#include "net/browser_token.h"

namespace weir::net {

inline std::int64_t unix_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

struct bearer {
  actors::principal who;              // zeros: the server has no keys
  std::optional<token_claims> token;  // nullopt: the client has the API key itself, or needs none

  // Of a token that was accepted and has expired since. `now_ms`: Unix time in ms.
  bool expired(std::int64_t now_ms) const { return token && token->expires_ms <= now_ms; }
  // `origin`: the Origin header; empty if there is none.
  bool allows_origin(std::string_view origin) const {
    return !token || token->origin.empty() || token->origin == origin;
  }
  bool allows_model(std::string_view name) const {
    return !token || token->model.empty() || token->model == name;
  }
};

class known_bearers {
 public:
  // `token_secret`: signs tokens; empty: a random one, with which tokens end with this object.
  known_bearers(std::span<const std::string> keys, std::string token_secret);

  bool everybody() const noexcept { return keys_.empty(); }  // no key is needed
  // The bearer of a key or a token. Where no key is needed, every text is that of the same bearer. `now_ms`:
  // Unix time in ms.
  boost::system::result<bearer, token_fault> judge(std::string_view text, std::int64_t now_ms) const;
  // Whether it may read /metrics, which has the figures of all clients.
  bool is_admin(const bearer& from) const { return !from.token; }
  // The text of a token with these claims under `key`, the identity of a known key. An empty sub becomes a
  // random one.
  std::string issue(std::uint64_t key, token_claims claims) const;

 private:
  key_ring keys_;
  std::string secret_;
  std::unordered_map<std::uint64_t, std::uint64_t> key_of_alias_;
};

}  // namespace weir::net
