// job_state.h — the block that a job's two ends share: the owner writes tokens into it, the stream on its
// shard reads.
//
// Thread safety, by group of members:
//   constant      set before the block is shared
//   any thread    atomics
//   owner         touched by whoever runs the engine, through the token_sink interface
//   crossing      the queue of tokens and the word that says how many of them may be read
//   shard         touched on the stream's shard only
//
// Why a count beside the queue: a stop string may cut a token that was queued in the same step in which the
// job ends. The reader takes only what a flush has published, and an ending is published in the same store as
// the tokens before it, so a reader that sees the cut token has seen the ending too.
#pragma once

#include <readerwriterqueue/readerwriterqueue.h>

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/job_stream.h"
#include "actors/runtime/wakes.h"
#include "actors/served_model.h"
#include "actors/token_log.h"
#include "core/delays.h"
#include "core/memory/account.h"
#include "core/text/detokenizer.h"
#include "core/token_sink.h"

namespace weir::actors {

// Told once how a job ended, on its shard: the registry's line.
using end_hook = std::function<void(const outcome&, const job_stream::state_block&)>;

class outbox;

struct job_stream::state_block final : core::token_sink, waker {
  state_block(core::job_id i, executor s, std::shared_ptr<const core::clock> time, end_hook at_end);

  ~state_block() override;

  // --- token_sink: owner
  std::size_t write(std::span<const core::token> tokens) override;
  void finish(const core::ending& how) override;
  bool abandoned() const noexcept override { return cancelled.load(std::memory_order_acquire); }
  void note_release(const core::ending& how) noexcept;
  void publish() noexcept;     // what was written and how it ended, in one store

  void cancel(core::finish_reason why);  // any thread

  // --- on the shard
  void read_news();
  void take_news();            // REQUIRES: running
  void take_news_or_end();
  void count_log() noexcept;
  void admitted(std::shared_ptr<const served_model> by, std::uint32_t position);
  void refused(core::error e);
  void cancel_here(core::finish_reason why);
  void changed();              // tells the readers
  void end(outcome o);
  void tell_ended(const outcome& o);

  // constant
  const core::job_id id;
  const executor shard;
  const std::shared_ptr<const core::clock> time;
  const core::time_point created;
  bool skip_special = true;

  // any thread
  std::atomic<bool> cancelled{false};
  std::atomic<core::time_point> cancelled_at{core::time_point::max()};  // the first time

  // the way in, then owner; set before the owner learns of the job
  std::shared_ptr<const served_model> taken_by;  // its door counts the job until finish
  std::shared_ptr<waiting_prompt> prompt;        // of all its request's choices; none once it has a token
  std::optional<core::time_point> deadline;
  core::memory_hold memory;                      // of the prompt; then, on the shard, of the log too

  // owner
  outbox* out = nullptr;       // set when the owner takes the job
  std::uint32_t pushed = 0;
  core::ending how_it_ended;
  bool finished = false;
  bool has_news = false;       // in the outbox

  // crossing: count << 1 | ended
  static constexpr std::size_t queue_items = 127;
  moodycamel::ReaderWriterQueue<core::token> queue{queue_items};
  std::atomic<std::uint64_t> readable{0};

  // shard
  phase now = phase::pending;
  std::uint32_t taken = 0;
  std::shared_ptr<const served_model> model;
  std::uint32_t queue_position = 0;
  std::optional<core::detokenizer> text;
  token_log log;
  std::uint64_t log_bytes = 0; // of the log, as `memory` counts them
  core::error why_refused;
  outcome result;
  core::finish_reason wanted_end = core::finish_reason::cancel;
  struct follower {
    std::uint64_t handle;
    reader tell;
    bool gone = false;         // left while being told
  };
  std::list<follower> readers; // a list: one may come or go while another is told
  unsigned telling = 0;
  std::uint64_t next_reader = 1;
  end_hook at_end;             // called once, when the job has ended or was refused
};

// The jobs that a step had news for: published and woken together when the step is over, one post a shard.
// Used on the owner's thread.
class outbox {
 public:
  explicit outbox(core::delays& cancel_to_release) : released(cancel_to_release) {}
  void add(job_stream::state_block& job);
  void flush();

  core::delays& released;

 private:
  std::vector<std::shared_ptr<job_stream::state_block>> news_;
  wakes wakes_;
};

}  // namespace weir::actors
