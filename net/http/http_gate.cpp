#include "net/http/http_gate.h"

#include <boost/beast/http/error.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/websocket/rfc6455.hpp>

#include "net/access/admin_gate.h"
#include "net/access/handshake.h"
#include "net/http/http_framing.h"
#include "net/protocol/anthropic.h"
#include "net/protocol/json.h"

namespace weir::net {

namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

namespace {

// Whether the client would send another request. Beast looks at the first Connection line alone.
bool keeps_alive(const http_header& h) {
  const std::string all = joined_lines(h, http::field::connection).value_or("");
  http::token_list words(all);
  return !words.exists("close") && (h.version() >= 11 || words.exists("keep-alive"));
}

// The key or token of "Authorization: Bearer KEY", or of x-api-key, which Anthropic's clients may send.
std::optional<std::string_view> key_in(const http_header& h) {
  if (const auto key = bearer_of(h[http::field::authorization])) return key;
  const auto own = h.find("x-api-key");
  return own == h.end() ? std::nullopt : std::optional<std::string_view>(own->value());
}

// The host and port of a target in absolute form ("http://host:port/path"); empty where the target is a path.
std::string_view host_of_target(std::string_view target) {
  const auto scheme_end = target.find("://");
  if (target.starts_with('/') || scheme_end == target.npos) return {};
  target.remove_prefix(scheme_end + 3);
  return target.substr(0, target.find_first_of("/?#"));
}

// Of two headers with one name, a proxy may read the one that this server does not read.
std::optional<reply> judge_once(const http_header& h, http::field name) {
  if (h.count(name) < 2) return std::nullopt;
  return error_reply(400, "bad_request",
                     fmt::format("several {} headers", std::string_view(http::to_string(name))));
}

std::optional<reply> judge_key_headers(const http_header& h) {
  if (auto refused = judge_once(h, http::field::authorization)) return refused;
  if (h.count("x-api-key") > 1) return error_reply(400, "bad_request", "several x-api-key headers");
  const auto key = bearer_of(h[http::field::authorization]);
  const std::string_view other = h["x-api-key"];
  if (!key || other.empty() || *key == other) return std::nullopt;
  return error_reply(400, "bad_request", "Authorization and x-api-key have different keys");
}

bool needs_no_key(endpoint to) {
  return to == endpoint::asset || to == endpoint::live || to == endpoint::ready;
}

// What a browser token opens beside the WebSocket.
bool open_to_tokens(endpoint to) {
  switch (to) {
    case endpoint::list_models:
    case endpoint::show_model:
    case endpoint::follow_models:
    case endpoint::model_props:
    case endpoint::stats:
      return true;
    default:
      return false;
  }
}

bool is_for_responses(std::string_view target) {
  const auto found = find_route("POST", target);
  const auto* route = std::get_if<route_match>(&found);
  return route && route->to == endpoint::responses;
}

bool has_body(const http_header& h) {
  const std::string_view length = h[http::field::content_length];
  return h.count(http::field::transfer_encoding) > 0 || (!length.empty() && length != "0");
}

// An order of an admin is short, and read on an I/O thread.
constexpr std::size_t most_order = 64 * 1024;

}  // namespace

std::optional<std::string> joined_lines(const http_header& h, http::field name) {
  std::optional<std::string> out;
  const auto lines = h.equal_range(name);
  for (auto line = lines.first; line != lines.second; ++line) {
    if (out) out->append(",");
    out ? out->append(line->value()) : out.emplace(line->value());
  }
  return out;
}

http_verdict http_gate::judge(const http_arrival& a) const {
  const http_header& h = a.header;
  http_verdict v;
  v.keep_alive = keeps_alive(h);
  v.form.version = h.version();
  v.form.head_only = h.method() == http::verb::head;
  v.form.anthropic = anthropic::is_path(path_of(h.target()));
  const bool to_socket = !by_.metrics_only && beast::websocket::is_upgrade(h);
  const bool to_responses = to_socket && is_for_responses(h.target());
  if (to_responses || (to_socket && path_of(h.target()) == "/v1/stream")) {
    upgrades u;
    u.responses = to_responses;
    if (auto refused = to_responses ? judge_response_socket(a, u.how) : judge_upgrade(a, u.how)) {
      refused->close = true;
      v.what = turned_away{std::move(*refused)};
    } else {
      v.what = std::move(u);
    }
    return v;
  }
  const std::string origin = joined_lines(h, http::field::origin).value_or("");
  v.form.cors = judge_cors({.method = h.method_string(),
                            .target = h.target(),
                            .origin = origin,
                            .wanted_method = h[http::field::access_control_request_method]},
                           options_.allow_origin);
  v.what = decide(a, v.form.cors);
  return v;
}

std::variant<comes_in, upgrades, turned_away> http_gate::decide(const http_arrival& a,
                                                                const cors_verdict& cors) const {
  const http_header& h = a.header;
  if (auto refused = judge_connection(a)) return turn_away(a, std::move(*refused));
  if (!cors.methods.empty()) return turn_away(a, preflight_reply(cors));  // browsers send no key with it
  if (cors.foreign) return turn_away(a, foreign_reply(joined_lines(h, http::field::origin).value_or("")));
  if (auto refused = judge_key_headers(h)) return turn_away(a, std::move(*refused));
  const found_route found = route_of(h);
  if (auto refused = judge_reserved(a, found)) return turn_away(a, std::move(*refused));
  const sender from = known_.judge(key_in(h).value_or(std::string_view()), a.now_ms);
  if (auto refused = judge_key(h, from, found)) return turn_away(a, std::move(*refused));
  if (auto refused = judge_route(h, found)) return turn_away(a, std::move(*refused));
  if (auto refused = judge_admin(a, from, found)) return turn_away(a, std::move(*refused));
  const auto& to = std::get<route_match>(found);
  const std::size_t all = options_.limits.body_bytes,
                    most = is_for_admins(to.to) ? std::min(all, most_order) : all;
  if (auto refused = judge_body(a, most)) return turn_away(a, std::move(*refused));
  return comes_in{to, from ? *from : bearer{}, most};
}

// A chunked body has no length that is known, so it is not read.
turned_away http_gate::turn_away(const http_arrival& a, reply with) const {
  const bool has_body = a.body_bytes != 0;
  const bool short_body = a.body_bytes && *a.body_bytes <= options_.limits.header_bytes;
  turned_away out{std::move(with)};
  out.reads_body_first = has_body && short_body && !out.with.close;
  out.with.close = out.with.close || (has_body && !out.reads_body_first);
  return out;
}

found_route http_gate::route_of(const http_header& h) const {
  if (by_.metrics_only && !is_for_metrics(h.target())) return no_route{};
  auto found = find_route(std::string_view(h.method_string()), h.target());
  if (!options_.no_admin) return found;
  const auto* route = std::get_if<route_match>(&found);
  const auto* wrong = std::get_if<wrong_method>(&found);
  if ((route && is_for_admins(route->to)) || (wrong && wrong->for_admins)) return no_route{};
  return found;
}

std::optional<reply> http_gate::judge_connection(const http_arrival& a) const {
  const auto codings = joined_lines(a.header, http::field::transfer_encoding);
  const framing framed{a.header.version(), codings, a.header.count(http::field::content_length) > 0};
  if (auto refused = judge_framing(framed)) return refused;
  if (a.crowded) {
    reply no =
        error_reply(429, "overloaded",
                    fmt::format("an address may have {} connections", options_.limits.sockets_per_address));
    no.close = true;
    return no;
  }
  return judge_host(a.header);
}

std::optional<reply> http_gate::judge_host(const http_header& h) const {
  const auto hosts = h.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && h.version() >= 11))
    return error_reply(400, "bad_request", hosts ? "several Host headers" : "the Host header is missing");
  // counts instead of Host (RFC 9112, section 3.2.2)
  const std::string_view in_target = host_of_target(h.target());
  const std::string_view host = in_target.empty() ? std::string_view(h[http::field::host]) : in_target;
  if (!by_.loopback || host_allowed(host, by_.host, options_.allow_origin)) return std::nullopt;
  return error_reply(403, "host_forbidden", host_refusal(host));
}

