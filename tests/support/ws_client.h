// ws_client.h — a WebSocket client for tests: one call at a time, each with a limit, on whatever thread
// calls.
#pragma once

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <catch2/catch.hpp>
#include <optional>
#include <string>

namespace weir::tests {

struct ws_options {
  std::string protocols = "weir.v1";
  std::string origin, authorization, host;
  int receive_buffer = 0;  // the kernel's; 0: as it comes
};

class ws_client {
 public:
  using object = boost::json::object;
  using error_code = boost::system::error_code;

  explicit ws_client(unsigned short port, ws_options o = {}) {
    namespace websocket = boost::beast::websocket;
    auto& socket = ws_.next_layer();
    socket.open(boost::asio::ip::tcp::v4());
    if (o.receive_buffer) socket.set_option(boost::asio::socket_base::receive_buffer_size(o.receive_buffer));
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), port});
    ws_.set_option(websocket::stream_base::decorator([o](websocket::request_type& r) {
      namespace http = boost::beast::http;
      if (!o.protocols.empty()) r.set(http::field::sec_websocket_protocol, o.protocols);
      if (!o.origin.empty()) r.set(http::field::origin, o.origin);
      if (!o.authorization.empty()) r.set(http::field::authorization, o.authorization);
    }));
    ws_.read_message_max(64 << 20);
    const std::string host = o.host.empty() ? "127.0.0.1:" + std::to_string(port) : o.host;
    wait([&](auto done) { ws_.async_handshake(response, host, "/v1/stream", done); });
  }

  bool open() const { return !failed_; }
  error_code error() const { return failed_; }
  std::uint16_t close_code() const { return ws_.reason().code; }

  void send(std::string_view text) {
    ws_.text(true);
    wait([&](auto done) { ws_.async_write(boost::asio::buffer(text), done); });
  }
  void send_binary(std::string_view bytes) {
    ws_.binary(true);
    wait([&](auto done) { ws_.async_write(boost::asio::buffer(bytes), done); });
  }
  void send_raw(std::string_view bytes) { boost::asio::write(ws_.next_layer(), boost::asio::buffer(bytes)); }

  // The next frame, or nothing where the socket has ended.
  std::optional<object> next() {
    boost::beast::flat_buffer buffer;
    wait([&](auto done) { ws_.async_read(buffer, done); });
    if (failed_) return std::nullopt;
    last = boost::beast::buffers_to_string(buffer.data());
    return boost::json::parse(last).as_object();
  }
  object read() {
    auto got = next();
    INFO("the socket ended: " << failed_.message() << ", close code " << ws_.reason().code);
    REQUIRE(got);
    return *got;
  }
  // Skips everything before the next frame of this type.
  object read(std::string_view type) {
    for (;;) {
      object o = read();
      if (o.at("type") == boost::json::string_view(type.data(), type.size())) return o;
    }
  }
  // Reads until the socket ends, and says how.
  std::uint16_t until_closed() {
    while (next()) {
    }
    return close_code();
  }

  void close() {
    wait([&](auto done) { ws_.async_close(boost::beast::websocket::close_code::normal, done); });
  }
  // As a peer that is gone: no closing handshake.
  void drop() {
    error_code ignored;
    ws_.next_layer().close(ignored);
  }

  boost::beast::websocket::response_type response;
  std::string last;  // text of the last frame

 private:
  template <class Start>
  void wait(Start start) {
    bool over = false;
    start([&](error_code ec, std::size_t = 0) {
      failed_ = ec;
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
  }

  boost::asio::io_context io_;
  boost::beast::websocket::stream<boost::asio::ip::tcp::socket> ws_{io_};
  error_code failed_;
};

// What a lane showed, checked frame by frame: seq strictly rising, n covering exactly what was new.
struct lane_reader {
  std::string text;
  std::uint64_t seq = 0;
  std::vector<std::int64_t> ids;
  std::int64_t t = 0;
  std::optional<boost::json::object> done;

  void take(const boost::json::object& frame) {
    const auto& type = frame.at("type").as_string();
    REQUIRE(!done);
    if (type == "response.delta") {
      const auto upto = frame.at("seq").to_number<std::uint64_t>();
      const auto n = frame.contains("n") ? frame.at("n").to_number<std::uint64_t>() : 1;
      REQUIRE(upto - n == seq);
      seq = upto;
      text += std::string_view(frame.at("delta").as_string());
      if (auto* more = frame.if_contains("token_ids")) {
        REQUIRE(more->as_array().size() == n);
        for (auto& id : more->as_array()) ids.push_back(id.as_int64());
      }
      if (auto* at = frame.if_contains("t")) {
        REQUIRE(at->as_int64() >= t);
        t = at->as_int64();
      }
    } else if (type == "response.done") {
      REQUIRE(frame.at("seq").to_number<std::uint64_t>() == seq);
      done = frame;
    }
  }
};

}  // namespace weir::tests
