#include "net/ws_conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "net/random_hex.h"

namespace weir::net {
namespace {

// `field`: the one that names the response.
ws::protocol_error unknown_response(std::string lane, std::string field) {
  return {std::move(lane), "not_found", "there is no such response", std::move(field), {}, false};
}

}  // namespace

ws_conversation::ws_conversation(hub& h, ws_frames& frames, outside& session, admission how, time_point now)
    : hub_(h),
      frames_(frames),
      session_(session),
      how_(std::move(how)),
      rate_(h.limits().messages_per_s, h.limits().message_burst, h.limits().message_abuse, now) {}

void ws_conversation::welcome() {
  session_.allow_messages();
  ws::limits l;
  const server_limits& have = hub_.limits();
  std::vector<std::string> names;
  for (const auto& m : hub_.server().service.models()) {
    if (!how_.from.allows_model(m.name)) continue;
    names.push_back(m.name);
    l.max_tokens = std::max<std::uint64_t>(l.max_tokens, m.context);
  }
  l.max_jobs = have.jobs;
  if (const auto& token = how_.from.token; token && token->max_jobs != 0)
    l.max_jobs = std::min<std::uint64_t>(l.max_jobs, token->max_jobs);
  l.max_frame = have.frame_bytes;
  l.detach_grace_ms = static_cast<std::uint64_t>(have.detach_grace.count());
  l.retain_ms = static_cast<std::uint64_t>(have.retain.count());
  l.max_age_ms = static_cast<std::uint64_t>(have.max_age.count());
  std::string frame;
  ws::append_session_created(frame, random_hex(), "weir", names, l);
  session_.say(std::move(frame));
}

void ws_conversation::understand(std::string_view text, bool is_text, time_point now) {
  if (!is_text)
    return say_error({{}, "bad_message", "only text frames are understood", {}, {}, false});
  auto message = ws::parse(text, {hub_.limits().json_depth, hub_.limits().json_values});
  const bool free_of_charge =
      std::holds_alternative<ws::pong>(message) || std::holds_alternative<ws::response_ack>(message);
  const auto verdict = free_of_charge ? rate_meter::verdict::fine : rate_.spend(now);
  if (verdict == rate_meter::verdict::abuse) return session_.close(close_code::too_many_messages);
  if (!how_.authenticated && !std::holds_alternative<ws::session_auth>(message))
    return session_.close(close_code::bad_key);
  // A cancel only ever makes less work: it is never refused.
  if (verdict == rate_meter::verdict::too_fast && !std::holds_alternative<ws::response_cancel>(message)) {
    const auto* create = std::get_if<ws::response_create>(&message);
    const auto* resume = std::get_if<ws::response_resume>(&message);
    return say_error({create ? create->id : resume ? resume->id : std::string(),
                      "rate_limited",
                      "too many messages in a second",
                      {},
                      rate_.wait().count(),
                      false});
  }
  std::visit([this](auto& m) { on(m); }, message);
}

void ws_conversation::on(ws::session_auth& m) {
  auto from = hub_.server().bearers.judge(m.token, unix_ms());
  if (!from) return session_.close(close_code::bad_key);
  if (!from->allows_origin(how_.origin)) return session_.close(close_code::forbidden);
  how_.from = std::move(*from);
  if (!std::exchange(how_.authenticated, true)) welcome();
}

// Whether a lane with this id can be opened. If not, the client has been told.
bool ws_conversation::has_place_for(const std::string& lane) {
  if (frames_.find_lane(lane)) {
    say_error({lane, "duplicate_id", "a response with this id is still running", "id", {}, false});
    return false;
  }
  if (frames_.lanes().size() < hub_.limits().jobs) return true;
  say_error({lane,
             "too_many_jobs",
             fmt::format("a socket has at most {} responses at a time", hub_.limits().jobs),
             {},
             {},
             false});
  return false;
}

void ws_conversation::on(ws::response_create& m) {
  if (!has_place_for(m.id)) return;
  auto request = std::move(m.request);
  request.who = how_.from.who;
  if (!judge_token(m.id, request)) return;
  kept_job job;
  job.owner = request.who;
  job.as_created = m.how.over({});
  job.metadata = std::move(m.metadata);
  job.cancel_when_left = m.cancel_on_disconnect;
  job.pause_on_lag = m.pause_on_lag;
  job.stream = hub_.server().service.submit(std::move(request), hub_.executor(), session_.news());
  auto follower = hub_.jobs().keep(std::move(job));
  frames_.open_lane(std::make_unique<ws::lane>(std::move(m), std::move(follower)));
}

void ws_conversation::on(ws::response_resume& m) {
  if (!has_place_for(m.id)) return;
  const auto id = core::job_id::parse(m.response_id);
  if (!id) {
    return say_error({m.id, no_such_job.code, std::string(no_such_job.message),
                      std::string(no_such_job.param), {}, false});
  }
  auto job = followed_job::open(hub_, *id, how_.from.who, m.after, m.how, session_.news());
  frames_.open_lane(std::make_unique<ws::lane>(std::move(m), std::move(job)));
}

void ws_conversation::on(ws::response_ack& m) {
  ws::lane* const of = frames_.find_lane(m.id);
  if (!of) {
    if (!frames_.is_over(m.id)) say_error(unknown_response(m.id, "id"));
    return;
  }
  if (of->ack(m.seq)) return session_.write();
  say_error({m.id, "invalid_cursor", "seq: so many tokens were not sent", "seq", {}, false});
}

// Whether the client's token, if it has one, lets it make this job. If not, the client has been told.
bool ws_conversation::judge_token(const std::string& lane, actors::request& r) {
  const auto& token = how_.from.token;
  if (!token) return true;
  if (how_.from.expired(unix_ms())) {
    say_error(
        {lane, "token_expired", "the token has expired: send session.auth with a new one", {}, {}, false});
    return false;
  }
  if (r.model.empty()) r.model = token->model;
  if (!how_.from.allows_model(r.model)) {
    session_.close(close_code::forbidden);
    return false;
  }
  r.until_ended = hub_.server().token_jobs.take(r.who, token->max_jobs);
  if (r.until_ended) return true;
  say_error({lane,
             "too_many_jobs",
             fmt::format("this token allows {} responses at a time", token->max_jobs),
             {},
             {},
             false});
  return false;
}

void ws_conversation::on(ws::response_cancel& m) {
  for (const auto& l : frames_.lanes()) {
    if (l->id() == m.id || l->response_id() == m.response_id) return l->cancel();
  }
  if (!m.id.empty()) {
    if (!frames_.is_over(m.id)) say_error(unknown_response(m.id, "id"));
    return;
  }
  // It may be a job whose own socket is gone.
  const auto id = core::job_id::parse(m.response_id);
  if (!id) return say_error(unknown_response({}, "response_id"));
  hub_.server().service.cancel_job(how_.from.who, *id, hub_.executor(),
                                   [this, session = session_.weak()](auto found) {
                                     const auto alive = session.lock();
                                     if (alive && !found) say_error(unknown_response({}, "response_id"));
                                   });
}

void ws_conversation::on(ws::ping& m) {
  std::string frame;
  ws::append_pong(frame, m.ts);
  session_.say(std::move(frame));
}

void ws_conversation::say_error(ws::protocol_error e) {
  hub_.counts().rejected.add(e.code);
  std::string frame;
  ws::append_error(frame, e);
  session_.say(std::move(frame));
}

}  // namespace weir::net
