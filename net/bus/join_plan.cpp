#include "net/bus/join_plan.h"

#include <algorithm>
#include <charconv>

#include "core/fleet/subjects.h"
#include "net/access/handshake.h"

namespace weir::net {
namespace {

constexpr std::size_t most_urls = 64, most_host_bytes = 253;

core::error wrong(std::string_view url, const char* why) {
  return core::bad_param("join", "--join: '{}' {}; a server is nats://HOST[:PORT] or tls://HOST[:PORT]", url,
                         why);
}

bool is_host(std::string_view host) {
  return !host.empty() && host.size() <= most_host_bytes && std::ranges::all_of(host, [](unsigned char c) {
    return c > ' ' && c < 0x7f && c != '/' && c != '?' && c != '#' && c != '[' && c != ']';
  });
}

core::result<join_url> parse_url(std::string_view text) {
  join_url url;
  std::string_view rest = text;
  // The text may hold a password: no message repeats it.
  if (rest.find('@') != rest.npos)
    return core::bad_param("join", "--join: a URL has no user and no password; --join-nkey names a key");
  if (rest.starts_with("tls://"))
    url.tls = true, rest.remove_prefix(6);
  else if (rest.starts_with("nats://"))
    rest.remove_prefix(7);
  else
    return wrong(text, "does not begin with nats:// or tls://");
  const bool six = rest.starts_with('[');
  const std::size_t end = six ? rest.find(']') : rest.find(':');
  if (six && end == rest.npos) return wrong(text, "has no closing bracket");
  url.host = rest.substr(six ? 1 : 0, six ? end - 1 : end);
  if (six) rest.remove_prefix(end + 1);
  if (!six) rest.remove_prefix(std::min(end, rest.size()));
  if (!is_host(url.host) || (six && url.host.find(':') == url.host.npos)) return wrong(text, "has no host");
  if (rest.empty()) return url;
  if (rest.front() != ':') return wrong(text, "has more than a host and a port");
  const std::string_view port = rest.substr(1);
  const auto [stop, ec] = std::from_chars(port.data(), port.data() + port.size(), url.port);
  if (ec != std::errc() || stop != port.data() + port.size() || url.port == 0)
    return wrong(text, "has no port from 1 to 65535 behind its colon");
  return url;
}

}  // namespace

std::string join_url::text() const {
  const bool six = host.find(':') != host.npos;
  return fmt::format("{}://{}{}{}:{}", tls ? "tls" : "nats", six ? "[" : "", host, six ? "]" : "", port);
}

bool join_url::is_loopback() const { return is_local_name(host); }

core::result<std::vector<join_url>> parse_join_urls(std::string_view text) {
  std::vector<join_url> out;
  for (;;) {
    const std::size_t comma = text.find(',');
    auto url = parse_url(text.substr(0, comma));
    if (!url) return url.error();
    if (out.size() == most_urls) return core::bad_param("join", "--join: more than {} servers", most_urls);
    out.push_back(std::move(*url));
    if (comma == text.npos) return out;
    text.remove_prefix(comma + 1);
  }
}

core::result<> check_cell(std::string_view name) {
  if (core::fleet::is_cell_name(name)) return {};
  return core::bad_param("cell", "--cell: a name has 1 to 32 letters, digits, - or _");
}

core::result<join_plan> join_plan_of(const core::join_settings& s) {
  auto urls = parse_join_urls(s.join);
  if (!urls) return urls.error();
  if (const auto ok = check_cell(s.cell); !ok) return ok.error();
  if (s.join_cert.empty() != s.join_key.empty())
    return core::bad_param(s.join_cert.empty() ? "join-cert" : "join-key",
                           "--join-cert and --join-key go together: a certificate and its private key");
  join_plan plan{std::move(*urls), false, s.join_ca, s.join_cert, s.join_key, s.join_nkey};
  const auto far = std::ranges::find_if_not(plan.urls, &join_url::is_loopback);
  plan.tls = far != plan.urls.end() || !s.join_ca.empty() || !s.join_cert.empty() ||
             std::ranges::any_of(plan.urls, &join_url::tls);
  if (plan.tls && s.join_ca.empty())
    return core::bad_param("join-ca", "--join-ca is missing: {} is {}, and its certificate has to be checked",
                           far != plan.urls.end() ? far->text() : plan.urls.front().text(),
                           far != plan.urls.end() ? "another machine" : "reached with TLS");
  if (far != plan.urls.end() && s.join_nkey.empty())
    return core::bad_param(
        "join-nkey", "--join-nkey is missing: {} is another machine, and has to know who asks", far->text());
  return plan;
}

}  // namespace weir::net
