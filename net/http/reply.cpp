#include "net/http/reply.h"

#include "net/protocol/json.h"
#include "net/protocol/ws_protocol.h"

namespace weir::net {
namespace {

std::string_view type_of(unsigned status) {
  if (status == 401) return "authentication_error";
  if (status == 403) return "permission_error";
  if (status == 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

void append_text_or_null(std::string& out, std::string_view key, std::string_view text) {
  append_key(out, key);
  if (text.empty()) {
    out += "null";
  } else {
    append_json_string(out, text);
  }
}

// OpenAI's code for a prompt that is too long, by which its clients know to shorten a conversation.
std::string_view http_code_of(const core::error& e) {
  const auto code = ws::code_of(e);
  return code == "prompt_too_long" ? "context_length_exceeded" : code;
}

}  // namespace

unsigned status_of(core::errc code) {
  switch (code) {
    case core::errc::invalid_param:
    case core::errc::not_supported:
    case core::errc::prompt_too_long:
    case core::errc::does_not_fit:
      return 400;
    case core::errc::model_not_found:
    case core::errc::not_found:
      return 404;
    case core::errc::busy:
    case core::errc::already_there:
    case core::errc::adopted:
      return 409;
    case core::errc::overloaded:
      return 429;
    case core::errc::unavailable:
    case core::errc::handed_over:
    case core::errc::class_changed:
      return 503;
    case core::errc::bad_file:
    case core::errc::internal:
      break;
  }
  return 500;
}

reply json_reply(std::string body) {
  reply r;
  r.body = std::move(body);
  return r;
}

reply error_reply(unsigned status, std::string_view code, std::string_view message, std::string_view param) {
  reply r;
  r.status = status;
  r.problem = message;
  r.code = code;
  append_object(r.body, [&] {
    append_object(r.body, "error", [&] {
      append_key(r.body, "message");
      append_json_string(r.body, message);
      append_text_or_null(r.body, "type", type_of(status));
      append_text_or_null(r.body, "param", param);
      append_text_or_null(r.body, "code", code);
    });
  });
  if (status == 429 || status == 503 || code == ws::code_of(core::errc::busy))
    r.headers.emplace_back("Retry-After", "1");
  return r;
}

reply error_reply(const core::error& e) {
  const auto code = http_code_of(e);
  const unsigned status = code == "does_not_fit"          ? 503
                          : code == "other_model_loading" ? 429
                                                          : status_of(e.code);
  reply r = error_reply(status, code, e.message, e.param);
  if (e.retry_after_ms > 0)
    for (auto& [name, value] : r.headers)
      if (name == "Retry-After") value = std::to_string((e.retry_after_ms + 999) / 1000);
  return r;
}

}  // namespace weir::net
