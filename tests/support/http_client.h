// http_client.h — an HTTP client for tests that sends any bytes it is told to, and reads answers with a
// limit.
#pragma once

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
#include <string>

namespace weir::tests {

inline boost::json::value json_text(std::string_view text) {
  return boost::json::string(text.data(), text.size());
}

struct http_answer {
  unsigned status = 0;  // 0: the connection ended without one
  boost::beast::http::response<boost::beast::http::string_body> message;

  std::string header(std::string_view name) const {
    return std::string(message[boost::beast::string_view(name.data(), name.size())]);
  }
  const std::string& body() const { return message.body(); }
  boost::json::value json() const { return boost::json::parse(body()); }
  boost::json::value error() const { return json().at("error"); }
};

class http_client {
 public:
  using error_code = boost::system::error_code;

  explicit http_client(unsigned short port) : port_(port) {
    socket_.connect({boost::asio::ip::make_address("127.0.0.1"), port});
  }

  http_answer get(std::string_view target, std::string_view more = {}) {
    return ask("GET", target, {}, more);
  }
  http_answer post(std::string_view target, std::string_view body, std::string_view more = {}) {
    return ask("POST", target, body, more);
  }
  http_answer ask(std::string_view method, std::string_view target, std::string_view body,
                  std::string_view more) {
    send(request(method, target, body, more));
    return read(method == "HEAD");
  }

  std::string request(std::string_view method, std::string_view target, std::string_view body,
                      std::string_view more) const {
    std::string out = fmt::format("{} {} HTTP/1.1\r\n", method, target);
    if (more.find("Host:") == more.npos) out += fmt::format("Host: 127.0.0.1:{}\r\n", port_);
    if (method == "POST") {
      if (more.find("Content-Type:") == more.npos) out += "Content-Type: application/json\r\n";
      out += fmt::format("Content-Length: {}\r\n", body.size());
    }
    return out.append(more).append("\r\n").append(body);
  }

  void send(std::string_view bytes) {
    error_code ignored;  // a server may hang up while it is being sent to
    boost::asio::write(socket_, boost::asio::buffer(bytes), ignored);
  }

  http_answer read(bool head = false) {
    boost::beast::http::response_parser<boost::beast::http::string_body> parser;
    parser.skip(head);
    parser.body_limit(64 << 20);
    const error_code ec =
        wait([&](auto done) { boost::beast::http::async_read(socket_, buffer_, parser, done); });
    http_answer out;
    if (ec) return out;
    out.message = parser.release();
    out.status = out.message.result_int();
    return out;
  }

  // Bytes as they come, at least one; empty at the end.
  std::string read_some() {
    std::string out(4096, '\0');
    std::size_t n = 0;
    wait([&](auto done) {
      socket_.async_read_some(boost::asio::buffer(out), [&n, done](error_code ec, std::size_t got) {
        n = got;
        done(ec, got);
      });
    });
    out.resize(n);
    return out;
  }
  // Bytes up to and past this text.
  std::string read_until(std::string_view text) {
    std::string seen;
    while (seen.find(text) == seen.npos) {
      const auto more = read_some();
      REQUIRE(!more.empty());
      seen += more;
    }
    return seen;
  }
  bool ended() { return read_some().empty(); }

  void drop() {
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  template <class Start>
  error_code wait(Start start) {
    bool over = false;
    error_code result;
    start([&](error_code ec, std::size_t) {
      result = ec;
      over = true;
    });
    io_.restart();
    io_.run_for(std::chrono::seconds(60));
    if (!over) {
      drop();
      io_.restart();
      io_.run();
      FAIL("the server did nothing for a minute");
    }
    return result;
  }

  unsigned short port_;
  boost::asio::io_context io_;
  boost::asio::ip::tcp::socket socket_{io_};
  boost::beast::flat_buffer buffer_;
};

}  // namespace weir::tests
