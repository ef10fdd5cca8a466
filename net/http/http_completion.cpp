// POST /v1/completions, /v1/chat/completions and /v1/messages: runs jobs, and sends their text as one object
// or as server-sent events.
#include <algorithm>
#include <boost/asio/ip/tcp.hpp>

#include "net/http/http_session.h"
#include "net/protocol/anthropic.h"
#include "net/request_record.h"
#include "net/submit.h"

namespace weir::net {

namespace asio = boost::asio;
using phase = actors::job_stream::phase;

namespace {

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

using jobs = std::vector<std::shared_ptr<actors::job_stream>>;

// Logprobs of the tokens `from` to `to` - 1; nullopt: the client did not ask for them. `characters`: number
// of characters of text before these tokens.
std::optional<logprobs_part> logprobs_of(const actors::job_stream& job, std::uint32_t from, std::uint32_t to,
                                         std::uint64_t characters) {
  if (!job.log().has_logprobs() || !job.tokenizer()) return std::nullopt;
  return logprobs_part{&job.log(), job.tokenizer().get(), from, to, characters};
}

// The end of the piece of news that begins at token `from`: bounded in text, ids and logprobs, so that no
// event keeps the shard for long.
std::uint32_t end_of_piece(const actors::token_log& log, std::uint32_t from) {
  constexpr std::uint32_t most_ids = 8192;
  const std::uint32_t most = log.has_logprobs() ? most_tokens_of_a_frame(log) : most_ids;
  return log.whole_part(from, std::min(log.piece_end(from, body_parts::piece_bytes), from + most));
}

// Takes the first piece off a text in UTF-8: whole characters.
std::string_view take_piece(std::string_view& text) {
  std::size_t end = std::min(text.size(), body_parts::piece_bytes);
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  const std::string_view piece = text.substr(0, end);
  text.remove_prefix(end);
  return piece;
}

// Encodes answers for OpenAI's routes. The encoder of every dialect has these members, and its events have
// those of openai::event_writer.
struct openai_encoder {
  openai::dialect dialect;
  bool with_ids;  // events have token ids
  bool include_usage;
  bool prompt_logprobs, prompt_alone;   // as in openai::parsed_request
  std::optional<std::uint32_t> scores;  // likeliest tokens beside each of the prompt's, with `echo`
  std::uint32_t n;                      // choices of each prompt
  std::string model;  // named by the client; for an answer that was cancelled before a model took it
  std::vector<core::grammar::warning> ignored;

  explicit openai_encoder(openai::dialect d, const openai::parsed_request& p)
      : dialect(d),
        with_ids(p.return_token_ids),
        include_usage(p.include_usage),
        prompt_logprobs(p.prompt_logprobs),
        prompt_alone(p.prompt_alone),
        n(p.n),
        model(p.request.model),
        ignored(p.ignored.warnings()) {
    if (p.request.echo && p.request.top_logprobs)
      scores = static_cast<std::uint32_t>(std::max(*p.request.top_logprobs, std::int64_t{0}));
  }