std::optional<reply> http_gate::judge_key(const http_header& h, const sender& from,
                                          const found_route& found) const {
  const auto* route = std::get_if<route_match>(&found);
  if (by_.metrics_only || (route && needs_no_key(route->to))) return std::nullopt;
  if (from && route && route->to == endpoint::metrics && !known_.is_admin(*from))
    return error_reply(403, "key_forbidden", "the metrics of all clients need an admin's key");
  if (from) return judge_token(h, *from, route ? std::optional(route->to) : std::nullopt);
  reply no = error_reply(401, "invalid_api_key",
                         key_in(h) ? "this key is not known" : "a key is needed: Authorization: Bearer …");
  if (from.error() == token_fault::expired) no = error_reply(401, "token_expired", "this token has expired");
  no.headers.emplace_back("WWW-Authenticate", "Bearer");
  return no;
}

// A page of the server's own origin sends no Origin header with a GET.
std::optional<reply> http_gate::judge_token(const http_header& h, const bearer& from,
                                            std::optional<endpoint> to) const {
  if (!from.token) return std::nullopt;
  if (!to || !open_to_tokens(*to))
    return error_reply(403, "token_forbidden",
                       "a browser token opens the WebSocket, GET /v1/models, GET /models/sse, GET /props and "
                       "GET /v1/stats alone");
  const auto origin = h.find(http::field::origin);
  if (origin == h.end() || from.allows_origin(origin->value())) return std::nullopt;
  return error_reply(403, "origin_forbidden", "this token is for pages of another origin");
}

