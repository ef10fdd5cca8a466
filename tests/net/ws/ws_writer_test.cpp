// How much of a shard's time a session's frames get at once.
#include "net/ws/ws_writer.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>

#include "tests/support/server_fixture.h"

namespace weir::tests::ws_writer_test {

namespace asio = boost::asio;
using asio::ip::tcp;
using outcome = net::ws_writer::outcome;

namespace {

// A writer whose reader's system has room for all.
struct rig {
  rig() {
    constexpr int room = 4 << 20;
    tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    far.open(tcp::v4());
    far.set_option(asio::socket_base::receive_buffer_size(room));
    far.connect(acceptor.local_endpoint());
    tcp::socket near = acceptor.accept();
    near.set_option(asio::socket_base::send_buffer_size(room));
    way.emplace(std::move(near), net::ws_frame_watch(1, net::rate_meter(1, 1, 1, {})), 1);
    writer.emplace(frames, *way, *hub);
  }
  std::size_t arrived() {
    far.wait(tcp::socket::wait_read);
    return far.available();
  }

  server_fixture f;
  asio::io_context io;
  std::shared_ptr<net::server_state> state =
      std::make_shared<net::server_state>(*f.service, net::server_options());
  std::shared_ptr<net::hub> hub = std::make_shared<net::hub>(state, io.get_executor());
  tcp::socket far{io};
  net::ws_frames frames;
  std::optional<net::ws_transport> way;
  std::optional<net::ws_writer> writer;
};

}  // namespace

TEST_CASE("ws writer: a reader that is behind gets a share at a time, and all of it in the end") {
  rig r;
  constexpr std::size_t frame = 4000, frames = 24, header = 4;
  for (std::size_t i = 0; i < frames; ++i) r.frames.say(std::string(frame, 'x'));
  CHECK(r.writer->write(true) == outcome::enough);
  CHECK(r.arrived() <= net::ws_writer::share_bytes + frame + header);
  int calls = 1;
  for (auto how = outcome::enough; how == outcome::enough; ++calls) how = r.writer->write(true);
  CHECK(calls == 3);
  std::vector<char> all(frames * (frame + header));
  CHECK(asio::read(r.far, asio::buffer(all)) == all.size());
  CHECK(r.far.available() == 0);
}

}  // namespace weir::tests::ws_writer_test
