#include "net/load/url.h"

#include <charconv>

namespace weir::load {

core::result<target> parse_url(std::string_view option, std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return core::bad_param(std::string(option), "--{} {}: {}", option, text, why);
  };
  target t;
  const auto colon = text.find("://");
  const auto scheme = text.substr(0, colon);
  if (colon == text.npos || (scheme != "ws" && scheme != "wss" && scheme != "http" && scheme != "https"))
    return wrong("it begins with none of ws:// wss:// http:// https://");
  t.tls = scheme == "wss" || scheme == "https";
  t.speaks = scheme.starts_with("ws") ? protocol::weir : protocol::openai;
  const auto rest = text.substr(colon + 3);
  auto place = rest.substr(0, rest.find('/'));
  t.path = rest.substr(place.size());
  for (const unsigned char c : rest)
    if (c <= ' ' || c == '#' || c == '@' || c >= 0x7F) return wrong("a character that has no place in it");
  if (place.starts_with('[')) {
    const auto end = place.find(']');
    if (end == place.npos) return wrong("a [ without its ]");
    t.host = place.substr(1, end - 1);
    place.remove_prefix(end + 1);
  } else {
    t.host = place.substr(0, place.find(':'));
    place.remove_prefix(t.host.size());
  }
  if (t.host.empty()) return wrong("there is no host in it");
  t.port = t.tls ? "443" : "80";
  if (!place.empty()) {
    unsigned number = 0;
    const auto [end, ec] = std::from_chars(place.data() + 1, place.data() + place.size(), number);
    if (place[0] != ':' || ec != std::errc() || end != place.data() + place.size() || number == 0 ||
        number > 65535)
      return wrong("its port is no number from 1 to 65535");
    t.port = std::to_string(number);
  }
  if (t.path.empty() || t.path == "/") t.path = t.speaks == protocol::weir ? "/v1/stream" : "/v1/completions";
  return t;
}

}  // namespace weir::load
