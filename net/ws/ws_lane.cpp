#include "net/ws/ws_lane.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace weir::net::ws {
namespace {

using phase = actors::job_stream::phase;

// The next value of a small generator. That a padded frame has a multiple of 64 bytes hides the lengths of
// its tokens; these values only blur where one multiple ends.
std::uint32_t next_random(std::uint32_t& state) {
  state = state * 1664525u + 1013904223u;  // Numerical Recipes' linear congruential generator
  return state >> 16;
}

}  // namespace

lane::lane(response_create c, kept_jobs::follower job)
    : stream_(job.job().stream.get()),
      how_(job.job().as_created),
      padding_(static_cast<std::uint32_t>(stream_->id().lo)),
      id_(std::move(c.id)),
      response_id_(stream_->id().text()),
      pacer_(0),
      own_(std::move(job)),
      ignored_(std::move(c.ignored)) {}

lane::lane(response_resume r, std::shared_ptr<followed_job> job)
    : shown_(static_cast<std::uint32_t>(r.after)),
      acked_(shown_),
      stream_(nullptr),
      resumed_(std::move(job)),
      padding_(static_cast<std::uint32_t>(std::hash<std::string>()(r.response_id + r.id))),
      id_(std::move(r.id)),
      response_id_(std::move(r.response_id)),
      pacer_(shown_) {}

lane::next lane::take(std::string& out, scratch& s) {
  if (!begun_) return begin(out, s);
  const picture job = look();
  if (take_delta(out, s, job)) return next::frame;
  if (!job.ended) return next::nothing;
  if (was_handed_over(*job.ended)) return next::left;
  if (shown_ < job.published()) return next::nothing;
  append_done(out, names(), shown_, *job.ended);
  return next::last_frame;
}

// Appends response.created or response.resumed; if the lane has neither, appends its only frame.
lane::next lane::begin(std::string& out, scratch& s) {
  if (resumed_) {
    if (const auto& no = resumed_->refused()) {
      append_error(out, {id_, no->code, std::string(no->message), std::string(no->param), {}, false});
      s.refused = no->code;
      return next::last_frame;
    }
    const auto& b = resumed_->begun();
    if (!b) return next::nothing;
    how_ = b->how;
    created_ = b->created;
    log_ = &resumed_->log();
    tokenizer_ = b->tokenizer;
    begun_ = true;
    append_resumed(out, names(), shown_, b->head, b->status);
    s.resumed = true;
    return next::frame;
  }
  const actors::job_stream& job = *stream_;
  if (job.state() == phase::pending) {
    if (told_loading_ || job.awaited_model().empty()) return next::nothing;
    told_loading_ = true;
    append_created(out, names(), job.awaited_model(), job.queue_position(), ignored_, {}, true);
    return next::frame;
  }
  if (job.state() == phase::refused) {
    append_error(out, refusal(id_, job.refusal()));
    s.refused = code_of(job.refusal());
    return next::last_frame;
  }
  if (job.model().empty()) {  // the job ended before a model took it
    append_done(out, names(), 0, job.ended());
    return next::last_frame;
  }
  created_ = job.created();
  log_ = &job.log();
  if (log_->has_logprobs()) tokenizer_ = job.tokenizer();
  begun_ = true;
  if (told_loading_)
    append_loaded(out, names(), job.queue_position(), job.warnings());
  else
    append_created(out, names(), job.model(), job.queue_position(), ignored_, job.warnings());
  return next::frame;
}

lane::picture lane::look() const {
  if (resumed_) return {*log_, resumed_->base(), resumed_->ended()};
  return {*log_, 0, log_->finished() ? &stream_->ended() : nullptr};
}

lane_names lane::names() const {
  if (!resumed_) return {id_, response_id_, own_.job().metadata};
  return {id_, response_id_, resumed_->begun()->metadata};
}

