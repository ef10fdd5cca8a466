// answer_encoders.h — how answers over HTTP are encoded, by protocol, and what is kept of an answer whose
// jobs outlive its client.
//
// Thread safety: constant once made; members on the connection's shard.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "net/http/kept_answer.h"
#include "net/http/response_encoder.h"
#include "net/protocol/anthropic.h"
#include "net/protocol/openai.h"

namespace weir::net {

using job_streams = std::vector<std::shared_ptr<actors::job_stream>>;

// Logprobs of the tokens `from` to `to` - 1; nullopt: the client did not ask for them. `characters`: number
// of characters of text before these tokens.
inline std::optional<logprobs_part> logprobs_of(const actors::token_log& log, const core::tokenizer* of_model,
                                                std::uint32_t from, std::uint32_t to,
                                                std::uint64_t characters) {
  if (!log.has_logprobs() || !of_model) return std::nullopt;
  return logprobs_part{&log, of_model, from, to, characters};
}

// Encodes answers for OpenAI's routes. The encoder of every dialect has these members, and its events have
// those of openai::event_writer.
struct openai_encoder {
  openai::dialect dialect{};
  std::vector<std::string_view> reasoning;  // as in openai::answer_head
  bool with_ids = false;                    // events have token ids
  bool include_usage = false;
  bool prompt_logprobs = false, prompt_alone = false;  // as in openai::parsed_request
  std::optional<std::uint32_t> scores;  // likeliest tokens beside each of the prompt's, with `echo`
  std::uint32_t n = 1;                  // choices of each prompt
  std::int64_t created_s = unix_seconds();
  std::string model;  // named by the client; for an answer that was cancelled before a model took it
  std::vector<core::grammar::warning> ignored;

  openai_encoder() = default;  // to be filled
  openai_encoder(openai::dialect d, const openai::parsed_request& p, std::string_view reasoning_fields)
      : dialect(d),
        reasoning(*openai::reasoning_fields(reasoning_fields)),
        with_ids(p.return_token_ids),
        include_usage(p.include_usage),
        prompt_logprobs(p.prompt_logprobs),
        prompt_alone(p.prompt_alone),
        n(p.n),
        model(p.request.model),
        ignored(p.all_warnings()) {
    if (p.request.echo && p.request.top_logprobs)
      scores = static_cast<std::uint32_t>(std::max(*p.request.top_logprobs, std::int64_t{0}));
  }

  openai::answer_head head_of(const admitted_job& first) const {
    openai::answer_head head;
    head.id = openai::id_of(dialect, first.id);
    head.created_s = created_s;
    head.model = first.model.empty() ? model : first.model;
    head.fingerprint = first.fingerprint;
    head.reasoning = reasoning;
    head.warnings = ignored;
    head.warnings.insert(head.warnings.end(), first.warnings.begin(), first.warnings.end());
    return head;
  }
  reply whole(const job_streams& all) const {
    std::vector<openai::choice> choices;
    for (const auto& job : all) {
      openai::choice& c = choices.emplace_back();
      c = {.log = &job->log(),
           .how = job->ended(),
           .with_ids = with_ids,
           .prompt = job->prompt_text(),
           .prompt_alone = prompt_alone,
           .logprobs =
               logprobs_of(job->log(), job->tokenizer().get(), 0, prompt_alone ? 0 : job->published(), 0),
           .tokenizer = job->tokenizer().get(),
           .prompt_logprobs = prompt_logprobs};
      if (prompt_alone) show_prompt_alone(c.how);
      if (c.logprobs && scores && c.how.prompt_logprobs)
        c.scored =
            scored_prompt{job->first_prompt_token(), *c.how.prompt_logprobs, *scores, job->prompt_text()};
    }
    reply r;
    const auto head = head_of(admitted_job::of(*all.front()));
    r.source = std::make_shared<body_parts>(openai::response_body(dialect, head, choices, n));
    return r;
  }
  static void show_prompt_alone(actors::outcome& how) {
    how.output_tokens = 0;
    if (how.reason == core::finish_reason::stop) how.reason = core::finish_reason::length;
  }
  openai::event_writer events(const admitted_job& first) const {
    return openai::event_writer(dialect, head_of(first), include_usage, n);
  }
};

// Encodes answers for /v1/messages.
struct anthropic_encoder {
  static constexpr bool with_ids = false;
  anthropic::limits asked;
  std::string model;  // named by the client; for a job that was cancelled before a model took it
  std::string request_id;
  std::vector<core::grammar::warning> ignored;

  anthropic::identity identity_of(const admitted_job& job) const {
    anthropic::identity who{anthropic::message_id(job.id), job.model.empty() ? model : job.model, request_id,
                            ignored};
    who.warnings.insert(who.warnings.end(), job.warnings.begin(), job.warnings.end());
    return who;
  }
  reply whole(const job_streams& all) const {
    const actors::job_stream& job = *all.front();
    reply r;
    const auto who = identity_of(admitted_job::of(job));
    r.source = std::make_shared<body_parts>(anthropic::response_body(who, job.log(), job.ended(), asked));
    return r;
  }
  anthropic::event_writer events(const admitted_job& first) const {
    return anthropic::event_writer(identity_of(first), first.prompt_tokens, asked);
  }
};

struct kept_answer {
  std::variant<openai_encoder, anthropic_encoder, responses_encoder> encoder;
  std::vector<core::job_id> jobs;
};

}  // namespace weir::net
