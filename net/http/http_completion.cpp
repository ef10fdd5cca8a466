// POST /v1/completions, /v1/chat/completions and /v1/messages: runs jobs, and sends their text as one object
// or as server-sent events. So are the answers of /v1/responses sent (net/http/http_responses.cpp).
#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <type_traits>
#include <variant>

#include "net/http/answer_encoders.h"
#include "net/http/event_cursor.h"
#include "net/http/http_session.h"
#include "net/request_record.h"
#include "net/resumed_job.h"
#include "net/submit.h"

namespace weir::net {

namespace asio = boost::asio;
using phase = actors::job_stream::phase;

namespace {

// The end of the piece of news that begins at token `from`: bounded in text, ids and logprobs, so that no
// event keeps the shard for long.
std::uint32_t end_of_piece(const actors::token_log& log, std::uint32_t from, std::uint32_t most_tokens) {
  const std::uint32_t most = log.has_logprobs() ? most_tokens_of_a_frame(log) : most_tokens;
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

}  // namespace

namespace {

// The error with which the request is answered: that of the first job that was refused or has failed.
// nullopt: there is none.
std::optional<core::error> failure_of(const job_streams& all) {
  for (const auto& job : all) {
    if (job->state() == phase::refused) return job->refusal();
    if (job->state() == phase::done && job->ended().fault) return job->ended().fault;
  }
  return std::nullopt;
}

// The same while the answer is streamed.
std::optional<core::error> failure_of(std::span<const answer_choice> all) {
  for (const auto& choice : all)
    if (auto fault = choice.fault()) return fault;
  return std::nullopt;
}

bool waits_for_model(const job_streams& all) {
  return std::ranges::any_of(
      all, [](const auto& job) { return job->state() == phase::pending && !job->awaited_model().empty(); });
}

void cancel(const job_streams& all) {
  for (const auto& job : all) job->cancel();
}

std::vector<actors::outcome> endings_of(std::span<const answer_choice> all) {
  std::vector<actors::outcome> out;
  for (const auto& choice : all) out.push_back(*choice.ended());
  return out;
}

}  // namespace

// A job_stream whose job has not ended cancels the job when it is destroyed, so every early return stops the
// work; except of an answer that outlives its client, whose streams are kept.
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
  const openai_encoder encoder(d, *parsed, l.reasoning_field);
  const answer_wishes how{parsed->stream, parsed->outlives};
  const bool chat = d == openai::dialect::chat;
  if (how.outlives) make_resumable(hub_, parsed->request, encoder);
  submitted all =
      submit(std::move(parsed->request), parsed->n, chat ? "/v1/chat/completions" : "/v1/completions");
  done_with(hub_.server().service, std::move(read));
  co_return co_await answer_with(encoder, std::move(all), how);
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
      {*asked.max_tokens, asked.stop}, asked.model, form_.request_id, parsed->all_warnings()};
  const answer_wishes how{parsed->stream, parsed->outlives};
  if (how.outlives) make_resumable(hub_, parsed->request, encoder);
  submitted all = submit(std::move(parsed->request), 1, "/v1/messages");
  done_with(hub_.server().service, std::move(read));
  co_return co_await answer_with(encoder, std::move(all), how);
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

// Only the first job has the answer: that job's id is the answer's.
std::vector<kept_jobs::follower> http_session::keep(std::shared_ptr<const kept_answer> answer,
                                                    const job_list& all, bool ending_is_kept) {
  std::vector<kept_jobs::follower> out;
  for (const auto& job : all) {
    kept_job one;
    one.stream = job;
    one.owner = from_.who;
    one.answer = std::exchange(answer, nullptr);
    one.ending_is_kept = ending_is_kept;
    out.push_back(hub_.jobs().keep(std::move(one)));
  }
  return out;
}

template <class Encoder>
asio::awaitable<bool> http_session::answer_with(const Encoder& encoder, submitted jobs, answer_wishes how) {
  if (!jobs) {
    reply no = error_reply(jobs.error());
    co_return co_await write(std::move(no));
  }
  job_list all = std::move(*jobs);
  constexpr bool is_response = std::is_same_v<Encoder, responses_encoder>;
  if constexpr (is_response)
    if (encoder.terms->stored) keep_when_ended(hub_.server().responses, encoder.terms, all.front());
  std::vector<kept_jobs::follower> kept;
  if (how.outlives) {
    auto answer = std::make_shared<kept_answer>(kept_answer{encoder, {}});
    for (const auto& job : all) answer->jobs.push_back(job->id());
    kept = keep(std::move(answer), all, is_response);
  }
  const auto settled = [&] {
    if (failure_of(all)) return true;
    return std::ranges::all_of(all, [&](const auto& job) {
      return job->state() == phase::done ||
             (job->state() == phase::running && (how.streamed || how.background));
    });
  };
  const auto client_gone = [&] { return state_.at() == http_state::phase::client_gone; };
  while (!settled() && !client_gone()) {
    if (how.streamed && waits_for_model(all)) co_await show_wait();
    co_await news_->wait();
  }
  if (client_gone()) co_return false;
  const auto failed = failure_of(all);
  if (how.streamed && (!failed || events_began_)) {
    std::vector<answer_choice> choices;
    for (const auto& job : all) choices.emplace_back(job);
    std::vector<std::uint32_t> from(all.size(), 0);
    co_await stream_events(encoder, std::move(choices), std::move(from));
    co_await stop_watching();
    co_return state_.goes_on();
  }
  co_await stop_watching();
  reply out;
  if (failed) {
    out = error_reply(*failed);
  } else if (all.front()->state() == phase::running) {
    if constexpr (is_response) out = encoder.unfinished(*all.front());
  } else {
    out = encoder.whole(all);
  }
  if (failed) {
    if (!goes_on_elsewhere(*failed)) cancel(all);
    all.clear();
  }
  const bool goes_on = co_await write(std::move(out));  // what the answer was made of is counted until then
  co_return goes_on;
}

// The header and a comment come at once, and then a comment every 5 s: clients and proxies give up on a
// server that says nothing for long.
asio::awaitable<void> http_session::show_wait() {
  if (!events_began_) {
    sender_.speak_every(std::chrono::seconds(5));
    co_await begin_events();
  } else if (!sender_.silent_too_long()) {
    co_return;
  }
  co_await sender_.write_chunk(": loading\n\n", false);
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

asio::awaitable<void> http_session::stream_kept(const kept_answer& a, std::vector<answer_choice> all,
                                                std::vector<std::uint32_t> from) {
  if (const auto* encoder = std::get_if<openai_encoder>(&a.encoder))
    co_return co_await stream_events(*encoder, std::move(all), std::move(from));
  co_await stream_events(std::get<anthropic_encoder>(a.encoder), std::move(all), std::move(from));
}

// A choice that fails ends the answer: the others are cancelled, and the error is the last event. Where the
// connection follows the choices, what came before the failure is still on its way. Where one choice goes on
// at another gateway, so do the others.
template <class Encoder>
asio::awaitable<void> http_session::stream_events(const Encoder& encoder, std::vector<answer_choice> all,
                                                  std::vector<std::uint32_t> from) {
  if (!events_began_) co_await begin_events();
  auto events = encoder.events(all.front().admitted());
  std::vector<shown_choice> shown(all.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    shown[i] = {.tokens = from[i], .sent = from[i], .characters = all[i].characters()};
  out_.clear();
  const bool from_start = std::ranges::all_of(from, [](std::uint32_t tokens) { return tokens == 0; });
  for (std::uint32_t i = 0; from_start && i < all.size(); ++i) {
    std::string_view prompt = all[i].prompt_text();
    events.open(out_, i, take_piece(prompt));
    while (!prompt.empty() || out_.size() >= body_parts::piece_bytes) {
      co_await send_events(all, shown, false);
      if (!prompt.empty()) events.prompt_piece(out_, i, take_piece(prompt));
    }
  }
  if (out_.empty()) out_ = ": begun\n\n";  // clients give up on a server that says nothing for long
  for (bool cancelled = false;;) {
    bool more = false;  // a choice has more news than one piece
    for (std::uint32_t i = 0; i < all.size(); ++i) {
      if (show_news(events, all[i], i, encoder.with_ids, shown)) more = true;
      if (out_.size() >= body_parts::piece_bytes) co_await send_events(all, shown, false);
    }
    const bool all_shown = std::ranges::all_of(shown, &shown_choice::ended);
    const auto failed = more ? std::nullopt : failure_of(all);
    if (failed && !cancelled && !goes_on_elsewhere(*failed))
      std::ranges::for_each(all, &answer_choice::cancel);
    cancelled = failed.has_value();
    const bool ended = all_shown || (failed && !all.front().is_followed());
    if (ended && failed) events.fail(out_, *failed);
    if (ended && !failed) events.end(out_, endings_of(all));
    if (sender_.silent_too_long() && out_.empty()) events.keep_alive(out_);
    if (!out_.empty()) co_await send_events(all, shown, ended);
    if (ended || state_.at() == http_state::phase::client_gone) break;
    if (!more) co_await news_->wait();
  }
  sender_.end_events();
}

asio::awaitable<void> http_session::send_events(std::span<const answer_choice> all,
                                                std::span<shown_choice> shown, bool last) {
  co_await sender_.write_chunk(out_, last);
  note_sent(all, shown);
  out_.clear();
}

void http_session::note_sent(std::span<const answer_choice> all, std::span<shown_choice> shown) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (shown[i].sent == shown[i].tokens) continue;
    shown[i].sent = shown[i].tokens;
    const auto sampled = all[i].sampled_at(shown[i].tokens - 1);
    if (sampled) hub_.counts().sampled_to_sent.add(hub_.server().service.now() - *sampled);
  }
}

// Appends to out_ the events of what is new in one choice, or of the first piece of it. Returns whether there
// is more.
template <class Events>
bool http_session::show_news(Events& events, answer_choice& job, std::uint32_t index, bool with_ids,
                             std::span<shown_choice> all_shown) {
  shown_choice& shown = all_shown[index];
  if (shown.ended) return false;
  const actors::token_log& log = job.log();
  constexpr bool is_response = std::is_same_v<Events, response_events>;  // which has an event for each token
  const std::uint32_t from = shown.tokens - job.base(), published = log.whole(),
                      to = end_of_piece(log, from, is_response ? 256 : 8192);
  const actors::outcome* const how = to == published ? job.ended() : nullptr;
  shown.ended = how != nullptr;
  const bool failed = how && how->fault;
  const std::string_view text = log.text_of(from, to);
  const bool has_news = !text.empty() || log.has_marks(from, to);
  if (!has_news && to == published && (failed || !shown.ended)) {
    job.used_up(shown.tokens);
    return false;
  }
  if constexpr (is_response) {
    events.piece(out_, log, from, to);
    shown.tokens += to - from;
    if (to < published) return true;
    job.used_up(shown.tokens);
    return false;
  } else {
    ids_.clear();
    for (std::uint32_t i = from; with_ids && i < to; ++i) ids_.push_back(log.id(i));
    const auto tokenizer = log.has_logprobs() ? job.tokenizer() : nullptr;
    const auto logprobs = logprobs_of(log, tokenizer.get(), from, to, shown.characters);
    if (logprobs) shown.characters += characters_of(text);
    const std::size_t before = out_.size();
    parts_.clear();
    log.each_part(from, to, [&](const actors::part_piece& p) { parts_.push_back(p); });
    if (!log.is_parted()) {  // one text
      if (parts_.empty()) parts_.emplace_back();
      parts_.front().begins = shown.tokens == 0;
    }
    answer_piece news{parts_, log.marks().calls, {}};
    if (how && !failed) news.warnings = log.marks().warnings;
    events.piece(out_, index, news, ids_, how && !failed ? events.finish(*how) : std::string_view(),
                 logprobs ? &*logprobs : nullptr);
    shown.tokens += to - from;
    if (to > from && out_.size() > before)
      append_event_id(out_, [&](auto add) { std::ranges::for_each(all_shown, add, &shown_choice::tokens); });
    if (to < published) return true;
    job.used_up(shown.tokens);
    return false;
  }
}

template asio::awaitable<bool> http_session::answer_with(const responses_encoder& encoder, submitted jobs,
                                                         answer_wishes how);
template asio::awaitable<void> http_session::stream_events(const responses_encoder& encoder,
                                                           std::vector<answer_choice> all,
                                                           std::vector<std::uint32_t> from);

}  // namespace weir::net
