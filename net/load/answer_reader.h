// answer_reader.h — makes a stream's record of an answer while it comes in. It has no clock and no socket:
// the time of each read is passed in.
//
// Thread safety: none; one owner.
// Invariant: over() becomes true once, with record().how saying how; nothing is recorded after it.
#pragma once

#include "net/load/talk.h"

namespace weir::load {

class answer_reader {
 public:
  answer_reader(stream_record r, bool keep_text) : record_(std::move(r)), keep_text_(keep_text) {}

  // Takes everything that was fed to `t`; it was read from the socket at time `at`. Returns the number of
  // frames with tokens.
  std::uint64_t understand(talk& t, micros at) {
    happening h;
    std::uint64_t frames = 0;
    while (!over_ && t.next(h)) {
      if (h.is == happening::kind::tokens) {
        ++frames;
        record_.take(at, h.n, h.seq, h.sampled);
        if (keep_text_) record_.text += h.text;
      } else if (h.is != happening::kind::opened) {
        conclude(h);
      }
    }
    return frames;
  }

  // The connection has ended during the answer.
  void lost(talk& t) {
    happening h;
    if (t.ended(h)) return conclude(h);
    record_.how = ending::failed;
    record_.error = "the connection was lost";
    over_ = true;
  }

  bool over() const { return over_; }
  stream_record& record() { return record_; }

 private:
  void conclude(const happening& h) {
    over_ = true;
    record_.input_tokens = h.input_tokens;
    record_.output_tokens = h.output_tokens;
    record_.error = h.why;
    if (h.is == happening::kind::done) {
      record_.how = h.cancelled ? ending::cancelled : ending::completed;
      if (h.seq) record_.claim(*h.seq);
    } else {
      record_.how = h.is == happening::kind::refused ? ending::refused : ending::failed;
    }
  }

  stream_record record_;
  bool keep_text_;
  bool over_ = false;
};

}  // namespace weir::load
