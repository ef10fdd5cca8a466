#include "net/http_session.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/beast/websocket/rfc6455.hpp>

#include "net/handshake.h"
#include "net/json.h"
#include "net/random_hex.h"

namespace weir::net {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

http_session::http_session(std::shared_ptr<hub> h, asio::ip::tcp::socket socket, address_book::entry caller)
    : at_(std::move(h)),
      hub_(*at_),
      in_hall_(hub_.all_ptr()),
      caller_(std::move(caller)),
      stream_(std::move(socket)),
      news_(std::make_shared<wake>(hub_.executor())) {}

asio::awaitable<void> http_session::run() {
  auto self = shared_from_this();
  const auto hang_up = [this] {
    error_code ignored;
    stream_.socket().close(ignored);
  };
  const hub::seat seat(hub_, [this, hang_up](hub::event e) {
    if (e == hub::event::tick) tick();
    if (e == hub::event::close || (e == hub::event::drain && between_requests_ && !first_)) hang_up();
  });
  if (hub_.all().stopping) hang_up();  // it was said before we could hear it
  try {
    while (co_await one_request() && !hub_.all().draining) {
    }
  } catch (const boost::system::system_error&) {  // this connection is over
  }
  error_code ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  stream_.close();
}

asio::awaitable<bool> http_session::one_request() {
  parser p;
  p.header_limit(static_cast<std::uint32_t>(hub_.limits().header_bytes));
  p.body_limit(boost::none);  // judged below, so that the refusal can be read
  request_id_ = random_hex();
  keep_alive_ = false;
  head_only_ = false;
  version_ = 11;
  between_requests_ = true;
  error_code ec;
  co_await read_header(p, ec);
  between_requests_ = false;
  first_ = false;
  if (ec && late_ && !p.got_some() && buffer_.size() == 0) co_return false;  // it never began a request
  if (ec) co_return co_await refuse_header(ec);

  const auto& head = p.get();
  version_ = head.version();
  keep_alive_ = head.keep_alive() && !hub_.all().draining;
  head_only_ = head.method() == http::verb::head;
  if (beast::websocket::is_upgrade(head) && path_of(head.target()) == "/v1/stream") {
    co_return co_await upgrade(p.release());
  }
  const auto length = p.content_length();
  if (length && *length > hub_.limits().body_bytes) co_return co_await refuse_body();
  p.body_limit(hub_.limits().body_bytes);
  co_await read_body(p, ec);
  if (ec == http::error::body_limit) co_return co_await refuse_body();
  if (ec) co_return co_await refuse_header(ec);
  const request r = p.release();
  co_return co_await answer(r);
}

asio::awaitable<void> http_session::read_header(parser& p, error_code& ec) {
  read_within(first_ ? hub_.limits().handshake : hub_.limits().keep_alive);
  co_await http::async_read_header(stream_, buffer_, p, asio::redirect_error(asio::use_awaitable, ec));
  read_done();
}

asio::awaitable<void> http_session::read_body(parser& p, error_code& ec) {
  if (!p.is_done() && beast::iequals(p.get()[http::field::expect], "100-continue")) {
    constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    stream_.expires_after(hub_.limits().body_time);
    co_await asio::async_write(stream_, asio::buffer(go_on), asio::use_awaitable);
  }
  read_within(hub_.limits().body_time);
  co_await http::async_read(stream_, buffer_, p, asio::redirect_error(asio::use_awaitable, ec));
  read_done();
}

void http_session::read_within(std::chrono::milliseconds most) {
  stream_.expires_never();
  late_ = false;
  read_by_ = std::chrono::steady_clock::now() + most;
}

void http_session::tick() {
  if (!read_by_ || std::chrono::steady_clock::now() < *read_by_) return;
  read_by_.reset();
  late_ = true;
  stream_.cancel();
}

// ---- refusals of what is no request

asio::awaitable<bool> http_session::refuse_header(error_code ec) {
  const error_code parse_error = http::make_error_code(http::error::bad_method);
  if (late_) {
    co_await write(error_reply(408, "timeout", "the request did not come to its end in time"));
    co_return false;
  }
  if (ec.category() != parse_error.category() || ec == http::error::end_of_stream ||
      ec == http::error::partial_message) {
    co_return false;
  }
  const bool too_long = ec == http::error::header_limit;
  reply r = too_long ? error_reply(431, "header_too_large",
                                   fmt::format("the header is over {} bytes", hub_.limits().header_bytes))
                     : error_reply(400, "bad_request", "not a request: " + ec.message());
  co_await write(std::move(r));
  co_await read_away_the_rest();
  co_return false;
}

asio::awaitable<bool> http_session::refuse_body() {
  keep_alive_ = false;
  reply r =
      error_reply(413, "body_too_large", fmt::format("the body is over {} bytes", hub_.limits().body_bytes));
  co_await write(std::move(r));
  co_await read_away_the_rest();
  co_return false;
}

// A client that is still sending reads no answer, and one that is hung up on loses it.
asio::awaitable<void> http_session::read_away_the_rest() {
  error_code ec;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ec);
  std::size_t read = buffer_.size();
  buffer_.clear();
  std::vector<char> bytes(64 * 1024);
  stream_.expires_after(hub_.limits().handshake);
  while (read < hub_.limits().drained_bytes) {
    const std::size_t n =
        co_await stream_.async_read_some(asio::buffer(bytes), asio::redirect_error(asio::use_awaitable, ec));
    if (ec) co_return;
    read += n;
  }
}

