#include "net/access/browser_token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <array>
#include <optional>

#include "net/access/handshake.h"
#include "net/protocol/json.h"

namespace weir::net {
namespace {

constexpr std::string_view prefix = "weir_token_";
constexpr std::size_t mac_bytes = SHA256_DIGEST_LENGTH;
constexpr std::size_t longest_text = 1200;
constexpr std::size_t json_depth = 16;
constexpr std::int64_t longest_ttl_s = 86'400, most_max_jobs = 1 << 16;

// What the secret signs. Each use begins with another word, so that no MAC of one use is one of another.
constexpr std::string_view use_token = "weir token 1:", use_key = "weir key 1:", use_sub = "weir sub 1:";

using mac = std::array<unsigned char, mac_bytes>;

mac mac_of(std::string_view use, std::string_view bytes, std::string_view secret) {
  std::string all(use);
  all += bytes;
  mac out{};
  unsigned length = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(all.data()), all.size(), out.data(), &length);
  return out;
}

// The highest byte first.
void append_int(std::string& out, std::uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> 8 * i & 0xff);
}

void append_sized(std::string& out, std::string_view text) {
  append_int(out, text.size(), 2);
  out += text;
}

std::uint64_t first_8_bytes(const mac& m) {
  std::uint64_t out = 0;
  for (int i = 0; i < 8; ++i) out = out << 8 | m[static_cast<std::size_t>(i)];
  return out;
}

std::string bytes_of(const token_claims& c) {
  std::string out;
  append_int(out, c.key_alias, 8);
  append_int(out, static_cast<std::uint64_t>(c.expires_ms), 8);
  append_int(out, c.max_jobs, 4);
  for (const std::string* text : {&c.model, &c.origin, &c.sub}) append_sized(out, *text);
  return out;
}

// Takes claims from the front of bytes. Once the bytes have ended too soon, all that follows is 0 or empty.
struct claims_reader {
  std::string_view left;
  bool complete = true;

  std::string_view take(std::size_t bytes) {
    complete = complete && bytes <= left.size();
    if (!complete) return {};
    const auto out = left.substr(0, bytes);
    left.remove_prefix(bytes);
    return out;
  }
  std::uint64_t take_int(std::size_t bytes) {
    std::uint64_t out = 0;
    for (const char c : take(bytes)) out = out << 8 | static_cast<unsigned char>(c);
    return out;
  }
  std::string take_text() { return std::string(take(take_int(2))); }
};

std::optional<token_claims> claims_of(std::string_view bytes) {
  claims_reader in{bytes};
  token_claims c;
  c.key_alias = in.take_int(8);
  c.expires_ms = static_cast<std::int64_t>(in.take_int(8));
  c.max_jobs = static_cast<std::uint32_t>(in.take_int(4));
  for (std::string* text : {&c.model, &c.origin, &c.sub}) *text = in.take_text();
  if (!in.complete || !in.left.empty()) return std::nullopt;
  return c;
}

// ---- the request for a token

core::result<void> read_count(std::string_view name, const json::value& v, std::int64_t most,
                              std::int64_t& target) {
  const auto value = read_integer(name, v);
  if (!value) return value.error();
  if (*value < 1 || *value > most)
    return core::bad_param(std::string(name), "{} must be in [1, {}], not {}", name, most, *value);
  target = *value;
  return {};
}

core::result<void> read_claim(std::string_view name, const json::value& v, std::string& target) {
  auto value = read_string(name, v);
  if (!value) return value.error();
  if (value->empty() || value->size() > longest_claim)
    return core::bad_param(std::string(name), "{} must have 1 to {} bytes", name, longest_claim);
  target = std::move(*value);
  return {};
}

core::result<void> read_origin(const json::value& v, std::string& target) {
  if (auto read = read_claim("origin", v, target); !read) return read.error();
  const auto scheme_end = target.find("://");
  const bool is_origin = scheme_end != target.npos && scheme_end > 0 && target.size() > scheme_end + 3 &&
                         target.find_first_of("/?#", scheme_end + 3) == target.npos;
  if (is_origin) return {};
  return core::bad_param("origin", "origin must be SCHEME://HOST[:PORT], as browsers send it");
}

core::result<void> read_token_field(std::string_view name, const json::value& v, token_request& r) {
  const bool known =
      name == "ttl_s" || name == "max_jobs" || name == "model" || name == "origin" || name == "sub";
  if (!known) return core::bad_param(shortened(name), "unknown field '{}'", shortened(name));
  if (v.is_null()) return {};  // the same as leaving the field out
  if (name == "model") return read_claim(name, v, r.claims.model);
  if (name == "origin") return read_origin(v, r.claims.origin);
  if (name == "sub") return read_claim(name, v, r.claims.sub);
  std::int64_t count = 0;
  const bool ttl = name == "ttl_s";
  if (auto read = read_count(name, v, ttl ? longest_ttl_s : most_max_jobs, count); !read) return read.error();
  if (ttl) {
    r.ttl = std::chrono::seconds(count);
  } else {
    r.claims.max_jobs = static_cast<std::uint32_t>(count);
  }
  return {};
}

}  // namespace

std::string seal_token(const token_claims& claims, std::string_view secret) {
  std::string bytes = bytes_of(claims);
  const mac signature = mac_of(use_token, bytes, secret);
  bytes.append(signature.begin(), signature.end());
  return std::string(prefix) + encode_base64url(bytes);
}

boost::system::result<token_claims, token_fault> open_token(std::string_view text, std::string_view secret,
                                                            std::int64_t now_ms) {
  if (text.size() > longest_text || !text.starts_with(prefix)) return token_fault::malformed;
  text.remove_prefix(prefix.size());
  const auto bytes = decode_base64url(text);
  // Padding and the unused bits of the last digit could make other texts of the same bytes.
  if (!bytes || bytes->size() < mac_bytes || encode_base64url(*bytes) != text) return token_fault::malformed;
  const std::string_view all = *bytes;
  const auto claimed = all.substr(0, all.size() - mac_bytes), signature = all.substr(claimed.size());
  const mac right = mac_of(use_token, claimed, secret);
  if (CRYPTO_memcmp(right.data(), signature.data(), mac_bytes) != 0) return token_fault::forged;
  auto claims = claims_of(claimed);
  if (!claims) return token_fault::malformed;
  if (claims->expires_ms <= now_ms) return token_fault::expired;
  return std::move(*claims);
}

std::uint64_t alias_of_key(std::uint64_t key, std::string_view secret) {
  std::string bytes;
  append_int(bytes, key, 8);
  return first_8_bytes(mac_of(use_key, bytes, secret));
}

std::uint64_t user_of_sub(std::uint64_t key, std::string_view sub, std::string_view secret) {
  std::string bytes;
  append_int(bytes, key, 8);
  bytes += sub;
  const auto id = first_8_bytes(mac_of(use_sub, bytes, secret));
  return id == 0 ? 1 : id;
}

core::result<token_request> parse_token_request(std::string_view body, std::size_t most_values) {
  auto parsed = read_json(body, {json_depth, most_values});
  if (!parsed) return parsed.error();
  if (!parsed->is_object())
    return core::make_error(core::errc::invalid_param, "the body must be an object, not {}",
                            kind_of(*parsed));
  token_request out;
  for (const auto& [name, value] : parsed->get_object())
    if (auto read = read_token_field(std::string_view(name), value, out); !read) return read.error();
  return out;
}

}  // namespace weir::net
