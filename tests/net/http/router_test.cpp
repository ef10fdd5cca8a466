#include "net/http/router.h"

#include <catch2/catch.hpp>

namespace weir::tests::router_test {

using namespace weir::net;

TEST_CASE("router: every route of the wire page is found") {
  const struct {
    const char *method, *target;
    endpoint to;
    const char* id;
  } rows[] = {
      {"GET", "/", endpoint::asset, ""},
      {"HEAD", "/", endpoint::asset, ""},
      {"GET", "/weir.js", endpoint::asset, ""},
      {"GET", "/v1/stream?x=1", endpoint::stream, ""},
      {"POST", "/v1/stream/tokens", endpoint::issue_token, ""},
      {"POST", "/v1/completions", endpoint::completions, ""},
      {"POST", "/v1/chat/completions", endpoint::chat_completions, ""},
      {"POST", "/v1/messages?beta=true", endpoint::messages, ""},
      {"POST", "/v1/messages/count_tokens", endpoint::count_tokens, ""},
      {"POST", "/v1/responses", endpoint::responses, ""},
      {"GET", "/v1/responses/resp_1?stream=true", endpoint::show_response, "resp_1"},
      {"DELETE", "/responses/resp_1", endpoint::remove_response, "resp_1"},
      {"POST", "/v1/responses/resp_1/cancel", endpoint::cancel_response, "resp_1"},
      {"GET", "/v1/responses/resp_1/input_items?limit=2", endpoint::list_response_items, "resp_1"},
      {"GET", "/v1/models", endpoint::list_models, ""},
      {"GET", "/v1/models/a/b", endpoint::show_model, "a/b"},
      {"GET", "/v1/models/a%2Fb%20c", endpoint::show_model, "a/b c"},
      {"GET", "/v1/models/50%", endpoint::show_model, "50%"},
      {"GET", "/v1/models/50%2", endpoint::show_model, "50%2"},
      {"GET", "/models/sse", endpoint::follow_models, ""},
      {"GET", "/props", endpoint::model_props, ""},
      {"GET", "/props?a=b&model=x%2Fy+z&model=w#model=q", endpoint::model_props, "x/y+z"},
      {"GET", "/props?models=x", endpoint::model_props, ""},
      {"POST", "/models/load", endpoint::load_model, ""},
      {"POST", "/models/unload", endpoint::unload_model, ""},
      {"GET", "/v1/admin/models", endpoint::list_all_models, ""},
      {"POST", "/v1/admin/models", endpoint::add_model, ""},
      {"POST", "/v1/admin/models/a/b", endpoint::change_model, "a/b"},
      {"DELETE", "/v1/admin/models/a%20b", endpoint::remove_model, "a b"},
      {"POST", "/v1/admin/swap", endpoint::swap_models, ""},
      {"POST", "/v1/admin/plan", endpoint::plan_model, ""},
      {"POST", "/v1/tokenize", endpoint::tokenize, ""},
      {"POST", "/v1/detokenize", endpoint::detokenize, ""},
      {"GET", "/v1/jobs", endpoint::list_jobs, ""},
      {"GET", "/v1/jobs/ab", endpoint::show_job, "ab"},
      {"DELETE", "/v1/jobs/ab", endpoint::cancel_job, "ab"},
      {"GET", "/v1/jobs/ab/events", endpoint::follow_job, "ab"},
      {"POST", "/v1/jobs/ab/kill-worker", endpoint::kill_worker_of_job, "ab"},
      {"GET", "/v1/jobs/msg_a%2fb/events?after=1.2", endpoint::follow_job, "msg_a/b"},
      {"GET", "/v1/jobs/events", endpoint::show_job, "events"},
      {"GET", "/v1/stats#x", endpoint::stats, ""},
      {"GET", "/health", endpoint::ready, ""},
      {"GET", "/health/live", endpoint::live, ""},
      {"GET", "/health/ready", endpoint::ready, ""},
      {"GET", "/metrics", endpoint::metrics, ""},
  };
  for (const auto& r : rows) {
    CAPTURE(r.method, r.target);
    auto found = find_route(r.method, r.target);
    REQUIRE(std::holds_alternative<route_match>(found));
    CHECK(std::get<route_match>(found).to == r.to);
    CHECK(std::get<route_match>(found).id == r.id);
  }
}

TEST_CASE("router: what comes of joining a base URL and a path is forgiven") {
  const struct {
    const char *method, *target;
    endpoint to;
    const char* id;
  } rows[] = {
      {"GET", "/v1//models", endpoint::list_models, ""},
      {"GET", "//v1/models", endpoint::list_models, ""},
      {"GET", "/v1/models/", endpoint::list_models, ""},
      {"GET", "/models", endpoint::list_models, ""},
      {"GET", "/models/a/b/?x=1", endpoint::show_model, "a/b"},
      {"GET", "/v1/jobs/", endpoint::list_jobs, ""},
      {"GET", "/jobs//ab/events/", endpoint::follow_job, "ab"},
      {"POST", "//chat//completions/", endpoint::chat_completions, ""},
      {"POST", "http://host:1//completions", endpoint::completions, ""},
      {"POST", "/messages/count_tokens/", endpoint::count_tokens, ""},
      {"GET", "/health//live/", endpoint::live, ""},
  };
  for (const auto& r : rows) {
    CAPTURE(r.method, r.target);
    auto found = find_route(r.method, r.target);
    REQUIRE(std::holds_alternative<route_match>(found));
    CHECK(std::get<route_match>(found).to == r.to);
    CHECK(std::get<route_match>(found).id == r.id);
  }
  const auto wrong = find_route("GET", "/chat/completions");
  REQUIRE(std::holds_alternative<wrong_method>(wrong));
  CHECK(std::get<wrong_method>(wrong).allow == "POST");
}

TEST_CASE("router: a known path with another method names those that it takes") {
  const struct {
    const char *method, *target, *allow;
  } rows[] = {
      {"POST", "/", "GET, HEAD"},
      {"GET", "/v1/completions", "POST"},
      {"PUT", "/v1/jobs/x", "GET, HEAD, DELETE"},
      {"DELETE", "/v1/jobs/x/events", "GET, HEAD"},
      {"OPTIONS", "/v1/models", "GET, HEAD"},
      {"", "/v1/stats", "GET, HEAD"},
  };
  for (const auto& r : rows) {
    CAPTURE(r.method, r.target);
    auto found = find_route(r.method, r.target);
    REQUIRE(std::holds_alternative<wrong_method>(found));
    CHECK(std::get<wrong_method>(found).allow == r.allow);
  }
}

TEST_CASE("router: any other path is unknown") {
  for (const char* target :
       {"", "/nothing", "/v1", "/v1/", "//", "/V1/models", "*", "/../etc/passwd", "//weir.js", "/weir.js/",
        "/v1/weir.js", "/v1/jobs/a/b", "/v1/jobs/a/events/b", "/v1/metrics", "/v2/models"}) {
    CAPTURE(target);
    CHECK(std::holds_alternative<no_route>(find_route("GET", target)));
  }
}

TEST_CASE("router: admins' routes are known as such, however their paths are spelled") {
  for (const char* target :
       {"/v1/admin/models", "//v1//admin/models/", "/admin/models", "http://h/admin/models"}) {
    CAPTURE(target);
    const auto found = find_route("POST", target);
    REQUIRE(std::holds_alternative<route_match>(found));
    CHECK(is_for_admins(std::get<route_match>(found).to));
    const auto wrong = find_route("PUT", target);
    REQUIRE(std::holds_alternative<wrong_method>(wrong));
    CHECK(std::get<wrong_method>(wrong).for_admins);
  }
  CHECK_FALSE(std::get<wrong_method>(find_route("PUT", "/v1/models")).for_admins);
  CHECK_FALSE(std::get<wrong_method>(find_route("POST", "/")).for_admins);
  CHECK_FALSE(is_for_admins(endpoint::list_models));
  CHECK_FALSE(is_for_admins(endpoint::follow_models));
}

}  // namespace weir::tests::router_test
