#include "net/submit.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "net/protocol/json.h"

namespace weir::net {
namespace {

using kind = key_refusal::kind;
using std::chrono::milliseconds;

key_refusal refusal(kind why, std::string message, std::string param = {}) {
  key_refusal no{why, std::move(message)};
  no.param = std::move(param);
  return no;
}

// A key's priority is the default priority of its jobs, and the highest that they may have.
std::optional<key_refusal> judge_priority(const key_rights& rights, std::optional<int>& priority) {
  if (!rights.priority) return std::nullopt;
  if (priority.value_or(*rights.priority) > *rights.priority)
    return refusal(
        kind::field,
        fmt::format("priority must be at most {} with this key, not {}", *rights.priority, *priority),
        "priority");
  priority = priority.value_or(*rights.priority);
  return std::nullopt;
}

void append_limit(headers& out, std::string_view what, const std::optional<limit_state>& l) {
  if (!l) return;
  out.emplace_back(fmt::format("x-ratelimit-limit-{}", what), std::to_string(l->limit));
  out.emplace_back(fmt::format("x-ratelimit-remaining-{}", what), std::to_string(l->left));
  out.emplace_back(fmt::format("x-ratelimit-reset-{}", what), duration_text(l->reset));
}

}  // namespace

key_refusal too_much(known_key::limit_refusal no) {
  auto later = refusal(kind::limit, std::move(no.message));
  later.retry_after = no.retry_after;
  return later;
}

reply error_reply(const key_refusal& no) {
  switch (no.why) {
    case kind::unknown_key:
      return error_reply(401, "invalid_api_key", no.message);
    case kind::model:
      return error_reply(403, "model_forbidden", no.message, no.param);
    case kind::no_model:
      return error_reply(404, "model_not_found", no.message, no.param);
    case kind::field:
      return error_reply(400, "invalid_param", no.message, no.param);
    case kind::limit:
      break;
  }
  reply r = error_reply(429, "rate_limited", no.message);
  const auto seconds = std::max(std::chrono::ceil<std::chrono::seconds>(no.retry_after).count(), INT64_C(1));
  for (auto& [name, value] : r.headers)
    if (name == "Retry-After") value = std::to_string(seconds);
  r.headers.emplace_back("retry-after-ms", std::to_string(no.retry_after.count()));
  return r;
}

// Judges the model here if the key has its own list of models, since the service's messages would name other
// models, too.
std::optional<key_refusal> judge_model(const actors::service& s, const bearer& from, std::string& model) {
  if (model.empty() && from.token) model = from.token->model;
  model = s.model_behind(model);
  const auto models = from.key ? from.key->rights()->models : std::vector<std::string>();
  if (models.empty()) return std::nullopt;
  if (!model.empty() && std::ranges::find(models, model) == models.end())
    return refusal(kind::model, fmt::format("this key may not use the model '{}'", shortened(model)),
                   "model");
  const auto is_served = [&](const std::string& name) { return s.takes_model(name); };
  std::vector<std::string> usable;
  std::ranges::copy_if(models, std::back_inserter(usable), is_served);
  if (model.empty() && (usable.size() == 1 || s.loading()))
    model = usable.empty() ? models.front() : usable.front();
  if (s.loading() || (!model.empty() && is_served(model))) return std::nullopt;
  if (!model.empty())
    return refusal(kind::no_model, fmt::format("no model is called '{}'", shortened(model)), "model");
  return refusal(kind::no_model,
                 fmt::format("model is missing; this key may use {}", fmt::join(models, ", ")), "model");
}

boost::system::result<std::vector<std::shared_ptr<actors::job_stream>>, key_refusal> submit_as(
    actors::service& s, const bearer& from, actors::request&& r, std::uint32_t n, actors::executor shard,
    actors::job_stream::reader changed) {
  r.who = from.who;
  if (!from.key) return s.submit(std::move(r), n, std::move(shard), std::move(changed));
  known_key& key = *from.key;
  if (key.removed()) return refusal(kind::unknown_key, "this key is not known any more");
  if (auto no = judge_model(s, from, r.model)) return std::move(*no);
  if (auto no = judge_priority(*key.rights(), r.priority)) return std::move(*no);
  r.accounts = key.accounts();
  std::vector<std::shared_ptr<actors::job_stream>> jobs;
  const auto begin = [&] { jobs = s.submit(std::move(r), n, std::move(shard), std::move(changed)); };
  const auto choices = static_cast<std::uint32_t>(n * (1 + r.more_inputs.size()));
  auto no = key.begin(choices, s.now(), begin);
  if (!no) return jobs;
  if (no->never) return refusal(kind::field, fmt::format("n: {}", no->message), "n");
  return too_much(std::move(*no));
}

headers rate_limit_headers(const bearer& from, core::time_point now) {
  headers out;
  if (!from.key) return out;
  append_limit(out, "requests", from.key->jobs_left());
  append_limit(out, "tokens", from.key->tokens_left(now));
  return out;
}

std::string duration_text(core::duration d) {
  const auto ms = std::chrono::ceil<milliseconds>(d).count();
  if (ms == 0) return "0s";
  if (ms < 1000) return fmt::format("{}ms", ms);
  const auto hours = ms / 3'600'000, minutes = ms / 60'000 % 60;
  std::string out;
  if (hours > 0) out += fmt::format("{}h", hours);
  if (hours > 0 || minutes > 0) out += fmt::format("{}m", minutes);
  std::string seconds = fmt::format("{}.{:03}", ms % 60'000 / 1000, ms % 1000);
  while (seconds.ends_with('0')) seconds.pop_back();
  if (seconds.ends_with('.')) seconds.pop_back();
  return out + seconds + "s";
}

}  // namespace weir::net
