// far_job.h — a gateway's job that runs in a worker.
//
// It plays the owner's part to the job's stream: it alone writes to the end. Which tokens are new is decided
// by their positions in the output, so that tokens that come twice are written once.
//
// Thread safety: the far_owner's executor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/fleet/far_port.h"
#include "actors/job_state.h"
#include "core/fleet/control_frame.h"
#include "core/fleet/job_frame.h"
#include "core/fleet/score_frame.h"
#include "core/fleet/token_frame.h"

namespace weir::actors::fleet {

struct far_job {
  core::job job;  // as it was submitted, without what a frame does not carry
  job_stream::owner_end end;
  std::shared_ptr<const model_place> first_place;  // the accounts of its prompt are there
  std::uint32_t slot = 0;
  bool may_pause = false;

  std::uint8_t attempt = 0;
  std::optional<far_engine> where;    // nullopt: it waits for a place
  bool adopting = false;  // another gateway had it, and its worker has not said yet that it is ours
  unsigned claims = 0;    // times that its worker was told to give it
  bool taken = false;                 // the worker has said so, or has sent tokens
  core::time_point since{};           // when it came, or lost the worker that had taken it
  core::time_point heard{};           // when its worker was last heard of it, or asked
  std::uint32_t moves = 0, hops = 0;  // workers that it lost; offers that were not taken
  bool ran = false;                   // it has moved before
  std::vector<std::string> tried;     // workers that did not take it, or lost it last
  std::optional<core::error> why;     // of the workers that have no room: the least time after which to retry
  std::optional<core::finish_reason> cancelled;

  std::vector<core::token_id> received;  // the whole output so far
  std::optional<core::ending> how;       // its ending has come

  // The logprobs of the prompt, where core::job::prompt_logprobs asks for some: the job's ending waits until
  // all of them are here.
  struct prompt_scores {
    std::shared_ptr<std::vector<core::scored_token>> tokens;  // so far; null: none has come
    bool whole = false;
    bool asked = false;                  // the worker was asked for some, and may answer
    std::optional<core::ending> ending;  // the one that waits
  } scores;

  bool waits_for_room = false;  // in the queue of its stream

  // Classes of arithmetic (core/fleet/arithmetic_class.h), 0: not known: on which the output began, and of
  // the worker that took the job last.
  std::uint64_t began_on = 0, runs_on = 0;

  const std::string& model() const { return static_cast<const far_port&>(*first_place->port).where().model; }
  core::fleet::job_name name() const { return {job.id, attempt}; }
  core::time_point created() const { return job.created; }

  // Whether all of the output was received.
  bool has_output() const { return scores.ending || received.size() >= job.max_tokens; }
  // The order for a worker: the job goes on behind what was received. Where the whole output was received,
  // the order leaves out the last token, and the worker draws that token again: a job that goes on needs at
  // least one token to draw.
  core::fleet::job_order order(const std::string& gateway) const;

  enum class news { fresh, nothing, gap, unscored };
  // Takes what a frame says of the job. `gap`: tokens before these are missing. `unscored`: the tokens were
  // taken, and the ending waits for the logprobs of the prompt.
  news take(const core::fleet::job_news& n, const core::fleet::token_frame& f);
  // Takes a piece of the logprobs of the prompt. False: it is not what was asked for.
  bool take(core::fleet::score_part p);
  // Takes the ending that waits, with the logprobs that are here. REQUIRES: scores.ending.
  void take_ending();
  // Of a job that another gateway had: the tokens with which it went to its worker are the stream's first.
  void begin_with_received(core::time_point at);
  // Writes what the stream's queue has room for. True: nothing is left to be written.
  bool write();
  // The tokens that wait for room in the stream's queue.
  bool waits() const noexcept { return written_ < waiting_.size(); }
  // An ending that the gateway makes itself.
  core::ending ending(core::finish_reason why) const;

 private:
  std::vector<core::token> waiting_;
  std::vector<core::draw_logprobs> waiting_logprobs_;  // where the job asked for them
  std::size_t written_ = 0;                            // of waiting_
};

}  // namespace weir::actors::fleet
