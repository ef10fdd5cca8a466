#include "net/http/http_session.h"

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/websocket/rfc6455.hpp>

#include "net/access/handshake.h"
#include "net/http/http_framing.h"
#include "net/protocol/anthropic.h"
#include "net/protocol/json.h"
#include "net/random_hex.h"
#include "net/tcp_state.h"

namespace weir::net {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

namespace {

// Bytes of the read buffer beyond the longest header, for the beginning of what follows a header.
constexpr std::size_t beyond_header = 8 * 1024;

// All lines of a field in order, joined by commas; nothing where there is none.
template <class Fields>
std::optional<std::string> joined_lines(const Fields& fields, http::field name) {
  std::optional<std::string> out;
  const auto lines = fields.equal_range(name);
  for (auto line = lines.first; line != lines.second; ++line) {
    if (out) out->append(",");
    out ? out->append(line->value()) : out.emplace(line->value());
  }
  return out;
}

// Beast looks at the first Connection line alone.
template <class Fields>
bool says_close(const Fields& fields) {
  const std::string all = joined_lines(fields, http::field::connection).value_or("");
  return http::token_list(all).exists("close");
}

// The key or token of "Authorization: Bearer KEY", or of x-api-key, which Anthropic's clients may send.
template <class Fields>
std::optional<std::string_view> key_in(const Fields& fields) {
  if (const auto key = bearer_of(fields[http::field::authorization])) return key;
  const auto own = fields.find("x-api-key");
  return own == fields.end() ? std::nullopt : std::optional<std::string_view>(own->value());
}

// The host and port of a target in absolute form ("http://host:port/path"); empty where the target is a path.
std::string_view host_of_target(std::string_view target) {
  const auto scheme_end = target.find("://");
  if (target.starts_with('/') || scheme_end == target.npos) return {};
  target.remove_prefix(scheme_end + 3);
  return target.substr(0, target.find_first_of("/?#"));
}

reply too_large(std::size_t most) {
  return error_reply(413, "body_too_large", fmt::format("the body is over {} bytes", most));
}

}  // namespace

http_session::http_session(std::shared_ptr<hub> h, const entrance& by, asio::ip::tcp::socket socket,
                           address_book::entry caller, core::memory_hold memory)
    : at_(std::move(h)),
      hub_(*at_),
      by_(by),
      counted_(hub_.server_ptr()),
      caller_(std::move(caller)),
      memory_(std::move(memory)),
      stream_(std::move(socket)),
      buffer_(hub_.limits().header_bytes + beyond_header),
      news_(std::make_shared<wake>(hub_.executor())),
      sending_(hub_.limits().write_time) {}

asio::awaitable<void> http_session::run() {
  auto self = shared_from_this();
  const auto hang_up = [this] {
    error_code ignored;
    stream_.socket().close(ignored);
  };
  const hub::subscription told(hub_, [this, hang_up](hub::event e) {
    if (e == hub::event::tick) tick();
    const bool between_requests = state_.at() == http_state::phase::next_header;
    if (e == hub::event::close || (e == hub::event::drain && between_requests)) hang_up();
    if (e == hub::event::keys_changed && from_.removed()) hang_up();
  });
  // closes the socket even if the coroutine does not run to its end, since a read of watch_peer() keeps the
  // session
  struct closing {
    boost::beast::tcp_stream& stream;
    ~closing() {
      error_code ignored;
      stream.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
      stream.socket().close(ignored);
    }
  } const at_the_end{stream_};
  if (hub_.server().stopping) hang_up();  // the event came before the subscription
  try {
    while (co_await one_request() && !hub_.server().draining) {
    }
  } catch (const boost::system::system_error&) {  // this connection is over
  } catch (...) {
    hub_.server().seen.note("an HTTP connection", std::current_exception());
  }
}

asio::awaitable<bool> http_session::one_request() {
  parser p;
  p.header_limit(static_cast<std::uint32_t>(hub_.limits().header_bytes));
  p.body_limit(boost::none);  // judged below, so that the refusal can be read
  request_id_ = random_hex();
  state_.await_request();
  from_ = {};
  head_only_ = false;
  anthropic_ = false;
  cors_ = {};
  version_ = 11;
  memory_.force(connection_bytes);
  error_code ec;
  co_await read_header(p, ec);
  state_.header_read();
  const bool began = p.got_some() || buffer_.size() > 0;
  if (ec && state_.late() && !began) co_return false;
  if (ec) co_return co_await refuse_unreadable(ec);

  const auto& head = p.get();
  version_ = head.version();
  state_.keep_alive(head.keep_alive() && !says_close(head) && !hub_.server().draining);
  head_only_ = head.method() == http::verb::head;
  anthropic_ = anthropic::is_path(path_of(head.target()));
  const bool has_sockets = !by_.metrics_only;
  if (has_sockets && beast::websocket::is_upgrade(head) && path_of(head.target()) == "/v1/stream") {
    co_return co_await upgrade(p.release());
  }
  cors_ = cors_of(head);
  const auto found = route_of(head);
  const auto from = sender_of(head);
  if (auto refused = judge(head, from, found)) co_return co_await refuse(std::move(*refused), p);
  from_ = from ? *from : bearer{};  // a public route needs no key
  p.body_limit(hub_.limits().body_bytes);
  if (p.content_length().value_or(0) > hub_.limits().body_bytes) {
    ec = http::error::body_limit;
  } else {
    co_await read_body(p, ec);
  }
  if (ec == http::error::body_limit) {
    reply no = too_large(hub_.limits().body_bytes);
    co_return co_await refuse(std::move(no), p);
  }
  if (ec) co_return co_await refuse_unreadable(ec);
  const request r = p.release();
  co_return co_await answer(r, std::get<route_match>(found));
}

asio::awaitable<void> http_session::read_header(parser& p, error_code& ec) {
  const bool first = state_.at() == http_state::phase::first_header;
  read_within(first ? hub_.limits().handshake : hub_.limits().keep_alive);
  co_await http::async_read_header(stream_, buffer_, p, asio::redirect_error(asio::use_awaitable, ec));
  state_.read_ends();
}

// The framing of a chunked body (all bytes that are read but those of the body) may be as long as a header
// and the body together. This allows chunks of a few bytes, and refuses extensions and zeros without end. For
// longer framing, and for a piece of framing that is longer than the buffer, `ec` is buffer_overflow.
asio::awaitable<void> http_session::read_body(parser& p, error_code& ec) {
  if (!p.is_done() && version_ >= 11 && beast::iequals(p.get()[http::field::expect], "100-continue")) {
    co_await write_bytes("HTTP/1.1 100 Continue\r\n\r\n");
  }
  if (!memory_.resize(connection_bytes + p.content_length().value_or(0))) {
    ec = make_error_code(boost::system::errc::not_enough_memory);
    co_return;
  }
  auto no_control_characters = [](std::uint64_t, beast::string_view extension, error_code& bad) {
    // Beast takes a line feed inside quotes; a reader that ends lines at it would see another body.
    const auto is_control = [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; };
    if (std::ranges::any_of(extension, is_control)) bad = http::error::bad_chunk_extension;
  };
  p.on_chunk_header(no_control_characters);
  read_within(hub_.limits().body_time);
  std::size_t read = 0;
  while (!ec && !p.is_done()) {  // the parser is not eager: it comes back after each chunk's header
    read +=
        co_await http::async_read_some(stream_, buffer_, p, asio::redirect_error(asio::use_awaitable, ec));
    const std::size_t body = p.get().body().size();
    if (ec) break;
    if (state_.late() && !p.is_done()) ec = asio::error::timed_out;
    if (read > 2 * body + hub_.limits().header_bytes) ec = http::error::buffer_overflow;
    if (!memory_.resize(connection_bytes + std::max<std::size_t>(body, p.content_length().value_or(0))))
      ec = make_error_code(boost::system::errc::not_enough_memory);
  }
  state_.read_ends();
}

void http_session::read_within(std::chrono::milliseconds most) {
  stream_.expires_never();
  state_.read_begins(std::chrono::steady_clock::now() + most);
}

void http_session::tick() {
  const auto now = std::chrono::steady_clock::now();
  if (sending_.writing() && sending_.stalled(now, acknowledged_bytes(stream_.socket().native_handle())))
    cut_off_stalled_reader();
  if (state_.overdue(now)) stream_.cancel();
  if (silence_ && silence_->tick(now)) news_->notify();
}

// ---- refusals of what is no request

asio::awaitable<bool> http_session::refuse(reply no, parser& p) {
  const bool short_body =
      p.content_length().value_or(hub_.limits().header_bytes + 1) <= hub_.limits().header_bytes;
  if (!p.is_done() && !no.close && short_body) {  // so that the next request can be read
    error_code ec;
    co_await read_body(p, ec);
    if (ec) co_return co_await refuse_unreadable(ec);
  }
  const bool more_follows = !p.is_done();
  no.close = no.close || more_follows;
  const bool goes_on = co_await write(std::move(no));
  if (more_follows) co_await read_away_the_rest();
  co_return goes_on;
}

asio::awaitable<bool> http_session::refuse_unreadable(error_code ec) {
  state_.end_after_answer();
  const error_code parse_error = http::make_error_code(http::error::bad_method);
  if (state_.late()) {
    co_await write(error_reply(408, "timeout", "the request did not come to its end in time"));
    co_return false;
  }
  if (ec == boost::system::errc::not_enough_memory) {
    co_await write(error_reply(503, "overloaded", "the server has no memory for this request now"));
    co_await read_away_the_rest();
    co_return false;
  }
  if (ec.category() != parse_error.category() || ec == http::error::end_of_stream ||
      ec == http::error::partial_message) {
    co_return false;
  }
  reply r = error_reply(400, "bad_request", "not a request: " + ec.message());
  if (ec == http::error::header_limit)
    r = error_reply(431, "header_too_large",
                    fmt::format("the header is over {} bytes", hub_.limits().header_bytes));
  if (ec == http::error::buffer_overflow)
    r = error_reply(431, "framing_too_large",
                    fmt::format("chunk headers and trailers are over {} bytes", hub_.limits().header_bytes));
  co_await write(std::move(r));
  co_await read_away_the_rest();
  co_return false;
}

// ---- checks before the body is read

found_route http_session::route_of(const request& r) const {
  if (by_.metrics_only && !is_for_metrics(r.target())) return no_route{};
  return find_route(std::string_view(r.method_string()), r.target());
}

std::optional<reply> http_session::judge_host(const request& r) const {
  const server_state& all = hub_.server();
  const auto hosts = r.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && r.version() >= 11))
    return error_reply(400, "bad_request", hosts ? "several Host headers" : "the Host header is missing");
  // counts instead of Host (RFC 9112, section 3.2.2)
  const std::string_view in_target = host_of_target(r.target());
  const std::string_view host = in_target.empty() ? std::string_view(r[http::field::host]) : in_target;
  if (!by_.loopback || host_allowed(host, by_.host, all.options.allow_origin)) return std::nullopt;
  return error_reply(403, "host_forbidden", host_refusal(host));
}

