// job_state.h — the block that the two ends of a job share: the owner writes tokens into it, and the job's
// stream reads them on its shard.
//
// Thread safety, by group of members:
//   - constant: set before the block is shared.
//   - any thread: atomics.
//   - owner: touched by the thread that runs the engine, through the token_sink interface.
//   - crossing: the queue of tokens, and the word that says how many of them may be read.
//   - shard: touched on the stream's shard only.
//
// Why there is a count beside the queue: a stop string may cut a token that was queued in the same step in
// which the job ends. The reader takes only tokens that publish() has counted, and publish() counts tokens
// and the ending in one store. A reader that sees the cut token has therefore seen the ending too.
#pragma once

#include <readerwriterqueue/readerwriterqueue.h>

#include <array>
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
#include "core/text/answer/reader.h"
#include "core/text/detokenizer.h"
#include "core/token_sink.h"

namespace weir::actors {

// Called once on the job's shard when the job has ended or was refused; the registry learns of it this way.
using end_hook = std::function<void(const outcome&, const job_stream::state_block&)>;

class outbox;

struct job_stream::state_block final : core::token_sink, waker {
  // `created`: of a job that began elsewhere; unset: now.
  state_block(core::job_id i, executor s, std::shared_ptr<const core::clock> time, end_hook at_end,
              std::optional<core::time_point> created = {});

  ~state_block() override;

  // --- token_sink. Owner's thread; abandoned() any thread.

  // Both queue tokens until the queue is full and put the job into the outbox. The first call also tells
  // admission that the prompt is computed.
  std::size_t write(std::span<const core::token> tokens) override;
  // REQUIRES: keep_logprobs() and open_queue() were called.
  std::size_t write_with_logprobs(std::span<const core::token> tokens,
                                  std::span<const core::draw_logprobs> logprobs) override;
  // What both writes do once they have queued `n` tokens; returns n.
  std::size_t queued(std::size_t n);
  // Tells admission.
  void paused(bool now) noexcept override;
  // Records the ending, gives back the job's places in admission and puts the job into the outbox.
  void finish(const core::ending& how) override;
  // cancel() was called.
  bool abandoned() const noexcept override { return cancelled.load(std::memory_order_acquire); }
  // If a cancel or the deadline ended the job, adds the delay from then until its pages were free to
  // outbox::released.
  void note_release(const core::ending& how) noexcept;
  // Makes the queued tokens and the ending readable, in one store.
  void publish() noexcept;

  // For a job with core::job::top_logprobs, before the block is shared: its log keeps logprobs.
  void keep_logprobs(std::uint32_t top);
  // Before the owner learns of the job; on the thread that tells it. Its tokens travel with their logprobs,
  // if the log keeps them.
  void open_queue();

  // Any thread; only the first call has an effect. Sets `cancelled` and posts cancel_here() to the shard.
  void cancel(core::finish_reason why);

  // --- Shard's thread.

  // Wake handler: reads news according to the phase.
  void read_news();
  // Moves readable tokens into the log, and ends the job if its ending is readable. REQUIRES: running.
  void take_news();
  // Moves one token from the job's queue into the log. False: the queue is empty.
  bool take_token();
  void keep(const core::token& t);
  // Gives ids to calls that the model gave none: a function of the job's id and the number of the call.
  void name_calls();
  // The answer has ended: what was held back is text.
  void close_log();
  // The same as take_news(), but an exception ends the job with an error and tells the owner to cancel it.
  void take_news_or_end();
  // Charges the current size of the log, and of the output that the engine keeps, to `memory`.
  void count_log() noexcept;
  // The job was submitted to this place of a model, with `position` jobs queued ahead of it. `prompt_text`:
  // see job_stream::prompt_text(). `warnings`: see job_stream::warnings(). `parts`: how the answer
  // is taken apart; null: it is one text. If the job has ended meanwhile, its owner is told to cancel it.
  void admitted(std::shared_ptr<const served_model> by, std::shared_ptr<const model_place> at,
                std::uint32_t position, std::shared_ptr<const std::string> prompt_text = nullptr,
                std::shared_ptr<const constraint_warnings> warnings = nullptr,
                std::shared_ptr<const core::answer_plan> parts = nullptr);
  // A pending job waits for the load of a model, with so many requests before it.
  void waits(const std::string& model, std::uint32_t ahead);
  // Ends a pending job as refused; no effect in any other phase, or on a job that cancel() ends.
  void refused(core::error e);
  // Ends a pending job at once; a running one is cancelled at its owner.
  void cancel_here(core::finish_reason why);
  // Asks the owner to pause the job until `until`; nullopt: to let it go on. At most one message of a job is
  // in the mailbox: the owner reads the latest wish.
  void pause(std::optional<core::time_point> until);
  // Calls every reader.
  void changed();
  // Ends the job: sets the phase to done and tells at_end and the readers.
  void end(outcome o);
  // Counts what the accounts lack and calls at_end, unless that was done before.
  void tell_ended(const outcome& o);
  // The job has `tokens` output tokens by now: counts those that are new in the accounts.
  void count_output(std::uint32_t tokens, core::time_point at) noexcept;