// ---- who may come in

std::optional<reply> http_session::judge_host(const request& r) const {
  const hall& all = hub_.all();
  const auto hosts = r.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && r.version() >= 11))
    return error_reply(400, "bad_request", hosts ? "several Host headers" : "the Host header is missing");
  if (!all.loopback || host_allowed(r[http::field::host], all.listen_host, all.options.allow_origin)) {
    return std::nullopt;
  }
  return error_reply(
      403, "host_forbidden",
      "a server on a loopback address is reached as localhost, or by an allowed origin's name");
}

// Of two headers others read the one that we do not.
std::optional<reply> http_session::judge_once(const request& r, http::field header) const {
  if (r.count(header) < 2) return std::nullopt;
  return error_reply(400, "bad_request", fmt::format("several {} headers", std::string_view(http::to_string(header))));
}

std::uint64_t http_session::key_of(const request& r) const {
  const auto key = bearer_of(r[http::field::authorization]);
  return key ? hub_.all().keys.identity_of(*key) : 0;
}

std::optional<reply> http_session::judge(const request& r, const route_match& route) const {
  if (auto refused = judge_host(r)) return refused;
  if (auto refused = judge_once(r, http::field::authorization)) return refused;
  const bool is_public =
      route.to == endpoint::asset || route.to == endpoint::live || route.to == endpoint::ready;
  if (hub_.all().keys.empty() || is_public) return std::nullopt;
  if (key_of(r)) return std::nullopt;
  reply no = error_reply(401, "invalid_api_key",
                         bearer_of(r[http::field::authorization]) ? "this key is not known" : "a key is needed: Authorization: Bearer …");
  no.headers.emplace_back("WWW-Authenticate", "Bearer");
  return no;
}

std::optional<reply> http_session::judge_upgrade(const request& r, admission& how) const {
  const hall& all = hub_.all();
  if (auto refused = judge_host(r)) return refused;
  for (const auto header : {http::field::authorization, http::field::sec_websocket_key})
    if (auto refused = judge_once(r, header)) return refused;
  if (r[http::field::sec_websocket_version] != "13") {
    reply no = error_reply(426, "upgrade_required", "this server speaks version 13 of the WebSocket protocol");
    no.headers.emplace_back("Sec-WebSocket-Version", "13");
    return no;
  }
  if (!is_websocket_key(r[http::field::sec_websocket_key]))
    return error_reply(400, "bad_request", "Sec-WebSocket-Key has to be base64 of 16 bytes");
  const auto origin = r.find(http::field::origin);
  if (origin != r.end() && !origin_allowed(origin->value(), r[http::field::host], all.options.allow_origin)) {
    return error_reply(403, "origin_forbidden", "pages of this origin may not connect");
  }
  std::string protocols;  // a client may send several such lines
  const auto lines = r.equal_range(http::field::sec_websocket_protocol);
  for (auto line = lines.first; line != lines.second; ++line) protocols.append(line->value()).append(",");
  const offered_protocols offered = parse_protocols(protocols);
  how.subprotocol = offered.weir_v1;
  auto key = offered.bearer;
  if (auto header = bearer_of(r[http::field::authorization])) key = std::string(*header);
  how.key = key ? all.keys.identity_of(*key) : 0;
  how.authenticated = all.keys.empty() || how.key;
  how.wrong_key = key && !how.authenticated;  // closed with 4401 after the upgrade: a browser cannot read a 401
  if (!protocols.empty() && !offered.weir_v1) {
    return error_reply(400, "bad_subprotocol", "this server speaks the subprotocol weir.v1 only");
  }
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
  // The socket goes on by itself: what this session held for HTTP is not kept beside it.
  serve_websocket(at_, std::move(stream_), std::move(r), std::move(how));
  co_return false;
}