// Appends a delta if there is one; returns whether there is. Tokens without text wait for a token with text,
// for the end, or for the window to be full.
bool lane::take_delta(std::string& out, scratch& s, const picture& job) {
  const std::uint32_t allowed = may_send(s, job);
  const bool parted = job.log.is_parted() && allowed > shown_;
  const std::uint32_t to =
      parted ? job.base + job.log.part_end(shown_ - job.base, allowed - job.base) : allowed;
  const std::string_view text = job.log.text_of(shown_ - job.base, to - job.base);
  const bool waits_for_more = to == job.published() && !job.ended;
  const bool has_news = !text.empty() || (parted && job.log.has_marks(shown_ - job.base, to - job.base));
  if (to == shown_ || (!has_news && waits_for_more)) {
    if (resumed_ && waits_for_more) resumed_->used_up(shown_);
    return false;
  }
  s.ids->clear();
  for (std::uint32_t i = shown_; how_.return_token_ids && i < to; ++i)
    s.ids->push_back(job.log.id(i - job.base));
  const std::int64_t at_us = job.log.at_us(to - 1 - job.base);
  delta d;
  d.id = id_;
  d.text = text;
  d.seq = to;
  d.n = to - shown_;
  if (how_.timing) d.t_us = at_us;
  d.token_ids = *s.ids;
  logprobs_part logprobs;
  if (job.log.has_logprobs()) {
    logprobs = {&job.log, tokenizer_.get(), shown_ - job.base, to - job.base, 0};
    d.logprobs = &logprobs;
  }
  answer_piece news;
  if (job.log.is_parted()) {
    s.parts.clear();
    job.log.each_part(shown_ - job.base, to - job.base,
                      [&](const actors::part_piece& p) { s.parts.push_back(p); });
    news.parts = s.parts;
    news.calls = job.log.marks().calls;
    d.news = &news;
  }
  if (how_.pad) d.more_padding = next_random(padding_);
  append_delta(out, d);
  s.ready = ready_since(at_us, to, job);
  shown_ = to;
  pacer_.sent(shown_);
  return true;
}

// What a client's window or a pace holds back is not late. Tokens that a cancel lets out of the window, and
// those that a client asks for again, tell nothing of how fast this server sends.
std::optional<core::time_point> lane::ready_since(std::int64_t at_us, std::uint32_t to,
                                                  const picture& job) const {
  const bool out_of_window = how_.window != 0 && window_is_over(job) && to > acked_ + how_.window;
  if (resumed_ || out_of_window) return std::nullopt;
  auto since = std::max(created_ + std::chrono::microseconds(at_us), opened_at_);
  if (how_.even) since = std::max(since, created_ + std::chrono::microseconds(pacer_.last_due()));
  return since;
}

// Number of tokens that may have been sent now: whole characters, within the window and by the pace; with
// logprobs, one frame's. A cancel ends the window, also of a job that has ended otherwise; any end of the job
// ends the pace.
std::uint32_t lane::may_send(scratch& s, const picture& job) {
  std::uint32_t to = in_window(job);
  held_ = to < job.published();
  if (how_.even && !job.ended) {
    const auto since = std::chrono::duration_cast<std::chrono::microseconds>(s.clock->now() - created_);
    to = std::max(shown_, std::min(to, pacer_.due(job.log, job.base, since.count())));
    if (const auto due = pacer_.next_due()) {
      const core::time_point at = created_ + std::chrono::microseconds(*due);
      s.due = std::min(s.due.value_or(at), at);
    }
  }
  if (job.log.has_logprobs()) to = std::min(to, shown_ + most_tokens_of_a_frame(job.log));
  return to == shown_ ? to : job.base + job.log.whole_part(shown_ - job.base, to - job.base);
}

bool lane::window_is_over(const picture& job) const {
  return gave_up_ || (job.ended && job.ended->reason == core::finish_reason::cancel);
}

std::uint32_t lane::in_window(const picture& job) const {
  const std::uint32_t published = job.published();
  if (how_.window == 0 || window_is_over(job)) return published;
  return std::max(shown_, std::min(published, acked_ + how_.window));
}

bool lane::ack(std::uint64_t seq, core::time_point now) {
  if (seq > shown_) return false;
  if (!begun_ || seq <= acked_) return true;
  if (std::exchange(held_, false)) opened_at_ = now;
  acked_ = static_cast<std::uint32_t>(seq);
  if (resumed_)
    resumed_->ack(acked_);
  else
    own_.ack(acked_);
  return true;
}

void lane::cancel() {
  gave_up_ = true;
  if (resumed_) return resumed_->cancel();
  own_.job().stream->cancel();
}

std::size_t lane::backlog() const {
  if (resumed_ || !begun_) return 0;
  const picture job = look();
  return job.log.text_of(shown_, in_window(job)).size();
}

}  // namespace weir::net::ws
