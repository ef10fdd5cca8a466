#include "net/access/origin.h"

#include <algorithm>
#include <boost/asio/ip/address_v6.hpp>
#include <charconv>
#include <cstdint>

#include "core/shortened.h"
#include "core/visible.h"

namespace weir::net {
namespace {

constexpr std::string_view origin_option = "allow-origin";

core::error not_an_origin(std::string_view text, std::string_view why) {
  return core::bad_param(std::string(origin_option), "--{} {}: {}", origin_option,
                         core::one_line(core::shortened(text)), why);
}

bool is_small_letter(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string small_letters(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

bool is_scheme(std::string_view s) {
  return !s.empty() && is_small_letter(s.front()) && std::ranges::all_of(s, [](char c) {
    return is_small_letter(c) || is_digit(c) || c == '+' || c == '-' || c == '.';
  });
}

bool is_host(std::string_view s) {
  if (s.starts_with('[')) {
    boost::system::error_code ec;
    if (!s.ends_with(']')) return false;
    boost::asio::ip::make_address_v6(std::string(s.substr(1, s.size() - 2)), ec);
    return !ec && s.find('%') == s.npos;
  }
  return !s.empty() && std::ranges::all_of(s, [](char c) {
    return is_small_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_';
  });
}

// Why `s`, which follows the scheme, is no host with or without a port; nullptr: it is one.
const char* fault_of(std::string_view s) {
  if (s.find('*') != s.npos) return "a * stands for nothing here; name each origin";
  if (s.find_first_of(", \t") != s.npos) return "this is a list; give the option once for each origin";
  if (s.find_first_of("/?#") != s.npos) return "an origin has no path; leave out all from the third / on";
  if (s.find('@') != s.npos) return "an origin has no user";
  return "has to be SCHEME://HOST or SCHEME://HOST:PORT, as in https://app.example";
}

}  // namespace

core::result<std::string> parse_origin(std::string_view text) {
  if (text == no_origin || text == file_origin) return std::string(no_origin);
  std::string all = small_letters(text);
  const auto scheme_end = all.find("://");
  if (scheme_end == all.npos) {
    const bool plain = all.find_first_of("*, \t") == all.npos;
    return not_an_origin(text, plain ? "the scheme is missing, as in https://app.example" : fault_of(all));
  }
  const std::string_view scheme = std::string_view(all).substr(0, scheme_end);
  const std::string_view rest = std::string_view(all).substr(scheme_end + 3);
  const auto colon = rest.find(':', rest.starts_with('[') ? rest.find(']') : 0);
  const std::string_view host = rest.substr(0, colon);
  if (!is_scheme(scheme) || !is_host(host)) return not_an_origin(text, fault_of(rest));
  if (colon == rest.npos) return all;
  const std::string_view port = rest.substr(colon + 1);
  std::uint16_t number = 0;
  const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (failed != std::errc() || end != port.data() + port.size() || number == 0 || port.front() == '0')
    return not_an_origin(text, port.find_first_of("/,*") == port.npos
                                   ? "the port has to be a number from 1 to 65535"
                                   : fault_of(port));
  const bool usual = (scheme == "http" && number == 80) || (scheme == "https" && number == 443);
  if (usual) all.resize(scheme_end + 3 + colon);
  return all;
}

core::result<std::vector<std::string>> parse_origins(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const std::string& text : texts) {
    auto origin = parse_origin(text);
    if (!origin) return origin.error();
    out.push_back(std::move(*origin));
  }
  return out;
}

}  // namespace weir::net
