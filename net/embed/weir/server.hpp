// server.hpp — HTTP, WebSocket and the page of `weir serve`, for an engine inside your own program.
//
//   weir::server server(engine, {.listen = "127.0.0.1:8080"});     // docs/wire.md, docs/openai.md
//
// Connections live on the engine's executor. While it listens a server is outstanding work there.
//
// Thread safety: as the engine's. Declare io_context, engine and server in that order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weir/engine.hpp"

namespace weir {

struct server_options {
  std::string listen = "127.0.0.1:8080";       // HOST:PORT; port 0 picks a free one
  std::vector<std::string> allow_origin = {};  // origins whose pages may connect, beside the server's own
  std::vector<std::string> api_keys = {};      // none: everybody may come in
};

class server {
 public:
  // Listens from now on; until the engine is loaded, requests are refused. Throws engine_error naming
  // `listen`.
  server(engine& e, server_options o);
  ~server();  // close()
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  unsigned short port() const;

  // Closes the listener and every connection, whose jobs are cancelled; they are gone once their handlers
  // have run.
  void close();

  // No new jobs, no new WebSockets; completes with void() once the last job and the last session have ended.
  // The engine's own jobs are counted, and refused from now on, as well.
  template <class Token = boost::asio::use_awaitable_t<>>
  auto async_drain(Token&& completion = {}) {
    auto initiate = [](auto handler, server* self) {
      self->drain(draining(std::move(handler), self->get_executor()));
    };
    return boost::asio::async_initiate<Token, void()>(std::move(initiate), completion, this);
  }

  boost::asio::any_io_executor get_executor() const noexcept;

 private:
  struct state;
  using draining = detail::saved_handler<>;
  void drain(draining handler);

  std::shared_ptr<state> state_;
};

}  // namespace weir
