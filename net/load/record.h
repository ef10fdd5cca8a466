// record.h — what one stream's client saw, frame by frame: the only thing that every measure is computed
// from.
//
// Times are microseconds since the run began, on one steady clock. A frame is what carried tokens together: a
// weir.v1 delta, or one server-sent event. Frames that came out of one read of the socket have one time.
//
// Thread safety: none; one owner.
// Invariants:
//   1. frames are in order of arrival; tokens is the sum of their n.
//   2. gaps and repeats count tokens that seq proves lost, or sent again; a repeated token is not counted in
//   n.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace weir::load {

using micros = std::int64_t;

struct frame {
  micros at = 0;
  std::uint32_t n = 1;            // tokens
  std::optional<micros> sampled;  // when its last token was, on the server's own clock
};

enum class ending {
  completed,  // as the server meant it: stop or length
  cancelled,  // by us, at the server or by hanging up
  dropped,    // we hung up without a word
  cut,        // the run ended first
  refused,    // an answer that is no stream: 4xx, 429, an error frame
  failed,     // broken off, or ended with an error
};

struct stream_record {
  std::uint64_t index = 0;        // which request of the run
  micros scheduled = 0;           // when it should have been sent
  micros sent = 0;
  micros ended = 0;
  ending how = ending::cut;
  bool slow = false;              // one of --slow-readers: kept out of everybody's latencies
  std::vector<frame> frames;
  std::uint64_t tokens = 0;
  std::uint64_t gaps = 0, repeats = 0;
  std::uint64_t input_tokens = 0, output_tokens = 0;  // as the server counts them; 0: it does not say
  std::optional<micros> cancel_sent;
  std::string text;               // kept only where texts are compared
  std::string error;              // with refused and failed

  // Tokens (seq - n, seq] came. A server without seq passes none and cannot be caught losing any.
  void take(micros at, std::uint32_t n, std::optional<std::uint64_t> seq = {},
            std::optional<micros> sampled = {}) {
    if (seq) {
      const std::uint64_t from = *seq >= n ? *seq - n : 0;
      if (from > seen_) gaps += from - seen_;
      const std::uint64_t again = from < seen_ ? std::min<std::uint64_t>(seen_ - from, n) : 0;
      repeats += again;
      n -= static_cast<std::uint32_t>(again);
      seen_ = std::max(seen_, *seq);
      if (n == 0) return;
    }
    frames.push_back({at, n, sampled});
    tokens += n;
  }
  // The last seq that the server claims, at the end.
  void claim(std::uint64_t seq) {
    if (seq > seen_) gaps += seq - seen_;
    seen_ = std::max(seen_, seq);
  }

 private:
  std::uint64_t seen_ = 0;
};

}  // namespace weir::load
