#include "tests/stranger/frames.h"
#include "tests/stranger/request.h"
#include "tests/stranger/rounds.h"

namespace weir::stranger {
namespace {

conversation over_http(random_source& draw, const target& t) {
  conversation c;
  c.what = "requests with hostile constraints";
  for (std::size_t n = draw.between(1, 3); n > 0; --n)
    c.script.push_back({post(draw, t, constrained_body(draw)).text(), 0, draw.chance(50)});
  return c;
}

conversation over_websocket(random_source& draw, const target& t) {
  conversation c;
  c.what = "a WebSocket of jobs with hostile constraints";
  c.script = {{upgrade(draw, t).text()}, {"", 0, true}};
  for (std::size_t n = draw.between(1, 6); n > 0; --n) {
    const std::string lane = "lane-" + std::to_string(n);
    c.script.push_back({frame(op_text, constrained_message(draw, lane))});
    if (draw.chance(30))
      c.script.push_back({frame(op_text, cancel_message(lane)), static_cast<int>(draw.below(100))});
  }
  return c;
}

// Each request is of any of the keys.
conversation of_small_ones(random_source& draw, const target& t) {
  conversation c;
  c.what = "many small constraints of several keys";
  for (std::size_t n = draw.between(5, 30); n > 0; --n)
    c.script.push_back({post(draw, t, freshly_constrained_body(draw, false)).text(), 0, draw.chance(30)});
  return c;
}

conversation of_one_that_leaves(random_source& draw, const target& t) {
  conversation c;
  c.what = "a request that is left while its constraint compiles";
  c.script = {{post(draw, t, freshly_constrained_body(draw, true)).text()}};
  c.linger_ms = static_cast<int>(draw.below(80));
  c.end = draw.chance(50) ? ending::reset : draw.chance(50) ? ending::half_close : ending::close;
  return c;
}

// Keys that flood the pool of constraints, and leave it.
std::vector<conversation> keys_talk(random_source& draw, const target& t) {
  std::vector<conversation> all;
  for (std::size_t n = draw.between(5, 40); n > 0; --n)
    all.push_back(draw.chance(70) ? of_one_that_leaves(draw, t) : of_small_ones(draw, t));
  return all;
}

}  // namespace

std::vector<conversation> constraint_talk(random_source& draw, const target& t) {
  if (draw.chance(35)) return keys_talk(draw, t);
  std::vector<conversation> all;
  for (std::size_t n = draw.between(3, 12); n > 0; --n) {
    all.push_back(draw.chance(50) ? over_http(draw, t) : over_websocket(draw, t));
    conversation& c = all.back();
    c.end = draw.chance(30) ? ending::half_close : draw.chance(40) ? ending::reset : ending::close;
    c.linger_ms = static_cast<int>(draw.below(1500));
    if (draw.chance(10)) c.reads = appetite::nothing;
  }
  return all;
}

}  // namespace weir::stranger
