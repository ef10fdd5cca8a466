#include "net/access/handshake.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cctype>
#include <charconv>

#include "net/access/origin.h"
#include "net/protocol/json.h"

namespace weir::net {
namespace {

namespace asio = boost::asio;

bool same_letters(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

std::string_view trim(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\t')) s.remove_suffix(1);
  return s;
}

bool is_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), port);
  return failed == std::errc() && end == text.data() + text.size();
}

// The name or address of "name", "name:port", "[v6]" and "[v6]:port", without brackets; empty for anything
// else.
std::string_view name_of_host(std::string_view host) {
  const bool bracketed = host.starts_with('[');
  const auto end = bracketed ? host.find(']') : host.find(':');
  if (bracketed && end == host.npos) return {};
  const std::string_view port =
      end == host.npos ? std::string_view() : host.substr(end + (bracketed ? 1 : 0));
  if (!port.empty() && (port.front() != ':' || !is_port(port.substr(1)))) return {};
  return bracketed ? host.substr(1, end - 1) : host.substr(0, end);
}

std::optional<asio::ip::address> address_of(std::string_view text) {
  boost::system::error_code ec;
  const auto address = asio::ip::make_address(text, ec);
  if (ec) return std::nullopt;
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  return address;
}

bool same_host(std::string_view a, std::string_view b) {
  const auto left = address_of(a), right = address_of(b);
  return left && right ? *left == *right : !left && !right && same_letters(a, b);
}

// Whether it may stand in a URL as a host, with or without a port.
bool is_host_text(std::string_view host) {
  return !host.empty() && std::ranges::all_of(host, [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '.' || c == ':' || c == '[' || c == ']' || c == '_';
  });
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

bool is_local_name(std::string_view host) {
  const auto address = address_of(host);
  return address ? address->is_loopback() : same_letters(host, "localhost");
}

bool host_allowed(std::string_view host, std::string_view listen_host, std::span<const std::string> origins) {
  if (host.empty()) return false;
  for (std::string_view origin : origins) {
    const auto scheme_end = origin.find("://");
    if (scheme_end != origin.npos && same_letters(origin.substr(scheme_end + 3), host)) return true;
  }
  // An IPv6 address may have no brackets.
  const std::string_view name = address_of(host) ? host : name_of_host(host);
  return !name.empty() && (is_local_name(name) || same_host(name, listen_host));
}

std::string host_refusal(std::string_view host) {
  const std::string name = legible(host);
  const std::string_view known = is_host_text(host) ? std::string_view(name) : "NAME";
  return fmt::format(
      "a server on a loopback address is reached as localhost or by its address, not as '{}'; behind a "
      "proxy, "
      "--allow-origin https://{} (or http://) allows this name",
      name, known);
}

bool origin_allowed(std::string_view origin, std::string_view host, std::span<const std::string> allowed) {
  const std::string_view listed = origin == file_origin ? no_origin : origin;
  if (std::find(allowed.begin(), allowed.end(), listed) != allowed.end()) return true;
  auto scheme_end = origin.find("://");
  if (scheme_end == origin.npos) return false;  // "null", for example
  std::string_view scheme = origin.substr(0, scheme_end);
  if (scheme != "http" && scheme != "https") return false;
  std::string_view origin_host = origin.substr(scheme_end + 3);
  if (host.empty() || origin_host.empty()) return false;
  if (same_letters(origin_host, host)) return true;
  // Browsers omit the default port of the scheme in both headers, but a proxy may have added it to one.
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

std::string encode_base64url(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string out;
  unsigned bits = 0, held = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (held += 8; held >= 6; held -= 6) out += digits[bits >> (held - 6) & 63];
  }
  if (held > 0) out += digits[bits << (6 - held) & 63];
  return out;
}

bool is_websocket_key(std::string_view text) {
  constexpr std::size_t digits = 22, all = 24;
  const auto is_digit = [](char c) {
    return c == '+' || c == '/' || (c != '-' && c != '_' && base64url_digit(c) >= 0);
  };
  return text.size() == all && text.substr(digits) == "==" &&
         std::ranges::all_of(text.substr(0, digits), is_digit);
}

}  // namespace weir::net