  // --- Constant.
  const core::job_id id;
  const executor shard;
  const std::shared_ptr<const core::clock> time;
  const core::time_point created;
  bool skip_special = true;  // special tokens add no text
  std::array<std::shared_ptr<job_account>, 2> accounts;  // as in request
  std::uint64_t user = 0;                                // principal::user of its owner
  core::job_id answer;                                   // of the first choice of the same request
  core::duration stay{};                                 // request::stay
  // The queue of a job whose tokens have logprobs, from open_queue() on; null: the job asked for none, and
  // uses `queue`.
  struct token_with_logprobs {
    core::token token;
    core::draw_logprobs logprobs;
  };
  std::unique_ptr<moodycamel::ReaderWriterQueue<token_with_logprobs>> queue_with_logprobs;

  // --- Any thread.
  std::atomic<bool> cancelled{false};
  std::atomic<core::time_point> cancelled_at{core::time_point::max()};  // of the first cancel()

  // --- Set by the text task before the owner learns of the job; then the owner's.
  std::shared_ptr<const model_place> taken_by;   // its admission counts the job until finish()
  std::optional<pausable_jobs::place> pausable;  // of a job that may pause, until finish()
  std::shared_ptr<waiting_prompt> prompt;        // shared by the request's choices; null after a token
  std::optional<core::time_point> deadline;
  std::uint32_t prompt_tokens = 0;  // constant from here on; the shard reads it after admitted()
  core::token_id first_prompt_token = 0;  // the same
  std::uint64_t healed = 0;               // bytes of the first token that are no text of the answer; the same
  // What another gateway needs to go on with the job (core/fleet/resume_part.h); null: none can. The same.
  std::shared_ptr<const std::string> resume;
  std::uint32_t engine_token_bytes = 0;   // that the engine keeps of each token of the output; the same
  // Bytes charged for what the job has of its own. After admitted() it is the shard's, and includes the log.
  core::memory_hold memory;
  // Bytes charged for what it shares with the other jobs of its request: the prompts and lists. After
  // admitted() it is the shard's. Null once the job has ended.
  std::shared_ptr<const core::memory_hold> shared_memory;

  // --- Owner's thread.
  outbox* out = nullptr;     // set when the owner takes the job
  std::uint32_t pushed = 0;  // tokens queued so far
  // Written by finish(). The shard may read it once it has seen the ended bit of `readable`.
  core::ending how_it_ended;
  admission_control::standing standing = admission_control::standing::counted;
  bool finished = false;  // finish() was called
  bool has_news = false;  // the job is in the outbox

  // --- Crossing. readable: tokens that may be read << 1 | the job has ended.
  static constexpr std::size_t queue_items = 127;
  moodycamel::ReaderWriterQueue<core::token> queue{queue_items};
  std::atomic<std::uint64_t> readable{0};

  // --- Shard's thread. What every token needs comes first: the jobs of thousands of clients fit no cache.
  phase now = phase::pending;
  unsigned telling = 0;         // calls of changed() in progress, which may nest
  std::uint32_t taken = 0;      // tokens taken from the queue
  std::uint32_t counted = 0;    // output tokens that the accounts have
  std::uint64_t log_bytes = 0;  // bytes of the log that `memory` includes
  std::uint64_t engine_bytes = 0;  // bytes of the engine's output that `memory` includes
  struct follower {
    std::uint64_t handle;
    reader tell;
    bool gone = false;  // it left inside changed(), which removes it
  };
  std::list<follower> readers;  // a list, because readers may come and go inside changed()
  token_log log;
  std::optional<core::detokenizer> text;      // set by admitted()
  std::optional<core::answer_reader> parts;   // set by admitted(); none: the answer is one text
  std::string characters;                     // for `parts`: of one token
  std::size_t named_calls = 0;                // calls that have an id
  std::shared_ptr<const served_model> model;  // set by admitted()
  std::shared_ptr<const model_place> place;   // set by admitted(): where the model runs the job
  std::uint32_t queue_position = 0;           // set by waits() and admitted()
  std::string awaited;                        // set by waits()
  std::shared_ptr<const std::string> prompt_text;  // set by admitted(); null: nobody asked for it
  std::shared_ptr<const constraint_warnings> warnings;  // set by admitted(); null: there are none
  // Reason of a cancel that came before admitted(), for the owner.
  core::finish_reason wanted_end = core::finish_reason::cancel;
  std::uint64_t next_reader = 1;
  core::error why_refused;  // in phase refused
  outcome result;           // in phase done
  end_hook at_end;          // null once it was called

  // --- Any thread, seldom.
  // Until when the job has to pause; min(): it has to go on.
  std::atomic<core::time_point> pause_until{core::time_point::min()};
  std::atomic<bool> pause_told{false};  // a pause_job is in the owner's mailbox; the owner clears it
};

// The jobs that have tokens or endings to publish. flush() publishes all of them and wakes each shard with
// one post. Owner's thread only.
class outbox {
 public:
  explicit outbox(core::delays& cancel_to_release) : released(cancel_to_release) {}
  // No effect if the job is in it already. Waits where there is no memory: news that are lost leave a client
  // waiting for ever.
  void add(job_stream::state_block& job);
  void flush();

  core::delays& released;  // see shared_by_owners::cancel_to_release

 private:
  std::vector<std::shared_ptr<job_stream::state_block>> news_;
  wakes wakes_;
};

}  // namespace weir::actors
