#include "tests/support/http_client.h"

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>

namespace weir::tests {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using error_code = boost::system::error_code;

std::string http_answer::header(std::string_view name) const {
  for (const auto& [n, value] : headers) {
    if (beast::iequals(n, {name.data(), name.size()})) return value;
  }
  return {};
}
boost::json::value http_answer::json() const { return boost::json::parse(text); }

struct http_client::parts {
  asio::io_context io;
  asio::ip::tcp::socket socket{io};
  beast::flat_buffer buffer;
};

http_client::http_client(unsigned short port) : port_(port), p_(std::make_unique<parts>()) {
  p_->socket.connect({asio::ip::make_address("127.0.0.1"), port});
}
http_client::~http_client() = default;

http_answer http_client::ask(std::string_view method, std::string_view target, std::string_view body,
                             std::string_view more) {
  send(request(method, target, body, more));
  return read(method == "HEAD");
}

std::string http_client::request(std::string_view method, std::string_view target, std::string_view body,
                                 std::string_view more) const {
  std::string out = fmt::format("{} {} HTTP/1.1\r\n", method, target);
  if (more.find("Host:") == more.npos) out += fmt::format("Host: 127.0.0.1:{}\r\n", port_);
  if (method == "POST") {
    if (more.find("Content-Type:") == more.npos) out += "Content-Type: application/json\r\n";
    out += fmt::format("Content-Length: {}\r\n", body.size());
  }
  return out.append(more).append("\r\n").append(body);
}

void http_client::send(std::string_view bytes) {
  error_code ignored;  // a server may hang up while it is being sent to
  asio::write(p_->socket, asio::buffer(bytes), ignored);
}

template <class Start>
error_code http_client::wait(Start start) {
  bool over = false;
  error_code result;
  start([&](error_code ec, std::size_t) {
    result = ec;
    over = true;
  });
  p_->io.restart();
  p_->io.run_for(std::chrono::seconds(60));
  if (over) return result;
  drop();
  p_->io.restart();
  p_->io.run();
  FAIL("the server did nothing for a minute");
  return result;
}

http_answer http_client::read(bool head) {
  http::response_parser<http::string_body> parser;
  parser.skip(head);
  parser.body_limit(64 << 20);
  const error_code ec = wait([&](auto done) { http::async_read(p_->socket, p_->buffer, parser, done); });
  http_answer out;
  if (ec) return out;
  const auto& message = parser.get();
  out.status = message.result_int();
  for (const auto& field : message) out.headers.emplace_back(field.name_string(), field.value());
  out.text = message.body();
  return out;
}

std::string http_client::read_some() {
  std::string out(4096, '\0');
  std::size_t n = 0;
  wait([&](auto done) {
    p_->socket.async_read_some(asio::buffer(out), [&n, done](error_code ec, std::size_t got) {
      n = got;
      done(ec, got);
    });
  });
  out.resize(n);
  return out;
}
std::string http_client::read_until(std::string_view text) {
  std::string seen;
  while (seen.find(text) == seen.npos) {
    const auto more = read_some();
    REQUIRE(!more.empty());
    seen += more;
  }
  return seen;
}

void http_client::drop() {
  error_code ignored;
  p_->socket.close(ignored);
}

}  // namespace weir::tests