// Of two headers with one name, a proxy may read the one that this server does not read.
std::optional<reply> http_session::judge_once(const request& r, http::field header) const {
  if (r.count(header) < 2) return std::nullopt;
  return error_reply(400, "bad_request",
                     fmt::format("several {} headers", std::string_view(http::to_string(header))));
}

std::optional<reply> http_session::judge_key_headers(const request& r) const {
  if (auto refused = judge_once(r, http::field::authorization)) return refused;
  if (r.count("x-api-key") > 1) return error_reply(400, "bad_request", "several x-api-key headers");
  const auto key = bearer_of(r[http::field::authorization]);
  const std::string_view other = r["x-api-key"];
  if (!key || other.empty() || *key == other) return std::nullopt;
  return error_reply(400, "bad_request", "Authorization and x-api-key have different keys");
}

http_session::sender http_session::sender_of(const request& r) const {
  return hub_.server().bearers.judge(key_in(r).value_or(std::string_view()), unix_ms());
}

std::optional<reply> http_session::judge_key(const request& r, const sender& from,
                                             std::optional<endpoint> to) const {
  const bool is_public = to == endpoint::asset || to == endpoint::live || to == endpoint::ready;
  if (is_public || by_.metrics_only) return std::nullopt;
  if (from && to == endpoint::metrics && !hub_.server().bearers.is_admin(*from))
    return error_reply(403, "key_forbidden", "the metrics of all clients need an admin's key");
  if (from) return judge_token(r, *from, to);
  reply no = error_reply(401, "invalid_api_key",
                         key_in(r) ? "this key is not known" : "a key is needed: Authorization: Bearer …");
  if (from.error() == token_fault::expired) no = error_reply(401, "token_expired", "this token has expired");
  no.headers.emplace_back("WWW-Authenticate", "Bearer");
  return no;
}

