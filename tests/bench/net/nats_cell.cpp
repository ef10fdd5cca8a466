// The traffic of a cell on servers of NATS, without engines: workers that send a frame of tokens to each
// gateway in every step and a board four times a second, and gateways that hear them and send their pulses.
// Every process of the cell is a connection of its own. nats_cell.py starts this program, and measures the
// servers.
//
//   bench_net_nats_cell WORKERS GATEWAYS STEPS_PER_S SECONDS URL...
//
// Prints a line of JSON each SECONDS, what has come in these, until it is killed.
#include <fmt/format.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/fleet/control_frame.h"
#include "core/fleet/fleet_board.h"
#include "core/fleet/subjects.h"
#include "core/fleet/token_frame.h"
#include "net/bus/nats_bus.h"

namespace {

namespace asio = boost::asio;
namespace wire = weir::core::fleet;
using std::chrono::steady_clock;

constexpr std::uint32_t sequences = 64;  // of a worker, spread over the gateways
constexpr auto news_every = std::chrono::milliseconds(250);

struct totals {
  std::atomic<std::uint64_t> frames{0}, bytes{0}, heard{0}, refused{0};
};

std::string name_of(char kind, unsigned number) {
  std::string out(wire::name_length, kind);
  for (auto at = out.rbegin(); number > 0; number /= 32)
    *at++ = "abcdefghijklmnopqrstuvwxyz234567"[number % 32];
  return out;
}

std::unique_ptr<weir::actors::bus> join(const std::string& url) {
  weir::core::join_settings s;
  s.join = url;
  auto b =
      weir::net::join_nats(s, {"bench", [](std::string_view line) { fmt::print(stderr, "{}\n", line); }});
  if (b) return std::move(*b);
  fmt::print(stderr, "{}\n", b.error().message);
  std::exit(1);
}

// Calls `what` at equal times, the first at `first`.
class beat {
 public:
  beat(asio::io_context& io, steady_clock::time_point first, steady_clock::duration every,
       std::function<void()> what)
      : timer_(io), at_(first), every_(every), what_(std::move(what)) {
    wait();
  }

 private:
  void wait() {
    timer_.expires_at(at_);
    timer_.async_wait([this](boost::system::error_code ec) {
      if (ec) return;
      what_();
      at_ += every_;
      wait();
    });
  }
  asio::steady_timer timer_;
  steady_clock::time_point at_;
  const steady_clock::duration every_;
  const std::function<void()> what_;
};

class worker {
 public:
  worker(std::string name, const std::string& url, const std::vector<std::string>& gateways,
         asio::any_io_executor ex, totals& t)
      : name_(std::move(name)), bus_(join(url)), writer_(name_, false), totals_(t) {
    for (const auto& g : gateways) to_.push_back({subjects_.tokens_to(g), 0});
    board_.worker = name_;
    board_.build = "0.1.0";
    for (const auto& g : gateways) board_.gateways[g] = {1'000'000, sequences};
    auto& m = board_.models.emplace_back();
    m.name = "llama-3.1-8b-instruct";
    m.device = "cuda:0";
    m.engine = 1;
    pulses_ = std::move(
        *bus_->subscribe(subjects_.all_pulses(), ex, [&t](const weir::actors::bus::message&) { ++t.heard; }));
  }
  void step() {
    for (auto& [subject, frames] : to_) {
      const auto each = static_cast<std::uint32_t>(std::max<std::size_t>(1, sequences / to_.size()));
      for (std::uint32_t i = 0; i < each; ++i) {
        writer_.job(1000 + i, 0, 500, 1, false);
        writer_.add({70'000, std::chrono::milliseconds(10'000)});
      }
      send(subject, writer_.take(++frames));
    }
  }
  void tell_board() {
    ++board_.number;
    send(subjects_.board_of(name_), wire::json_of(board_));
  }

 private:
  void send(const std::string& subject, const std::string& bytes) {
    if (!bus_->publish(subject, bytes)) ++totals_.refused;
  }
  const std::string name_;
  const wire::subjects subjects_{"main"};
  std::unique_ptr<weir::actors::bus> bus_;
  wire::token_frame_writer writer_;
  wire::fleet_board board_;
  totals& totals_;
  std::vector<std::pair<std::string, std::uint64_t>> to_;
  std::unique_ptr<weir::actors::bus::subscription> pulses_;
};

class gateway {
 public:
  gateway(std::string name, const std::string& url, asio::any_io_executor ex, totals& t)
      : name_(std::move(name)), bus_(join(url)) {
    const auto heard = [&t](const weir::actors::bus::message&) { ++t.heard; };
    ears_.push_back(
        std::move(*bus_->subscribe(subjects_.tokens_to(name_), ex, [&t](const weir::actors::bus::message& m) {
          ++t.frames;
          t.bytes += m.bytes.size();
        })));
    ears_.push_back(std::move(*bus_->subscribe(subjects_.all_boards(), ex, heard)));
  }
  void pulse() { bus_->publish(subjects_.pulse_of(name_), wire::frame_of(wire::pulse{name_, 64})); }

 private:
  const std::string name_;
  const wire::subjects subjects_{"main"};
  std::unique_ptr<weir::actors::bus> bus_;
  std::vector<std::unique_ptr<weir::actors::bus::subscription>> ears_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 6) return fmt::print(stderr, "WORKERS GATEWAYS STEPS_PER_S SECONDS URL...\n"), 2;
  const unsigned workers = std::stoul(argv[1]), gateways = std::stoul(argv[2]);
  const double steps = std::stod(argv[3]), seconds = std::stod(argv[4]);
  const auto url = [&](unsigned n) { return std::string(argv[5 + n % (argc - 5)]); };
  asio::thread_pool hears(1);
  asio::io_context io;
  totals t;
  std::vector<std::string> names;
  std::vector<std::unique_ptr<gateway>> all_gateways;
  std::vector<std::unique_ptr<worker>> all_workers;
  for (unsigned g = 0; g < gateways; ++g) {
    names.push_back(name_of('g', g + 1));
    all_gateways.push_back(std::make_unique<gateway>(names.back(), url(g), hears.get_executor(), t));
  }
  for (unsigned w = 0; w < workers; ++w)
    all_workers.push_back(
        std::make_unique<worker>(name_of('w', w + 1), url(w), names, hears.get_executor(), t));
  std::vector<std::unique_ptr<beat>> beats;
  const auto every = [&](double s, unsigned number, unsigned of, std::function<void()> what) {
    const auto d = std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(s));
    beats.push_back(std::make_unique<beat>(io, steady_clock::now() + d * number / of, d, std::move(what)));
  };
  const double news_s = std::chrono::duration<double>(news_every).count();
  for (unsigned w = 0; w < workers; ++w) {
    every(1 / steps, w, workers, [&, w] { all_workers[w]->step(); });
    every(news_s, w, workers, [&, w] { all_workers[w]->tell_board(); });
  }
  for (unsigned g = 0; g < gateways; ++g) every(news_s, g, gateways, [&, g] { all_gateways[g]->pulse(); });
  every(seconds, 1, 1, [&] {
    fmt::print(R"({{"frames":{},"bytes":{},"others":{},"refused":{}}})"
               "\n",
               t.frames.exchange(0), t.bytes.exchange(0), t.heard.exchange(0), t.refused.exchange(0));
    std::fflush(stdout);
  });
  io.run();
}
