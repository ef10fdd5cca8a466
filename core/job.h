// job.h — all that the engine ever learns of what a client asked: a prompt in tokens, limits, and where
// tokens go.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/sample/params.h"
#include "core/token_sink.h"

namespace weir::core {

// 128 random bits: the client's response_id, OpenAI's id and the key of /v1/jobs are all its text() (32 hex
// digits).
struct job_id {
  std::uint64_t hi = 0, lo = 0;
  auto operator<=>(const job_id&) const = default;
  std::string text() const;
  static std::optional<job_id> parse(std::string_view text);
};

struct job_id_hash {
  std::size_t operator()(const job_id& id) const noexcept { return static_cast<std::size_t>(id.lo); }
};

struct job {
  job_id id;
  std::vector<token_id> prompt;            // never empty; every id is inside the vocabulary
  sampling_params sampling;
  std::uint32_t max_tokens = 1;            // >= 1; the context may end the job sooner, with length
  std::uint32_t min_tokens = 0;            // until then stop ids are masked and stop strings ignored
  bool ignore_eos = false;                 // the model's own stop ids do not stop it; stop_token_ids still do
  std::vector<token_id> stop_token_ids;    // beside the model's own
  std::vector<std::string> stop;           // judged on bytes; none is empty
  std::uint32_t max_repeats =
      0;  // a loop of so many (core/stop/repeats.h) ends it with repetition; 0: none does
  std::string cache_salt;                  // jobs share computed prefixes with jobs of the same salt alone
  int priority = 0;                        // higher first
  std::uint64_t key = 0;                   // whose it is: waiting jobs of different keys take turns
  std::optional<time_point> deadline;
  time_point created{};                    // when the client's request was read: t = 0 of its timings
  std::shared_ptr<token_sink> sink;        // never null
};

}  // namespace weir::core
