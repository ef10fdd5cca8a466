// record.h — the record of one stream as its client saw it, frame by frame. All measures of a stream are
// computed from it.
//
// Times are microseconds since the run began, on one steady clock. A frame is a message with one or more
// tokens: a weir.v1 delta, or a server-sent event. All frames of one read of the socket have the same time.
//
// Thread safety: none; one owner.
// Invariants:
//   1. frames are in order of arrival; tokens is the sum of their n.
//   2. gaps and repeats count tokens that were lost or sent twice according to seq. A repeated token does not
//      count in n.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weir::load {

using micros = std::int64_t;

struct frame {
  micros at = 0;
  std::uint32_t n = 1;            // tokens
  std::optional<micros> sampled;  // when its last token was sampled, on the server's own clock
};

enum class ending {
  completed,  // the server completed the answer
  cancelled,  // the harness cancelled it, with a message or by closing the connection
  dropped,    // the harness closed the connection, to test --disconnect, and did not resume
  cut,        // the run ended first
  refused,    // an HTTP status other than 200, or an error frame, instead of a stream
  failed,     // the connection was lost, or the answer ended with an error
};

class stream_record {
  // What every frame needs stands together: thousands of records fit no cache.
  std::uint64_t seen_ = 0;            // highest seq
  std::optional<micros> dropped_at_;  // until the next token

 public:
  std::vector<frame> frames;
  std::uint64_t tokens = 0;
  std::uint64_t gaps = 0, repeats = 0;
  std::uint64_t disconnects = 0;    // connections that the harness dropped in order to resume
  std::uint64_t cuts = 0;           // connections that ended otherwise during the answer, which went on
  std::uint64_t resumes = 0;        // that the server accepted

  std::uint64_t index = 0;        // number of the request in the run
  micros scheduled = 0;           // when it should have been sent
  micros sent = 0;
  micros ended = 0;
  ending how = ending::cut;
  bool slow = false;              // one of --slow-readers, whose latencies do not count
  bool expired = false;           // the server no longer kept the answer when it was to be resumed
  std::uint64_t input_tokens = 0, output_tokens = 0;  // as the server reports them; 0: not reported
  std::optional<micros> cancel_sent;
  std::vector<micros> resume_gaps;  // from each drop or cut to the next token
  std::string text;               // only if texts are compared
  std::string error;              // with refused and failed

  // Records a frame with the tokens (seq - n, seq]. Without seq, lost tokens cannot be detected.
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
    if (dropped_at_) resume_gaps.push_back(at - *std::exchange(dropped_at_, std::nullopt));
    frames.push_back({at, n, sampled});
    tokens += n;
  }
  // The harness has dropped the connection, and will resume.
  void drop(micros at) { lose(disconnects, at); }
  // The connection has ended otherwise, or the server was silent for too long, and the harness will resume.
  void cut(micros at) { lose(cuts, at); }
  bool was_interrupted() const { return disconnects + cuts > 0; }
  // The highest seq so far, behind which a resume goes on.
  std::uint64_t seen() const { return seen_; }
  // Records the seq that the server gives at the end of the answer.
  void claim(std::uint64_t seq) {
    if (seq > seen_) gaps += seq - seen_;
    seen_ = std::max(seen_, seq);
  }

 private:
  void lose(std::uint64_t& count, micros at) {
    ++count;
    if (!dropped_at_) dropped_at_ = at;
  }
};

}  // namespace weir::load
