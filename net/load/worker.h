// worker.h — one thread of the harness, with its share of the streams. Each stream has its own connection.
//
// Thread safety: start() and join() only from the thread that constructed the worker; stop_asking(), stop()
// and the counters from any thread; result() only after join().
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
  // Closed loop: number of streams of all workers. Each stream sends its next request after an answer. 0:
  // open loop.
  std::size_t streams = 0;
  arrival_options arrive;                // open loop, unless `times` is set
  std::shared_ptr<const trace> times;    // open loop with the times of a trace; null: none
  double ramp_s = 0;                     // closed loop: the starts of the streams are spread over this time
  double slow_share = 0, read_rate = 0;  // share of slow streams, and their bytes/s; 0: they never read
  double cancel_share = 0;               // share of requests that are cancelled, each at a random token
  double disconnect_per_s = 0;           // probability per second that a stream's connection is dropped
  bool resume = false;                   // a stream that was dropped connects again and goes on
  std::size_t followers = 0;             // further readers of each answer
  double silence_s = 60;  // a stream whose server sends nothing for so long fails; 0: none does
  pool_options measure;
  std::chrono::steady_clock::time_point zero;
  std::size_t part = 0, parts = 1;       // number of this worker; number of workers
  std::uint64_t seed = 0;
};

class worker {
 public:
  explicit worker(work w);
  ~worker();

  void start();
  void stop_asking();  // open loop: sends no more requests
  void stop();         // ends all streams; those that are under way are cut
  void join();
  const pool& result() const;

  struct counters {
    std::atomic<std::int64_t> streams{0};
    std::atomic<std::uint64_t> tokens{0}, errors{0};
    std::atomic<double> gap_p99_ms{0};   // of the last second
    std::atomic<bool> asked_all{false};  // open loop: no request is left to send
  };
  const counters& now() const;

 private:
  class self;
  std::unique_ptr<self> self_;
};

}  // namespace weir::load
