// worker.h — one thread of the harness: its share of the streams, each on a connection of its own.
//
// Thread safety: start() and join() from the thread that made it; stop_asking() and stop() from any thread;
// the counters are for any thread; result() after join().
#pragma once

#include <atomic>
#include <boost/asio/ssl/context.hpp>
#include <memory>

#include "net/load/arrivals.h"
#include "net/load/line.h"
#include "net/load/pool.h"
#include "net/load/questions.h"

namespace weir::load {

struct work {
  manner how;
  endpoints to;
  boost::asio::ssl::context* tls = nullptr;
  std::shared_ptr<const questions> ask;
  // closed loop: so many, each asking again when it is answered; 0: open
  std::size_t streams = 0;
  arrival_options arrive;                // open loop
  std::shared_ptr<const trace> times;    // open loop from a trace, instead
  double ramp_s = 0;                     // closed loop: the streams start spread over it
  double slow_share = 0, read_rate = 0;  // bytes/s; 0: they stop reading
  double cancel_share = 0;               // of the requests, each at a random token
  double disconnect_per_s = 0;           // chance of each stream
  pool_options measure;
  std::chrono::steady_clock::time_point zero;
  std::size_t part = 0, parts = 1;       // this worker's share
  std::uint64_t seed = 0;
};

class worker {
 public:
  explicit worker(work w);
  ~worker();

  void start();
  void stop_asking();  // open loop: nothing new
  void stop();         // what still runs is cut
  void join();
  const pool& result() const;

  struct counters {
    std::atomic<std::int64_t> streams{0};
    std::atomic<std::uint64_t> tokens{0}, errors{0};
    std::atomic<double> gap_p99_ms{0};   // of the last second
    std::atomic<bool> asked_all{false};  // open loop: the trace is at its end
  };
  const counters& now() const;

 private:
  class self;
  std::unique_ptr<self> self_;
};

}  // namespace weir::load
