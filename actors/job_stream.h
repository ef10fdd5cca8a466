// job_stream.h — a job's way out: the reading end of its token queue, its append-only log, its text, its
// ending.
//
// Born on an I/O shard before the job enters anything, and alone says how the job ended. The owner pushes
// tokens into a lock-free queue from its own thread; the stream drains it on the shard, whatever its readers
// do, and detokenises whole UTF-8 into the log. A reader is a cursor: how many tokens it has shown.
//
// Thread safety: everything here on the shard's thread, except id() and cancel().
//
// Invariants:
//   1. published() never falls; text_of(a, b) never changes once b <= published().
//   2. phase goes pending -> running -> done, or pending -> refused, or pending -> done (cancelled on its way
//   in).
//   3. The text of the tokens up to published() is whole UTF-8.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/request.h"
#include "core/job.h"
#include "core/text/detokenizer.h"

namespace weir::actors {

using executor = boost::asio::any_io_executor;

// How a job ended, as the wire tells it.
struct outcome {
  core::finish_reason reason = core::finish_reason::stop;
  std::uint32_t input_tokens = 0, output_tokens = 0, cached_tokens = 0;
  double queue_ms = 0, prefill_ms = 0, ttft_ms = 0, decode_ms = 0, max_gap_ms = 0;
  std::optional<core::error> fault;  // with reason == error
  const char* status() const noexcept;  // completed, incomplete, cancelled, failed
};

class job_stream : public std::enable_shared_from_this<job_stream> {
 public:
  enum class phase { pending, running, done, refused };

  ~job_stream();
  const core::job_id& id() const noexcept;
  // Any thread, idempotent, in every state: the job ends with `why` as soon as its owner reads it.
  void cancel(core::finish_reason why = core::finish_reason::cancel);

  phase state() const noexcept;
  const core::error& refusal() const;        // REQUIRES state() == refused
  const outcome& ended() const;              // REQUIRES state() == done
  const std::string& model() const noexcept; // which one took it; set from running on
  std::uint32_t queue_position() const noexcept;  // at admission; 0 = next

  std::uint32_t published() const noexcept;  // tokens whose text is in the log
  // Appends the text of tokens (from, to]. REQUIRES from <= to <= published().
  void text_of(std::uint32_t from, std::uint32_t to, std::string& out) const;
  core::token_id token_at(std::uint32_t index) const;            // index < published()
  std::int64_t sampled_at_us(std::uint32_t index) const;         // µs from the job's creation
  core::time_point sampled_at(std::uint32_t index) const;        // the same on the service's clock

  // Called on the shard after any change (never from inside one of these calls, never after the reader left).
  using reader = std::function<void()>;
  std::uint64_t follow(reader r);   // returns a handle for leave
  void leave(std::uint64_t handle);

  struct state_block;               // what service and owner share with it
  explicit job_stream(std::shared_ptr<state_block> s);

 private:
  std::shared_ptr<state_block> s_;
};

}  // namespace weir::actors
