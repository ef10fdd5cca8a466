#include "net/server.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>
#include <thread>

#include "net/access/handshake.h"
#include "net/http/http_session.h"
#include "net/hub.h"
#include "net/lasting_coroutine.h"
#include "net/protocol/openai.h"
#include "net/response_store.h"

namespace weir::net {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::chrono::milliseconds tick_every{250};
constexpr std::chrono::seconds longest_stop{10};

asio::awaitable<void> pause(const actors::executor& ex, std::chrono::milliseconds how_long) {
  asio::steady_timer timer(ex, how_long);
  error_code ignored;
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

// How long a thread sleeps after an exception in a loop that must go on. A timer would need memory, which may
// be what is missing.
constexpr std::chrono::milliseconds until_memory{10};

core::error cannot_listen(const char* option, std::string_view text, std::string_view why) {
  return core::bad_param(option, "--{} {}: {}", option, text, why);
}

constexpr const char* metrics_option = "metrics-listen";

}  // namespace

core::result<listen_address> parse_listen(std::string_view text, const char* option) {
  const auto colon = text.rfind(':');
  if (colon == text.npos || colon == 0) return cannot_listen(option, text, "has to be HOST:PORT");
  listen_address out;
  std::string_view host = text.substr(0, colon), port = text.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), out.port);
  if (port.empty() || parsed.ec != std::errc() || parsed.ptr != port.data() + port.size()) {
    return cannot_listen(option, text, "the port has to be a number from 0 to 65535");
  }
  out.host = host;
  return out;
}

core::result<listen_address> parse_metrics_listen(std::string_view text) {
  const bool is_port = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  return parse_listen(is_port ? fmt::format("127.0.0.1:{}", text) : std::string(text), metrics_option);
}

bool open_to_anyone(const server_options& o) {
  const auto address = parse_listen(o.listen);
  return address && o.api_keys.empty() && !is_local_name(address->host);
}

bool metrics_open_to_anyone(const server_options& o) {
  const auto address = parse_metrics_listen(o.metrics_listen);
  return address && !is_local_name(address->host);
}

struct server::parts : std::enable_shared_from_this<parts> {
  // An address that is listened on.
  struct listening {
    listening(const actors::executor& ex, entrance& w) : acceptor(ex), where(w) {}
    core::result<void> begin(const listen_address& at, const char* option, std::string_view text);

    tcp::acceptor acceptor;
    entrance& where;
    unsigned short port = 0;  // as bound; 0: it is not listened on
  };

  parts(actors::service& s, shards& io, server_options o)
      : all(std::make_shared<server_state>(s, std::move(o))),
        main(io.at(0), all->main),
        metrics(io.at(0), all->metrics),
        waits(io.run_themselves()) {
    for (std::size_t i = 0; i < io.size(); ++i) {
      hubs.push_back(std::make_shared<hub>(all, io.at(i)));
      all->hubs.push_back(hubs.back());
    }
    const server_limits& l = all->options.limits;
    all->responses = std::make_shared<response_desk>(
        io.at(0), std::make_unique<response_store>(
                      s.clock(), store_limits{l.store, std::uint64_t{l.store_mb} << 20}, s.memory()));
  }

  core::result<void> listen();
  void begin_accepting(listening& on);
  asio::awaitable<void> accept(listening& on);
  asio::awaitable<void> accept_one(listening& on, const std::shared_ptr<hub>& h);
  reserve::place accept_with_reserve(listening& on, tcp::socket& socket, error_code& ec);
  asio::awaitable<void> keep_time(std::shared_ptr<hub> h);
  void settle(tcp::socket socket, const entrance& by, const std::shared_ptr<hub>& h, reserve::place reserved);
  void refill_reserves();
  void tell_all(hub::event e);

  std::shared_ptr<server_state> all;
  std::vector<std::shared_ptr<hub>> hubs;
  listening main, metrics;
  const bool waits;                    // stop() waits until every coroutine has ended
  std::atomic<bool> jobs_over{false};  // the service has drained: no job is left
  std::function<void()> on_idle;       // used on shard 0
};

