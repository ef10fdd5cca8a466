// router.h — finds the endpoint of a request: in the table of all routes, and among the files of the page.
//
// A pattern that ends in {id} matches the rest of the path, and {job} a part of it without a slash; both are
// percent-decoded. A route for GET serves HEAD too.
// Where nothing is at a path, doubled slashes, a slash at its end and a missing /v1 are forgiven.
// Routes of admins load and unload models, or show how they stand (net/access/admin_gate.h).
// Pure functions: any thread.
#pragma once

#include <string>
#include <string_view>
#include <variant>

namespace weir::net {

enum class endpoint {
  asset,   // the page and the browser client
  stream,  // WebSocket upgrade
  completions,
  chat_completions,
  messages,      // Anthropic's
  count_tokens,  // Anthropic's
  responses,     // OpenAI's
  show_response,
  remove_response,
  cancel_response,
  list_response_items,
  list_models,
  show_model,
  follow_models,  // events
  model_props,    // llama.cpp's
  tokenize,
  detokenize,
  issue_token,
  list_jobs,
  show_job,
  cancel_job,
  follow_job,          // events
  kill_worker_of_job,  // of a demonstration
  live,
  ready,
  stats,
  metrics,
  // of admins
  list_all_models,
  add_model,
  change_model,
  remove_model,
  swap_models,
  plan_model,
  load_model,    // llama.cpp's
  unload_model,  // llama.cpp's
};

// Whether it is about one response that is kept or runs.
constexpr bool is_of_response(endpoint e) noexcept {
  return e >= endpoint::show_response && e <= endpoint::list_response_items;
}
constexpr bool is_for_admins(endpoint e) noexcept { return e >= endpoint::list_all_models; }

struct route_match {
  endpoint to = endpoint::asset;
  // The part of the path that {id} or {job} matches; of model_props the parameter `model`; else empty.
  std::string id;
};
struct wrong_method {
  std::string allow;        // for the Allow header
  bool for_admins = false;  // every route at the path is for admins
};
struct no_route {};

using found_route = std::variant<route_match, wrong_method, no_route>;
found_route find_route(std::string_view method, std::string_view target);

// Whether an entrance for metrics alone serves this target: /metrics, and whatever is under /health.
bool is_for_metrics(std::string_view target);

// The value of a parameter of a target's query, percent-decoded; empty: there is none. A + is a +, since
// names of models have it.
std::string query_parameter(std::string_view target, std::string_view name);

// The path of a request target, without scheme, host, query and fragment. It is not decoded.
std::string_view path_of(std::string_view target);

}  // namespace weir::net
