// POST /v1/responses, and the routes of one response: GET and DELETE of it, its input items, its cancel, and
// its events again.
//
// A response is in the store (net/response_store.h) once it has ended, and as long as its job runs beyond its
// connection, in kept_jobs (net/kept_jobs.h). Both are asked in this order, and the store once more where the
// job has ended meanwhile: a job gives its ending to the store before anybody else is told of it.
#include <charconv>

#include "net/called_back.h"
#include "net/http/http_session.h"
#include "net/http/kept_answer.h"
#include "net/http/response_encoder.h"
#include "net/protocol/answer_id.h"
#include "net/protocol/json.h"
#include "net/response_intake.h"
#include "net/resumed_job.h"

namespace weir::net {

namespace asio = boost::asio;

namespace {

using core::bad_param;

reply no_such_response(std::string_view id) {
  return error_reply(404, "not_found", fmt::format("Response with id '{}' not found.", shortened(id)));
}

// A whole number of a query; `without`: where there is none. nullopt: the text is no such number.
std::optional<std::int64_t> number_in(std::string_view target, std::string_view name, std::int64_t without) {
  const std::string text = query_parameter(target, name);
  if (text.empty()) return without;
  std::int64_t n = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (problem != std::errc() || end != text.data() + text.size() || n < 0) return std::nullopt;
  return n;
}

core::result<item_page> page_in(std::string_view target) {
  item_page page;
  const auto limit = number_in(target, "limit", static_cast<std::int64_t>(page.limit));
  if (!limit) return bad_param("limit", "limit must be a whole number in [1, {}]", most_items_of_a_page);
  page.limit = static_cast<std::size_t>(*limit);
  page.after = query_parameter(target, "after");
  const std::string order = query_parameter(target, "order");
  if (!order.empty() && order != "asc" && order != "desc")
    return bad_param("order", "order must be asc or desc, not '{}'", shortened(order));
  page.newest_first = order != "asc";
  return page;
}

// A refusal of a job that may be there; nullopt: there is none. The text lives as long as the job.
std::optional<reply> refusal_of(const followed_job& job) {
  if (!job.refused() || job.refused()->code == no_such_job.code || job.refused()->code == "resume_expired")
    return std::nullopt;
  const auto& no = *job.refused();
  const unsigned status = no.code == unreachable_fleet_code ? 503 : no.code == not_resumable_code ? 404 : 429;
  return error_reply(status, no.code, no.message);
}

bool has_ended(const followed_job& job) { return job.begun()->status != "in_progress"; }

// The head of a response whose job is known, as far as it is known by now.
responses::response_head head_of(const followed_job& job, const core::job_id& id) {
  admitted_job known;
  known.id = id;
  if (job.admitted()) known = job.admitted()->job;
  return terms_of(*job.begun()->answer)->head_of(known);
}

}  // namespace

reply response_refusal(const core::error& e) {
  if (responses::is_previous_not_found(e))
    return error_reply(400, responses::not_found_code, e.message, e.param);
  return error_reply(e);
}

asio::awaitable<std::shared_ptr<sent_text<read_response>>> http_session::take_in(std::string body,
                                                                                 bool& goes_on) {
  const auto& l = hub_.limits();
  const body_bounds most{l.json_values, l.strict_fields};
  const auto parse = [most](std::string_view text) { return read_response_body(text, most); };
  auto read = co_await read_watched<read_response>(std::move(body), parse);
  if (!read) co_return nullptr;
  std::optional<core::error> no;
  if (!*read->said) {
    no = read->said->error();
  } else if (auto& asked = **read->said; asked.background && l.store_mb == 0) {
    no = bad_param("background", "background is not supported here: no response is kept (--store-mb)");
  } else if (asked.goes_on()) {
    std::shared_ptr<read_response> of(read, &asked);
    const auto made = co_await bring_history(hub_, from_.who, std::move(of));
    if (!made) no = made.error();
  }
  if (!no) co_return read;
  done_with(hub_.server().service, std::move(read));
  reply refused = response_refusal(*no);
  goes_on = co_await write(std::move(refused));
  co_return nullptr;
}

asio::awaitable<bool> http_session::complete_response(std::string body) {
  bool goes_on = false;
  auto read = co_await take_in(std::move(body), goes_on);
  if (!read) co_return goes_on;
  auto& asked = **read->said;
  auto terms = terms_of(asked, from_.who, hub_.server().service.memory());
  if (!terms) {
    done_with(hub_.server().service, std::move(read));
    reply no = error_reply(terms.error());
    co_return co_await write(std::move(no));
  }
  responses_encoder encoder;
  encoder.terms = std::move(*terms);
  const answer_wishes how{asked.stream, asked.outlives, asked.background};
  if (how.outlives) make_resumable(hub_, asked.request, encoder);
  submitted all = submit(std::move(asked.request), 1, "/v1/responses");
  done_with(hub_.server().service, std::move(read));
  co_return co_await answer_with(encoder, std::move(all), how);
}

asio::awaitable<bool> http_session::answer_response(const request& r, const route_match& route) {
  std::string id = route.id;
  std::string target(r.target());
  if (route.to == endpoint::show_response && query_parameter(target, "stream") == "true")
    co_return co_await follow_response(std::move(id), std::move(target));
  reply out;
  if (route.to == endpoint::show_response) out = co_await show_response(std::move(id));
  if (route.to == endpoint::remove_response) out = co_await remove_response(std::move(id));
  if (route.to == endpoint::cancel_response) out = co_await cancel_response(std::move(id));
  if (route.to == endpoint::list_response_items)
    out = co_await list_response_items(std::move(id), std::move(target));
  co_return co_await write(std::move(out));
}

asio::awaitable<std::shared_ptr<followed_job>> http_session::find_job_of_response(const std::string& id) {
  const auto job_id = job_named(id);
  if (!job_id) co_return nullptr;
  constexpr bool in_passing = true;
  auto job = follow(*job_id, 0, 1, in_passing);
  while (!job->refused() && !job->begun()) co_await news_->wait();
  if (job->refused() || !job->begun()->answer || !terms_of(*job->begun()->answer)) co_return nullptr;
  const bool runs = job->begun()->tokenizer != nullptr;
  while (runs && !job->refused() && !job->admitted()) co_await news_->wait();
  co_return job;
}

// A GET is a sign of life of its client: who follows a job for a moment renews its grace.
asio::awaitable<reply> http_session::show_response(std::string id) {
  stored_ptr stored = co_await find_stored(hub_, id, from_.who);
  if (stored) co_return json_reply(stored->object);
  const auto job = co_await find_job_of_response(id);
  if (job && has_ended(*job)) stored = co_await find_stored(hub_, id, from_.who);
  if (stored) co_return json_reply(stored->object);
  if (!job || has_ended(*job)) co_return no_such_response(id);
  const bool queued = !job->begun()->tokenizer;
  co_return json_reply(
      responses::unfinished_object(head_of(*job, *job_named(id)), queued ? "queued" : "in_progress"));
}

asio::awaitable<reply> http_session::remove_response(std::string id) {
  const auto work = [id, who = from_.who](response_store& store) { return store.forget(id, who); };
  auto begin = [&](auto done) { hub_.server().responses->ask(hub_.executor(), work, done); };
  const bool removed = co_await called_back<bool>(begin);
  if (removed) co_return json_reply(deletion_body(*job_named(id)));
  const auto job = co_await find_job_of_response(id);
  if (!job || has_ended(*job)) co_return no_such_response(id);
  co_return error_reply(409, "busy", "this response is in progress: cancel it first");
}

// A response that has ended stays as it is.
asio::awaitable<reply> http_session::cancel_response(std::string id) {
  stored_ptr stored = co_await find_stored(hub_, id, from_.who);
  if (stored) co_return json_reply(stored->object);
  const auto job = co_await find_job_of_response(id);
  if (!job) co_return no_such_response(id);
  const bool had_ended = has_ended(*job);
  if (!had_ended) job->cancel();
  while (!had_ended && !job->refused() && !job->ended()) {
    job->used_up(job->base() + job->log().size());
    co_await news_->wait();
  }
  stored = co_await find_stored(hub_, id, from_.who);
  if (stored) co_return json_reply(stored->object);
  if (had_ended) co_return no_such_response(id);
  co_return json_reply(responses::unfinished_object(head_of(*job, *job_named(id)), "cancelled"));
}

asio::awaitable<reply> http_session::list_response_items(std::string id, std::string target) {
  const auto page = page_in(target);
  if (!page) co_return error_reply(page.error());
  stored_ptr stored = co_await find_stored(hub_, id, from_.who);
  std::shared_ptr<const std::string> items;
  if (stored) {
    items = std::shared_ptr<const std::string>(stored, &stored->items);
  } else {
    const auto job = co_await find_job_of_response(id);
    if (job && !has_ended(*job)) {
      const terms_ptr terms = terms_of(*job->begun()->answer);
      items = std::shared_ptr<const std::string>(terms, &terms->items);
    }
  }
  if (!items) co_return no_such_response(id);
  const auto list = std::make_shared<core::result<std::string>>();
  std::function<void()> work = [list, items, page = *page] { *list = list_of_items(*items, page); };
  const auto no =
      co_await work_on_json(hub_, from_.who.key, items->size(), parsing_bytes(*items), std::move(work));
  if (no) co_return error_reply(*no);
  if (!*list) co_return error_reply(list->error());
  co_return json_reply(std::move(**list));
}

// The events are made again of the whole log, since their numbers count from its beginning.
asio::awaitable<bool> http_session::follow_response(std::string id, std::string target) {
  const auto after = number_in(target, "starting_after", -1);
  std::optional<reply> no;
  std::shared_ptr<followed_job> job;
  if (!after) {
    no = error_reply(bad_param("starting_after", "starting_after must be the number of an event"));
  } else if (const auto job_id = job_named(id)) {
    job = follow(*job_id, 0, 1);
    job->keep_pieces();
  } else {
    no = no_such_response(id);
  }
  if (no) co_return co_await write(std::move(*no));
  watch_peer();
  const auto client_gone = [&] { return state_.at() == http_state::phase::client_gone; };
  while (!job->refused() && !job->begun() && !client_gone()) co_await news_->wait();
  const bool is_response = job->begun() && job->begun()->answer && terms_of(*job->begun()->answer);
  while (is_response && !job->refused() && !job->admitted() && !client_gone()) co_await news_->wait();
  if (client_gone()) co_return false;
  const bool ended = is_response && has_ended(*job);
  stored_ptr stored;
  if (!is_response || ended) stored = co_await find_stored(hub_, id, from_.who);
  if (client_gone()) co_return false;
  if (!stored) no = refusal_of(*job);
  if (stored && (!is_response || job->refused()))
    no = error_reply(404, "resume_expired",
                     "the events of this response are no longer kept: read it without stream");
  if (!no && !stored && (!is_response || ended || job->refused())) no = no_such_response(id);
  if (!no && form_.head_only) no = events_reply();
  if (no) {
    co_await stop_watching();
    co_return co_await write(std::move(*no));
  }
  hub_.counts().resumed.add();
  responses_encoder encoder;
  encoder.terms = terms_of(*job->begun()->answer);
  encoder.after = *after;
  std::vector<answer_choice> choices;
  choices.emplace_back(std::move(job));
  std::vector<std::uint32_t> from(1, 0);
  co_await stream_events(encoder, std::move(choices), std::move(from));
  co_await stop_watching();
  co_return state_.goes_on();
}

}  // namespace weir::net
