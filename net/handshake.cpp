#include "net/handshake.h"

#include <algorithm>
#include <cctype>

namespace weir::net {
namespace {

bool same_letters(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

// "[::1]:8080" and "localhost:8080" without their port, the brackets kept.
std::string_view without_port(std::string_view host) {
  auto colon = host.rfind(':');
  if (colon == host.npos || host.find(']', colon) != host.npos) return host;
  if (host.front() != '[' && host.find(':') != colon) return host;  // an IPv6 address without brackets
  return host.substr(0, colon);
}

std::string_view without_brackets(std::string_view host) {
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') return host.substr(1, host.size() - 2);
  return host;
}

bool is_loopback_v4(std::string_view host) {
  return host.starts_with("127.") && host.find_first_not_of("0123456789.") == host.npos;
}

int base64url_digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '-') return 62;
  if (c == '_') return 63;
  return -1;
}

}  // namespace

bool host_allowed(std::string_view host, std::string_view listen_host, std::span<const std::string> origins) {
  if (host.empty()) return false;
  for (std::string_view origin : origins) {
    const auto scheme_end = origin.find("://");
    if (scheme_end != origin.npos && same_letters(origin.substr(scheme_end + 3), host)) return true;
  }
  std::string_view name = without_brackets(without_port(host));
  return same_letters(name, "localhost") || is_loopback_v4(name) || name == "::1" ||
         same_letters(name, without_brackets(listen_host));
}

bool origin_allowed(std::string_view origin, std::string_view host, std::span<const std::string> allowed) {
  if (std::find(allowed.begin(), allowed.end(), origin) != allowed.end()) return true;
  auto scheme_end = origin.find("://");
  if (scheme_end == origin.npos) return false;  // "null" and the like
  std::string_view scheme = origin.substr(0, scheme_end);
  if (scheme != "http" && scheme != "https") return false;
  std::string_view origin_host = origin.substr(scheme_end + 3);
  if (host.empty() || origin_host.empty()) return false;
  if (same_letters(origin_host, host)) return true;
  // A browser leaves the scheme's own port out of both; a proxy may have put it into one.
  std::string_view port = scheme == "http" ? ":80" : ":443";
  std::string with_port(origin_host);
  with_port += port;
  return same_letters(with_port, host);
}

offered_protocols parse_protocols(std::string_view header) {
  offered_protocols out;
  while (!header.empty()) {
    auto comma = header.find(',');
    std::string_view item = trim(header.substr(0, comma));
    header = comma == header.npos ? std::string_view() : header.substr(comma + 1);
    if (item == subprotocol) out.weir_v1 = true;
    if (item.starts_with("bearer.")) out.bearer = decode_base64url(item.substr(7)).value_or("");
  }
  return out;
}

std::optional<std::string_view> bearer_of(std::string_view authorization) {
  authorization = trim(authorization);
  auto space = authorization.find(' ');
  if (space == authorization.npos || !same_letters(authorization.substr(0, space), "bearer"))
    return std::nullopt;
  return trim(authorization.substr(space + 1));
}

std::optional<std::string> decode_base64url(std::string_view text) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  std::string out;
  unsigned bits = 0, held = 0;
  for (char c : text) {
    int digit = base64url_digit(c);
    if (digit < 0) return std::nullopt;
    bits = bits << 6 | static_cast<unsigned>(digit);
    held += 6;
    if (held >= 8) {
      held -= 8;
      out += static_cast<char>(bits >> held & 0xff);
    }
  }
  return out;
}

std::uint64_t number_of_key(std::string_view key, std::span<const std::string> keys) {
  std::uint64_t number = 0;
  for (std::size_t n = 0; n < keys.size(); ++n) {
    const std::string& k = keys[n];
    unsigned difference = key.size() == k.size() ? 0 : 1;
    for (std::size_t i = 0; i < k.size(); ++i) {
      difference |=
          static_cast<unsigned char>(k[i]) ^ static_cast<unsigned char>(i < key.size() ? key[i] : 0);
    }
    const bool is_it = difference == 0 && !key.empty();
    number |= is_it ? n + 1 : 0;
  }
  return number;
}

}  // namespace weir::net
