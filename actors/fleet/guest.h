// guest.h — a job that came to a worker from a gateway, while it runs and until the gateway has its ending.
//
// A guest reads its job as every other reader does: from the job's stream, whose shard is the intake's
// executor. The stream's log is what tokens are told from, also when they are told again.
//
// Thread safety: the intake's executor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "actors/job_state.h"
#include "actors/job_stream.h"
#include "core/fleet/control_frame.h"
#include "core/fleet/job_frame.h"
#include "core/fleet/token_frame.h"
#include "core/memory/account.h"

namespace weir::actors::fleet {

struct guest {
  core::fleet::job_name name;
  std::string gateway;
  std::uint32_t slot = 0;
  std::uint32_t spoken = 0;    // tokens before the first one of the log
  std::uint64_t key = 0, user = 0;  // as job::key and job_order::user
  core::job_id answer;              // as job_order::answer
  int priority = 0;                 // as job::priority
  core::time_point created{};  // on this worker's clock
  std::shared_ptr<job_stream::state_block> block;
  std::shared_ptr<job_stream> stream;  // its destruction cancels the job

  // Of a job that another gateway can go on with: the body of its frame, as it came; else empty.
  std::string frame;
  core::memory_hold frame_memory;
  core::time_point received{};
  std::string model;
  std::uint64_t engine = 0;
  std::string had_by;  // of one that was left: its last gateway
  bool left = false;  // its gateway has its ending and dropped it; it has no gateway, and is kept for another

  std::uint32_t told = 0;  // tokens of the log that were told
  bool told_end = false;
  bool has_news = false;                  // it waits to be told
  std::optional<core::time_point> ended;  // when its ending was first told

  bool with_logprobs() const noexcept { return stream->log().has_logprobs(); }
  bool over() const noexcept {
    return stream->state() == job_stream::phase::done || stream->state() == job_stream::phase::refused;
  }
  // How it ended. REQUIRES: over().
  core::ending ending() const;
  // Tokens of the output so far, those that were spoken included.
  std::uint32_t tokens() const noexcept { return spoken + stream->log().size(); }
  // Bytes that it takes once it has ended.
  std::uint64_t bytes() const noexcept { return frame.size() + stream->log().memory(); }
  // Writes what was not told yet, as far as one entry of a frame takes. False: nothing was left.
  bool tell(core::fleet::token_frame_writer& to);
  // From now on the tokens behind `after` of the output count as not told.
  void tell_again(std::uint32_t after);
};

}  // namespace weir::actors::fleet
