#include "net/ws/ws_conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "actors/cell_jobs.h"
#include "net/access/handshake.h"
#include "net/kept_jobs.h"
#include "net/protocol/answer_id.h"
#include "net/protocol/constraint_fields.h"
#include "net/random_hex.h"
#include "net/request_record.h"
#include "net/resumed_job.h"

namespace weir::net {
namespace {

constexpr std::string_view ws_route = subprotocol;  // of requests, in the log

// `field`: the one that names the response.
ws::protocol_error unknown_response(std::string lane, std::string field) {
  return {std::move(lane), "not_found", "there is no such response", std::move(field), {}, false};
}

// Workers that may have the response do not answer.
ws::protocol_error silent_workers() {
  return {{}, unreachable_fleet_code, "workers of the fleet do not answer now", "response_id", {}, false};
}

}  // namespace

ws_conversation::ws_conversation(hub& h, ws_frames& frames, outside& session, admission how, time_point now)
    : hub_(h),
      frames_(frames),
      session_(session),
      how_(std::move(how)),
      rate_(h.limits().messages_per_s, h.limits().message_burst, h.limits().message_abuse, now) {
  if (how_.authenticated) come_in_as(std::move(how_.from));
}

void ws_conversation::come_in_as(bearer from) {
  how_.from = std::move(from);
  const auto& key = how_.from.key;
  if (key && std::ranges::find(keys_, key) == keys_.end()) keys_.push_back(key);
}

bool ws_conversation::key_removed() const noexcept {
  return std::ranges::any_of(keys_, [](const auto& key) { return key->removed(); });
}

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
  if (const auto& key = how_.from.key; key && key->rights()->jobs != 0)
    l.max_jobs = std::min<std::uint64_t>(l.max_jobs, key->rights()->jobs);
  l.max_frame = have.frame_bytes;
  l.detach_grace_ms = static_cast<std::uint64_t>(have.detach_grace.count());
  l.retain_ms = static_cast<std::uint64_t>(have.retain.count());
  l.max_age_ms = static_cast<std::uint64_t>(have.max_age.count());
  std::string frame;
  ws::append_session_created(frame, random_hex(), "weir", names, l);
  session_.say(std::move(frame));
}

ws_conversation::heard ws_conversation::parse(std::string_view text, std::size_t most_bytes,
                                              json_bounds most) {
  if (text.size() > most_bytes && text.size() - bytes_of_schemas(text) > most_bytes) return std::nullopt;
  return ws::parse(text, most);
}

void ws_conversation::understand(std::string_view text, bool is_text, time_point now) {
  if (!is_text && text.size() > hub_.limits().frame_bytes) return session_.close(close_code::too_big);
  if (!is_text)
    return say_error({{}, "bad_message", "only text frames are understood", {}, {}, false});
  const server_limits& l = hub_.limits();
  heard message = parse(text, l.frame_bytes, {l.json_depth, l.json_values});
  act(message, now);
}

void ws_conversation::say_unread(const core::error& why) { say_error(ws::refusal({}, why)); }

void ws_conversation::act(heard& found, time_point now) {
  if (!found) return session_.close(close_code::too_big);
  ws::client_message& message = *found;
  const bool free_of_charge =
      std::holds_alternative<ws::pong>(message) || std::holds_alternative<ws::response_ack>(message);
  const auto verdict = free_of_charge ? rate_meter::verdict::fine : rate_.spend(now);
  if (verdict == rate_meter::verdict::abuse) return session_.close(close_code::too_many_messages);
  if (!how_.authenticated && !std::holds_alternative<ws::session_auth>(message))
    return session_.close(close_code::bad_key);
  if (key_removed()) return session_.close(close_code::bad_key);
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
  come_in_as(std::move(*from));
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
  if (!judge_token(m.id, m.request)) return;
  const bool pause_on_lag = m.request.may_pause;
  m.request.witness = begin_record(hub_.server_ptr(), how_.from, ws_route, how_.request_id);
  kept_job job;
  job.as_created = m.how.over({});
  job.metadata = std::move(m.metadata);
  job.cancel_when_left = m.cancel_on_disconnect;
  job.pause_on_lag = pause_on_lag;
  if (!job.cancel_when_left) make_resumable(hub_, m.request, job);
  auto begun =
      submit_as(hub_.server().service, how_.from, std::move(m.request), 1, hub_.executor(), session_.news());
  if (!begun) return refuse(m.id, begun.error());
  job.stream = std::move(begun->front());
  job.owner = how_.from.who;
  auto follower = hub_.jobs().keep(std::move(job));
  frames_.open_lane(std::make_unique<ws::lane>(std::move(m), std::move(follower)));
}

