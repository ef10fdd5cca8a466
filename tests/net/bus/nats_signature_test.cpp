// Signatures that begin with a byte of 0: cnats would leave them out, and servers refuse who has signed
// nothing.
#include <sys/socket.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>
#include <fstream>
#include <thread>
#include <vector>

#include "net/bus/nkey.h"
#include "tests/net/bus/bus_hall.h"

namespace weir::tests::nats_signature_test {

using tcp = boost::asio::ip::tcp;

// The least number whose signature begins with a byte of 0, or with another one.
std::string nonce(const net::nkey& key, bool begins_with_zero) {
  for (int i = 0;; ++i)
    if (const auto text = std::to_string(i); (key.sign(text)->front() == 0) == begins_with_zero) return text;
}

// The beginning of each connection to a server of NATS, with a given nonce. The server refuses a client that
// sends no signature, and closes every connection but the last one.
class opening_server {
 public:
  explicit opening_server(std::vector<std::string> nonces)
      : thread_([this, all = std::move(nonces)] {
          for (std::size_t i = 0; i < all.size(); ++i) welcome(all[i], i + 1 == all.size());
        }) {}
  ~opening_server() {
    ::shutdown(listening_.native_handle(), SHUT_RDWR);  // where a test has failed, connections are missing
    end();
  }

  std::string url() const { return "nats://127.0.0.1:" + std::to_string(listening_.local_endpoint().port()); }

  int welcomed() const { return welcomed_.load(); }
  // One word a connection: signed, unsigned, or left, where the client hung up. Waits for the last one's end.
  const std::vector<std::string>& seen() {
    end();
    return seen_;
  }

 private:
  void welcome(const std::string& nonce, bool stays) {
    tcp::socket s(io_);
    boost::system::error_code ec;
    listening_.accept(s, ec);
    if (ec) return;
    say(s,
        R"(INFO {"server_id":"x","version":"2.9.10","proto":1,"headers":true,"max_payload":1048576,)"
        R"("auth_required":true,"nonce":")" +
            nonce + "\"}\r\n",
        ec);
    std::string in;
    boost::asio::read_until(s, boost::asio::dynamic_buffer(in), "PING\r\n", ec);
    const bool is_signed = in.find("\"sig\":") != in.npos;
    seen_.push_back(ec ? "left" : is_signed ? "signed" : "unsigned");
    if (!ec) say(s, is_signed ? "PONG\r\n" : "-ERR 'Authorization Violation'\r\n", ec);
    if (is_signed) ++welcomed_;
    in.resize(4096);
    while (stays && !ec) s.read_some(boost::asio::buffer(in), ec);
  }
  static void say(tcp::socket& s, const std::string& text, boost::system::error_code& ec) {
    boost::asio::write(s, boost::asio::buffer(text), ec);
  }

  void end() {
    if (thread_.joinable()) thread_.join();
  }

  boost::asio::io_context io_;
  std::vector<std::string> seen_;
  std::atomic<int> welcomed_{0};
  tcp::acceptor listening_{io_, {boost::asio::ip::address_v4::loopback(), 0}};
  std::thread thread_;
};

TEST_CASE("nats: a nonce whose signature cnats would leave out is not signed, and another is asked for") {
  if (!net::has_nats()) {
    WARN("left out: this build has no NATS (libnats-dev)");
    return;
  }
  net::nkey::seed_bytes bytes;
  bytes.fill(7);
  const net::nkey key(bytes);
  const auto good = nonce(key, false), bad = nonce(key, true);
  const scratch_directory folder;
  core::join_settings settings;
  settings.join_nkey = (folder.path() / "seed").string();
  std::ofstream(settings.join_nkey) << key.seed_text() << '\n';
  opening_server server({bad, bad, good, bad, good});
  settings.join = server.url();
  {
    bus_hall hall;
    const auto b = hall.join(settings);  // the third connection, which the server closes
    hall.until([&] { return server.welcomed() == 2 && b->state() == actors::bus::link::up; });
  }
  CHECK(server.seen() == std::vector<std::string>{"left", "left", "signed", "left", "signed"});
}

}  // namespace weir::tests::nats_signature_test
