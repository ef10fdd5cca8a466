// job_stream.h — the reading end of a job: its append-only log of tokens, its text and its ending.
//
// A stream is created on an I/O shard before its job is admitted, and it alone says how the job ended. The
// owner pushes tokens into a lock-free queue from its own thread. The stream drains the queue on its shard,
// whatever its readers do, and detokenises into the log. A reader keeps a cursor: the number of tokens that
// it has shown.
//
// Thread safety: the shard's thread, except id() and cancel().
//
// Invariants:
//   1. published() never falls, and text_of(a, b) never changes once b <= published().
//   2. The phase goes pending -> running -> done, or pending -> refused, or pending -> done (cancelled before
//      it was admitted).
//   3. The text of the tokens up to published() is whole UTF-8.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/request.h"
#include "actors/token_log.h"
#include "core/job.h"
#include "core/text/detokenizer.h"

namespace weir::actors {

using executor = boost::asio::any_io_executor;

// How a job ended, as clients are told.
struct outcome {
  core::finish_reason reason = core::finish_reason::stop;
  std::optional<std::uint32_t> stop_string;  // index in request::stop of the string that ended it
  std::uint32_t input_tokens = 0, output_tokens = 0, cached_tokens = 0;
  std::uint32_t shifts = 0;            // times that tokens left a full context
  std::uint32_t reasoning_tokens = 0;  // of the output, where reasoning is a part of the answer
  std::uint32_t calls = 0;             // that are whole
  std::optional<std::uint32_t> parts;  // of an answer that was taken apart
  // From the request to the first batch; from there to the first token; from the request to the first token;
  // from the first token to the last; longest time between two tokens. 0: not reached yet.
  double queue_ms = 0, prefill_ms = 0, ttft_ms = 0, decode_ms = 0, max_gap_ms = 0;
  std::optional<core::error> fault;     // why, if reason == error
  // As core::ending::prompt_logprobs.
  std::shared_ptr<const std::vector<core::scored_token>> prompt_logprobs;
  const char* status() const noexcept;  // completed, incomplete, cancelled or failed
};

class job_stream : public std::enable_shared_from_this<job_stream> {
 public:
  enum class phase { pending, running, done, refused };

  ~job_stream();  // cancels a job that has not ended
  const core::job_id& id() const noexcept;
  // Any thread, in every phase; only the first call has an effect. A running job ends with `why` when its
  // owner reads the message.
  void cancel(core::finish_reason why = core::finish_reason::cancel);

  phase state() const noexcept;
  const core::error& refusal() const;             // REQUIRES: state() == refused
  const outcome& ended() const;                   // REQUIRES: state() == done
  const std::string& model() const noexcept;      // the model that took it; empty before it is running
  const std::string& fingerprint() const noexcept;  // served_model::fingerprint; empty before it is running
  // The model's; null before it is running.
  std::shared_ptr<const core::tokenizer> tokenizer() const noexcept;
  // Jobs queued ahead of it when it was admitted; while it waits for its model, requests that wait before it.
  std::uint32_t queue_position() const noexcept;
  // The model whose load it waits for, or waited for when it ended; empty: it did not have to.
  const std::string& awaited_model() const noexcept;
  std::uint32_t prompt_tokens() const noexcept;   // 0 before it is running
  core::token_id first_prompt_token() const noexcept;  // REQUIRES: it is running, or has been
  // The prompt as text, with request::echo; else, and before it is running, empty.
  const std::string& prompt_text() const noexcept;

  // The parts of the request's constraint that are not enforced; empty before the job is running.
  std::span<const core::grammar::warning> warnings() const noexcept;

  // Tokens that readers may show: up to the last one with which the text ends in a whole character.
  std::uint32_t published() const noexcept { return log().whole(); }
  // The tokens and their text. Its times count from created().
  const token_log& log() const noexcept;
  core::time_point created() const noexcept;  // on the service's clock
  // Appends to `out` the text of the tokens `from` to `to` - 1. REQUIRES: from <= to <= published().
  void text_of(std::uint32_t from, std::uint32_t to, std::string& out) const;
  // REQUIRES of the next three: index < published().
  core::token_id token_at(std::uint32_t index) const { return log().id(index); }
  // When it was sampled: in µs from created(), and on the service's clock.
  std::int64_t sampled_at_us(std::uint32_t index) const { return log().at_us(index); }
  core::time_point sampled_at(std::uint32_t index) const {
    return created() + std::chrono::microseconds(sampled_at_us(index));
  }

  // Takes the job out of the batch, at the latest until `until` (core::engine::pause); pausing it again sets
  // a new time. No effect on a job that is not running, or without request::may_pause. The owner does it when
  // it reads the message.
  void pause(core::time_point until);
  void resume();

  // Called on the shard after new tokens, the ending or a refusal. Never called from inside a member of
  // job_stream, nor after leave().
  using reader = std::function<void()>;
  std::uint64_t follow(reader r);  // returns a handle for leave()
  void leave(std::uint64_t handle);

  struct state_block;  // the part that service and owner share with it; job_state.h
  // The end to which an owner writes a job's output. An engine sees it as a core::token_sink.
  using owner_end = std::shared_ptr<state_block>;
  explicit job_stream(std::shared_ptr<state_block> s);

 private:
  std::shared_ptr<state_block> s_;
};

}  // namespace weir::actors