  openai::answer_head head_of(const actors::job_stream& first) const {
    openai::answer_head head;
    head.id = openai::id_of(dialect, first.id());
    head.created_s = unix_seconds();
    head.model = first.model().empty() ? model : first.model();
    head.fingerprint = first.fingerprint();
    head.warnings = ignored;
    head.warnings.insert(head.warnings.end(), first.warnings().begin(), first.warnings().end());
    return head;
  }
  reply whole(const jobs& all) const {
    std::vector<openai::choice> choices;
    for (const auto& job : all) {
      openai::choice& c = choices.emplace_back();
      c = {.log = &job->log(),
           .how = job->ended(),
           .with_ids = with_ids,
           .prompt = job->prompt_text(),
           .prompt_alone = prompt_alone,
           .logprobs = logprobs_of(*job, 0, prompt_alone ? 0 : job->published(), 0),
           .tokenizer = job->tokenizer().get(),
           .prompt_logprobs = prompt_logprobs};
      if (prompt_alone) show_prompt_alone(c.how);
      if (c.logprobs && scores && c.how.prompt_logprobs)
        c.scored =
            scored_prompt{job->first_prompt_token(), *c.how.prompt_logprobs, *scores, job->prompt_text()};
    }
    reply r;
    r.source =
        std::make_shared<body_parts>(openai::response_body(dialect, head_of(*all.front()), choices, n));
    return r;
  }
  static void show_prompt_alone(actors::outcome& how) {
    how.output_tokens = 0;
    if (how.reason == core::finish_reason::stop) how.reason = core::finish_reason::length;
  }
  openai::event_writer events(const actors::job_stream& first) const {
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

  anthropic::identity identity_of(const actors::job_stream& job) const {
    return {anthropic::message_id(job.id()), job.model().empty() ? model : job.model(), request_id, ignored};
  }
  reply whole(const jobs& all) const {
    const actors::job_stream& job = *all.front();
    const std::string_view text = job.log().text_of(0, job.published());
    reply r;
    r.source =
        std::make_shared<body_parts>(anthropic::response_body(identity_of(job), text, job.ended(), asked));
    return r;
  }
  anthropic::event_writer events(const actors::job_stream& first) const {
    return anthropic::event_writer(identity_of(first), first.prompt_tokens(), asked);
  }
};

// The error with which the request is answered: that of the first job that was refused or has failed.
// nullopt: there is none.
std::optional<core::error> failure_of(const jobs& all) {
  for (const auto& job : all) {
    if (job->state() == phase::refused) return job->refusal();
    if (job->state() == phase::done && job->ended().fault) return job->ended().fault;
  }
  return std::nullopt;
}

std::vector<actors::outcome> endings_of(const jobs& all) {
  std::vector<actors::outcome> out;
  for (const auto& job : all) out.push_back(job->ended());
  return out;
}

}  // namespace

// A job_stream whose job has not ended cancels the job when it is destroyed, so every early return stops the
// work.
asio::awaitable<bool> http_session::complete(openai::dialect d, std::string body) {
  const auto& l = hub_.limits();
  const auto parse = [d, most = l.json_values, strict = l.strict_fields](std::string_view text) {
    return openai::parse(d, text, most, strict);
  };
  auto read = co_await read_watched<openai::parsed_request>(std::move(body), parse);
  if (!read) co_return false;
  auto& parsed = *read->said;
  if (!parsed) {
    reply no = error_reply(parsed.error());
    co_return co_await write(std::move(no));
  }
  const openai_encoder encoder(d, *parsed);
  const bool streamed = parsed->stream;
  const bool chat = d == openai::dialect::chat;
  submitted all =
      submit(std::move(parsed->request), parsed->n, chat ? "/v1/chat/completions" : "/v1/completions");
  done_with(hub_.server().service, std::move(read));
  co_return co_await answer_with(encoder, std::move(all), streamed);
}

asio::awaitable<bool> http_session::complete_message(std::string body) {
  const auto& l = hub_.limits();
  const auto parse = [most = l.json_values, strict = l.strict_fields](std::string_view text) {
    return anthropic::parse(anthropic::route::messages, text, most, strict);
  };
  auto read = co_await read_watched<anthropic::parsed_request>(std::move(body), parse);
  if (!read) co_return false;
  auto& parsed = *read->said;
  if (!parsed) {
    reply no = error_reply(parsed.error());
    co_return co_await write(std::move(no));
  }
  const actors::request& asked = parsed->request;
  const anthropic_encoder encoder{
      {*asked.max_tokens, asked.stop}, asked.model, form_.request_id, parsed->ignored.warnings()};
  const bool streamed = parsed->stream;
  submitted all = submit(std::move(parsed->request), 1, "/v1/messages");
  done_with(hub_.server().service, std::move(read));
  co_return co_await answer_with(encoder, std::move(all), streamed);
}

http_session::submitted http_session::submit(actors::request&& asked, std::uint32_t n,
                                             std::string_view route) {
  asked.witness = begin_record(hub_.server_ptr(), from_, route, form_.request_id);
  auto wake_up = [news = std::weak_ptr(news_)] {
    if (auto alive = news.lock()) alive->notify();
  };
  submitted jobs =
      submit_as(hub_.server().service, from_, std::move(asked), n, hub_.executor(), std::move(wake_up));
  if (jobs) watch_peer();
  return jobs;
}

template <class Encoder>
asio::awaitable<bool> http_session::answer_with(const Encoder& encoder, submitted jobs, bool streamed) {
  if (!jobs) {
    reply no = error_reply(jobs.error());
    co_return co_await write(std::move(no));
  }
  job_list all = std::move(*jobs);
  const auto settled = [&] {
    if (failure_of(all)) return true;
    return std::ranges::all_of(all, [&](const auto& job) {
      return job->state() == phase::done || (job->state() == phase::running && streamed);
    });
  };
  const auto client_gone = [&] { return state_.at() == http_state::phase::client_gone; };
  while (!settled() && !client_gone()) co_await news_->wait();
  if (client_gone()) co_return false;
  const auto failed = failure_of(all);
  if (!failed && streamed) {
    co_await stream_events(encoder, all);
    co_await stop_watching();
    co_return state_.goes_on();
  }
  co_await stop_watching();
  reply out;
  if (failed) {
    out = error_reply(*failed);
  } else {
    out = encoder.whole(all);
  }
  if (failed) all.clear();                              // cancels the other choices
  const bool goes_on = co_await write(std::move(out));  // what the answer was made of is counted until then
  co_return goes_on;
}

asio::awaitable<void> http_session::begin_events() {
  if (form_.version < 11) state_.end_after_answer();
  events_began_ = true;
  probe_at_.reset();  // events take the place of probes
  const answer_headers limits = rate_limit_headers(from_, hub_.server().service.now());
  pieces_header head = header_of(events_reply(), form_, limits, state_.goes_on());
  co_await sender_.begin(std::move(head));
  sender_.begin_events();
}

// A choice that fails ends the answer, and its error is the last event. The caller then cancels the other
// choices by destroying their streams.
template <class Encoder>
asio::awaitable<void> http_session::stream_events(const Encoder& encoder, const job_list& all) {
  co_await begin_events();
  const auto events = encoder.events(*all.front());
  std::vector<shown_choice> shown(all.size());
  out_.clear();
  for (std::uint32_t i = 0; i < all.size(); ++i) {
    std::string_view prompt = all[i]->prompt_text();
    events.open(out_, i, take_piece(prompt));
    while (!prompt.empty() || out_.size() >= body_parts::piece_bytes) {
      co_await send_events(all, shown, false);
      if (!prompt.empty()) events.piece(out_, i, take_piece(prompt), {}, {}, nullptr);
    }
  }
  for (;;) {
    bool more = false;  // a choice has more news than one piece
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      if (show_news(events, *all[i], i, encoder.with_ids, shown[i])) more = true;
      if (out_.size() >= body_parts::piece_bytes) co_await send_events(all, shown, false);
    }
    const auto failed = more ? std::nullopt : failure_of(all);
    const bool ended = failed || std::ranges::all_of(shown, &shown_choice::ended);
    if (failed) events.fail(out_, *failed);
    if (ended && !failed) events.end(out_, endings_of(all));
    if (sender_.silent_too_long() && out_.empty()) events.keep_alive(out_);
    if (!out_.empty()) co_await send_events(all, shown, ended);
    if (ended || state_.at() == http_state::phase::client_gone) break;
    if (!more) co_await news_->wait();
  }
  sender_.end_events();
}

asio::awaitable<void> http_session::send_events(const job_list& all, std::span<shown_choice> shown,
                                                bool last) {
  co_await sender_.write_chunk(out_, last);
  note_sent(all, shown);
  out_.clear();
}

void http_session::note_sent(const job_list& all, std::span<shown_choice> shown) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (shown[i].sent == shown[i].tokens) continue;
    hub_.counts().sampled_to_sent.add(hub_.server().service.now() - all[i]->sampled_at(shown[i].tokens - 1));
    shown[i].sent = shown[i].tokens;
  }
}

// Appends to out_ an event for what is new in one choice, or for the first piece of it. Returns whether there
// is more.
template <class Events>
bool http_session::show_news(const Events& events, const actors::job_stream& job, std::uint32_t index,
                             bool with_ids, shown_choice& shown) {
  if (shown.ended) return false;
  const std::uint32_t published = job.published(), to = end_of_piece(job.log(), shown.tokens);
  shown.ended = to == published && job.state() == phase::done;
  text_.clear();
  job.text_of(shown.tokens, to, text_);
  const bool failed = shown.ended && job.ended().fault;
  if (text_.empty() && to == published && (failed || !shown.ended)) return false;
  ids_.clear();
  for (std::uint32_t i = shown.tokens; with_ids && i < to; ++i) ids_.push_back(job.token_at(i));
  const auto logprobs = logprobs_of(job, shown.tokens, to, shown.characters);
  if (logprobs) shown.characters += characters_of(text_);
  shown.tokens = to;
  events.piece(out_, index, text_, ids_,
               shown.ended && !failed ? events.finish(job.ended()) : std::string_view(),
               logprobs ? &*logprobs : nullptr);
  return to < published;
}

}  // namespace weir::net
