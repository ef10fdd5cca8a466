#include "net/access/cors.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/protocol/json.h"

namespace weir::net {

bool open_to_pages(endpoint to) {
  switch (to) {
    case endpoint::stream:  // a WebSocket's Origin is judged at the upgrade
    case endpoint::issue_token:
    case endpoint::metrics:
    case endpoint::kill_worker_of_job:
    case endpoint::list_all_models:
    case endpoint::add_model:
    case endpoint::change_model:
    case endpoint::remove_model:
    case endpoint::swap_models:
    case endpoint::plan_model:
    case endpoint::load_model:
    case endpoint::unload_model:
      return false;
    case endpoint::asset:
    case endpoint::completions:
    case endpoint::chat_completions:
    case endpoint::messages:
    case endpoint::responses:
    case endpoint::show_response:
    case endpoint::remove_response:
    case endpoint::cancel_response:
    case endpoint::list_response_items:
    case endpoint::count_tokens:
    case endpoint::list_models:
    case endpoint::show_model:
    case endpoint::follow_models:
    case endpoint::model_props:
    case endpoint::tokenize:
    case endpoint::detokenize:
    case endpoint::list_jobs:
    case endpoint::show_job:
    case endpoint::cancel_job:
    case endpoint::follow_job:
    case endpoint::live:
    case endpoint::ready:
    case endpoint::stats:
      break;
  }
  return true;
}

cors_verdict judge_cors(const cors_question& q, std::span<const std::string> allowed) {
  cors_verdict out;
  const bool preflight = q.method == "OPTIONS" && !q.wanted_method.empty() && !q.origin.empty();
  if (allowed.empty() && !preflight) return out;
  const auto found = find_route(preflight ? q.wanted_method : q.method, q.target);
  const auto* route = std::get_if<route_match>(&found);
  if (!route || !open_to_pages(route->to)) return out;
  out.varies = !allowed.empty();
  out.foreign = preflight && std::ranges::find(allowed, q.origin) == allowed.end();
  if (std::ranges::find(allowed, q.origin) == allowed.end()) return out;
  out.origin = q.origin;
  if (!preflight) return out;
  const auto other = find_route(q.method, q.target);
  if (const auto* wrong = std::get_if<wrong_method>(&other)) out.methods = wrong->allow;
  return out;
}

// "*" stands for every header but Authorization, since no credentials are allowed.
reply preflight_reply(const cors_verdict& granted) {
  reply r;
  r.status = 204;
  r.content_type.clear();
  r.headers.emplace_back("Access-Control-Allow-Methods", granted.methods);
  r.headers.emplace_back("Access-Control-Allow-Headers", "Authorization, *");
  r.headers.emplace_back("Access-Control-Max-Age", "7200");
  return r;
}

reply foreign_reply(std::string_view origin) {
  const std::string name = legible(origin);
  return error_reply(
      403, "origin_forbidden",
      fmt::format("pages of {} may not use this server: --allow-origin {} allows them", name, name));
}

}  // namespace weir::net
