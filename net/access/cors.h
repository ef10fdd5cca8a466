// cors.h — which pages of other origins may read an answer, and the answer to their preflight: the server's
// side of the CORS protocol (Fetch standard, section 3.3).
//
// Pages of the origins of --allow-origin may read the answers of all routes but those that give tokens or are
// for administrators. A page sends its key in a header itself: credentials that a browser adds, such as
// cookies, are never allowed.
//
// Pure functions: any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "net/http/reply.h"
#include "net/http/router.h"

namespace weir::net {

// What a request's header says.
struct cors_question {
  std::string_view method, target;
  std::string_view origin;         // Origin; empty: the request is no page's
  std::string_view wanted_method;  // Access-Control-Request-Method; empty: the request is no preflight
};

struct cors_verdict {
  bool varies = false;  // the answer depends on Origin
  std::string origin;   // whose pages may read the answer; empty: none may
  std::string methods;  // that the path takes, of a preflight that is granted; else empty
  bool foreign = false;  // a preflight for a path that is open to pages, of an origin that is not allowed
};

// `allowed`: the origins of --allow-origin, which are compared letter for letter.
cors_verdict judge_cors(const cors_question& q, std::span<const std::string> allowed);

// Whether pages of other origins may use a route.
bool open_to_pages(endpoint to);

// 204, for a preflight that is granted.
reply preflight_reply(const cors_verdict& granted);

// 403, for a foreign preflight: names the option that allows the origin. A browser shows its page nothing of
// it, but its list of requests has it.
reply foreign_reply(std::string_view origin);

}  // namespace weir::net