core::result<void> server::parts::listening::begin(const listen_address& at, const char* option,
                                                   std::string_view text) {
  error_code ec;
  tcp::resolver resolver(acceptor.get_executor());
  const auto found = resolver.resolve(at.host, std::to_string(at.port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service, ec);
  if (ec) return cannot_listen(option, text, ec.message());
  const tcp::endpoint here = *found.begin();
  acceptor.open(here.protocol(), ec);
  if (!ec) acceptor.set_option(tcp::acceptor::reuse_address(true), ec);
  if (!ec) acceptor.bind(here, ec);
  if (!ec) acceptor.listen(asio::socket_base::max_listen_connections, ec);
  if (!ec) acceptor.non_blocking(true, ec);  // for accept_with_reserve()
  if (ec) return cannot_listen(option, text, ec.message());
  port = acceptor.local_endpoint().port();
  where.host = at.host;
  where.loopback = here.address().is_loopback();
  return {};
}

core::result<void> server::parts::listen() {
  const server_options& o = all->options;
  const auto address = parse_listen(o.listen);
  if (!address) return address.error();
  if (auto fields = openai::reasoning_fields(o.limits.reasoning_field); !fields)
    return core::bad_param("reasoning-field", "--reasoning-field: {}", fields.error().message);
  if (auto listens = main.begin(*address, "listen", o.listen); !listens || o.metrics_listen.empty())
    return listens;
  const auto beside = parse_metrics_listen(o.metrics_listen);
  if (!beside) return beside.error();
  return metrics.begin(*beside, metrics_option, o.metrics_listen);
}

void server::parts::begin_accepting(listening& on) {
  if (on.port == 0) return;
  auto body = [p = shared_from_this(), &on, counted = std::make_shared<const counted_coroutine>(all)] {
    return p->accept(on);
  };
  spawn_lasting(on.acceptor.get_executor(), std::move(body));
}

asio::awaitable<void> server::parts::accept(listening& on) {
  for (std::size_t next = 0; !all->stopping; next = (next + 1) % hubs.size()) {
    try {
      co_await accept_one(on, hubs[next]);
    } catch (...) {
      all->seen.note("a new connection", std::current_exception());
      std::this_thread::sleep_for(until_memory);
    }
  }
}

asio::awaitable<void> server::parts::accept_one(listening& on, const std::shared_ptr<hub>& h) {
  tcp::socket socket(h->executor());
  error_code ec;
  co_await on.acceptor.async_accept(socket, asio::redirect_error(asio::use_awaitable, ec));
  if (all->stopping || ec == asio::error::operation_aborted) co_return;
  reserve::place reserved;
  if (ec == asio::error::no_descriptors) reserved = accept_with_reserve(on, socket, ec);
  // The process has no descriptor left, or the peer has gone already. Neither ends the server.
  if (ec) co_return co_await pause(on.acceptor.get_executor(), std::chrono::milliseconds(50));
  settle(std::move(socket), on.where, h, std::move(reserved));
}

// Accepts the connection for which there was no descriptor with one of the reserve. `ec` stays where all of
// its places are taken. Does not wait.
reserve::place server::parts::accept_with_reserve(listening& on, tcp::socket& socket, error_code& ec) {
  reserve::place place = on.where.reserve->enter();
  if (place) on.acceptor.accept(socket, ec);
  if (ec) return {};
  return place;
}

// A connection that finds no memory comes in by a place of the reserve, if one is free.
void server::parts::settle(tcp::socket socket, const entrance& by, const std::shared_ptr<hub>& h,
                           reserve::place reserved) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::send_buffer_size(h->limits().send_buffer), ignored);
  const auto from = socket.remote_endpoint(ignored).address();
  auto caller = all->callers->enter(from.to_string(ignored));
  core::memory_hold memory(all->service.memory());
  if (caller.hopeless()) return;
  if (!memory.resize(connection_bytes)) {
    if (!reserved) reserved = by.reserve->enter();
    if (!reserved) return;
    memory.force(connection_bytes);
  }
  auto begin = [h, &by, s = std::move(socket), caller = std::move(caller), memory = std::move(memory),
                reserved = std::move(reserved)]() mutable {
    if (h->server().stopping) return;
    auto session = std::make_shared<http_session>(h, by, std::move(s), std::move(caller), std::move(memory),
                                                  std::move(reserved));
    asio::co_spawn(
        h->executor(), [session]() { return session->run(); }, asio::detached);
  };
  asio::post(h->executor(), std::move(begin));
}

