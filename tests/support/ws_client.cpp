#include "tests/support/ws_client.h"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <boost/json/parse.hpp>
#include <catch2/catch.hpp>

namespace weir::tests {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace websocket = beast::websocket;

struct ws_client::parts {
  asio::io_context io;
  websocket::stream<asio::ip::tcp::socket> ws{io};
  websocket::response_type response;
};

ws_client::ws_client(unsigned short port, ws_options o) : p_(std::make_unique<parts>()) {
  auto& socket = p_->ws.next_layer();
  socket.open(asio::ip::tcp::v4());
  if (o.receive_buffer) socket.set_option(asio::socket_base::receive_buffer_size(o.receive_buffer));
  socket.connect({asio::ip::make_address("127.0.0.1"), port});
  p_->ws.set_option(websocket::stream_base::decorator([o](websocket::request_type& r) {
    if (!o.protocols.empty()) r.set(http::field::sec_websocket_protocol, o.protocols);
    if (!o.origin.empty()) r.set(http::field::origin, o.origin);
    if (!o.authorization.empty()) r.set(http::field::authorization, o.authorization);
  }));
  p_->ws.read_message_max(64 << 20);
  const std::string host = o.host.empty() ? "127.0.0.1:" + std::to_string(port) : o.host;
  wait([&](auto done) { p_->ws.async_handshake(p_->response, host, o.path, done); });
}

ws_client::~ws_client() = default;

template <class Start>
void ws_client::wait(Start start) {
  bool over = false;
  start([&](error_code ec, std::size_t = 0) {
    failed_ = ec;
    over = true;
  });
  p_->io.restart();
  p_->io.run_for(std::chrono::seconds(60));
  if (over) return;
  drop();
  p_->io.restart();
  p_->io.run();
  FAIL("the server did nothing for a minute");
}

unsigned ws_client::status() const { return p_->response.result_int(); }
std::string ws_client::header(std::string_view name) const {
  return std::string(p_->response[beast::string_view(name.data(), name.size())]);
}
std::uint16_t ws_client::close_code() const { return p_->ws.reason().code; }

void ws_client::send(std::string_view text) {
  p_->ws.text(true);
  wait([&](auto done) { p_->ws.async_write(asio::buffer(text), done); });
}
void ws_client::send_binary(std::string_view bytes) {
  p_->ws.binary(true);
  wait([&](auto done) { p_->ws.async_write(asio::buffer(bytes), done); });
}
void ws_client::send_raw(std::string_view bytes) { asio::write(p_->ws.next_layer(), asio::buffer(bytes)); }

std::optional<ws_client::object> ws_client::next() {
  beast::flat_buffer buffer;
  wait([&](auto done) { p_->ws.async_read(buffer, done); });
  if (failed_) return std::nullopt;
  last = beast::buffers_to_string(buffer.data());
  return boost::json::parse(last).as_object();
}
ws_client::object ws_client::read() {
  auto got = next();
  INFO("the socket ended: " << failed_.message() << ", close code " << close_code());
  REQUIRE(got);
  return *got;
}
ws_client::object ws_client::read(std::string_view type) {
  for (;;) {
    object o = read();
    if (o.at("type") == boost::json::string_view(type.data(), type.size())) return o;
  }
}
std::uint16_t ws_client::until_closed() {
  while (next()) {
  }
  return close_code();
}

void ws_client::close() {
  wait([&](auto done) { p_->ws.async_close(websocket::close_code::normal, done); });
}
void ws_client::drop() {
  error_code ignored;
  p_->ws.next_layer().close(ignored);
}

void lane_reader::take(const boost::json::object& frame) {
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

}  // namespace weir::tests
