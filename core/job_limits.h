// job_limits.h — the most that a job may ask for, whatever the model. Requests are held to them
// (actors/make_job.h), and so are jobs that come from another process (core/fleet/job_frame.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace weir::core {

inline constexpr std::size_t most_stop_strings = 64, longest_stop_string = 1024;
inline constexpr std::size_t most_banned_strings = 1024, most_banned_bytes = std::size_t{64} << 10;
// Different tokens of stop_token_ids, and of each list of sampling: a step writes them to a device for each
// draw.
inline constexpr std::size_t most_listed_tokens = 1024;
inline constexpr std::size_t most_bad_words = 256, longest_bad_word = 1024;
inline constexpr std::size_t most_breakers = 64, longest_breaker = 40;
inline constexpr std::size_t longest_cache_salt = 256;
// Of a job whose context shifts, which ends by no context: the host keeps its whole answer.
inline constexpr std::uint32_t most_shifted_output = 1u << 20;
inline constexpr std::chrono::milliseconds longest_deadline = std::chrono::hours(24);

}  // namespace weir::core