// A page of the server's own origin sends no Origin header with a GET.
std::optional<reply> http_session::judge_token(const request& r, const bearer& from,
                                               std::optional<endpoint> to) const {
  if (!from.token) return std::nullopt;
  if (to != endpoint::list_models && to != endpoint::show_model && to != endpoint::stats)
    return error_reply(403, "token_forbidden",
                       "a browser token opens the WebSocket, GET /v1/models and GET /v1/stats alone");
  const auto origin = r.find(http::field::origin);
  if (origin == r.end() || from.allows_origin(origin->value())) return std::nullopt;
  return error_reply(403, "origin_forbidden", "this token is for pages of another origin");
}

std::optional<reply> http_session::judge_route(const request& r, const found_route& found) const {
  if (const auto* wrong = std::get_if<wrong_method>(&found)) {
    reply no =
        error_reply(405, "method_not_allowed", "this path does not take " + legible(r.method_string()));
    no.headers.emplace_back("Allow", wrong->allow);
    return no;
  }
  const auto* route = std::get_if<route_match>(&found);
  const bool no_tokens = route && route->to == endpoint::issue_token && hub_.server().bearers.everybody();
  if (no_tokens || std::holds_alternative<no_route>(found))
    return error_reply(404, "not_found", fmt::format("there is nothing at {}", legible(path_of(r.target()))));
  if (r.method() != http::verb::post) return std::nullopt;
  std::string_view type = r[http::field::content_type];
  type = type.substr(0, type.find(';'));
  while (!type.empty() && type.back() == ' ') type.remove_suffix(1);
  if (beast::iequals(type, "application/json")) return std::nullopt;
  return error_reply(415, "unsupported_media_type", "the body of a POST has to be application/json");
}

