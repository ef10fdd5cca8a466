#include "net/http/http_session.h"

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/rfc7230.hpp>

#include "net/random_hex.h"
#include "net/ws/response_socket.h"

namespace weir::net {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

namespace {

// Bytes of the read buffer beyond the longest header, for the beginning of what follows a header.
constexpr std::size_t beyond_header = 8 * 1024;

// How long a connection of the reserve may take over its header: others wait for its place.
constexpr std::chrono::milliseconds reserved_time{1000};

// How long the rest of a body is dropped that was not complete in time: its sender, if it reads, gets the
// 408.
constexpr std::chrono::milliseconds late_sender{1000};

// Unspecified where the client has gone.
asio::ip::address address_of_peer(beast::tcp_stream& s) {
  error_code gone;
  return s.socket().remote_endpoint(gone).address();
}

// Length of the body that the header announces; 0 where it announces none, or chunks.
template <class Parser>
std::uint64_t announced_bytes(const Parser& p) {
  return p.content_length().value_or(0);
}

}  // namespace

http_session::http_session(std::shared_ptr<hub> h, const entrance& by, asio::ip::tcp::socket socket,
                           address_book::entry caller, core::memory_hold memory, reserve::place reserved)
    : at_(std::move(h)),
      hub_(*at_),
      counted_(hub_.server_ptr()),
      caller_(std::move(caller)),
      reserved_(std::move(reserved)),
      memory_(std::move(memory)),
      stream_(std::move(socket)),
      peer_(address_of_peer(stream_)),
      buffer_(hub_.limits().header_bytes + beyond_header),
      news_(std::make_shared<wake>(hub_.executor())),
      gate_(hub_.server().options, hub_.server().bearers, by),
      sender_(stream_, hub_.limits(), hub_.server().service.memory()) {}

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
    if (e == hub::event::drain) news_->notify();
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
  p.body_limit(boost::none);  // judged at the gate, so that the refusal can be read
  form_ = {};
  form_.request_id = random_hex();
  events_began_ = false;
  state_.await_request();
  from_ = {};
  memory_.force(connection_bytes);
  error_code ec;
  co_await read_header(p, ec);
  state_.header_read();
  const bool began = p.got_some() || buffer_.size() > 0;
  if (ec && state_.late() && !began) co_return false;
  if (ec) co_return co_await refuse_unreadable(ec);
  http_verdict v = gate_.judge({.header = p.get(),
                                .body_bytes = p.chunked() ? std::nullopt : std::optional(announced_bytes(p)),
                                .bytes_behind = buffer_.size() > 0,
                                .crowded = caller_.crowded(),
                                .reserved = bool(reserved_),
                                .draining = hub_.server().draining,
                                .now_ms = unix_ms(),
                                .peer = peer_});
  co_return co_await judged(p, std::move(v));
}

asio::awaitable<bool> http_session::judged(parser& p, http_verdict v) {
  v.form.request_id = std::move(form_.request_id);
  form_ = std::move(v.form);
  state_.keep_alive(v.keep_alive && !reserved_ && !hub_.server().draining);
  if (auto* no = std::get_if<turned_away>(&v.what)) co_return co_await turn_away(p, std::move(*no));
  if (auto* socket = std::get_if<upgrades>(&v.what))
    co_return co_await upgrade(p.release(), std::move(*socket));
  const auto& in = std::get<comes_in>(v.what);
  from_ = in.from;
  p.body_limit(in.most_body);
  error_code ec;
  co_await read_body(p, ec);
  if (ec == http::error::body_limit) {
    turned_away no{http_gate::body_too_large(in.most_body)};
    no.with.close = true;
    co_return co_await turn_away(p, std::move(no));
  }
  if (ec) co_return co_await refuse_unreadable(ec);
  request r = p.release();
  co_return co_await answer(r, in.to);
}

asio::awaitable<void> http_session::read_header(parser& p, error_code& ec) {
  const bool first = state_.at() == http_state::phase::first_header;
  const auto most = first ? hub_.limits().handshake : hub_.limits().keep_alive;
  read_within(reserved_ ? std::min(most, reserved_time) : most);
  co_await skip_empty_line(ec);
  if (!ec)
    co_await http::async_read_header(stream_, buffer_, p, asio::redirect_error(asio::use_awaitable, ec));
  state_.read_ends();
}

// Some clients send an empty line behind the body before (RFC 9112, section 2.2). One is skipped.
asio::awaitable<void> http_session::skip_empty_line(error_code& ec) {
  constexpr std::string_view line = "\r\n";
  const auto begun = [&] {
    return std::string_view(static_cast<const char*>(buffer_.data().data()), buffer_.size());
  };
  while (begun().size() < line.size() && line.starts_with(begun())) {
    const auto room = buffer_.prepare(beast::read_size(buffer_, 65536));
    const std::size_t read =
        co_await stream_.async_read_some(room, asio::redirect_error(asio::use_awaitable, ec));
    buffer_.commit(read);
    if (ec == asio::error::eof)
      ec = begun().empty() ? http::error::end_of_stream : http::error::partial_message;
    if (ec) co_return;
  }
  if (begun().starts_with(line)) buffer_.consume(line.size());
}