std::optional<reply> http_gate::judge_route(const http_header& h, const found_route& found) const {
  if (const auto* wrong = std::get_if<wrong_method>(&found)) {
    reply no =
        error_reply(405, "method_not_allowed", "this path does not take " + legible(h.method_string()));
    no.headers.emplace_back("Allow", wrong->allow);
    return no;
  }
  const auto* route = std::get_if<route_match>(&found);
  const bool no_tokens = route && route->to == endpoint::issue_token && known_.everybody();
  if (no_tokens || !route)
    return error_reply(404, "not_found", fmt::format("there is nothing at {}", legible(path_of(h.target()))));
  if (h.method() != http::verb::post) return std::nullopt;
  if (route->to == endpoint::cancel_response && !has_body(h)) return std::nullopt;
  std::string_view type = h[http::field::content_type];
  type = type.substr(0, type.find(';'));
  while (!type.empty() && type.back() == ' ') type.remove_suffix(1);
  if (beast::iequals(type, "application/json")) return std::nullopt;
  return error_reply(415, "unsupported_media_type", "the body of a POST has to be application/json");
}

std::optional<reply> http_gate::judge_admin(const http_arrival& a, const sender& from,
                                            const found_route& found) const {
  if (!is_for_admins(std::get<route_match>(found).to)) return std::nullopt;
  const admin_asker who{known_.everybody(), from && from->has_admin_key(), a.peer};
  const auto why = admin_refusal(a.header, who);
  if (!why) return std::nullopt;
  return error_reply(403, known_.everybody() ? "admin_forbidden" : "key_forbidden", *why);
}

std::optional<reply> http_gate::judge_reserved(const http_arrival& a, const found_route& found) const {
  const auto* route = std::get_if<route_match>(&found);
  const bool health = route && (route->to == endpoint::live || route->to == endpoint::ready);
  if (!a.reserved || by_.metrics_only || health) return std::nullopt;
  reply no = error_reply(503, "overloaded", "the server has no room for another connection now");
  no.close = true;
  return no;
}

std::optional<reply> http_gate::judge_body(const http_arrival& a, std::size_t most) const {
  const std::string coding = joined_lines(a.header, http::field::content_encoding).value_or("");
  if (a.body_bytes != 0 && !coding.empty() && !beast::iequals(coding, "identity")) {
    reply no = error_reply(415, "unsupported_media_type",
                           "the body is sent as it is: no Content-Encoding but identity is understood");
    no.headers.emplace_back("Accept-Encoding", "identity");
    return no;
  }
  if (a.body_bytes.value_or(0) <= most) return std::nullopt;
  return body_too_large(most);
}

