// The floor under a streaming server: one thread, one timer, and Beast's WebSockets alone. Every 1/RATE
// seconds it writes a frame as weir.v1 has it to each socket that asked, all in one loop; there is no engine,
// queue, limit or deadline. `weir load` measures it as it measures weir.
//
//   bench_net_bare_loop RATE          prints its URL, serves until it is killed
#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket/stream.hpp>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <string>

#include "apps/descriptors.h"

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::steady_clock;

struct reader {
  explicit reader(tcp::socket s) : ws(std::move(s)) {}

  beast::websocket::stream<tcp::socket, false> ws;
  beast::flat_buffer heard;
  std::string id, frame;
  unsigned seq = 0, max = 0;  // seq < max: it streams
  unsigned merged = 1;
  bool writing = false, open = false;
  steady_clock::time_point began;
};

class loop {
 public:
  explicit loop(double rate)
      : period_(std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(1 / rate))) {
    std::printf("ws://127.0.0.1:%u\n", acceptor_.local_endpoint().port());
    std::fflush(stdout);
    accept();
    timer_.expires_at(steady_clock::now());
    tick();
  }
  void run() { io_.run(); }

 private:
  void accept() {
    acceptor_.async_accept([this](error_code ec, tcp::socket s) {
      if (!ec) {
        s.set_option(tcp::no_delay(true), ec);
        readers_.emplace_back(std::move(s));
        greet(std::prev(readers_.end()));
      }
      accept();
    });
  }

  using place = std::list<reader>::iterator;

  void greet(place r) {
    r->ws.set_option(beast::websocket::stream_base::decorator([](beast::websocket::response_type& m) {
      m.set(beast::http::field::sec_websocket_protocol, "weir.v1");
    }));
    r->ws.async_accept([this, r](error_code ec) {
      if (ec) return forget(r);
      r->open = true;
      say(r, R"({"type":"session.created"})");
      listen(r);
    });
  }

  void listen(place r) {
    r->ws.async_read(r->heard, [this, r](error_code ec, std::size_t) {
      if (ec) return forget(r);
      const std::string said = beast::buffers_to_string(r->heard.data());
      r->heard.clear();
      const auto after = [&](const char* key) {
        return said.substr(said.find(key) + std::char_traits<char>::length(key));
      };
      if (said.find("response.create") != said.npos) {
        const std::string id = after("\"id\":\"");
        r->id = id.substr(0, id.find('"'));
        r->max = static_cast<unsigned>(std::atoi(after("\"max_tokens\":").c_str()));
        r->seq = 0;
        r->began = steady_clock::now();
      }
      listen(r);
    });
  }

  void forget(place r) {
    r->open = false;
    r->max = 0;
    if (!r->writing) readers_.erase(r);
  }

  void say(place r, std::string frame) {
    r->frame = std::move(frame);
    r->writing = true;
    r->ws.async_write(asio::buffer(r->frame), [this, r](error_code, std::size_t) {
      r->writing = false;
      if (!r->open) return readers_.erase(r), void();
      if (r->max && r->seq == r->max) {
        r->max = 0;
        say(r,
            fmt::format(
                R"({{"type":"response.done","id":"{}","seq":{},"status":"incomplete","usage":{{"output_tokens":{}}}}})",
                r->id, r->seq, r->seq));
      }
    });
  }

  void tick() {
    timer_.async_wait([this](error_code) {
      const auto now = steady_clock::now();
      for (auto r = readers_.begin(); r != readers_.end(); ++r) {
        if (r->seq >= r->max) continue;
        if (r->writing) {  // what is late is merged
          ++r->merged;
          continue;
        }
        const unsigned n = std::min(r->merged, r->max - r->seq);
        r->seq += n;
        r->merged = 1;
        const auto t = std::chrono::duration_cast<std::chrono::microseconds>(now - r->began).count();
        const std::string several = n == 1 ? std::string() : fmt::format(R"("n":{},)", n);
        say(r, fmt::format(R"({{"type":"response.delta","id":"{}","seq":{},{}"delta":"w{:03} ","t":{}}})",
                           r->id, r->seq, several, r->seq % 1000, t));
      }
      timer_.expires_at(std::max(timer_.expiry() + period_, now));
      tick();
    });
  }

  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_, {asio::ip::make_address("127.0.0.1"), 0}};
  asio::steady_timer timer_{io_};
  const steady_clock::duration period_;
  std::list<reader> readers_;
};

}  // namespace

int main(int argc, char** argv) {
  const double rate = argc == 2 ? std::atof(argv[1]) : 0;
  if (!(rate > 0)) return std::fprintf(stderr, "usage: %s TOKENS_PER_SECOND\n", argv[0]), 2;
  weir::apps::raise_descriptor_limit();
  loop(rate).run();
}
