// weir_talk.h — the client side of weir.v1 over a WebSocket. talk.h says what the members do.
//
// Thread safety: none; one owner.
// Invariants:
//   1. After resume(), deltas and the end count only behind a `response.resumed` with the same response and
//      cursor; the conversation fails otherwise.
//   2. With a window, take_to_send() has one cumulative acknowledgement as soon as half of the window has
//      come since the last one, and none for an answer that has ended.
#pragma once

#include <span>
#include <utility>

#include "net/load/happening.h"
#include "net/load/ws_wire.h"

namespace weir::load {

class weir_talk {
 public:
  weir_talk(const manner& m, std::uint64_t random);

  std::string hello() const;
  std::string ask(const question& q);
  std::string resume(std::string_view lane, std::string_view response_id, std::uint64_t after);
  std::string cancel();
  std::span<char> room() { return reader_.room(); }
  void took(std::size_t n) { reader_.took(n); }
  void feed(std::string_view bytes) { reader_.feed(bytes); }
  bool next(happening& h);
  bool ended(happening& h);
  std::string take_to_send();
  bool reusable() const { return true; }

 private:
  // Of the lane: nothing is under way; asked for; resumed, without an answer yet; under way.
  enum class stage { idle, asked, resuming, open };

  bool understand(std::string_view message, happening& h);
  bool parse(std::string_view message, happening& h);
  bool take_delta(std::int64_t n, std::uint64_t seq, happening& h);
  bool take_created(std::string_view response_id, happening& h);
  bool take_resumed(std::string_view response_id, std::optional<std::int64_t> after, happening& h);
  bool fail(happening& h, std::string why);
  void begin(std::string_view lane, stage now, std::uint64_t after);
  std::string framed(std::string_view message);
  std::uint32_t mask() {
    return static_cast<std::uint32_t>(random_ = random_ * 6364136223846793005u + 1442695040888963407u);
  }

  // What every frame needs comes first: thousands of clients fit no cache.
  const manner* m_;
  stage now_ = stage::idle;
  std::uint64_t seen_ = 0;   // seq of the latest delta
  std::uint64_t acked_ = 0;  // highest seq that was acknowledged
  std::string lane_, to_send_;
  std::string nonce_;  // declared before reader_, which needs it
  ws_reader reader_;
  std::string response_id_, text_;
  std::uint64_t after_ = 0;  // cursor of the resume
  std::uint64_t random_;
};

}  // namespace weir::load
