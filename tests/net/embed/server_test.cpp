// A server on the caller's own io_context.
#include "weir/server.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "embedding.h"

namespace weir::tests::server_test {

using net::ip::tcp;

namespace {

// One HTTP exchange on a connection of its own; everything that came back.
net::awaitable<std::string> exchange(server& s, std::string method, std::string target,
                                     std::string body = "") {
  tcp::socket socket(s.get_executor());
  const tcp::endpoint there(net::ip::address_v4::loopback(), s.port());
  co_await socket.async_connect(there, net::use_awaitable);
  std::string asked = method + " " + target + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
  if (!body.empty()) asked += "Content-Type: application/json\r\n";
  asked += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  co_await net::async_write(socket, net::buffer(asked), net::use_awaitable);
  std::string answer;
  co_await net::async_read(socket, net::dynamic_buffer(answer), net::as_tuple(net::use_awaitable));
  co_return answer;
}

server_options anywhere() { return {.listen = "127.0.0.1:0"}; }

}  // namespace

TEST_CASE("sockets and jobs of the program itself share engine, context and tokens") {
  net::io_context io(1);
  engine e(io.get_executor(), sim());
  server s(e, anywhere());
  go(io, [](engine& e, server& s) -> net::awaitable<void> {
    co_await e.async_load();
    job mine = e.submit(ask(50));
    const std::string question = R"({"prompt":"a b","max_tokens":50,"seed":7})";
    const std::string over_http = co_await exchange(s, "POST", "/v1/completions", question);
    const std::string read_here = co_await read_all(mine, 16);
    CHECK(read_here == sim_text(7, 50));
    CHECK(over_http.find(sim_text(7, 49)) != std::string::npos);
    const std::string page = co_await exchange(s, "GET", "/");
    CHECK(page.starts_with("HTTP/1.1 200"));
    s.close();
  }(e, s));
}

TEST_CASE("an embedded server refuses requests until its engine has loaded") {
  net::io_context io(1);
  engine e(io.get_executor(), sim());
  server s(e, anywhere());
  go(io, [](engine& e, server& s) -> net::awaitable<void> {
    const std::string early = co_await exchange(s, "GET", "/health/ready");
    CHECK(early.starts_with("HTTP/1.1 503"));
    co_await e.async_load();
    const std::string now = co_await exchange(s, "GET", "/health/ready");
    CHECK(now.starts_with("HTTP/1.1 200"));
    s.close();
  }(e, s));
}

TEST_CASE("an address that cannot be used is an engine_error that names listen") {
  net::io_context io(1);
  engine e(io.get_executor(), sim());
  server first(e, anywhere());
  const auto taken = "127.0.0.1:" + std::to_string(first.port());
  try {
    server second(e, {.listen = taken});
    FAIL("listens where another does");
  } catch (const engine_error& why) {
    CHECK(why.field() == "listen");
    CHECK(std::string(why.what()).find(taken) != std::string::npos);
  }
}

TEST_CASE("a drain waits for the jobs that run") {
  net::io_context io(1);
  engine e(io.get_executor(), sim("rate=500,prefill=100000000"));
  server s(e, anywhere());
  go(io, [](engine& e, server& s) -> net::awaitable<void> {
    co_await e.async_load();
    job mine = e.submit(ask(40));
    std::array<token, 1> one;
    co_await mine.async_read_some(one);
    co_await s.async_drain();
    const std::string rest = co_await read_all(mine, 64, 1);
    CHECK(mine.ended().reason == "length");
    job late = e.submit(ask(1));
    co_await read_all(late, 1);
    CHECK(late.ended().reason == "refused");
    s.close();
  }(e, s));
}

TEST_CASE("engine and server may go while connections and jobs are alive") {
  for (int i = 0; i < 10; ++i) {
    net::io_context io(1);
    engine e(io.get_executor(), sim("rate=500,prefill=100000000"));
    go(io, e.async_load());
    server s(e, anywhere());
    const auto client = [&]() -> net::awaitable<void> {
      const std::string question = R"({"prompt":"a","max_tokens":5000,"stream":true})";
      co_await exchange(s, "POST", "/v1/completions", question);
    };
    for (int c = 0; c < 3; ++c) net::co_spawn(io, client(), net::detached);
    io.restart();
    io.run_for(std::chrono::milliseconds(3 * i));
    if (i % 2) s.close();
  }
}

}  // namespace weir::tests::server_test
