// reply.h — an HTTP answer before it is written to a socket, and errors in OpenAI's shape.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "net/protocol/body_parts.h"

namespace weir::net {

struct reply {
  unsigned status = 200;
  std::string content_type = "application/json";  // empty: there is no body
  std::string body;
  std::shared_ptr<body_parts> source;  // what makes the body while it is sent; null: `body` is all of it
  std::vector<std::pair<std::string, std::string>> headers;  // beside those that every answer has
  std::string_view code;  // of an error, under which it is counted; lives as long as the program
  bool close = false;                                        // end the connection after it
  std::string problem;  // message of an error, for dialects whose errors have another shape
};

reply json_reply(std::string body);
// {"error":{message,type,param,code}}. An empty param or code is null. 429, 503 and `busy` have a Retry-After
// header.
// `code`: lives as long as the program.
reply error_reply(unsigned status, std::string_view code, std::string_view message,
                  std::string_view param = {});
reply error_reply(const core::error& e);

unsigned status_of(core::errc code);

}  // namespace weir::net