// ---- answers

asio::awaitable<bool> http_session::answer(const request& r) {
  if (caller_.crowded()) {
    reply no = error_reply(429, "overloaded",
                           fmt::format("an address may have {} connections", hub_.limits().sockets_per_address));
    no.close = true;
    co_return co_await write(std::move(no));
  }
  const std::string_view target = r.target();
  const auto found = find_route(std::string_view(r.method_string()), target);
  const auto* route = std::get_if<route_match>(&found);
  if (auto refused = judge(r, route ? *route : route_match{endpoint::planned, {}})) {
    co_return co_await write(std::move(*refused));
  }
  if (const auto* wrong = std::get_if<wrong_method>(&found)) {
    reply no =
        error_reply(405, "method_not_allowed", "this path does not take " + legible(r.method_string()));
    no.headers.emplace_back("Allow", wrong->allow);
    co_return co_await write(std::move(no));
  }
  if (!route) {
    reply no = error_reply(404, "not_found", fmt::format("there is nothing at {}", legible(path_of(target))));
    co_return co_await write(std::move(no));
  }
  if (r.method() == http::verb::post) {
    std::string_view type = r[http::field::content_type];
    type = type.substr(0, type.find(';'));
    while (!type.empty() && type.back() == ' ') type.remove_suffix(1);
    if (!beast::iequals(type, "application/json")) {
      reply no = error_reply(415, "unsupported_media_type", "the body of a POST has to be application/json");
      co_return co_await write(std::move(no));
    }
  }
  if (route->to == endpoint::completions) co_return co_await complete(openai::dialect::completion, r);
  if (route->to == endpoint::chat_completions) co_return co_await complete(openai::dialect::chat, r);
  reply got = co_await answer_route(hub_, *route, target, r.body(), key_of(r));
  co_return co_await write(std::move(got));
}

asio::awaitable<bool> http_session::write(reply r) {
  http::response<http::string_body> m{static_cast<http::status>(r.status), version_};
  if (r.close) keep_alive_ = false;
  m.keep_alive(keep_alive_);
  m.set(http::field::server, "weir");
  m.set("x-request-id", request_id_);
  m.set(http::field::content_type, r.content_type);
  for (const auto& [name, value] : r.headers) m.set(name, value);
  m.content_length(r.body.size());
  if (!head_only_) m.body() = std::move(r.body);
  stream_.expires_after(hub_.limits().body_time);
  co_await http::async_write(stream_, m, asio::use_awaitable);
  co_return keep_alive_;
}

// ---- is the client still there?

void http_session::watch_peer() {
  peer_gone_ = false;
  auto ready = [weak = weak_from_this()](error_code ec) {
    auto self = weak.lock();
    if (!self || ec) return;
    error_code broken;
    // Readable and nothing to read: closed. Anything else is the next request, which waits its turn.
    if (self->stream_.socket().available(broken) > 0 && !broken) return;
    self->peer_gone_ = true;
    self->news_->notify();
  };
  stream_.socket().async_wait(asio::ip::tcp::socket::wait_read, std::move(ready));
}

void http_session::stop_watching() {
  error_code ignored;
  stream_.socket().cancel(ignored);
}

}  // namespace weir::net
