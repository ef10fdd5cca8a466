// job.h — a client's request as the engine takes it: a prompt in tokens, limits, and the sink for the output.
//
// Thread safety: plain data; one owner.
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/grammar/forcing.h"
#include "core/healing.h"
#include "core/sample/params.h"
#include "core/shared_list.h"
#include "core/stop/stop_strings.h"
#include "core/token_set.h"
#include "core/token_sink.h"

namespace weir::core {

namespace grammar {
class constraint;        // core/grammar/constraint.h
struct constraint_text;  // core/grammar/compile.h
}

// 128 random bits. Clients see its text() (32 hex digits) as response_id, as OpenAI's id and in /v1/jobs.
struct job_id {
  std::uint64_t hi = 0, lo = 0;
  auto operator<=>(const job_id&) const = default;
  std::string text() const;
  // Inverse of text(); nullopt for anything else.
  static std::optional<job_id> parse(std::string_view text);
};

struct job_id_hash {
  std::size_t operator()(const job_id& id) const noexcept { return static_cast<std::size_t>(id.lo); }
};

// The jobs of a request share its lists, which are made ready once (core/shared_list.h).
struct job {
  job_id id;
  shared_list<token_id> prompt;  // never empty; every id is inside the vocabulary
  // The tokens of the prompt, for a repetition penalty. Empty: the sequence makes the set where it needs it.
  token_set prompt_ids;
  // How the first token of the output begins; null: in any way. Jobs of a prompt share it.
  std::shared_ptr<const core::healing> healing;
  // The first tokens of the output, which were delivered before, by another engine of the same model. The
  // sink gets the tokens behind them, which are those of a job that was never interrupted. They count for
  // max_tokens, min_tokens, ending::shown_bytes and all that looks at the output. A stop string that begins
  // in them ends the job, and nothing behind them is shown. engine::submit() says which lists it refuses.
  std::vector<token_id> spoken;
  sampling_params sampling;
  std::uint32_t max_tokens = 1;  // >= 1; a full context ends the job sooner, with finish_reason::length
  // A full context does not end the job, where tokens can leave it (core/schedule/context_shift.h). The first
  // `kept` tokens of the prompt stay. Everything but the model goes on as if none had left: what looks at the
  // output, and the positions of draws. Not with prompt_logprobs.
  bool shifts = false;
  std::uint32_t kept = 0;
  std::uint32_t min_tokens = 0;  // until then, stop ids are masked and stop strings are ignored
  bool ignore_eos = false;       // the model's own stop ids do not stop it; stop_token_ids still do
  // Stop ids beside the model's own. If the set has these too, sequences share it as it is.
  token_set stop_token_ids;
  stop_strings stop;        // compared as bytes
  bool shows_stop = false;  // the stop string that ends the job is shown, to its last byte
  // Texts that the output must not have. Their letters A to Z are small, and match large ones too. Where the
  // output completes a text, the sequence goes back to the first token of that text which was drawn and is
  // not decided. It refuses the token that was there, and draws again (core/schedule/sequence.h).
  stop_strings banned;
  // Repetitions in a row (core/stop/repeats.h) that end the job with finish_reason::repetition; 0: no limit.
  std::uint32_t max_repeats = 0;
  // How many of the likeliest tokens the sink gets logprobs of beside each token, 0 to most_top_logprobs.
  // Unset: the sink gets no logprobs.
  std::optional<std::uint32_t> top_logprobs;
  // How many of the likeliest tokens the ending has logprobs of beside each prompt token but the first.
  // Unset: the ending has no logprobs.
  std::optional<std::uint32_t> prompt_logprobs;
  // What the output may be; null: anything. Jobs share it.
  std::shared_ptr<grammar::constraint> constraint;
  // What `constraint` was made of. Set where another process may get the job; null: it does not.
  std::shared_ptr<const grammar::constraint_text> constraint_source;
  grammar::forcing force = grammar::forcing::canonical;  // which tokens the constraint decides
  std::string cache_salt;              // prefixes are shared only between jobs of equal salts
  int priority = 0;                    // higher first
  std::uint64_t key = 0;               // identity of the API key; waiting jobs of different keys alternate
  std::optional<time_point> deadline;  // when it passes, the job ends with finish_reason::timeout
  time_point created{};                // when the client's request was read; timings count from here
  std::shared_ptr<token_sink> sink;    // never null
};

}  // namespace weir::core
