#include <sys/resource.h>

#include <algorithm>

#include "tests/stranger/frames.h"
#include "tests/stranger/request.h"
#include "tests/stranger/rounds.h"

namespace weir::stranger {
namespace {

constexpr std::size_t largest_crowd = 3000;

// A request up to somewhere in its body, the body in a few pieces with pauses.
std::vector<piece> slow_body(random_source& draw, const std::string& text) {
  std::size_t at = text.find("\r\n\r\n") + 4;
  std::vector<piece> all = {{text.substr(0, at)}};
  const std::size_t end = at + (text.size() - at) / 2;
  while (at < end) {
    const std::size_t bytes = std::min(end - at, draw.between(1, 40));
    all.push_back({text.substr(at, bytes), static_cast<int>(draw.between(1, 200))});
    at += bytes;
  }
  return all;
}

// What a client of the crowd sends before it waits in silence.
std::vector<piece> little(random_source& draw, const target& t, std::size_t kind) {
  const job_shape endless{endless_tokens, draw.chance(50)};
  request announced = post(draw, t, honest_body(draw));
  switch (kind) {
    case 0:
      return {};
    case 1:
      return {{announced.text().substr(0, draw.between(1, 12))}};
    case 2:
      return {{"GET /v1/stats HTTP/1.1\r\nHost: localhost\r\n"}};
    case 3:
      announced.body.clear();
      announced.lines.push_back("Expect: 100-continue");
      return {{announced.text()}};
    case 4:
      return {{upgrade(draw, t).text()}};
    case 5:
      return {{post(draw, t, completion(draw, endless)).text()}};
    case 6:
      return {{upgrade(draw, t).text()}, {frame(op_text, create_message(draw, "a", endless)), 0, true}};
    case 7:
      return {{get(draw, t, draw.chance(50) ? "/" : "/v1/jobs").text()}};
    default:
      return slow_body(draw, announced.text());
  }
}

}  // namespace

std::vector<conversation> crowd_talk(random_source& draw, const target& t) {
  static const std::string names[] = {
      "of which nobody speaks",         "with half a first line", "with half a header",
      "with no body to its header",     "of silent WebSockets",   "of jobs nobody waits for",
      "of WebSocket jobs nobody reads", "that reads no answer",   "with half a body, slowly"};
  const std::size_t kind = draw.below(std::size(names));
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  const std::size_t room = files.rlim_cur > 100 ? static_cast<std::size_t>(files.rlim_cur) - 100 : 1;
  const std::size_t size = std::min({draw.between(100, largest_crowd), room});
  const bool counted = draw.chance(20);  // from an address that is not trusted: the server counts them
  std::vector<conversation> all;
  for (std::size_t i = 0; i < size; ++i) {
    conversation c;
    c.what = "a crowd " + names[kind];
    c.script = little(draw, t, kind);
    c.end = draw.chance(90) ? ending::reset : ending::close;  // a reset leaves no port in TIME_WAIT
    c.linger_ms = static_cast<int>(draw.between(100, 1500));
    c.reads = kind >= 5 ? appetite::nothing : appetite::everything;
    if (counted) c.from = loopback + 1;
    all.push_back(std::move(c));
  }
  return all;
}

}  // namespace weir::stranger
