// answer_reader.h — makes a stream's record of an answer while it comes in, on one connection or on several
// that follow each other. It has no clock and no socket: the time of each read is passed in.
//
// Thread safety: none; one owner.
// Invariant: over() becomes true once, with record().how saying how; nothing is recorded after it.
#pragma once

#include <fmt/format.h>

#include "net/load/talk.h"

namespace weir::load {

class answer_reader {
 public:
  // `outlives`: the answer goes on where its server ends, and is to be resumed.
  answer_reader(stream_record r, bool keep_text, bool outlives = false)
      : record_(std::move(r)), keep_text_(keep_text), outlives_(outlives) {}

  // Takes all bytes that came to `t`; they were read from the socket at time `at`. Returns the number of
  // frames with tokens.
  std::uint64_t understand(talk& t, micros at) {
    happening h;
    std::uint64_t frames = 0;
    while (!over_ && t.next(h)) {
      switch (h.is) {
        case happening::kind::tokens:
          ++frames;
          record_.take(at, h.n, h.seq, h.sampled);
          if (keep_text_) record_.text += h.text;
          break;
        case happening::kind::created:
          response_id_ = h.response_id;
          break;
        case happening::kind::resumed:
          ++record_.resumes;
          break;
        case happening::kind::opened:
          break;
        case happening::kind::closed:
          if (outlives_ && h.leaves && !response_id_.empty()) {
            left_ = true;
            return frames;
          }
          [[fallthrough]];
        default:
          conclude(h);
      }
    }
    return frames;
  }

  // The connection has ended during the answer.
  void lost(talk& t) {
    happening h;
    if (t.ended(h)) return conclude(h);
    fail("the connection was lost");
  }
  // The answer is given up for a reason outside of the protocol.
  void fail(std::string why) {
    record_.how = ending::failed;
    record_.error = std::move(why);
    over_ = true;
  }

  // The server's name of the answer; empty until it has said so.
  const std::string& response_id() const { return response_id_; }
  // Bytes that resume the answer on `t`, which is of a new connection. REQUIRES: response_id() is not empty.
  std::string resume(talk& t) {
    left_ = false;
    return t.resume(fmt::format("r{}.{}", record_.index, ++lanes_), response_id_, record_.seen());
  }
  // The same for an answer that another client asked for.
  std::string follow(talk& t, std::string_view response_id) {
    response_id_ = response_id;
    return resume(t);
  }

  bool over() const { return over_; }
  // The server ends, and leaves the answer to be resumed at another one.
  bool left() const { return left_; }
  stream_record& record() { return record_; }

 private:
  void conclude(const happening& h) {
    over_ = true;
    record_.input_tokens = h.input_tokens;
    record_.output_tokens = h.output_tokens;
    record_.error = h.why;
    record_.expired = h.expired;
    if (h.is == happening::kind::done) {
      record_.how = h.cancelled ? ending::cancelled : ending::completed;
      if (h.seq) record_.claim(*h.seq);
    } else {
      record_.how = h.is == happening::kind::refused ? ending::refused : ending::failed;
    }
  }

  stream_record record_;
  bool keep_text_, outlives_;
  bool over_ = false, left_ = false;
  std::string response_id_;
  std::uint64_t lanes_ = 0;  // lanes on which the answer was resumed
};

}  // namespace weir::load
