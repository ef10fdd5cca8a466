#include "net/ws/ws_transport.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <catch2/catch.hpp>
#include <functional>
#include <random>

namespace weir::tests::ws_transport_test {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

// A client that Beast wrote, and a server's end on our wire, over a connection whose buffers are small.
struct pair_of_ends {
  explicit pair_of_ends(int buffer, std::uint64_t most_bytes = 1 << 30) {
    tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    tcp::socket theirs(io), ours(io);
    theirs.open(tcp::v4());
    theirs.set_option(asio::socket_base::receive_buffer_size(buffer));
    theirs.connect(acceptor.local_endpoint());
    acceptor.accept(ours);
    ours.set_option(asio::socket_base::send_buffer_size(buffer));
    ours.set_option(tcp::no_delay(true));
    client.emplace(std::move(theirs));
    net::rate_meter any_rate(1e9, 1e9, 0, std::chrono::steady_clock::now());
    server.emplace(net::ws_transport(std::move(ours), net::ws_frame_watch(most_bytes, any_rate), 1 << 20));
    client->read_message_max(0);
    int open = 0;
    server->async_accept([&](error_code ec) { open += !ec; });
    client->async_handshake("weir", "/", [&](error_code ec) { open += !ec; });
    while (open < 2 && io.run_one() > 0) {
    }
    REQUIRE(open == 2);
  }

  net::ws_transport& way() { return server->next_layer(); }

  asio::io_context io;
  asio::executor_work_guard<asio::io_context::executor_type> stays = asio::make_work_guard(io);
  std::optional<websocket::stream<tcp::socket>> client;
  std::optional<websocket::stream<net::ws_transport, false>> server;
};

std::string letters(std::size_t n, std::mt19937& random) {
  std::string s(n, ' ');
  for (char& c : s) c = static_cast<char>('a' + random() % 26);
  return s;
}

}  // namespace

TEST_CASE("ws transport: a frame of every length is read as it was written") {
  pair_of_ends ends(1 << 20);
  std::mt19937 random(1);
  for (const std::size_t size : {0, 1, 125, 126, 127, 65535, 65536, 200000}) {
    net::text_frame frame;
    const std::string payload = letters(size, random);
    frame.payload() += payload;
    auto rest = ends.way().try_write(frame.finish());
    bool sent = rest.empty();
    if (!sent) ends.way().write(rest, [&](error_code ec) { sent = !ec; });
    beast::flat_buffer heard;
    bool read = false;
    ends.client->async_read(heard, [&](error_code ec, std::size_t) { read = !ec; });
    while (!(read && sent) && ends.io.run_one() > 0) {
    }
    REQUIRE(read);
    CHECK(ends.client->got_text());
    CHECK(beast::buffers_to_string(heard.data()) == payload);
  }
}

TEST_CASE("ws transport: pongs and frames never mix, however full the send buffer is") {
  const auto seed = GENERATE(1u, 2u, 3u);
  constexpr int frames = 60, pings = 60;
  pair_of_ends ends(4096);
  std::mt19937 random(seed);

  // The server writes frame after frame, and reads, so that Beast answers pings whenever it can.
  std::vector<std::string> payloads;
  for (int i = 0; i < frames; ++i) payloads.push_back(letters(random() % 3000, random));
  net::text_frame frame;
  std::size_t next = 0;
  int held = 0;
  std::function<void()> write = [&] {
    while (next < payloads.size()) {
      frame.clear();
      frame.payload() += payloads[next++];
      const auto rest = ends.way().try_write(frame.finish());
      if (rest.empty()) continue;
      ++held;
      return ends.way().write(rest, [&](error_code ec) {
        REQUIRE_FALSE(ec);
        write();
      });
    }
  };
  beast::flat_buffer never;
  ends.server->async_read(never, [](error_code, std::size_t) {});

  // The client pings as fast as it can, and reads so slowly that its end is full most of the time.
  int pinged = 0, ponged = 0;
  ends.client->control_callback(
      [&](websocket::frame_type kind, beast::string_view) { ponged += kind == websocket::frame_type::pong; });
  std::function<void()> ping = [&] {
    if (pinged++ == pings) return;
    ends.client->async_ping("are you there, after all that is on its way already?", [&](error_code ec) {
      REQUIRE_FALSE(ec);
      ping();
    });
  };
  std::size_t read = 0;
  beast::flat_buffer heard;
  std::function<void()> listen = [&] {
    ends.client->async_read(heard, [&](error_code ec, std::size_t) {
      REQUIRE_FALSE(ec);
      REQUIRE(beast::buffers_to_string(heard.data()) == payloads[read++]);
      heard.clear();
      if (read < payloads.size()) listen();
    });
  };
  ping();
  write();
  for (int i = 0; i < 200; ++i) ends.io.poll_one();
  listen();
  while (read < payloads.size() && ends.io.run_one() > 0) {
  }
  CHECK(read == payloads.size());
  CHECK(held > 0);
  CHECK(ponged > 0);
}

TEST_CASE("ws transport: what is under way fails when it is closed, ours and a waiting pong's") {
  pair_of_ends ends(4096);
  std::mt19937 random(3);
  net::text_frame frame;
  frame.payload() += letters(1 << 20, random);
  const auto rest = ends.way().try_write(frame.finish());
  REQUIRE_FALSE(rest.empty());
  std::optional<error_code> ours, read;
  ends.way().write(rest, [&](error_code ec) { ours = ec; });
  beast::flat_buffer never;
  ends.server->async_read(never, [&](error_code ec, std::size_t) { read = ec; });
  bool pinged = false;
  ends.client->async_ping("", [&](error_code) { pinged = true; });
  while (!pinged) ends.io.run_one();
  for (int i = 0; i < 20; ++i) ends.io.poll_one();  // the pong waits for the frame
  ends.way().close();
  while (!(ours && read) && ends.io.run_one() > 0) {
  }
  REQUIRE(ours);
  CHECK(*ours);
  REQUIRE(read);
  CHECK(*read);
}

}  // namespace weir::tests::ws_transport_test
