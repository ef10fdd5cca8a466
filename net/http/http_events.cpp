// GET /v1/jobs/{id}/events: goes on with the events of an answer whose client was lost, from the tokens that
// the client has.
#include <algorithm>

#include "net/http/event_cursor.h"
#include "net/http/http_session.h"
#include "net/http/kept_answer.h"
#include "net/protocol/answer_id.h"

namespace weir::net {

namespace asio = boost::asio;

namespace {

constexpr std::string_view header_name = "Last-Event-ID", parameter_name = "after";

constexpr follow_refusal no_such_answer{
    "not_found", "there is no such answer, or it was not made with \"on_disconnect\":\"continue\"", {}};
constexpr follow_refusal expired_answer{"resume_expired", "this answer is no longer kept", {}};
constexpr follow_refusal bad_cursor{"invalid_cursor", "this is not the id of an event of this answer", {}};

// Where a client says which event it has, and what it says there: the header, which browsers send when they
// connect again, goes before the parameter of the path. Both empty: nowhere.
struct said_cursor {
  std::string_view field;
  std::string id;
};

said_cursor cursor_in(const http_header& h) {
  if (h.count(header_name) > 1) return {header_name, "several"};
  std::string id(h[header_name]);
  if (!id.empty()) return {header_name, std::move(id)};
  id = query_parameter(h.target(), parameter_name);
  if (!id.empty()) return {parameter_name, std::move(id)};
  return {};
}

unsigned status_of(const follow_refusal& no) {
  if (no.code == bad_cursor.code) return 400;
  if (no.code == unreachable_fleet_code) return 503;
  const bool gone =
      no.code == no_such_answer.code || no.code == expired_answer.code || no.code == not_resumable_code;
  return gone ? 404 : 429;
}

bool is_waited_for(const std::shared_ptr<followed_job>& job) { return !job->refused() && !job->admitted(); }

}  // namespace

asio::awaitable<bool> http_session::follow_answer(const request& r, const route_match& route) {
  const said_cursor said = cursor_in(r);
  const auto id = job_named(route.id);
  if (!id) co_return co_await refuse_follower(no_such_answer, said.field);
  auto from = said.id.empty() ? std::vector<std::uint32_t>{0} : parse_event_id(said.id);
  if (!from) co_return co_await refuse_follower(bad_cursor, said.field);
  watch_peer();
  auto first = follow(*id, from->front(), 1);
  const bool goes_on = co_await follow_choices(std::move(first), std::move(*from), said.field);
  co_return goes_on;
}

std::shared_ptr<followed_job> http_session::follow(const core::job_id& id, std::uint32_t after,
                                                   std::size_t choices, bool in_passing) {
  auto changed = [news = std::weak_ptr(news_)] {
    if (const auto alive = news.lock()) alive->notify();
  };
  return followed_job::open(hub_, id, from_.who, after, {}, std::move(changed), choices, in_passing);
}

asio::awaitable<bool> http_session::follow_choices(std::shared_ptr<followed_job> first,
                                                   std::vector<std::uint32_t> from, std::string_view field) {
  const auto client_gone = [&] { return state_.at() == http_state::phase::client_gone; };
  while (!first->refused() && !first->begun() && !client_gone()) co_await news_->wait();
  if (client_gone()) co_return false;
  if (first->refused()) co_return co_await refuse_follower(*first->refused(), field);
  const auto answer = first->begun()->answer;
  if (!answer || terms_of(*answer)) co_return co_await refuse_follower(no_such_answer, field);
  const auto jobs = jobs_of(*answer);
  if (from == std::vector<std::uint32_t>{0}) from.resize(jobs.size(), 0);
  if (from.size() != jobs.size()) co_return co_await refuse_follower(bad_cursor, field);
  std::vector<std::shared_ptr<followed_job>> followed{std::move(first)};
  for (std::size_t i = 1; i < jobs.size(); ++i) followed.push_back(follow(jobs[i], from[i], jobs.size()));
  const auto refused = [&] {
    return std::ranges::find_if(followed, [](const auto& job) { return job->refused().has_value(); });
  };
  while (refused() == followed.end() && std::ranges::any_of(followed, is_waited_for) && !client_gone())
    co_await news_->wait();
  if (client_gone()) co_return false;
  if (const auto no = refused(); no != followed.end())
    co_return co_await refuse_follower(*(*no)->refused(), field);
  if (form_.head_only) {
    co_await stop_watching();
    reply head = events_reply();
    co_return co_await write(std::move(head));
  }
  hub_.counts().resumed.add();
  std::vector<answer_choice> choices(followed.begin(), followed.end());
  co_await stream_kept(*answer, std::move(choices), std::move(from));
  co_await stop_watching();
  co_return state_.goes_on();
}

// The refusals of kept_jobs name fields of weir.v1. `field`: where this client said its cursor.
asio::awaitable<bool> http_session::refuse_follower(const follow_refusal& no, std::string_view field) {
  co_await stop_watching();
  const bool by_cursor = no.code == bad_cursor.code;
  std::string_view message = no.message;
  if (by_cursor) message = bad_cursor.message;
  if (no.code == no_such_answer.code) message = no_such_answer.message;
  if (no.code == expired_answer.code) message = expired_answer.message;
  reply r = error_reply(status_of(no), no.code, message, by_cursor ? field : std::string_view());
  co_return co_await write(std::move(r));
}

}  // namespace weir::net
