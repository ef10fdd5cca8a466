// run.h — a whole run: workers on threads, the server's own statistics, progress, and what it all came to.
// Thread safety: one run at a time, on the thread that calls.
#pragma once

#include <functional>
#include <memory>

#include "net/load/report.h"
#include "net/load/worker.h"

namespace weir::load {

struct run_options {
  manner how;
  std::string url;                  // as it was given
  question_options ask;
  std::size_t streams = 0;          // closed loop, or
  double rate = 0;                  // open loop, or a timed trace
  double burstiness = 1;
  double duration_s = 30, warmup_s = 0, ramp_s = 0, drain_s = 0;
  double slow_share = 0, read_rate = 0;
  double cancel_share = 0, disconnect_per_s = 0;
  objectives slo;
  unsigned threads = 1;
  std::uint64_t seed = 0;
  bool insecure = false;            // any certificate will do
  std::size_t raster_streams = 40;
  boost::json::object shown;        // as they were typed, for the report
};

// Once a second.
struct progress {
  double at_s = 0;
  std::int64_t streams = 0;
  double tokens_per_s = 0, gap_p99_ms = 0;
  std::uint64_t errors = 0;
};

// What is known of a place before a run: its addresses, its certificate's judge.
class place {
 public:
  static core::result<std::shared_ptr<place>> find(const target& to, bool insecure);

  endpoints addresses;
  std::unique_ptr<boost::asio::ssl::context> tls;
};

// `interrupted` is looked at ten times a second. The report's conditions are not judged yet.
report run(const run_options& o, place& at, const std::function<void(const progress&)>& tell,
           const std::function<bool()>& interrupted);

}  // namespace weir::load
