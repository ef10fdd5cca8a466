// run.h — performs a run: starts workers on threads, asks for the server's own statistics, tells progress,
// and returns the report.
//
// Thread safety: run() blocks the calling thread; one run at a time.
#pragma once

#include <functional>
#include <memory>

#include "net/load/report.h"
#include "net/load/worker.h"

namespace weir::load {

struct run_options {
  manner how;
  std::string url;                  // as the user wrote it
  question_options ask;
  std::size_t streams = 0;          // closed loop; 0: open loop
  double rate = 0;                  // open loop: requests a second; 0: the times of the trace in `ask`
  double burstiness = 1;
  double duration_s = 30, warmup_s = 0, ramp_s = 0, drain_s = 0;
  double slow_share = 0, read_rate = 0;
  double cancel_share = 0, disconnect_per_s = 0;
  bool resume = false;
  std::size_t followers = 0;
  double silence_s = 60;  // as in work
  objectives slo;
  unsigned threads = 1;
  std::uint64_t seed = 0;
  bool insecure = false;            // the server's certificate is not verified
  std::size_t raster_streams = 40;
  boost::json::object shown;        // the options for the report
};

// State of a run, which `tell` gets once a second.
struct progress {
  double at_s = 0;
  std::int64_t streams = 0;
  double tokens_per_s = 0, gap_p99_ms = 0;
  std::uint64_t errors = 0;
};

// The addresses of a server, and the TLS context that verifies its certificate (null: plain TCP).
class place {
 public:
  static core::result<std::shared_ptr<place>> find(const target& to, bool insecure);
  static core::result<std::shared_ptr<place>> find(const manner& how, bool insecure);

  endpoints addresses;
  std::unique_ptr<boost::asio::ssl::context> tls;
};

// `interrupted` is called about ten times a second, and ends the run when it returns true. `tell` may be
// empty. The report's conditions are not checked yet.
report run(const run_options& o, place& at, const std::function<void(const progress&)>& tell,
           const std::function<bool()>& interrupted);

}  // namespace weir::load
