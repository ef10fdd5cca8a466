// list_frame.h — the frames by which a gateway learns of the jobs of its whole cell: a question to all
// workers, and what each of them answers.
//
// A worker answers every question that it has time for, with an empty list where it has no such job, so that
// a gateway knows when all have answered. Who has no such job and who may not see it get the same answer.
//
// Thread safety: plain data; pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/job.h"
#include "core/token_sink.h"

namespace weir::core {
enum class sequence_state;  // core/engine.h
}

namespace weir::core::fleet {

struct job_question {
  // Whose jobs are asked for, as actors::principal: of a key, and of one of its users, or of all for 0.
  // nullopt: an admin asks, and everybody's are. The gateway has judged the admin's key; members of a cell
  // trust each other.
  struct owner {
    std::uint64_t key = 0, user = 0;
    auto operator<=>(const owner&) const = default;
  };
  std::uint64_t question = 0;  // a random number, by which an answer is known
  std::string gateway;         // that asks
  std::optional<owner> who;
  // The job of this id, and with `cancel` all jobs of the answer of this id; nullopt: all jobs.
  std::optional<job_id> id;
  bool cancel = false;  // they end, as by their clients' wish; needs an id
};

struct listed_job {
  job_id id;
  std::uint8_t attempt = 0;
  std::string gateway;  // that has it, or had it last
  std::string model;
  sequence_state state{};
  finish_reason reason{};  // of one that is finished
  std::uint32_t prompt_tokens = 0, output_tokens = 0, cached_tokens = 0, pages = 0, preemptions = 0;
  std::int32_t priority = 0;
  duration age{};  // since its request was read
};

// A part of an answer.
struct listed {
  std::uint64_t question = 0;
  std::string worker;
  std::uint32_t part = 0, of = 1;  // part < of <= most_list_parts
  std::uint32_t left_out = 0;      // jobs of the worker beyond most_listed
  std::vector<listed_job> jobs;
};
inline constexpr std::uint32_t most_list_parts = 8;
inline constexpr std::size_t most_listed = 4096;        // jobs of an answer
inline constexpr std::size_t longest_model_name = 256;  // bytes of listed_job::model; what is longer is cut

std::string frame_of(const job_question& q);
// nullopt: another frame, or one that is cut or has a value that it may not have.
std::optional<job_question> read_job_question(std::string_view frame);

// The frames of an answer, at most `longest` bytes each. Jobs that do not fit count as left out.
std::vector<std::string> listed_frames(std::uint64_t question, const std::string& worker,
                                       const std::vector<listed_job>& jobs, std::size_t longest);
std::optional<listed> read_listed(std::string_view frame);
std::string frame_of(const listed& part);

}  // namespace weir::core::fleet
