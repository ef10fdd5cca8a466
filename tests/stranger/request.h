// request.h — an HTTP/1.1 request as its lines, so that each of them can be right or wrong.
//
// Plain data and pure functions of the source of numbers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/stranger/messages.h"
#include "tests/stranger/random.h"
#include "tests/stranger/target.h"

namespace weir::stranger {

struct request {
  std::string method = "GET", path = "/", version = "HTTP/1.1";
  std::vector<std::string> lines = {"Host: localhost"};
  std::string body;  // as it is sent, chunks and all
  std::string line_end = "\r\n";

  std::string text() const;
};

// With a right key where the server has keys.
request get(random_source& draw, const target& t, std::string_view path);
request post(random_source& draw, const target& t, const body& b);
request upgrade(random_source& draw, const target& t);
// To the WebSocket mode of the Responses API.
request upgrade_to_responses(random_source& draw, const target& t);

std::string chunked(random_source& draw, std::string_view text);
std::string any_path(random_source& draw);

// The same request with a few of its parts made wrong.
request spoiled(random_source& draw, const target& t, request r);

}  // namespace weir::stranger
