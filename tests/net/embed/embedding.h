// embedding.h — a program that embeds an engine on the simulated device, on one io_context, for tests.
#pragma once

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "tests/support/sim_text.h"
#include "weir/engine.hpp"

namespace weir::tests {

namespace net = boost::asio;
using error_code = boost::system::error_code;
using weir::engine;
using weir::job;
using weir::token;

// Runs a coroutine to its end, and with it whatever else the context holds; what it throws fails the test.
inline void go(net::io_context& io, net::awaitable<void> body) {
  net::co_spawn(io, std::move(body), [](std::exception_ptr e) {
    if (e) std::rethrow_exception(e);
  });
  io.restart();
  io.run();
}

inline engine_options sim(const std::string& spec = "rate=5000,prefill=100000000") {
  return {.device = "sim:" + spec};
}

inline request ask(std::int64_t tokens, std::uint64_t seed = 7) {
  return {.prompt = "a b", .max_tokens = tokens, .seed = seed};
}

// The rest of a job's text, read `at_once` tokens at a time. Checks that no token is missing or repeated.
inline net::awaitable<std::string> read_all(job& j, std::size_t at_once, std::uint32_t from = 0) {
  std::vector<token> some(at_once);
  std::string text;
  while (true) {
    auto [ec, n] = co_await j.async_read_some(some, net::as_tuple(net::use_awaitable));
    if (ec) {
      CHECK(ec == net::error::eof);
      CHECK(n == 0);
      co_return text;
    }
    REQUIRE(n > 0);
    for (std::size_t i = 0; i < n; ++i) CHECK(some[i].index == from++);
    text += j.text(std::span(some).first(n));
  }
}

}  // namespace weir::tests