void ws_conversation::on(ws::response_resume& m) {
  if (!has_place_for(m.id)) return;
  const auto id = job_named(m.response_id);
  if (!id) {
    return say_error({m.id, no_such_job.code, std::string(no_such_job.message),
                      std::string(no_such_job.param), {}, false});
  }
  m.response_id = id->text();
  auto job = followed_job::open(hub_, *id, how_.from.who, m.after, m.how, session_.news());
  frames_.open_lane(std::make_unique<ws::lane>(std::move(m), std::move(job)));
}

void ws_conversation::on(ws::response_ack& m) {
  ws::lane* const of = frames_.find_lane(m.id);
  if (!of) {
    if (!frames_.is_over(m.id)) say_error(unknown_response(m.id, "id"));
    return;
  }
  if (of->ack(m.seq, hub_.server().service.now())) return session_.write();
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
  r.model = hub_.server().service.model_behind(r.model);
  if (!how_.from.token_allows_model(r.model)) {
    session_.close(close_code::forbidden);
    return false;
  }
  r.until_ended = hub_.server().token_jobs.take(how_.from.who, token->max_jobs);
  if (r.until_ended) return true;
  say_error({lane,
             "too_many_jobs",
             fmt::format("this token allows {} responses at a time", token->max_jobs),
             {},
             {},
             false});
  return false;
}

// Tells the client why its key does not let it make this job. A model that the key may not use counts as
// unknown, as in session.created.
void ws_conversation::refuse(const std::string& lane, const key_refusal& no) {
  switch (no.why) {
    case key_refusal::kind::unknown_key:
      return session_.close(close_code::bad_key);
    case key_refusal::kind::model:
    case key_refusal::kind::no_model:
      return say_error({lane, "model_not_found", no.message, no.param, {}, false});
    case key_refusal::kind::field:
      return say_error({lane, "invalid_param", no.message, no.param, {}, false});
    case key_refusal::kind::limit:
      return say_error({lane, "rate_limited", no.message, {}, no.retry_after.count(), false});
  }
}

void ws_conversation::on(ws::response_cancel& m) {
  const auto id = job_named(m.response_id);
  const std::string job = id ? id->text() : std::string();
  for (const auto& l : frames_.lanes()) {
    if (l->id() != m.id && l->response_id() != job) continue;
    l->cancel();
    return session_.write();  // a job that has ended has no news of its own
  }
  if (!m.id.empty()) {
    if (!frames_.is_over(m.id)) say_error(unknown_response(m.id, "id"));
    return;
  }
  // It may be a job whose own socket is gone, of an answer over HTTP, or of another gateway.
  if (!id) return say_error(unknown_response({}, "response_id"));
  auto told = [this, session = session_.weak()](const actors::cell_job& found) {
    const auto alive = session.lock();
    if (!alive || found.job) return;
    say_error(found.silent == 0 ? unknown_response({}, "response_id") : silent_workers());
  };
  actors::cancel_cell_job(hub_.server().service, hub_.server().bearers.asker_of(how_.from), *id,
                          hub_.executor(), std::move(told));
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
