#include "actors/fleet/check_job.h"

#include <algorithm>

#include "actors/arrival.h"
#include "core/schedule/context_shift.h"

namespace weir::actors::fleet {
namespace {

using core::bad_param;
using core::result;

// Checks lists of ids against a vocabulary.
class vocabulary {
 public:
  explicit vocabulary(const served_model& m) : of_(m) {}

  bool has(core::token_id id) const {
    return id >= 0 && static_cast<std::uint32_t>(id) < of_.info.vocab_size;
  }
  template <class Ids>
  void check(const char* name, const Ids& ids) {
    if (!wrong_ && !std::ranges::all_of(ids, [this](core::token_id id) { return has(id); })) wrong_ = name;
  }
  result<void> verdict() const {
    if (!wrong_) return {};
    return bad_param(wrong_, "{} has a token id that is outside the vocabulary of {}", wrong_, of_.name);
  }

 private:
  const served_model& of_;
  const char* wrong_ = nullptr;
};

// The tokens of a list of words, in which each word begins with their number.
std::vector<core::token_id> ids_of(const core::shared_list<core::token_id>& words) {
  std::vector<core::token_id> out;
  for (std::size_t at = 0; at < words.size();) {
    const auto size = static_cast<std::size_t>(words[at]);
    out.insert(out.end(), words.begin() + static_cast<std::ptrdiff_t>(at) + 1,
               words.begin() + static_cast<std::ptrdiff_t>(at + size) + 1);
    at += size + 1;
  }
  return out;
}

result<void> check_ids(const core::job& j, const served_model& m) {
  vocabulary v(m);
  const auto& s = j.sampling;
  v.check("prompt", j.prompt);
  v.check("spoken", j.spoken);
  // The model's own stop ids are among these, and may be outside of the vocabulary's rows.
  for (const auto id : j.stop_token_ids)
    if (!m.info.stop_ids.contains(id)) v.check("stop_token_ids", std::initializer_list<core::token_id>{id});
  for (const auto& bias : s.logit_bias)
    v.check("logit_bias", std::initializer_list<core::token_id>{bias.first});
  v.check("disallow_tokens", s.disallow_tokens);
  v.check("allowed_token_ids", s.allowed_token_ids);
  v.check("bad_words", ids_of(s.bad_words));
  if (j.healing) v.check("token_healing", std::initializer_list<core::token_id>{j.healing->token});
  return v.verdict();
}

}  // namespace

result<void> check_job(const core::job& j, const served_model& m, const model_place& at) {
  if (auto fine = check_ids(j, m); !fine) return fine;
  if (j.prompt.size() >= at.context)
    return core::make_error(core::errc::prompt_too_long, "prompt is too long: {} tokens > {} maximum",
                            j.prompt.size(), at.context - 1);
  if (j.shifts && core::tokens_that_leave(at.context, 0) == 0)
    return bad_param("context_overflow", "{}'s context of {} tokens is too small to shift", m.name,
                     at.context);
  if (j.prompt_logprobs && at.device == "sim")
    return bad_param("prompt_logprobs", "{} is simulated, and gives a prompt no probability", m.name);
  if (!j.spoken.empty() && j.sampling.mirostat_mode != 0)
    return core::make_error(core::errc::not_supported,
                            "a job with mirostat_mode cannot go on in another process");
  if (j.min_tokens > 0 && j.stop_token_ids.below(m.info.vocab_size).size() == m.info.vocab_size)
    return bad_param("stop_token_ids", "min_tokens forbids every token of {}", m.name);
  return {};
}

std::uint64_t bytes_of(const core::job& j) {
  const auto& s = j.sampling;
  const std::uint64_t scored = j.prompt_logprobs ? sizeof(core::scored_token) * j.prompt.size() : 0;
  return (j.top_logprobs ? logprobs_job_bytes : job_bytes) + scored + j.prompt.bytes() +
         j.spoken.size() * sizeof(core::token_id) + s.logit_bias.bytes() + s.disallow_tokens.bytes() +
         s.allowed_token_ids.bytes() + s.bad_words.bytes() + j.stop_token_ids.bytes() + j.stop.bytes() +
         j.banned.bytes();
}

bool needs_making(const core::job& j) {
  return j.constraint_source || j.healing || j.sampling.dry_sequence_breakers;
}

}  // namespace weir::actors::fleet
