// server.hpp — HTTP, WebSocket and the page of `weir serve`, for an engine inside your own program.
//
//   weir::server server(engine, {.listen = "127.0.0.1:8080"});     // docs/wire.md, docs/openai.md
//
// Connections are served on the engine's executor. While the server listens, it is outstanding work there.
// Declare io_context, engine and server in this order.
//
// Thread safety: as the engine's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weir/engine.hpp"

namespace weir {

struct server_options {
  std::string listen = "127.0.0.1:8080";       // HOST:PORT; port 0: any free port
  std::vector<std::string> allow_origin = {};  // origins whose pages may connect, beside the server's own
  std::vector<std::string> api_keys = {};      // empty: no key is needed
};

class server {
 public:
  // Starts to listen. Until the engine is loaded, requests are refused. Throws engine_error, which names
  // `listen`, if the address cannot be used.
  server(engine& e, server_options o);
  ~server();  // calls close()
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  unsigned short port() const;

  // Closes the listener and every connection, and cancels the jobs of the connections. The connections are
  // destroyed once their handlers have run.
  void close();

  // From now on new jobs and new WebSockets are refused. Completes with void() once the last job and the last
  // session have ended. This includes the jobs that the program submits to the engine itself.
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
