// rounds.h — what a stranger does in one round. A round is made of its seed alone, before a byte is sent.
//
// Pure functions: any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/stranger/conversation.h"
#include "tests/stranger/random.h"
#include "tests/stranger/target.h"

namespace weir::stranger {

struct round {
  std::string kind;
  std::vector<conversation> talk;
  std::chrono::milliseconds limit{3000};
  std::size_t surge_share = 1;  // the server may grow by the surge that is allowed, divided by this
};

// A round of the kind `kind`; if `kind` is empty, the seed draws the kind. A round without conversations:
// there is no such kind.
round make_round(std::uint64_t seed, const target& t, std::string_view kind);

// Requests made wrong: first line, header, framing, JSON.
std::vector<conversation> http_talk(random_source& draw, const target& t);
// Frames made wrong, and messages of weir.v1 in right frames.
std::vector<conversation> websocket_talk(random_source& draw, const target& t);
// Right sessions that are cut, hurried, drawn out, repeated and left.
std::vector<conversation> session_talk(random_source& draw, const target& t);
// Answers whose clients are lost, and followers of them, right and wrong, from every place.
std::vector<conversation> event_talk(random_source& draw, const target& t);
// Responses that are kept, gone on with, read again and left, over HTTP and over WebSockets, right and wrong.
std::vector<conversation> response_talk(random_source& draw, const target& t);
// Requests within every limit that ask for as much work as one request can.
std::vector<conversation> greedy_talk(random_source& draw, const target& t);
// Answers that are constrained: hostile schemas, expressions, grammars and lists, some of them given up.
std::vector<conversation> constraint_talk(random_source& draw, const target& t);
// Orders that load, unload and swap models beside the one that stays: right and wrong, from clients that
// leave.
std::vector<conversation> model_talk(random_source& draw, const target& t);
// Models that are not ready, or do not fit: clients that wait for them and leave while they load or wake, and
// keys that ask for the models of others.
std::vector<conversation> demand_talk(random_source& draw, const target& t);
// A great many connections that all do the same little.
std::vector<conversation> crowd_talk(random_source& draw, const target& t);
// One or two connections that never stop sending.
std::vector<conversation> flood_talk(random_source& draw, const target& t);

}  // namespace weir::stranger