cors_verdict http_session::cors_of(const request& r) const {
  const std::string origin = joined_lines(r, http::field::origin).value_or("");
  return judge_cors({.method = r.method_string(),
                     .target = r.target(),
                     .origin = origin,
                     .wanted_method = r[http::field::access_control_request_method]},
                    hub_.server().options.allow_origin);
}

// Judges a request as far as possible before its body is read.
std::optional<reply> http_session::judge(const request& r, const sender& from,
                                         const found_route& found) const {
  const auto codings = joined_lines(r, http::field::transfer_encoding);
  const framing framed{r.version(), codings, r.count(http::field::content_length) > 0};
  if (auto refused = judge_framing(framed)) return refused;
  if (caller_.crowded()) {
    reply no =
        error_reply(429, "overloaded",
                    fmt::format("an address may have {} connections", hub_.limits().sockets_per_address));
    no.close = true;
    return no;
  }
  if (auto refused = judge_host(r)) return refused;
  if (!cors_.methods.empty()) return preflight_reply(cors_);  // browsers send no key with it
  if (cors_.foreign) return foreign_reply(joined_lines(r, http::field::origin).value_or(""));
  if (auto refused = judge_key_headers(r)) return refused;
  const auto* route = std::get_if<route_match>(&found);
  if (auto refused = judge_key(r, from, route ? std::optional(route->to) : std::nullopt)) return refused;
  return judge_route(r, found);
}

