#include "net/ws_lane.h"

namespace weir::net::ws {

using phase = actors::job_stream::phase;

lane::lane(response_create c, std::shared_ptr<actors::job_stream> job)
    : id_(std::move(c.id)),
      response_id_(job->id().text()),
      job_(std::move(job)),
      ignored_(std::move(c.ignored)),
      cancel_on_disconnect_(c.cancel_on_disconnect),
      timing_(c.timing),
      token_ids_(c.return_token_ids) {}

lane::next lane::take(std::string& out, scratch& s) {
  const phase now = job_->state();
  if (now == phase::pending) return next::nothing;
  if (now == phase::refused) {
    append_error(out, refusal(id_, job_->refusal()));
    return next::last_frame;
  }
  if (!created_ && !job_->model().empty()) {  // no model: the job ended before a model took it
    append_created(out, id_, response_id_, job_->model(), job_->queue_position(), ignored_);
    created_ = true;
    return next::frame;
  }
  const bool ended = now == phase::done;
  if (take_delta(out, s, ended)) return next::frame;
  if (!ended) return next::nothing;
  append_done(out, id_, response_id_, shown_, job_->ended());
  return next::last_frame;
}

// Appends a delta if there is one; returns whether there is. Tokens without text wait for a token with text,
// or for the end.
bool lane::take_delta(std::string& out, scratch& s, bool ended) {
  const std::uint32_t published = job_->published();
  if (published == shown_) return false;
  s.text.clear();
  job_->text_of(shown_, published, s.text);
  if (s.text.empty() && !ended) return false;
  s.ids.clear();
  for (std::uint32_t i = shown_; token_ids_ && i < published; ++i) s.ids.push_back(job_->token_at(i));
  delta d;
  d.id = id_;
  d.text = s.text;
  d.seq = published;
  d.n = published - shown_;
  if (timing_) d.t_us = job_->sampled_at_us(published - 1);
  d.token_ids = s.ids;
  append_delta(out, d);
  s.sampled = job_->sampled_at(published - 1);
  shown_ = published;
  return true;
}

std::size_t lane::backlog(scratch& s) const {
  s.text.clear();
  if (job_->state() == phase::running || job_->state() == phase::done) {
    job_->text_of(shown_, job_->published(), s.text);
  }
  return s.text.size();
}

}  // namespace weir::net::ws
