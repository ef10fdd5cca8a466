#include "tests/stranger/rounds.h"

namespace weir::stranger {

round make_round(std::uint64_t seed, const target& t, std::string_view kind) {
  const struct {
    std::string_view name;
    std::vector<conversation> (*talk)(random_source&, const target&);
    unsigned weight;
    std::size_t surge_share;
    int limit_ms;
  } kinds[] = {{"http", http_talk, 15, 1, 3000},       {"websocket", websocket_talk, 15, 1, 3000},
               {"session", session_talk, 13, 1, 3000}, {"events", event_talk, 6, 1, 3000},
               {"greedy", greedy_talk, 4, 2, 6000},    {"crowd", crowd_talk, 8, 1, 3000},
               {"flood", flood_talk, 9, 8, 3000},      {"constraint", constraint_talk, 11, 1, 4000},
               {"model", model_talk, 7, 1, 3000},      {"response", response_talk, 6, 1, 3000},
               {"demand", demand_talk, 6, 1, 4000}};
  random_source draw(seed);
  std::size_t lot = draw.below(100);
  for (const auto& k : kinds) {
    const bool drawn = lot < k.weight;
    lot -= drawn ? 0 : k.weight;
    if (kind.empty() ? !drawn : kind != k.name) continue;
    return {std::string(k.name), k.talk(draw, t), std::chrono::milliseconds(k.limit_ms), k.surge_share};
  }
  return {};
}

}  // namespace weir::stranger
