// job_frame.h — a job as it travels from a gateway to a worker.
//
// The lists that a job has made ready travel as what they were made of, and the worker makes them again: its
// constraint, the breakers of DRY, and how its prompt is healed. Times travel as times from now on, since
// processes share no clock.
//
// A job whose frame is longer than a message travels in parts, at most most_parts of them.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "core/job.h"

namespace weir::core::fleet {

struct job_order {
  // How often the job was given to a worker before. A worker knows by it which of two orders is void.
  std::uint8_t attempt = 0;
  std::string gateway;     // name of the gateway, to which tokens go
  std::uint32_t slot = 0;  // the gateway's number for the job, by which frames of tokens name it
  std::string model;
  std::uint64_t engine = 0;  // the worker's number of the engine that is asked for
  bool may_pause = false;    // pauses of the job will be asked for
  // The class of the arithmetic that began job::spoken (arithmetic_class.h); 0: nothing was spoken, or the
  // class is not known, as in frames of earlier builds.
  std::uint64_t arithmetic = 0;
  // Has constraint_source where it has a constraint, healing::token alone and dry_breakers::texts alone. It
  // has neither prompt_ids, constraint nor sink.
  core::job job;
  // What another gateway needs to go on for the job's client (resume_part.h), at most longest_resume bytes. A
  // worker keeps it and does not read it. Empty: no other gateway can.
  std::string resume;
  // Whose the job is, beside job::key, and the first choice of its answer: as state_block has them. A frame
  // of an earlier build has neither, and its job is the key's own and its answer's only one.
  std::uint64_t user = 0;
  job_id answer;
  // For how long its client wants the model to stay after the job, as request::stay; an earlier build says 0.
  duration stay{};
};
inline constexpr std::size_t longest_resume = std::size_t{256} << 10;

// Most bytes of a frame, which is a message of its own.
inline constexpr std::size_t longest_job_frame = std::size_t{512} << 10;
inline constexpr std::uint32_t most_parts = 16;

// The frames of an order: one of kind `job`, or several of kind `job_part`, at most `longest` bytes each.
// Error: invalid_param for a job that takes more than most_parts of them. REQUIRES: job::constraint_source
// where the job has a constraint.
result<std::vector<std::string>> job_frames(const job_order& o, time_point now,
                                            std::size_t longest = longest_job_frame);

// The order in the body of a frame of kind `job`, or in the joined bodies of parts. Every list is within the
// limits of core/job_limits.h, and every number that has a range is in it. What depends on the model is not
// checked: its vocabulary and its context. Errors: invalid_param, with the name of a field where one is out
// of its range.
result<job_order> read_job(std::string_view body, time_point now);

struct job_part {
  job_id id;
  std::uint8_t attempt = 0;
  std::uint32_t part = 0, of = 0;  // part < of <= most_parts
  std::string_view bytes;          // of the frame
};
result<job_part> read_job_part(std::string_view body);

}  // namespace weir::core::fleet
