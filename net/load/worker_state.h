// worker_state.h — the state that the users of one worker share.
//
// Thread safety: the worker's thread; the counters may be read from any thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <random>

#include "net/load/worker.h"

namespace weir::load {

class user;

struct worker_state {
  explicit worker_state(work what) : w(std::move(what)), measured(w.measure), random(w.seed + 77 * w.part) {}

  micros now() const {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - w.zero)
        .count();
  }
  std::chrono::steady_clock::time_point moment(micros t) const {
    return w.zero + std::chrono::microseconds(t);
  }

  void fold(const stream_record& r) {
    measured.add(r);
    if (r.how == ending::refused || r.how == ending::failed) ++counts.errors;
    if (const auto prompt = w.ask->prompt_of(r.index); prompt && !r.slow) measured.compare_text(*prompt, r);
  }
  void fold_follower(const stream_record& asked, const stream_record& followed) {
    measured.add_follower(asked, followed);
    if (followed.how == ending::refused || followed.how == ending::failed) ++counts.errors;
  }
  // Only this thread writes the count, so an atomic addition would be more than is needed.
  void count_tokens(std::uint64_t n) {
    counts.tokens.store(counts.tokens.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  const work w;
  boost::asio::io_context io{1};
  worker::counters counts;
  pool measured;
  std::mt19937_64 random;
  std::vector<user*> idle;                // open loop: users that wait for a request
  std::uint64_t asked = 0;                // closed loop: requests so far
  std::uint64_t reads = 0, frames = 0;    // reads of sockets that had tokens, and frames with tokens in them
  histogram recent;                       // gaps in ms since counts.gap_p99_ms was set
  bool stopping = false;
};

}  // namespace weir::load
