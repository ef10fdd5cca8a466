#include "weir/server.hpp"

#include "net/access/origin.h"
#include "net/embed/engine_state.h"
#include "net/server.h"

namespace weir {
namespace {

static_assert(server_options{}.listen == core::listener_settings{}.listen);

net::server_options options_of(server_options o) {
  net::server_options n;
  n.listen = std::move(o.listen);
  auto origins = net::parse_origins(o.allow_origin);
  if (!origins) throw to_exception(origins.error());
  n.allow_origin = std::move(*origins);
  for (const auto& key : o.api_keys) n.api_keys.emplace_back(key);
  return n;
}

}  // namespace

struct server::state {
  state(actors::service& service, boost::asio::any_io_executor e, server_options o)
      : ex(std::move(e)), shards(ex), does(service, shards, options_of(std::move(o))) {}

  boost::asio::any_io_executor ex;
  net::shards shards;
  net::server does;
  draining handler;
};

server::server(engine& e, server_options o)
    : state_(std::make_shared<state>(e.state_->service, e.get_executor(), std::move(o))) {
  if (auto ok = state_->does.start(); !ok) throw to_exception(ok.error());
}

server::~server() = default;

unsigned short server::port() const { return state_->does.port(); }
void server::close() { state_->does.stop(); }
boost::asio::any_io_executor server::get_executor() const noexcept { return state_->ex; }

void server::drain(draining handler) {
  state_->handler = std::move(handler);
  state_->does.drain([weak = std::weak_ptr(state_)] {
    if (auto s = weak.lock(); s && s->handler) s->handler.post();
  });
}

}  // namespace weir
