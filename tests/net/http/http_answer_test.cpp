#include "net/http/http_answer.h"

#include <catch2/catch.hpp>

#include "net/protocol/json.h"

namespace weir::tests::http_answer_test {

using namespace weir::net;
namespace http = boost::beast::http;

namespace {

answer_form form_with_id() {
  answer_form f;
  f.request_id = "the-id";
  return f;
}

const answer_headers no_limits;

}  // namespace

TEST_CASE("http answer: every answer names the server and its request, and the client's limits") {
  const answer_headers limits = {{"x-ratelimit-limit-requests", "7"}};
  const auto whole = answer_of(json_reply("{}"), form_with_id(), limits, true);
  CHECK(whole.body() == "{}");
  CHECK(whole[http::field::content_length] == "2");
  CHECK(whole[http::field::content_type] == "application/json");
  CHECK(whole.keep_alive());
  const auto events = header_of(events_reply(), form_with_id(), limits, true);
  for (const http::fields* m :
       {static_cast<const http::fields*>(&whole), static_cast<const http::fields*>(&events)}) {
    CHECK((*m)[http::field::server] == "weir");
    CHECK((*m)["x-request-id"] == "the-id");
    CHECK((*m)["x-ratelimit-limit-requests"] == "7");
    CHECK(m->count("request-id") == 0);
    CHECK(m->count(http::field::vary) == 0);
  }
  CHECK(events[http::field::content_type] == "text/event-stream");
  CHECK(events[http::field::cache_control] == "no-store");
}

TEST_CASE("http answer: a HEAD gets the length of the body alone, and 204 not even that") {
  auto form = form_with_id();
  form.head_only = true;
  const auto head = answer_of(json_reply("{\"a\":1}"), form, no_limits, true);
  CHECK(head.body().empty());
  CHECK(head[http::field::content_length] == "7");
  net::reply nothing;
  nothing.status = 204;
  nothing.content_type.clear();
  const auto empty = answer_of(std::move(nothing), form_with_id(), no_limits, true);
  CHECK(empty.count(http::field::content_length) == 0);
  CHECK(empty.count(http::field::content_type) == 0);
}

TEST_CASE("http answer: the end of the connection is said, in each version's way") {
  auto form = form_with_id();
  CHECK(answer_of(json_reply("{}"), form, no_limits, false)[http::field::connection] == "close");
  form.version = 10;
  const auto old = answer_of(json_reply("{}"), form, no_limits, true);
  CHECK(old.version() == 10);
  CHECK(old[http::field::connection] == "keep-alive");
  CHECK_FALSE(header_of(events_reply(), form, no_limits, false).chunked());
  CHECK(header_of(events_reply(), form_with_id(), no_limits, true).chunked());
}

TEST_CASE("http answer: an error on one of Anthropic's paths has Anthropic's shape") {
  auto form = form_with_id();
  form.anthropic = true;
  const auto m = answer_of(error_reply(404, "not_found", "no such thing"), form, no_limits, true);
  const auto body = json::parse(m.body());
  CHECK(body.at("type") == "error");
  CHECK(body.at("error").at("message") == "no such thing");
  CHECK(m["request-id"] == "the-id");
  CHECK(m[http::field::content_length] == std::to_string(m.body().size()));
}

TEST_CASE("http answer: pages of an allowed origin may read it, unless the answer says who may") {
  auto form = form_with_id();
  form.cors.varies = true;
  CHECK(answer_of(json_reply("{}"), form, no_limits, true)[http::field::vary] == "Origin");
  CHECK(answer_of(json_reply("{}"), form, no_limits, true).count(http::field::access_control_allow_origin) ==
        0);
  form.cors.origin = "https://app.example";
  CHECK(answer_of(json_reply("{}"), form, no_limits, true)[http::field::access_control_allow_origin] ==
        "https://app.example");
  auto open = json_reply("{}");
  open.headers.emplace_back("Access-Control-Allow-Origin", "*");
  open.headers.emplace_back("Vary", "Accept-Encoding");
  const auto m = answer_of(std::move(open), form, no_limits, true);
  CHECK(m[http::field::access_control_allow_origin] == "*");
  CHECK(m.count(http::field::vary) == 2);
}

}  // namespace weir::tests::http_answer_test
