#include "net/http/http_routes.h"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "actors/cell_jobs.h"
#include "actors/fleet/gateway_side.h"
#include "net/called_back.h"
#include "net/http/model_routes.h"
#include "net/http/text_bodies.h"
#include "net/metrics/metrics.h"
#include "net/metrics/prometheus.h"
#include "net/metrics/resident.h"
#include "net/page_assets.h"
#include "net/protocol/answer_id.h"
#include "net/protocol/anthropic.h"
#include "net/protocol/json.h"
#include "net/protocol/openai.h"
#include "net/sent_text.h"
#include "net/submit.h"

namespace weir::net {
namespace {

namespace asio = boost::asio;

// Waits for work on a text, call(client, done), which counts for the client's key; `no`: why the key's
// limits forbid it now, and the answer is nothing.
template <class T, class Call>
asio::awaitable<T> counted_answer_of(hub& h, const bearer& from, std::optional<key_refusal>& no, Call& call) {
  auto begin = [&](auto done) {
    const auto begun = [&](const actors::text_client& client) { call(client, done); };
    no = begin_text(from, h.server().service.now(), begun);
    if (no) asio::post(h.executor(), [done] { done(T(core::make_error(core::errc::overloaded, "limit"))); });
  };
  co_return co_await called_back<T>(begin);
}

reply not_found(std::string_view what) { return error_reply(404, "not_found", what); }

// ---- text

reply made_reply(std::shared_ptr<body_parts> source) {
  reply r;
  r.source = std::move(source);
  return r;
}

// Parses a body by parse(text, most values).
template <class T, class Parse>
asio::awaitable<std::shared_ptr<sent_text<T>>> read_body_of(hub& h, const bearer& from, std::string body,
                                                            Parse parse) {
  const auto within = [parse, most = h.limits().json_values](std::string_view text) {
    return parse(text, most);
  };
  text_sender sender{from.who.key};
  co_return co_await read_sent<T>(h.server().service, std::move(sender), h.executor(), std::move(body),
                                  within);
}

asio::awaitable<reply> tokenize(hub& h, std::string body, const bearer& from) {
  auto read =
      co_await read_body_of<openai::text_to_tokenize>(h, from, std::move(body), openai::parse_tokenize);
  auto& asked = *read->said;
  if (!asked) co_return error_reply(asked.error());
  if (const auto no = judge_model(h.server().service, from, asked->model)) co_return error_reply(*no);
  auto call = [&](const actors::text_client& client, auto done) {
    read->memory.force(0);
    h.server().service.tokenize(asked->model, std::move(asked->text), asked->add_special, h.executor(),
                                std::move(done), client);
  };
  std::optional<key_refusal> no;
  auto got = co_await counted_answer_of<core::result<actors::tokenized>>(h, from, no, call);
  if (no) co_return error_reply(*no);
  if (!got) co_return error_reply(got.error());
  co_return made_reply(tokenized_body(std::move(*got)));
}

asio::awaitable<reply> detokenize(hub& h, std::string body, const bearer& from) {
  auto read =
      co_await read_body_of<openai::ids_to_detokenize>(h, from, std::move(body), openai::parse_detokenize);
  auto& asked = *read->said;
  if (!asked) co_return error_reply(asked.error());
  if (const auto no = judge_model(h.server().service, from, asked->model)) co_return error_reply(*no);
  auto call = [&](const actors::text_client& client, auto done) {
    read->memory.force(0);
    h.server().service.detokenize(asked->model, std::move(asked->ids), h.executor(), std::move(done), client);
  };
  std::optional<key_refusal> no;
  auto got = co_await counted_answer_of<core::result<actors::detokenized>>(h, from, no, call);
  if (no) co_return error_reply(*no);
  if (!got) co_return error_reply(got.error());
  co_return made_reply(detokenized_body(std::move(*got)));
}

asio::awaitable<reply> count_tokens(hub& h, std::string body, const bearer& from) {
  const auto parse = [strict = h.limits().strict_fields](std::string_view text, std::size_t most) {
    return anthropic::parse(anthropic::route::count_tokens, text, most, strict);
  };
  auto read = co_await read_body_of<anthropic::parsed_request>(h, from, std::move(body), parse);
  auto& asked = *read->said;
  if (!asked) co_return error_reply(asked.error());
  const auto warnings = asked->ignored.warnings();
  auto call = [&](const actors::text_client& client, auto done) {
    asked->request.who = from.who;
    h.server().service.count_tokens(std::move(asked->request), h.executor(), done, client);
  };
  std::optional<key_refusal> no = judge_model(h.server().service, from, asked->request.model);
  core::result<std::uint32_t> got = 0u;
  if (!no) got = co_await counted_answer_of<core::result<std::uint32_t>>(h, from, no, call);
  done_with(h.server().service, std::move(read));
  if (no) co_return error_reply(*no);
  if (!got) co_return error_reply(got.error());
  co_return json_reply(anthropic::count_body(*got, warnings));
}

// ---- jobs

void append_job(std::string& out, const actors::job_view& j) {
  append_object(out, [&] {
    append_text(out, "id", j.id.text());
    append_text(out, "state", j.state);
    append_text(out, "model", j.model);
    if (!j.finish_reason.empty()) append_text(out, "finish_reason", j.finish_reason);
    append_count(out, "prompt_tokens", j.prompt_tokens);
    append_count(out, "tokens", j.output_tokens);
    append_count(out, "cached_tokens", j.cached_tokens);
    append_count(out, "pages", j.pages);
    append_count(out, "preemptions", j.preemptions);
    append_key(out, "priority");
    append_number(out, std::int64_t{j.priority});
    append_count(out, "age", j.age_s);
  });
}

asio::awaitable<actors::cell_jobs> jobs_of(hub& h, const bearer& from) {
  const auto who = h.server().bearers.asker_of(from);
  auto begin = [&](auto done) {
    actors::list_cell_jobs(h.server().service, who, h.executor(), std::move(done));
  };
  co_return co_await called_back<actors::cell_jobs>(begin);
}

// What a list of jobs lacks, in an object of the text so far; nothing where it lacks nothing.
void append_lacks(std::string& out, const actors::cell_jobs& jobs) {
  if (jobs.silent > 0) append_count(out, "silent_workers", jobs.silent);
  if (jobs.left_out > 0) append_count(out, "left_out", jobs.left_out);
}

// An object that ends with a list of jobs, which may be thousands. `before`: its text up to the list.
reply jobs_reply(std::string before, std::vector<actors::job_view> jobs) {
  const auto all = std::make_shared<const std::vector<actors::job_view>>(std::move(jobs));
  auto parts = std::make_shared<body_parts>();
  parts->add(std::move(before));
  parts->add(all->size(), [all](std::string& out, std::size_t i) {
    if (i > 0) out += ',';
    append_job(out, (*all)[i]);
  });
  parts->add("]}");
  return made_reply(std::move(parts));
}

asio::awaitable<reply> list_jobs(hub& h, const bearer& from) {
  auto all = co_await jobs_of(h, from);
  std::string out;
  append_object(out, [&] { append_lacks(out, all); });
  out.pop_back();  // the object goes on
  append_key(out, "jobs");
  out += '[';
  co_return jobs_reply(std::move(out), std::move(all.jobs));
}

// Nobody who answered has the job: those that are silent may have it.
reply workers_are_silent(std::uint32_t how_many) {
  return error_reply(503, "unavailable",
                     fmt::format("workers of the fleet that may have this job do not answer: {}", how_many));
}

asio::awaitable<reply> one_job(hub& h, const route_match& route, const bearer& from) {
  const auto id = job_named(route.id);
  if (!id) co_return not_found("there is no such job");
  const bool cancel = route.to == endpoint::cancel_job;
  const auto who = h.server().bearers.asker_of(from);
  auto begin = [&](auto done) {
    auto& service = h.server().service;
    cancel ? actors::cancel_cell_job(service, who, *id, h.executor(), std::move(done))
           : actors::find_cell_job(service, who, *id, h.executor(), std::move(done));
  };
  const auto found = co_await called_back<actors::cell_job>(begin);
  if (!found.job && found.silent > 0) co_return workers_are_silent(found.silent);
  if (!found.job) co_return not_found("there is no such job, or it is no longer kept");
  std::string out;
  append_job(out, *found.job);
  co_return json_reply(std::move(out));
}

// A demonstration: the worker of a job of this client dies. A client that is not in one learns nothing.
asio::awaitable<reply> kill_worker(hub& h, const route_match& route, const bearer& from) {
  const auto& kill = h.server().options.kill_worker_of;
  const auto id = job_named(route.id);
  if (!kill || !id) co_return not_found("there is nothing at this path");
  const auto who = h.server().bearers.asker_of(from);
  auto begin = [&](auto done) { h.server().service.find_job(who, *id, h.executor(), std::move(done)); };
  const auto job = co_await called_back<std::optional<actors::job_view>>(begin);
  if (!job || !job->finish_reason.empty()) co_return not_found("there is no such job, or it has ended");
  kill(*id);
  reply r = json_reply(R"({"status":"told"})");
  r.status = 202;
  co_return r;
}

// ---- health

reply show_ready(hub& h) {
  const auto state = h.server().service.ready();
  if (state.ready) return json_reply(R"({"status":"ready"})");
  reply no = error_reply(503, "unavailable", state.reason);
  no.code = {};  // the question was answered, and nothing was refused
  return no;
}

reply show_metrics(hub& h) {
  reply r;
  r.content_type = prometheus_text::content_type;
  r.body = metrics_text(h.server());
  r.headers.emplace_back("Cache-Control", "no-store");
  return r;
}

void append_delays(std::string& out, std::string_view key, const core::delays& d) {
  append_object(out, key, [&] {
    append_count(out, "count", d.count());
    append_count(out, "p50", d.quantile_ms(0.5));
    append_count(out, "p99", d.quantile_ms(0.99));
    append_count(out, "max", d.quantile_ms(1));
  });
}

// Appends the counts that belong to `object` of /v1/stats.
void append_counts(std::string& out, std::string_view object, const core::engine_counts& c) {
  core::engine_counts::each([&](std::string_view in, std::string_view key, auto member) {
    if (in == object && !key.empty()) append_count(out, key, c.*member);
  });
}

// The objective of --slo, and the jobs that kept it; nothing where there is none.
void append_slo(std::string& out, const actors::snapshot& s) {
  if (!s.slo.set()) return;
  const auto ms = [](core::duration d) { return std::chrono::duration<double, std::milli>(d).count(); };
  append_object(out, "slo", [&] {
    append_count(out, "ttft_ms", ms(s.slo.ttft));
    append_count(out, "tpot_ms", ms(s.slo.tpot));
    append_counts(out, "slo", s.engine);
  });
}

void append_engine(std::string& out, const actors::snapshot& s) {
  append_object(out, "jobs", [&] {
    append_counts(out, "jobs", s.engine);
    append_count(out, "finished", s.ended);
  });
  for (const char* object : {"pages", "host_pages", "prefix", "masks", "banned"})
    append_object(out, object, [&] { append_counts(out, object, s.engine); });
  append_counts(out, "", s.engine);
  append_slo(out, s);
  append_object(out, "memory", [&] {
    append_count(out, "weights", s.memory.weights);
    append_count(out, "pages", s.memory.pages);
    append_text(out, "kv_type", s.memory.kv_type);
    append_count(out, "host_pages", s.memory.host_pages);
    append_count(out, "workspaces", s.memory.workspaces);
    append_count(out, "runtime", s.memory.runtime);
    append_count(out, "free", s.memory.free);
    append_count(out, "total", s.memory.total);
  });
  append_count(out, "tokens_per_s", s.tokens_per_s);
  append_count(out, "queue", s.engine.queued);
  append_count(out, "predicted_wait_ms", s.predicted_wait_ms);
  append_object(out, "text", [&] {
    append_count(out, "tasks", s.text.tasks);
    append_count(out, "bytes", s.text.bytes);
  });
  append_object(out, "step_ms", [&] {
    append_count(out, "p50", s.step_p50_ms);
    append_count(out, "p99", s.step_p99_ms);
  });
}

void append_clients(std::string& out, const server_state& all) {
  core::delays sent;
  all.add_sampled_to_sent(sent);
  append_delays(out, "sampled_to_sent_ms", sent);
  append_delays(out, "cancel_to_release_ms", all.service.cancel_to_release());
  append_object(out, "client_lag", [&] {
    append_count(out, "late", all.lag.late.load(std::memory_order_relaxed));
    append_count(out, "bytes", all.lag.bytes.load(std::memory_order_relaxed));
  });
  append_object(out, "client_memory", [&] {
    append_count(out, "used", all.service.memory()->used());
    append_count(out, "limit", all.service.memory()->limit());
  });
  append_count(out, "incidents", all.service.seen().count());
  append_count(out, "sessions", all.sessions.load(std::memory_order_relaxed));
  append_object(out, "closed", [&] {
    for (const auto& [code, count] : all.closed())
      append_count(out, code == close_counts::other ? "other" : std::to_string(code), count);
  });
}

void append_loading(std::string& out, const actors::load_state& l) {
  append_object(out, "loading", [&] {
    append_text(out, "model", l.model);
    append_count(out, "done", l.done);
    append_count(out, "total", l.total);
  });
}

void append_keys(std::string& out, const key_counts& counts) {
  append_object(out, "keys", [&] {
    for (const auto& [name, account] : counts.all())
      append_object(out, name, [&out, &account = account] {  // clang 14 cannot capture the name itself
        append_count(out, "jobs", account->jobs());
        append_count(out, "unfinished", account->unfinished());
        append_count(out, "prompt_tokens", account->prompt_tokens());
        append_count(out, "output_tokens", account->output_tokens());
      });
  });
}

// The workers of a gateway's fleet. Of models that the client may not use nothing is shown.
void append_fleet(std::string& out, const actors::fleet::fleet_figures& now, bool demo, const bearer& from) {
  append_object(out, "fleet", [&] {
    if (demo) {
      append_key(out, "demo");
      out += "true";
    }
    append_count(out, "jobs", now.counts.jobs);
    append_count(out, "moved", now.counts.moved);
    append_key(out, "workers");
    out += '[';
    for (const auto& w : now.workers) {
      append_object(out, [&] {
        append_text(out, "worker", w.board.worker);
        append_text(out, "state", w.suspected ? "suspected" : core::fleet::name(w.board.state));
        append_count(out, "silent_ms", std::chrono::duration_cast<std::chrono::milliseconds>(w.age).count());
        append_key(out, "models");
        out += '[';
        for (const auto& m : w.board.models) {
          if (!from.allows_model(m.name)) continue;
          append_object(out, [&] {
            append_text(out, "name", m.name);
            append_text(out, "device", m.device);
            append_count(out, "jobs", m.jobs);
            append_count(out, "batch", m.batch);
            append_count(out, "tokens_per_s", m.rate);
          });
        }
        out += ']';
      });
    }
    out += ']';
  });
}

// Totals for everybody; beside them what each key has used for an admin, and for all others their own jobs,
// which the user of a token cannot list elsewhere.
asio::awaitable<reply> show_stats(hub& h, const bearer& from) {
  const bool admin = h.server().bearers.is_admin(from);
  actors::cell_jobs own;
  if (!admin) own = co_await jobs_of(h, from);
  std::string out;
  append_object(out, [&] {
    append_engine(out, h.server().service.stats());
    append_models_there(out, h.server().service, from);
    append_clients(out, h.server());
    append_count(out, "rss_bytes", resident_bytes());
    if (const auto now = h.server().service.loading()) append_loading(out, *now);
    if (const auto& fleet = h.server().options.fleet)
      if (const auto now = fleet())
        append_fleet(out, *now, h.server().options.kill_worker_of != nullptr, from);
    if (admin && from.key) append_keys(out, h.server().bearers.counts());
  });
  if (admin) co_return json_reply(std::move(out));
  out.pop_back();  // the object goes on
  append_lacks(out, own);
  append_key(out, "own_jobs");
  out += '[';
  co_return jobs_reply(std::move(out), std::move(own.jobs));
}

// ---- browser tokens

asio::awaitable<reply> issue_token(hub& h, std::string body, const bearer& from) {
  auto read = co_await read_body_of<token_request>(h, from, std::move(body), parse_token_request);
  auto& asked = *read->said;
  if (!asked) co_return error_reply(asked.error());
  if (auto& model = asked->claims.model; !model.empty()) {
    if (const auto no = judge_model(h.server().service, from, model)) co_return error_reply(*no);
    if (!is_known_model(h, model)) co_return no_such_model(model);
  }
  const std::int64_t expires_ms = unix_ms() + std::chrono::milliseconds(asked->ttl).count();
  asked->claims.expires_ms = expires_ms;
  std::string out;
  append_object(out, [&] {
    append_text(out, "token", h.server().bearers.issue(from.who.key, std::move(asked->claims)));
    append_key(out, "expires_at");
    append_number(out, expires_ms / 1000);
  });
  reply r = json_reply(std::move(out));
  r.headers.emplace_back("Cache-Control", "no-store");
  co_return r;
}

// Everything that the page runs, shows or asks for comes from its own server. Its WebSocket does too:
// browsers take ws: for 'self' where host and port are the page's.
constexpr std::string_view page_policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "frame-ancestors 'none'";

}  // namespace

reply show_asset(std::string_view target, std::string_view accept_encoding) {
  const page_asset* asset = find_asset(path_of(target));
  const bool short_form = !asset->gzipped.empty() && takes_gzip(accept_encoding);
  reply r;
  r.content_type = content_type_of(asset->name);
  r.body = short_form ? asset->gzipped : asset->body;
  r.headers.emplace_back("Cache-Control", "no-cache");
  r.headers.emplace_back("Vary", "Accept-Encoding");
  if (short_form) r.headers.emplace_back("Content-Encoding", "gzip");
  r.headers.emplace_back("Content-Security-Policy", page_policy);
  r.headers.emplace_back("X-Content-Type-Options", "nosniff");
  r.headers.emplace_back("Referrer-Policy", "no-referrer");
  if (asset->name == "weir.js") r.headers.emplace_back("Access-Control-Allow-Origin", "*");
  return r;
}

asio::awaitable<reply> answer_route(hub& h, const route_match& route, std::string body, const bearer& from) {
  switch (route.to) {
    case endpoint::list_models:
      co_return list_models(h, from);
    case endpoint::show_model:
      co_return show_model(h, route.id, from);
    case endpoint::model_props:
      co_return model_props(h, route.id, from);
    case endpoint::list_all_models:
      co_return list_all_models(h);
    case endpoint::tokenize:
      co_return co_await tokenize(h, std::move(body), from);
    case endpoint::detokenize:
      co_return co_await detokenize(h, std::move(body), from);
    case endpoint::count_tokens:
      co_return co_await count_tokens(h, std::move(body), from);
    case endpoint::issue_token:
      co_return co_await issue_token(h, std::move(body), from);
    case endpoint::list_jobs:
      co_return co_await list_jobs(h, from);
    case endpoint::show_job:
    case endpoint::cancel_job:
      co_return co_await one_job(h, route, from);
    case endpoint::kill_worker_of_job:
      co_return co_await kill_worker(h, route, from);
    case endpoint::live:
      co_return json_reply(R"({"status":"live"})");
    case endpoint::ready:
      co_return show_ready(h);
    case endpoint::stats:
      co_return co_await show_stats(h, from);
    case endpoint::metrics:
      co_return show_metrics(h);
    case endpoint::stream:
      co_return error_reply(426, "upgrade_required", "this path is a WebSocket: weir.v1");
    case endpoint::asset:
    case endpoint::completions:
    case endpoint::chat_completions:
    case endpoint::messages:
    case endpoint::responses:
    case endpoint::show_response:
    case endpoint::remove_response:
    case endpoint::cancel_response:
    case endpoint::list_response_items:
    case endpoint::follow_models:
    case endpoint::follow_job:
    case endpoint::add_model:
    case endpoint::change_model:
    case endpoint::remove_model:
    case endpoint::swap_models:
    case endpoint::plan_model:
    case endpoint::load_model:
    case endpoint::unload_model:
      break;
  }
  co_return error_reply(500, "internal", "no handler for this path");
}

}  // namespace weir::net
