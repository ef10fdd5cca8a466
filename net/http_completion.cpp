// POST /v1/completions and /v1/chat/completions: runs jobs, and sends their text as one object or as
// server-sent events.
#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/write.hpp>

#include "net/http_session.h"

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

std::string whole_answer(openai::dialect d, const jobs& all, bool with_ids) {
  std::vector<openai::choice> choices;
  for (const auto& job : all) {
    openai::choice& c = choices.emplace_back();
    job->text_of(0, job->published(), c.text);
    c.how = job->ended();
    if (!with_ids) continue;
    c.token_ids.emplace();
    for (std::uint32_t i = 0; i < job->published(); ++i) c.token_ids->push_back(job->token_at(i));
  }
  return openai::response_body(d, all.front()->id().text(), unix_seconds(), all.front()->model(), choices);
}

// The error with which the request is answered: that of the first job that was refused or, if a whole answer
// is wanted, has failed. nullopt: there is none.
std::optional<core::error> failure_of(const jobs& all, bool whole) {
  for (const auto& job : all) {
    if (job->state() == phase::refused) return job->refusal();
    if (whole && job->state() == phase::done && job->ended().fault) return job->ended().fault;
  }
  return std::nullopt;
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
  parsed->request.who = from_.who;
  auto wake_up = [news = std::weak_ptr(news_)] {
    if (auto n = news.lock()) n->notify();
  };
  jobs all = hub_.server().service.submit(std::move(parsed->request), parsed->n, hub_.executor(),
                                          std::move(wake_up));
  watch_peer();
  const bool streamed = parsed->stream;
  const auto settled = [&] {
    if (failure_of(all, !streamed)) return true;
    return std::ranges::all_of(all, [&](const auto& job) {
      return job->state() == phase::done || (job->state() == phase::running && streamed);
    });
  };
  const auto client_gone = [&] { return state_.at() == http_state::phase::client_gone; };
  while (!settled() && !client_gone()) co_await news_->wait();
  if (client_gone()) co_return false;
  const auto failed = failure_of(all, !streamed);
  if (!failed && streamed) {
    co_await stream_events(d, *parsed, all);
    co_await stop_watching();
    co_return state_.goes_on();
  }
  co_await stop_watching();
  reply out;
  if (failed) {
    out = error_reply(*failed);
  } else {
    out.body = whole_answer(d, all, parsed->return_token_ids);
  }
  all.clear();  // if one choice was refused, this cancels the others
  co_return co_await write(std::move(out));
}

asio::awaitable<void> http_session::stream_events(openai::dialect d, const openai::parsed_request& p,
                                                  std::span<const std::shared_ptr<actors::job_stream>> jobs) {
  http::response<http::empty_body> head{http::status::ok, version_};
  if (version_ < 11)
    state_.end_after_answer();  // no chunks before HTTP/1.1: the end of the connection ends the stream
  head.keep_alive(state_.goes_on());
  head.chunked(version_ >= 11);
  head.set(http::field::server, "weir");
  head.set("x-request-id", request_id_);
  head.set(http::field::content_type, "text/event-stream");
  head.set(http::field::cache_control, "no-cache");
  head.set("X-Accel-Buffering", "no");
  http::response_serializer<http::empty_body> serializer(head);
  {
    const write_under_way here(sending_);
    co_await http::async_write_header(stream_.socket(), serializer, asio::use_awaitable);
  }

  const openai::event_writer events(d, jobs.front()->id().text(), unix_seconds(), jobs.front()->model(),
                                    p.include_usage);
  std::vector<shown_choice> shown(jobs.size());
  out_.clear();
  for (std::uint32_t i = 0; i < jobs.size(); ++i) events.open(out_, i);
  for (;;) {
    for (std::uint32_t i = 0; i < jobs.size(); ++i)
      show_news(events, *jobs[i], i, p.return_token_ids, shown[i]);
    const bool ended = std::ranges::all_of(shown, &shown_choice::ended);
    if (ended) {
      std::vector<actors::outcome> used;
      for (const auto& job : jobs) used.push_back(job->ended());
      events.usage(out_, openai::usage_of(used));
      events.close(out_);
    }
    if (!out_.empty()) co_await write_chunk(out_, ended);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (shown[i].sent == shown[i].tokens) continue;
      hub_.counts().sampled_to_sent.add(hub_.server().service.now() -
                                        jobs[i]->sampled_at(shown[i].tokens - 1));
      shown[i].sent = shown[i].tokens;
    }
    out_.clear();
    if (ended || state_.at() == http_state::phase::client_gone) co_return;
    co_await news_->wait();
  }
}

// Appends to out_ the events for what is new in one choice.
void http_session::show_news(const openai::event_writer& events, const actors::job_stream& job,
                             std::uint32_t index, bool with_ids, shown_choice& shown) {
  if (shown.ended) return;
  shown.ended = job.state() == phase::done;
  const std::uint32_t published = job.published();
  text_.clear();
  job.text_of(shown.tokens, published, text_);
  if (text_.empty() && !shown.ended) return;
  ids_.clear();
  for (std::uint32_t i = shown.tokens; with_ids && i < published; ++i) ids_.push_back(job.token_at(i));
  shown.tokens = published;
  events.piece(out_, index, text_, ids_,
               shown.ended ? openai::finish_reason(job.ended().reason) : std::string_view());
  if (shown.ended && job.ended().fault) events.error(out_, *job.ended().fault);
}

}  // namespace weir::net
