#include "net/load/worker.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <thread>

#include "net/load/user.h"
#include "net/load/worker_state.h"

namespace weir::load {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::steady_clock;

namespace {

constexpr auto pulse = std::chrono::milliseconds(10);
constexpr std::size_t most_users = 60'000;

}  // namespace

class worker::self {
 public:
  explicit self(work w) : shared_(std::move(w)), pulse_(shared_.io), arrival_(shared_.io) {}

  void start() {
    asio::co_spawn(shared_.io, beat(), asio::detached);
    if (shared_.w.streams) {
      for (std::size_t n = shared_.w.part; n < shared_.w.streams; n += shared_.w.parts) begin_user(n);
    } else {
      asio::co_spawn(shared_.io, dispatch(), asio::detached);
    }
    thread_ = std::thread([this] { shared_.io.run(); });
  }
  void stop_asking() {
    asio::post(shared_.io, [this] { ask_no_more(); });
  }
  void stop() {
    asio::post(shared_.io, [this] {
      ask_no_more();
      shared_.stopping = true;
      pulse_.cancel();
      for (auto& u : users_) u->hurry();
    });
  }
  void join() {
    if (!thread_.joinable()) return;
    thread_.join();
    if (shared_.reads)
      shared_.measured.number(figure::frames_per_read) =
          static_cast<double>(shared_.frames) / static_cast<double>(shared_.reads);
  }
  const worker_state& result() const { return shared_; }

 private:
  user& begin_user(std::size_t number) {
    users_.push_back(std::make_unique<user>(shared_, number));
    asio::co_spawn(shared_.io, users_.back()->live(), asio::detached);
    return *users_.back();
  }

  void ask_no_more() {
    asking_ = false;
    arrival_.cancel();
  }

  // Open loop: gives each request, at its time, to a user that is idle or to a new one.
  task<void> dispatch() {
    const work& w = shared_.w;
    arrivals when(w.arrive);
    for (std::uint64_t i = 0; asking_; ++i) {
      if (w.times && i >= w.times->requests.size()) break;
      request r;
      r.index = i;
      r.at = static_cast<micros>(1e6 * (w.times ? w.times->requests[i].at_s : when.next()));
      if (i % w.parts != w.part) continue;
      arrival_.expires_at(shared_.moment(r.at));
      error_code ec;
      co_await arrival_.async_wait(asio::redirect_error(use_task, ec));
      if (asking_) give(r);
    }
    shared_.counts.asked_all = true;
  }

  void give(const request& r) {
    if (!shared_.idle.empty()) {
      user* u = shared_.idle.back();
      shared_.idle.pop_back();
      return u->give(r);
    }
    if (users_.size() < most_users)
      return begin_user(users_.size() * shared_.w.parts + shared_.w.part).give(r);
    stream_record lost;
    lost.index = r.index;
    lost.scheduled = lost.sent = lost.ended = r.at;
    lost.how = ending::failed;
    lost.error = "not sent: this harness has no connection left";
    shared_.fold(lost);
  }

  // Runs every 10 ms: measures how late the event loop is, and does what is due ten times or once a second.
  task<void> beat() {
    std::uint64_t beats = 0;
    auto due = steady_clock::now();
    while (!shared_.stopping) {
      due += pulse;
      pulse_.expires_at(due);
      error_code ec;
      co_await pulse_.async_wait(asio::redirect_error(use_task, ec));
      if (shared_.stopping) break;
      const auto late = steady_clock::now() - due;
      if (shared_.now() >= shared_.w.measure.from)
        shared_.measured.of(figure::loop_lag_ms).add(std::chrono::duration<double, std::milli>(late).count());
      if (late > 10 * pulse) due = steady_clock::now();
      if (++beats % 10 == 0) {
        disconnect_some();
        for (auto& u : users_) u->end_silence(steady_clock::now());
      }
      if (beats % 100 != 0) continue;
      shared_.counts.gap_p99_ms = shared_.recent.quantile(0.99);
      shared_.recent = histogram();
    }
  }

  // Called ten times a second, so each call has a tenth of the chance.
  void disconnect_some() {
    if (shared_.w.disconnect_per_s <= 0) return;
    std::uniform_real_distribution<double> chance(0, 1);
    for (auto& u : users_)
      if (u->streams() && chance(shared_.random) < shared_.w.disconnect_per_s / 10) u->drop();
  }

  worker_state shared_;
  std::thread thread_;
  std::vector<std::unique_ptr<user>> users_;
  timer pulse_, arrival_;
  bool asking_ = true;
};

worker::worker(work w) : self_(std::make_unique<self>(std::move(w))) {}
worker::~worker() {
  stop();
  join();
}
void worker::start() { self_->start(); }
void worker::stop_asking() { self_->stop_asking(); }
void worker::stop() { self_->stop(); }
void worker::join() { self_->join(); }
const pool& worker::result() const { return self_->result().measured; }
const worker::counters& worker::now() const { return self_->result().counts; }

}  // namespace weir::load
