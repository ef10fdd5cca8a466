// http_answer.h — makes the messages in which answers go out: a whole answer, or the header of one that is
// sent in pieces.
//
// Pure functions: any thread.
#pragma once

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <string>
#include <utility>
#include <vector>

#include "net/access/cors.h"
#include "net/http/reply.h"

namespace weir::net {

// What the form of an answer takes from its request.
struct answer_form {
  unsigned version = 11;   // of HTTP: 10 or 11
  bool head_only = false;  // the request is a HEAD
  bool anthropic = false;  // its path is one of Anthropic's, and so are its errors
  cors_verdict cors;
  std::string request_id;
};

using answer_headers = std::vector<std::pair<std::string, std::string>>;
using whole_answer = boost::beast::http::response<boost::beast::http::string_body>;
using pieces_header = boost::beast::http::response<boost::beast::http::empty_body>;

// `limits`: the rate limit headers of the client. `goes_on`: another request may follow. A reply may have its
// own Access-Control-Allow-Origin. A HEAD is answered with the length of the body and without the body.
whole_answer answer_of(reply r, const answer_form& form, const answer_headers& limits, bool goes_on);

// The header of an answer whose body comes in chunks; in HTTP/1.0 the connection's end is its end. The body
// of `r` is not read.
pieces_header header_of(const reply& r, const answer_form& form, const answer_headers& limits, bool goes_on);

// A reply whose body is server-sent events.
reply events_reply();

}  // namespace weir::net
