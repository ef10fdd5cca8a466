// POST /v1/completions and /v1/chat/completions: a job, and its text as one object or as server-sent events.
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/http/chunk_encode.hpp>
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

std::string whole_answer(openai::dialect d, const actors::job_stream& job, bool with_ids) {
  std::string text;
  job.text_of(0, job.published(), text);
  std::vector<core::token_id> ids;
  for (std::uint32_t i = 0; with_ids && i < job.published(); ++i) ids.push_back(job.token_at(i));
  std::optional<std::span<const core::token_id>> shown_ids;
  if (with_ids) shown_ids = ids;
  return openai::response_body(d, job.id().text(), unix_seconds(), job.model(), text, shown_ids, job.ended());
}

}  // namespace

// The stream of a job that has not ended cancels it when it is let go, so every early way out stops the work.
asio::awaitable<bool> http_session::complete(openai::dialect d, const request& r) {
  auto parsed = openai::parse(d, r.body());
  if (!parsed) {
    reply no = error_reply(parsed.error());
    co_return co_await write(std::move(no));
  }
  auto asked = std::move(parsed->request);
  auto job = hub_.all().service.submit(std::move(asked), hub_.executor(), [news = std::weak_ptr(news_)] {
    if (auto n = news.lock()) n->notify();
  });
  watch_peer();
  const auto settled = [&] {
    const phase p = job->state();
    return p == phase::done || p == phase::refused || (p == phase::running && parsed->stream);
  };
  while (!settled() && !peer_gone_) co_await news_->wait();
  if (peer_gone_) co_return false;
  const bool refused = job->state() == phase::refused;
  if (!refused && parsed->stream) {
    const bool goes_on = co_await stream_events(d, *parsed, job);
    stop_watching();
    co_return goes_on;
  }
  stop_watching();
  reply out;
  if (refused) {
    out = error_reply(job->refusal());
  } else if (job->ended().fault) {
    out = error_reply(*job->ended().fault);
  } else {
    out.body = whole_answer(d, *job, parsed->return_token_ids);
  }
  co_return co_await write(std::move(out));
}

asio::awaitable<bool> http_session::stream_events(openai::dialect d, const openai::parsed_request& p,
                                                  std::shared_ptr<actors::job_stream> job) {
  http::response<http::empty_body> head{http::status::ok, version_};
  if (version_ < 11)
    keep_alive_ = false;  // no chunks before HTTP/1.1: the end of the connection ends the stream
  head.keep_alive(keep_alive_);
  head.chunked(version_ >= 11);
  head.set(http::field::server, "weir");
  head.set("x-request-id", request_id_);
  head.set(http::field::content_type, "text/event-stream");
  head.set(http::field::cache_control, "no-cache");
  head.set("X-Accel-Buffering", "no");
  http::response_serializer<http::empty_body> serializer(head);
  stream_.expires_after(hub_.limits().write_time);
  co_await http::async_write_header(stream_, serializer, asio::use_awaitable);

  const openai::event_writer events(d, job->id().text(), unix_seconds(), job->model(), p.include_usage);
  std::uint32_t shown = 0, sent = 0;
  out_.clear();
  events.open(out_);
  for (;;) {
    const bool ended = job->state() == phase::done;
    const std::uint32_t published = job->published();
    text_.clear();
    job->text_of(shown, published, text_);
    if (!text_.empty() || ended) {
      ids_.clear();
      for (std::uint32_t i = shown; p.return_token_ids && i < published; ++i)
        ids_.push_back(job->token_at(i));
      const bool broken = ended && job->ended().fault;
      events.piece(out_, text_, ids_,
                   ended ? openai::finish_reason(job->ended().reason) : std::string_view());
      if (broken) events.error(out_, *job->ended().fault);
      if (ended) {
        events.usage(out_, job->ended());
        events.close(out_);
      }
      shown = published;
    }
    const std::uint32_t fresh = shown - sent;
    if (!out_.empty()) co_await write_chunk(out_, ended);
    if (fresh > 0) hub_.all().sampled_to_sent.add(hub_.all().service.now() - job->sampled_at(shown - 1));
    sent = shown;
    out_.clear();
    if (ended) co_return keep_alive_;
    if (peer_gone_) co_return false;
    co_await news_->wait();
  }
}

asio::awaitable<void> http_session::write_chunk(std::string_view data, bool last) {
  stream_.expires_after(hub_.limits().write_time);
  if (version_ < 11) {
    co_await asio::async_write(stream_, asio::buffer(data), asio::use_awaitable);
    co_return;
  }
  const auto chunk = http::make_chunk(asio::const_buffer(data.data(), data.size()));
  co_await asio::async_write(stream_, chunk, asio::use_awaitable);
  if (last) {
    const auto end = http::make_chunk_last();
    co_await asio::async_write(stream_, end, asio::use_awaitable);
  }
}

}  // namespace weir::net
