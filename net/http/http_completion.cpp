// POST /v1/completions, /v1/chat/completions and /v1/messages: runs jobs, and sends their text as one object
// or as server-sent events.
#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/write.hpp>

#include "net/http/http_session.h"
#include "net/protocol/anthropic.h"
#include "net/request_record.h"
#include "net/submit.h"

namespace weir::net {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using phase = actors::job_stream::phase;

namespace {

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

using jobs = std::vector<std::shared_ptr<actors::job_stream>>;

// Logprobs of the published tokens from `from` on; nullopt: the client did not ask for them. `characters`:
// number of characters of text before these tokens.
std::optional<logprobs_part> logprobs_of(const actors::job_stream& job, std::uint32_t from,
                                         std::uint64_t characters) {
  if (!job.log().has_logprobs() || !job.tokenizer()) return std::nullopt;
  return logprobs_part{&job.log(), job.tokenizer().get(), from, job.published(), characters};
}

// Encodes answers for OpenAI's routes. The encoder of every dialect has these members, and its events have
// those of openai::event_writer.
struct openai_encoder {
  openai::dialect dialect;
  bool with_ids;  // events have token ids
  bool include_usage;
  std::uint32_t n;    // choices of each prompt
  std::string model;  // named by the client; for an answer that was cancelled before a model took it

  openai::answer_head head_of(const actors::job_stream& first) const {
    openai::answer_head head;
    head.id = openai::id_of(dialect, first.id());
    head.created_s = unix_seconds();
    head.model = first.model().empty() ? model : first.model();
    head.fingerprint = first.fingerprint();
    head.warnings = first.warnings();
    return head;
  }
  std::string whole(const jobs& all) const {
    std::vector<openai::choice> choices;
    for (const auto& job : all) {
      openai::choice& c = choices.emplace_back();
      c.text = job->prompt_text();
      job->text_of(0, job->published(), c.text);
      c.how = job->ended();
      c.logprobs = logprobs_of(*job, 0, 0);
      c.tokenizer = job->tokenizer().get();
      if (!with_ids) continue;
      c.token_ids.emplace();
      for (std::uint32_t i = 0; i < job->published(); ++i) c.token_ids->push_back(job->token_at(i));
    }
    return openai::response_body(dialect, head_of(*all.front()), choices, n);
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

  anthropic::identity identity_of(const actors::job_stream& job) const {
    return {anthropic::message_id(job.id()), job.model().empty() ? model : job.model(), request_id};
  }
  std::string whole(const jobs& all) const {
    const actors::job_stream& job = *all.front();
    std::string text;
    job.text_of(0, job.published(), text);
    return anthropic::response_body(identity_of(job), text, job.ended(), asked);
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
asio::awaitable<bool> http_session::complete(openai::dialect d, const request& r) {
  auto parsed = openai::parse(d, r.body(), hub_.limits().json_values);
  if (!parsed) {
    reply no = error_reply(parsed.error());
    co_return co_await write(std::move(no));
  }
  const openai_encoder encoder{d, parsed->return_token_ids, parsed->include_usage, parsed->n,
                               parsed->request.model};
  const bool streamed = parsed->stream;
  const bool chat = d == openai::dialect::chat;
  submitted all =
      submit(std::move(parsed->request), parsed->n, chat ? "/v1/chat/completions" : "/v1/completions");
  co_return co_await answer_with(encoder, std::move(all), streamed);
}

asio::awaitable<bool> http_session::complete_message(const request& r) {
  auto parsed = anthropic::parse(anthropic::route::messages, r.body(), hub_.limits().json_values);
  if (!parsed) {
    reply no = error_reply(parsed.error());
    co_return co_await write(std::move(no));
  }
  const actors::request& asked = parsed->request;
  const anthropic_encoder encoder{{*asked.max_tokens, asked.stop}, asked.model, request_id_};
  const bool streamed = parsed->stream;
  submitted all = submit(std::move(parsed->request), 1, "/v1/messages");
  co_return co_await answer_with(encoder, std::move(all), streamed);
}

http_session::submitted http_session::submit(actors::request asked, std::uint32_t n, std::string_view route) {
  asked.witness = begin_record(hub_.server_ptr(), from_, route, request_id_);
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
    out.body = encoder.whole(all);
  }
  all.clear();  // if one choice was refused or has failed, this cancels the others
  co_return co_await write(std::move(out));
}

// A choice that fails ends the answer, and its error is the last event. The caller then cancels the other
// choices by destroying their streams.
template <class Encoder>
asio::awaitable<void> http_session::stream_events(const Encoder& encoder, const job_list& all) {
  http::response<http::empty_body> head{http::status::ok, version_};
  if (version_ < 11)
    state_.end_after_answer();  // no chunks before HTTP/1.1: the end of the connection ends the stream
  head.keep_alive(state_.goes_on());
  head.chunked(version_ >= 11);
  head.set(http::field::content_type, "text/event-stream");
  head.set(http::field::cache_control, "no-store");
  head.set("X-Accel-Buffering", "no");
  add_common_headers(head);
  http::response_serializer<http::empty_body> serializer(head);
  {
    const write_under_way here(sending_);
    co_await http::async_write_header(stream_.socket(), serializer, asio::use_awaitable);
  }

  const auto events = encoder.events(*all.front());
  silence_.emplace(hub_.limits().sse_keep_alive);
  std::vector<shown_choice> shown(all.size());
  out_.clear();
  for (std::uint32_t i = 0; i < all.size(); ++i) events.open(out_, i, all[i]->prompt_text());
  for (;;) {
    for (std::uint32_t i = 0; i < all.size(); ++i) show_news(events, *all[i], i, encoder.with_ids, shown[i]);
    const auto failed = failure_of(all);
    const bool ended = failed || std::ranges::all_of(shown, &shown_choice::ended);
    if (failed) events.fail(out_, *failed);
    if (ended && !failed) events.end(out_, endings_of(all));
    if (silence_->take() && out_.empty()) events.keep_alive(out_);
    if (!out_.empty()) co_await write_chunk(out_, ended);
    note_sent(all, shown);
    out_.clear();
    if (ended || state_.at() == http_state::phase::client_gone) break;
    co_await news_->wait();
  }
  silence_.reset();
}

void http_session::note_sent(const job_list& all, std::span<shown_choice> shown) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (shown[i].sent == shown[i].tokens) continue;
    hub_.counts().sampled_to_sent.add(hub_.server().service.now() - all[i]->sampled_at(shown[i].tokens - 1));
    shown[i].sent = shown[i].tokens;
  }
}

// Appends to out_ the events for what is new in one choice.
template <class Events>
void http_session::show_news(const Events& events, const actors::job_stream& job, std::uint32_t index,
                             bool with_ids, shown_choice& shown) {
  if (shown.ended) return;
  shown.ended = job.state() == phase::done;
  const std::uint32_t published = job.published();
  text_.clear();
  job.text_of(shown.tokens, published, text_);
  const bool failed = shown.ended && job.ended().fault;
  if (text_.empty() && (failed || !shown.ended)) return;
  ids_.clear();
  for (std::uint32_t i = shown.tokens; with_ids && i < published; ++i) ids_.push_back(job.token_at(i));
  const auto logprobs = logprobs_of(job, shown.tokens, shown.characters);
  if (logprobs) shown.characters += characters_of(text_);
  shown.tokens = published;
  events.piece(out_, index, text_, ids_,
               shown.ended && !failed ? events.finish(job.ended()) : std::string_view(),
               logprobs ? &*logprobs : nullptr);
}

}  // namespace weir::net
