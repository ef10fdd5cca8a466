// answer_choice.h — a choice of an answer as its stream of events reads it: a job of the connection's own, or
// one that it follows (net/job_feed.h), of which it has a piece of the log at a time.
//
// Thread safety: the connection's shard.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "actors/job_stream.h"
#include "net/job_feed.h"

namespace weir::net {

class answer_choice {
 public:
  explicit answer_choice(std::shared_ptr<actors::job_stream> own) : own_(std::move(own)) {}
  explicit answer_choice(std::shared_ptr<followed_job> job) : followed_(std::move(job)) {}

  // The tokens after the first base() of the job.
  const actors::token_log& log() const { return own_ ? own_->log() : followed_->log(); }
  std::uint32_t base() const { return own_ ? 0 : followed_->base(); }
  // How the job ended; null: more tokens may come.
  const actors::outcome* ended() const {
    if (!own_) return followed_->ended();
    return own_->state() == actors::job_stream::phase::done ? &own_->ended() : nullptr;
  }
  // Why the answer fails. nullopt: nothing is known that speaks against it.
  std::optional<core::error> fault() const {
    if (own_ && own_->state() == actors::job_stream::phase::refused) return own_->refusal();
    const actors::outcome* how = ended();
    return how ? how->fault : std::nullopt;
  }
  void cancel() { own_ ? own_->cancel() : followed_->cancel(); }
  // The first `shown` tokens of the job have been shown: another piece may come.
  void used_up(std::uint32_t shown) {
    if (followed_) followed_->used_up(shown);
  }
  bool is_followed() const noexcept { return followed_ != nullptr; }
  // When a token was sampled; nullopt: it was asked for again, which says nothing of how fast it was sent.
  std::optional<core::time_point> sampled_at(std::uint32_t token) const {
    return own_ ? std::optional(own_->sampled_at(token)) : std::nullopt;
  }

  // ---- REQUIRES: the job is running, or has been; a followed one is admitted

  admitted_job admitted() const { return own_ ? admitted_job::of(*own_) : followed_->admitted()->job; }
  std::string_view prompt_text() const {
    return own_ ? own_->prompt_text() : followed_->admitted()->prompt_text;
  }
  std::shared_ptr<const core::tokenizer> tokenizer() const {
    return own_ ? own_->tokenizer() : followed_->admitted()->tokenizer;
  }
  // Characters of text before the first token that is shown.
  std::uint64_t characters() const { return own_ ? 0 : followed_->admitted()->characters; }

 private:
  std::shared_ptr<actors::job_stream> own_;  // one of the two is null
  std::shared_ptr<followed_job> followed_;
};

}  // namespace weir::net
