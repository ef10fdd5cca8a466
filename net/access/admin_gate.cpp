#include "net/access/admin_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <string_view>

#include "net/access/handshake.h"
#include "net/protocol/json.h"

namespace weir::net {
namespace {

namespace beast = boost::beast;
namespace http = beast::http;

using header_lines = http::request_header<>;

constexpr std::string_view instead = "; with --api-key-file an admin's key may, from anywhere";

std::string only(std::string_view who) {
  return fmt::format("without keys only {} may do this{}", who, instead);
}

bool is_loopback(const boost::asio::ip::address& a) {
  if (a.is_v6() && a.to_v6().is_v4_mapped())
    return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, a.to_v6()).is_loopback();
  return a.is_loopback();
}

// localhost or a loopback address, with or without a port. Only an IPv6 address has brackets.
bool is_local_host(std::string_view host) {
  if (host.starts_with('[') && host.substr(0, host.find(']')).find(':') == host.npos) return false;
  return host.find('%') == host.npos && host_allowed(host, {}, {});
}

// The first header that a proxy adds to what it passes on; empty: there is none.
std::string_view proxy_header(const header_lines& h) {
  constexpr std::string_view names[] = {"via", "forwarded", "x-real-ip"};
  constexpr std::string_view beginning = "x-forwarded-";
  for (const auto& field : h) {
    const std::string_view name = field.name_string();
    const bool named = std::ranges::any_of(names, [&](auto n) { return beast::iequals(name, n); });
    if (named || beast::iequals(name.substr(0, beginning.size()), beginning)) return name;
  }
  return {};
}

// The host of a target in absolute form; nullopt: the target is a path.
std::optional<std::string_view> host_in_target(std::string_view target) {
  const auto scheme_end = target.find("://");
  if (target.starts_with('/') || scheme_end == target.npos) return std::nullopt;
  target.remove_prefix(scheme_end + 3);
  return target.substr(0, target.find_first_of("/?#"));
}

// A page of this server: it has the host of the request, and the server speaks no https.
bool is_own_page(std::string_view origin, std::string_view host) {
  return origin.starts_with("http://") && origin_allowed(origin, host, {});
}

std::optional<std::string> judge_origin(const header_lines& h, std::string_view host) {
  const auto origins = h.count(http::field::origin);
  if (origins == 0 || (origins == 1 && is_own_page(h[http::field::origin], host))) return std::nullopt;
  return only(fmt::format("programs and pages of this server, not a page of Origin '{}',",
                          legible(h[http::field::origin])));
}

}  // namespace

std::optional<std::string> admin_refusal(const header_lines& h, const admin_asker& from) {
  if (!from.no_keys) {
    if (from.admin_key) return std::nullopt;
    return "this needs the key of an admin: a line of --api-key-file with the word admin";
  }
  if (!is_loopback(from.peer)) return only("programs of the server's machine, over a loopback address,");
  if (const auto name = proxy_header(h); !name.empty())
    return only(fmt::format("direct requests, not one with the header '{}' of a proxy,", legible(name)));
  if (h.count(http::field::host) != 1) return only("requests with one Host header");
  const std::string_view host = h[http::field::host];
  const std::string_view hosts[] = {host_in_target(h.target()).value_or(host), host};
  for (const auto named : hosts)
    if (!is_local_host(named))
      return only(
          fmt::format("requests to localhost or a loopback address, not to the host '{}',", legible(named)));
  return judge_origin(h, hosts[0]);
}

}  // namespace weir::net
