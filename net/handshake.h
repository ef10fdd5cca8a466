// handshake.h — who may come in: Host, Origin, bearer keys and subprotocols, judged from header text alone.
//
// Pure functions: any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weir::net {

inline constexpr std::string_view subprotocol = "weir.v1";

// On a loopback bind a page elsewhere must not reach us by a name that it made point here: Host has to be
// localhost, a loopback address, or `listen_host` itself, with any port; or, behind a proxy, an allowed
// origin's. Addresses are compared as addresses, names letter by letter; a port is a number up to 65535.
bool host_allowed(std::string_view host, std::string_view listen_host, std::span<const std::string> origins);

// A browser's page may open a socket from the same host, or from an origin on the list, compared exactly.
// Only an Origin that was sent is judged: who sends none is not a browser.
bool origin_allowed(std::string_view origin, std::string_view host, std::span<const std::string> allowed);

// Sec-WebSocket-Protocol: what it offers of ours, and the key that a browser can only bring this way.
struct offered_protocols {
  bool weir_v1 = false;
  std::optional<std::string> bearer;  // of "bearer.<base64url>", decoded
};
offered_protocols parse_protocols(std::string_view header);

// The key of "Bearer <key>", any case of the word; none where the header is something else.
std::optional<std::string_view> bearer_of(std::string_view authorization);

std::optional<std::string> decode_base64url(std::string_view text);  // padding allowed, not needed

// Whether a Sec-WebSocket-Key is base64 of exactly 16 bytes (RFC 6455, 4.1).
bool is_websocket_key(std::string_view text);

}  // namespace weir::net