// The framing of a chunked body (all bytes that are read but those of the body) may be as long as a header
// and the body together. This allows chunks of a few bytes, and refuses extensions and zeros without end. For
// longer framing, and for a piece of framing that is longer than the buffer, `ec` is buffer_overflow.
asio::awaitable<void> http_session::read_body(parser& p, error_code& ec) {
  if (!p.is_done() && form_.version >= 11 && beast::iequals(p.get()[http::field::expect], "100-continue")) {
    co_await sender_.write_bytes(continue_line);
  }
  if (!memory_.resize(connection_bytes + announced_bytes(p))) {
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
    if (!memory_.resize(connection_bytes + std::max<std::size_t>(body, announced_bytes(p))))
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
  if (sender_.tick(now)) news_->notify();
  if (state_.overdue(now)) stream_.cancel();
  if (!probe_at_ || now < *probe_at_ || probe()) return;
  state_.client_left();
  note_end();
}

asio::awaitable<bool> http_session::turn_away(parser& p, turned_away no) {
  error_code ec;
  if (no.reads_body_first) co_await read_body(p, ec);
  if (ec) co_return co_await refuse_unreadable(ec);
  const bool goes_on = co_await write(std::move(no.with));
  if (!p.is_done()) co_await read_away_the_rest(hub_.limits().handshake);
  co_return goes_on;
}

asio::awaitable<bool> http_session::refuse_unreadable(error_code ec) {
  state_.end_after_answer();
  auto no = gate_.unreadable(ec, state_.late());
  if (!no) co_return false;
  co_await write(std::move(*no));
  co_await read_away_the_rest(state_.late() ? late_sender : hub_.limits().handshake);
  co_return false;
}

// Reads and drops what the client still sends, for `most`. A client that is still sending does not read the
// answer yet, and would lose it if the connection were closed now.
asio::awaitable<void> http_session::read_away_the_rest(std::chrono::milliseconds most) {
  error_code ec;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ec);
  std::size_t read = buffer_.size();
  buffer_.clear();
  const auto into = buffer_.prepare(buffer_.max_size());
  stream_.expires_after(most);
  while (read < hub_.limits().drained_bytes()) {
    const std::size_t n =
        co_await stream_.async_read_some(into, asio::redirect_error(asio::use_awaitable, ec));
    if (ec) co_return;
    read += n;
  }
}

asio::awaitable<bool> http_session::upgrade(request r, upgrades to) {
  admission& how = to.how;
  how.request_id = form_.request_id;
  how.caller = std::move(caller_);
  how.memory = std::move(memory_);
  // The WebSocket session takes over the socket, and what this session has for HTTP is destroyed.
  const auto serve = to.responses ? serve_responses : serve_websocket;
  serve(at_, std::move(stream_), std::move(r), std::move(how));
  co_return false;
}

// ---- answers

asio::awaitable<bool> http_session::answer(request& r, const route_match& route) {
  using openai::dialect;
  std::string body = std::move(r.body());
  if (is_long(body)) memory_.force(connection_bytes);  // it is counted where it is parsed
  if (route.to == endpoint::completions) co_return co_await complete(dialect::completion, std::move(body));
  if (route.to == endpoint::chat_completions) co_return co_await complete(dialect::chat, std::move(body));
  if (route.to == endpoint::messages) co_return co_await complete_message(std::move(body));
  if (route.to == endpoint::responses) co_return co_await complete_response(std::move(body));
  if (is_of_response(route.to)) co_return co_await answer_response(r, route);
  if (route.to == endpoint::follow_job) co_return co_await follow_answer(r, route);
  if (route.to == endpoint::asset) {
    const auto codings = joined_lines(r, http::field::accept_encoding);
    reply file = show_asset(r.target(), codings.value_or(""));
    co_return co_await write(std::move(file));
  }
  if (route.to == endpoint::follow_models) co_return co_await follow_models();
  if (is_for_admins(route.to) && route.to != endpoint::list_all_models)
    co_return co_await carry_out(route, std::move(body));
  reply got = co_await answer_route(hub_, route, std::move(body), from_);
  co_return co_await write(std::move(got));
}

asio::awaitable<bool> http_session::write(reply r) {
  if (!r.code.empty()) hub_.counts().rejected.add(r.code);
  if (r.close) state_.end_after_answer();
  const bool more = r.source && r.source->append(r.body);
  if (more) co_return co_await write_pieces(std::move(r));
  const answer_headers limits = rate_limit_headers(from_, hub_.server().service.now());
  whole_answer m = answer_of(std::move(r), form_, limits, state_.goes_on());
  co_await sender_.write(std::move(m));
  co_return state_.goes_on();
}

// The other work of the shard runs between two pieces, also where the client takes them at once.
asio::awaitable<bool> http_session::write_pieces(reply r) {
  if (form_.version < 11) state_.end_after_answer();
  const answer_headers limits = rate_limit_headers(from_, hub_.server().service.now());
  pieces_header head = header_of(r, form_, limits, state_.goes_on());
  co_await sender_.begin(std::move(head));
  for (bool more = true; more;) {
    co_await sender_.write_chunk(r.body, false);
    r.body.clear();
    more = r.source->append(r.body);
  }
  co_await sender_.write_chunk(r.body, true);
  co_return state_.goes_on();
}

}  // namespace weir::net
