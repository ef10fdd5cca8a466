#include "tests/stranger/request.h"
#include "tests/stranger/rounds.h"

namespace weir::stranger {

std::vector<conversation> greedy_talk(random_source& draw, const target& t) {
  std::vector<conversation> all;
  for (std::size_t n = draw.between(1, 3); n > 0; --n) {
    conversation c;
    const bool stops = draw.chance(30);
    c.what = stops ? "64 choices with long lists of stops" : "64 choices of the longest prompt";
    c.script = {{post(draw, t, stops ? many_stops(draw) : many_choices(draw)).text()}};
    c.linger_ms = 2500;
    all.push_back(std::move(c));
  }
  return all;
}

}  // namespace weir::stranger
