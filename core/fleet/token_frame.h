// token_frame.h — the tokens and endings of a step, from a worker to one gateway.
//
// A worker counts its frames to each gateway (`serial`), so that a gateway sees where one is missing. The
// position of a job's tokens decides which of them are new, so that a frame that is told again repeats none.
// Times are in µs from the job's creation. A lone token takes some ten bytes.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/fleet/bytes.h"
#include "core/fleet/frame_kind.h"
#include "core/sample/logprobs.h"
#include "core/token.h"
#include "core/token_sink.h"

namespace weir::core::fleet {

// Most bytes after which a frame takes no further job, and most tokens of a job in one frame.
inline constexpr std::size_t long_token_frame = std::size_t{256} << 10;
inline constexpr std::uint32_t most_frame_tokens = 4096, most_frame_logprobs = 512;

// A token and when it was sampled, from the job's creation.
struct sent_token {
  token_id id = 0;
  duration at{};
};

// What a frame says of one job. A reader's tokens are a range of token_frame's.
struct job_news {
  std::uint32_t slot = 0;  // job_order::slot
  std::uint8_t attempt = 0;
  std::uint32_t from = 0;            // position in the output of the first token
  std::uint32_t begin = 0, end = 0;  // in token_frame::tokens and logprobs
  bool ended = false;
  ending how;  // where it has ended; prompt_logprobs travel in frames of their own (score_frame.h)
};

// Writes a frame job by job.
class token_frame_writer {
 public:
  // `with_logprobs`: the frame is of the kind `logprobs`.
  token_frame_writer(std::string_view worker, bool with_logprobs);

  // Begins the news of a job: `count` calls of add() follow, then end() where it has ended.
  void job(std::uint32_t slot, std::uint8_t attempt, std::uint32_t from, std::uint32_t count, bool ended);
  void add(const sent_token& t);
  // As token_log::logprobs(): the token's own, then those of the likeliest ones; an id of -1 is left out.
  void add(const sent_token& t, std::span<const token_logprob> all);
  void end(const ending& how, time_point created);

  bool empty() const noexcept { return jobs_ == 0; }
  bool full() const noexcept { return bytes_.size() >= long_token_frame; }
  // The frame, with its number. The writer is empty behind it, and begins the next.
  std::string take(std::uint64_t serial);

 private:
  const std::string worker_;
  const bool with_logprobs_;
  std::uint32_t jobs_ = 0;
  std::int64_t before_us_ = 0;
  std::string bytes_;
};

// Reads a frame; keeps its memory for the next.
class token_frame {
 public:
  // False: the frame is cut or has a value that it may not have. `created` of times is the clock's zero.
  bool read(std::string_view frame);

  std::string worker;
  std::uint64_t serial = 0;
  bool with_logprobs = false;
  std::vector<job_news> jobs;
  std::vector<token> tokens;  // token::at counts from the job's creation
  std::vector<draw_logprobs> logprobs;

 private:
  void read_job(byte_reader& from);
  void read_token(byte_reader& from, std::int64_t& before_us);
};

}  // namespace weir::core::fleet