std::optional<reply> http_gate::judge_handshake(const http_arrival& a) const {
  const http_header& h = a.header;
  if (auto refused = judge_host(h)) return refused;
  for (const auto name : {http::field::authorization, http::field::origin, http::field::sec_websocket_key,
                          http::field::sec_websocket_version})
    if (auto refused = judge_once(h, name)) return refused;
  if (h[http::field::sec_websocket_version] != "13") {
    reply no =
        error_reply(426, "upgrade_required", "this server speaks version 13 of the WebSocket protocol");
    no.headers.emplace_back("Sec-WebSocket-Version", "13");
    return no;
  }
  if (!is_websocket_key(h[http::field::sec_websocket_key]))
    return error_reply(400, "bad_request", "Sec-WebSocket-Key has to be base64 of 16 bytes");
  const auto origin = h.find(http::field::origin);
  if (origin != h.end() && !origin_allowed(origin->value(), h[http::field::host], options_.allow_origin))
    return foreign_reply(origin->value());
  return std::nullopt;
}

std::optional<reply> http_gate::judge_upgrade(const http_arrival& a, admission& how) const {
  const http_header& h = a.header;
  if (auto refused = judge_handshake(a)) return refused;
  const std::string protocols = joined_lines(h, http::field::sec_websocket_protocol).value_or("");
  const offered_protocols offered = parse_protocols(protocols);
  how.subprotocol = offered.weir_v1;
  auto key = offered.bearer;
  if (auto header = bearer_of(h[http::field::authorization])) key = std::string(*header);
  const auto from = known_.judge(key.value_or(std::string()), a.now_ms);
  how.authenticated = from.has_value();
  if (from) how.from = *from;
  how.origin = h[http::field::origin];
  if (!how.from.allows_origin(how.origin))
    return error_reply(403, "origin_forbidden", "this token is for pages of another origin");
  // closed with 4401 after the upgrade: a browser cannot read a 401
  how.wrong_key = key && !how.authenticated;
  if (!protocols.empty() && !offered.weir_v1)
    return error_reply(400, "bad_subprotocol", "this server speaks the subprotocol weir.v1 only");
  return judge_rest(a);
}

std::optional<reply> http_gate::judge_response_socket(const http_arrival& a, admission& how) const {
  const http_header& h = a.header;
  if (auto refused = judge_handshake(a)) return refused;
  if (auto refused = judge_key_headers(h)) return refused;
  const sender from = known_.judge(key_in(h).value_or(std::string_view()), a.now_ms);
  if (auto refused = judge_key(h, from, route_match{endpoint::responses, {}})) return refused;
  if (from) how.from = *from;
  how.authenticated = true;
  how.origin = h[http::field::origin];
  if (h.count(http::field::sec_websocket_protocol) > 0)
    return error_reply(400, "bad_subprotocol", "this path speaks no subprotocol");
  return judge_rest(a);
}

std::optional<reply> http_gate::judge_rest(const http_arrival& a) const {
  const http_header& h = a.header;
  if (h.count(http::field::transfer_encoding) > 0 || h.count(http::field::content_length) > 0)
    return error_reply(400, "bad_request", "a WebSocket's handshake has no body");
  if (auto refused = judge_reserved(a, no_route{})) return refused;
  if (a.bytes_behind) return error_reply(400, "bad_request", "frames came before the handshake was done");
  if (a.draining) return error_reply(503, "unavailable", "the server is shutting down");
  return std::nullopt;
}

reply http_gate::body_too_large(std::size_t most) {
  return error_reply(413, "body_too_large", fmt::format("the body is over {} bytes", most));
}

std::optional<reply> http_gate::unreadable(error_code why, bool late) const {
  const std::size_t most = options_.limits.header_bytes;
  const error_code of_parser = http::make_error_code(http::error::bad_method);
  if (late) return error_reply(408, "timeout", "the request did not come to its end in time");
  if (why == boost::system::errc::not_enough_memory)
    return error_reply(503, "overloaded", "the server has no memory for this request now");
  if (why.category() != of_parser.category() || why == http::error::end_of_stream ||
      why == http::error::partial_message)
    return std::nullopt;
  if (why == http::error::header_limit)
    return error_reply(431, "header_too_large", fmt::format("the header is over {} bytes", most));
  if (why == http::error::buffer_overflow)
    return error_reply(431, "framing_too_large",
                       fmt::format("chunk headers and trailers are over {} bytes", most));
  return error_reply(400, "bad_request", "not a request: " + why.message());
}

}  // namespace weir::net
