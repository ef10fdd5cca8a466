// http_embedding.cpp — an HTTP server as Asio and Beast programs have them, whose sessions ask an actor.
//
//   GET /NAME     how often that page was asked for before: "NAME: 3"
//   GET /never    504: the actor does not answer in time
//   GET /fail     500: the actor throws, and starts afresh
//
// The state is the actor's alone: no lock, whatever threads the sessions run on.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <iostream>
#include <map>
#include <weir/actors.hpp>

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using namespace std::chrono_literals;

struct visit {
  using result = int;
  std::string page;
  weir::reply<int> visits;
  visit(std::string p, weir::reply<int> r) : page(std::move(p)), visits(std::move(r)) {}
};

asio::awaitable<void> count_visits(weir::context<visit> self) {
  std::map<std::string, int> seen;
  std::vector<weir::reply<int>> later;
  while (auto v = co_await self.async_receive()) {
    if (v->page == "fail") throw std::runtime_error("as the page says");  // the asker gets no_reply
    if (v->page == "never") {
      later.push_back(std::move(v->visits));  // a reply may be kept, and answered some other time
      continue;
    }
    v->visits(seen[v->page]++);
  }
}

http::response<http::string_body> reply_with(http::status status, std::string body) {
  http::response<http::string_body> r(status, 11);
  r.body() = std::move(body);
  r.prepare_payload();
  return r;
}

http::status status_of(const boost::system::error_code& why) {
  if (why == weir::actor_error::timed_out) return http::status::gateway_timeout;
  if (why == weir::actor_error::mailbox_full) return http::status::service_unavailable;
  return http::status::internal_server_error;
}

asio::awaitable<http::response<http::string_body>> answer(std::string page, weir::ref<visit> counter) {
  try {
    const int n = co_await weir::with_timeout(2s, counter.ask<visit>(asio::deferred, page));
    co_return reply_with(http::status::ok, page + ": " + std::to_string(n) + "\n");
  } catch (const boost::system::system_error& e) {
    co_return reply_with(status_of(e.code()), e.code().message() + "\n");
  }
}

asio::awaitable<void> session(tcp::socket socket, weir::ref<visit> counter) {
  boost::beast::tcp_stream stream(std::move(socket));
  boost::beast::flat_buffer buffer;
  for (bool more = true; more;) {
    http::request<http::string_body> request;
    co_await http::async_read(stream, buffer, request, asio::use_awaitable);
    const std::string page(request.target().substr(1));
    auto response = co_await answer(page, counter);
    response.keep_alive(more = request.keep_alive());
    co_await http::async_write(stream, response, asio::use_awaitable);
  }
}

asio::awaitable<void> listen(tcp::acceptor acceptor, asio::thread_pool& threads, weir::ref<visit> counter) {
  while (true) {
    auto strand = asio::make_strand(threads);  // a session on any thread; the actor stays where it is
    tcp::socket s = co_await acceptor.async_accept(strand, asio::use_awaitable);
    asio::co_spawn(strand, session(std::move(s), counter), asio::detached);
  }
}

int main(int argc, char** argv) {
  asio::io_context io(1);
  asio::thread_pool threads(2);
  weir::options o{.name = "visits", .restart = {.when = weir::restart_when::on_error, .first_delay = 1ms}};
  auto counter = weir::spawn<visit>(io.get_executor(), o, count_visits);

  tcp::acceptor acceptor(
      io, {asio::ip::address_v4::loopback(), static_cast<unsigned short>(argc > 1 ? std::stoi(argv[1]) : 0)});
  std::cout << "listening on port " << acceptor.local_endpoint().port() << std::endl;
  asio::co_spawn(io, listen(std::move(acceptor), threads, counter), asio::detached);
  io.run();
}
