// embedded_model.cpp — a program that serves a model inside its own process, and submits a job to it itself.
//
//   embedded_model models/rill          a model in Hugging Face layout
//   embedded_model sim:rate=100         a simulated device, which writes numbered words
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <iostream>
#include <weir/engine.hpp>
#include <weir/server.hpp>

namespace asio = boost::asio;

// The tokens of one job, as they come: no socket, no copy of the protocol.
asio::awaitable<void> tell_a_story(weir::engine& engine) {
  weir::job story = engine.submit({.prompt = "Once upon a time", .max_tokens = 24, .seed = 7});
  std::array<weir::token, 16> tokens;
  while (true) {
    auto [end, n] = co_await story.async_read_some(tokens, asio::as_tuple(asio::use_awaitable));
    if (end) break;
    std::cout << story.text(std::span(tokens).first(n)) << std::flush;
  }
  std::cout << "\n[" << story.ended().output_tokens << " tokens, " << story.ended().reason << "]"
            << std::endl;
}

asio::awaitable<void> live(weir::engine& engine, weir::server& server) {
  co_await engine.async_load();
  std::cout << "serving on http://127.0.0.1:" << server.port() << std::endl;
  co_await tell_a_story(engine);

  asio::signal_set asked_to_end(engine.get_executor(), SIGINT, SIGTERM);
  co_await asked_to_end.async_wait(asio::use_awaitable);
  co_await server.async_drain();
  server.close();
}

int main(int argc, char** argv) try {
  const std::string what = argc > 1 ? argv[1] : "sim";
  weir::engine_options options{.model = what};
  if (what.starts_with("sim")) options = {.device = what};

  asio::io_context io(1);  // your program's own: your sockets, timers and actors run on it too
  weir::engine engine(io.get_executor(), options);
  weir::server server(engine, {.listen = "127.0.0.1:0"});
  asio::co_spawn(io, live(engine, server), [](std::exception_ptr failed) {
    if (failed) std::rethrow_exception(failed);
  });
  io.run();
} catch (const std::exception& e) {
  std::cerr << e.what() << '\n';
  return 1;
}
