// score_frame.h — the frames by which a gateway gets the logprobs of a prompt from the worker that has
// computed them: a question for a piece under the worker's control subject, and the answer. A long prompt
// takes several pieces.
//
// Thread safety: plain data; pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/fleet/control_frame.h"
#include "core/sample/logprobs.h"

namespace weir::core::fleet {

struct score_wish {
  job_name job;
  std::uint32_t at = 0;  // logprobs that the gateway has
};

struct score_part {
  job_name job;  // these two as in the question
  std::uint32_t at = 0;
  std::uint32_t of = 0;  // how many there are; at <= of
  // Of the prompt's tokens from number 1 + at on, whose ids the gateway knows: `drawn.id` does not travel.
  std::vector<scored_token> tokens;
};
inline constexpr std::size_t longest_score_part = std::size_t{512} << 10;

std::string frame_of(const score_wish& f);
// `all`: the logprobs from number `at` on that are there. Of these the frame has as many as fit into
// `longest` bytes, and one at least. REQUIRES: at + all.size() <= of; longest <= longest_score_part
std::string score_part_of(const job_name& job, std::uint32_t at, std::uint32_t of,
                          std::span<const scored_token> all, std::size_t longest);
// nullopt: another frame, or one that is cut or has a value that it may not have.
std::optional<score_wish> read_score_wish(std::string_view frame);
std::optional<score_part> read_score_part(std::string_view frame);

}  // namespace weir::core::fleet