// Tells the hub four times a second that time has passed. On the first shard, also calls `on_idle` when a
// drain is complete.
asio::awaitable<void> server::parts::keep_time(std::shared_ptr<hub> h) {
  // the clocks and the acceptors are coroutines too
  const std::int64_t ours = static_cast<std::int64_t>(hubs.size()) + (metrics.port == 0 ? 1 : 2);
  while (!all->stopping) {
    try {
      h->tell(hub::event::tick);
      const bool first = h == hubs.front();
      if (first) {
        refill_reserves();
        all->responses->tell([](response_store& store) { store.tick(); });
      }
      if (first && on_idle && jobs_over && all->sessions == 0 && all->coroutines() <= ours)
        std::exchange(on_idle, nullptr)();
      co_await pause(h->executor(), tick_every);
    } catch (...) {
      all->seen.note("a shard's clock", std::current_exception());
      std::this_thread::sleep_for(until_memory);
    }
  }
  h->jobs().release();
}

void server::parts::refill_reserves() {
  for (const entrance* e : {&all->main, &all->metrics}) e->reserve->refill();
}

void server::parts::tell_all(hub::event e) {
  for (auto& h : hubs) {
    asio::post(h->executor(), [h, e] { h->tell(e); });
  }
}

server::server(actors::service& service, shards& io, server_options options)
    : p_(std::make_shared<parts>(service, io, std::move(options))) {}

server::~server() { stop(); }

core::result<void> server::start() {
  if (auto listening = p_->listen(); !listening) return listening.error();
  for (auto& h : p_->hubs) {
    auto body = [p = p_, h, counted = std::make_shared<const counted_coroutine>(p_->all)] {
      return p->keep_time(h);
    };
    spawn_lasting(h->executor(), std::move(body));
  }
  p_->begin_accepting(p_->main);
  p_->begin_accepting(p_->metrics);
  return {};
}

std::string server::host() const { return p_->main.where.host; }
unsigned short server::port() const { return p_->main.port; }

std::optional<listen_address> server::metrics() const {
  if (p_->metrics.port == 0) return std::nullopt;
  return listen_address{p_->metrics.where.host, p_->metrics.port};
}

known_bearers::difference server::set_keys(std::span<const api_key> keys) {
  const auto difference = p_->all->bearers.replace(keys, p_->all->service.now());
  set_keys_stale(false);
  if (difference.removed > 0) p_->tell_all(hub::event::keys_changed);
  return difference;
}

void server::set_keys_stale(bool on) { p_->all->keys_stale = on; }

void server::drain(std::function<void()> idle) {
  if (p_->all->draining.exchange(true)) return;
  auto set = [p = p_, idle = std::move(idle)]() mutable { p->on_idle = std::move(idle); };
  asio::post(p_->hubs.front()->executor(), std::move(set));
  p_->tell_all(hub::event::drain);
  p_->all->service.drain(p_->hubs.front()->executor(), [p = p_] { p->jobs_over = true; });
}

void server::stop() {
  if (p_->all->stopping.exchange(true)) return;
  asio::post(p_->main.acceptor.get_executor(), [p = p_] {
    error_code ignored;
    p->main.acceptor.close(ignored);
    p->metrics.acceptor.close(ignored);
  });
  p_->tell_all(hub::event::close);
  if (p_->waits) p_->all->wait_all_ended(longest_stop);
}

}  // namespace weir::net
