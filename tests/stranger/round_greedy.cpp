#include "tests/stranger/request.h"
#include "tests/stranger/rounds.h"

namespace weir::stranger {

std::vector<conversation> greedy_talk(random_source& draw, const target& t) {
  std::vector<conversation> all;
  for (std::size_t n = draw.between(1, 3); n > 0; --n) {
    conversation c;
    c.what = "64 choices of the longest prompt";
    c.script = {{post(draw, t, many_choices(draw)).text()}};
    c.linger_ms = 2500;
    all.push_back(std::move(c));
  }
  return all;
}

}  // namespace weir::stranger
