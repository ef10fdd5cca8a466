#include "net/http/http_answer.h"

#include "net/protocol/anthropic.h"

namespace weir::net {

namespace http = boost::beast::http;

namespace {

// Adds the headers that every answer has.
void add_common_headers(http::fields& m, const answer_form& form, const answer_headers& limits) {
  m.set(http::field::server, "weir");
  m.set("x-request-id", form.request_id);
  for (const auto& [name, value] : limits) m.set(name, value);
  if (form.anthropic) m.set("request-id", form.request_id);
  if (form.cors.varies) m.insert(http::field::vary, "Origin");
  if (form.cors.origin.empty() || m.count(http::field::access_control_allow_origin) > 0) return;
  m.set(http::field::access_control_allow_origin, form.cors.origin);
  m.set(http::field::access_control_expose_headers, "*");
}

}  // namespace

whole_answer answer_of(reply r, const answer_form& form, const answer_headers& limits, bool goes_on) {
  whole_answer m{static_cast<http::status>(r.status), form.version};
  m.keep_alive(goes_on);
  if (!r.content_type.empty()) m.set(http::field::content_type, r.content_type);
  for (const auto& [name, value] : r.headers) m.set(name, value);
  add_common_headers(m, form, limits);
  if (form.anthropic && !r.problem.empty())
    r.body = anthropic::error_body(r.status, r.problem, form.request_id);
  if (m.result() != http::status::no_content) m.content_length(r.body.size());
  if (!form.head_only) m.body() = std::move(r.body);
  return m;
}

pieces_header header_of(const reply& r, const answer_form& form, const answer_headers& limits, bool goes_on) {
  pieces_header m{static_cast<http::status>(r.status), form.version};
  m.keep_alive(goes_on);
  m.chunked(form.version >= 11);
  m.set(http::field::content_type, r.content_type);
  for (const auto& [name, value] : r.headers) m.set(name, value);
  add_common_headers(m, form, limits);
  return m;
}

reply events_reply() {
  reply r;
  r.content_type = "text/event-stream";
  r.headers = {{"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}};
  return r;
}

}  // namespace weir::net