std::optional<reply> http_session::judge_upgrade(const request& r, admission& how) const {
  const server_state& all = hub_.server();
  if (auto refused = judge_host(r)) return refused;
  for (const auto header : {http::field::authorization, http::field::origin, http::field::sec_websocket_key,
                            http::field::sec_websocket_version})
    if (auto refused = judge_once(r, header)) return refused;
  if (r[http::field::sec_websocket_version] != "13") {
    reply no =
        error_reply(426, "upgrade_required", "this server speaks version 13 of the WebSocket protocol");
    no.headers.emplace_back("Sec-WebSocket-Version", "13");
    return no;
  }
  if (!is_websocket_key(r[http::field::sec_websocket_key]))
    return error_reply(400, "bad_request", "Sec-WebSocket-Key has to be base64 of 16 bytes");
  const auto origin = r.find(http::field::origin);
  if (origin != r.end() && !origin_allowed(origin->value(), r[http::field::host], all.options.allow_origin)) {
    return foreign_reply(origin->value());
  }
  const std::string protocols = joined_lines(r, http::field::sec_websocket_protocol).value_or("");
  const offered_protocols offered = parse_protocols(protocols);
  how.subprotocol = offered.weir_v1;
  auto key = offered.bearer;
  if (auto header = bearer_of(r[http::field::authorization])) key = std::string(*header);
  const auto from = all.bearers.judge(key.value_or(std::string()), unix_ms());
  how.authenticated = from.has_value();
  if (from) how.from = *from;
  if (origin != r.end()) how.origin = origin->value();
  if (!how.from.allows_origin(how.origin))
    return error_reply(403, "origin_forbidden", "this token is for pages of another origin");
  // closed with 4401 after the upgrade: a browser cannot read a 401
  how.wrong_key = key && !how.authenticated;
  if (!protocols.empty() && !offered.weir_v1) {
    return error_reply(400, "bad_subprotocol", "this server speaks the subprotocol weir.v1 only");
  }
  if (r.count(http::field::transfer_encoding) > 0 || r.count(http::field::content_length) > 0)
    return error_reply(400, "bad_request", "a WebSocket's handshake has no body");
  if (buffer_.size() > 0) return error_reply(400, "bad_request", "frames came before the handshake was done");
  if (all.draining) return error_reply(503, "unavailable", "the server is shutting down");
  return std::nullopt;
}

asio::awaitable<bool> http_session::upgrade(request r) {
  admission how;
  how.request_id = request_id_;
  if (auto refused = judge_upgrade(r, how)) {
    refused->close = true;
    co_return co_await write(std::move(*refused));
  }
  how.caller = std::move(caller_);
  how.memory = std::move(memory_);
  // The WebSocket session takes over the socket, and what this session has for HTTP is destroyed.
  serve_websocket(at_, std::move(stream_), std::move(r), std::move(how));
  co_return false;
}

// ---- answers

asio::awaitable<bool> http_session::answer(const request& r, const route_match& route) {
  if (route.to == endpoint::completions) co_return co_await complete(openai::dialect::completion, r);
  if (route.to == endpoint::chat_completions) co_return co_await complete(openai::dialect::chat, r);
  if (route.to == endpoint::messages) co_return co_await complete_message(r);
  if (route.to == endpoint::asset) {
    const auto codings = joined_lines(r, http::field::accept_encoding);
    reply file = show_asset(r.target(), codings.value_or(""));
    co_return co_await write(std::move(file));
  }
  reply got = co_await answer_route(hub_, route, r.body(), from_);
  co_return co_await write(std::move(got));
}

}  // namespace weir::net
