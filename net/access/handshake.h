// handshake.h — who may connect: Host, Origin, bearer keys and subprotocols, judged from header text alone.
//
// Pure functions: any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weir::net {

inline constexpr std::string_view subprotocol = "weir.v1";

// Whether a host without a port and brackets is localhost or a loopback address, also one mapped to IPv6. A
// name that resolves to a loopback address is not.
bool is_local_name(std::string_view host);

// Protects a server on a loopback address from DNS rebinding, where a page of another site reaches the server
// by a name that resolves to the loopback address. Host has to be localhost, a loopback address or
// `listen_host`, with any port up to 65535; or, for a server behind a proxy, the host of an allowed origin.
// Addresses are compared as addresses, and names without regard to case.
bool host_allowed(std::string_view host, std::string_view listen_host, std::span<const std::string> origins);

// The sentence for a host that is not allowed. It names the option that allows it.
std::string host_refusal(std::string_view host);

// A page may open a socket if the page comes from the same host, or if `allowed` has its origin, letter for
// letter. REQUIRES: there is an Origin header; a client that sends none is not a browser.
bool origin_allowed(std::string_view origin, std::string_view host, std::span<const std::string> allowed);

// What a Sec-WebSocket-Protocol header offers. A key may be among the subprotocols, because a browser cannot
// set the Authorization header of a WebSocket.
struct offered_protocols {
  bool weir_v1 = false;
  std::optional<std::string> bearer;  // the decoded key of "bearer.<base64url>"
};
offered_protocols parse_protocols(std::string_view header);

// The key of "Bearer <key>", with the word in any case; nullopt for any other header.
std::optional<std::string_view> bearer_of(std::string_view authorization);

// Padding is allowed and not required. nullopt: not base64url.
std::optional<std::string> decode_base64url(std::string_view text);

// Without padding.
std::string encode_base64url(std::string_view bytes);

// Whether a Sec-WebSocket-Key is base64 of exactly 16 bytes (RFC 6455, 4.1).
bool is_websocket_key(std::string_view text);

}  // namespace weir::net
