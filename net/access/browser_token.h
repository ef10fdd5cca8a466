// browser_token.h — the short-lived tokens of web pages: what a token says, its signed text, and the body of
// the request for one.
//
// A token says who may do what until when. Its text is the prefix, then base64url of the claims and of their
// HMAC-SHA-256. Everybody can read the claims of a token, but a token can be made only with the secret.
//
// Pure functions: any thread.
#pragma once

#include <boost/system/result.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.h"

namespace weir::net {

inline constexpr std::size_t longest_claim = 256;  // most bytes of a model, an origin or a sub

struct token_claims {
  std::uint64_t key_alias = 0;  // alias_of_key() of the API key that the token is under
  std::int64_t expires_ms = 0;  // Unix time in ms; from then on the token starts nothing
  std::uint32_t max_jobs = 0;   // most jobs at a time of the token's user; 0: the token sets no limit
  std::string model;            // the only model it may use; empty: any
  std::string origin;           // the only origin whose pages may use it; empty: any
  std::string sub;              // the user: tokens of one key with equal subs share their jobs
  bool operator==(const token_claims&) const = default;
};

enum class token_fault {
  malformed,  // no text of a token
  forged,     // signed with another secret, or changed since
  expired,
};

// The text of a token: at most 1,200 characters, each fit for an HTTP header. REQUIRES: each of model, origin
// and sub has at most longest_claim bytes.
std::string seal_token(const token_claims& claims, std::string_view secret);

// Inverse of seal_token(). `now_ms`: Unix time in ms. How long this takes does not reveal how much of a
// signature is right. Exactly one text is accepted for each token.
boost::system::result<token_claims, token_fault> open_token(std::string_view text, std::string_view secret,
                                                            std::int64_t now_ms);

// Stands for an API key in tokens. `key`: identity of the key (net/access/api_keys.h), which is a part of a
// hash: a weak key could be guessed from it. The alias reveals nothing without the secret.
std::uint64_t alias_of_key(std::uint64_t key, std::string_view secret);

// Identity of the user `sub` of a key; never 0.
std::uint64_t user_of_sub(std::uint64_t key, std::string_view sub, std::string_view secret);

struct token_request {
  std::chrono::seconds ttl{60};
  token_claims claims;  // without key_alias and expires_ms; an empty sub asks for a random one
};
// Parses the body of POST /v1/stream/tokens. `most_values`: most values and keys of its JSON. Error:
// invalid_param with the field's name, for an unknown field too.
core::result<token_request> parse_token_request(std::string_view body, std::size_t most_values = SIZE_MAX);

}  // namespace weir::net
