// ws_talk.h — what tests of WebSocket sessions say and ask, over and over.
#pragma once

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <string_view>

#include "tests/support/server_fixture.h"
#include "tests/support/ws_client.h"

namespace weir::tests {

inline std::string create(std::string_view id, std::string_view fields = {}) {
  return fmt::format(R"({{"type":"response.create","id":"{}","input":"hello"{}{}}})", id,
                     fields.empty() ? "" : ",", fields);
}

// Reads a lane to its end; frames of other lanes are an error.
inline lane_reader read_lane(ws_client& c) {
  lane_reader l;
  while (!l.done) l.take(c.read());
  return l;
}

// Returns when the server has handled every frame that was sent before.
inline void round_trip(ws_client& c) {
  c.send(R"({"type":"ping","ts":77})");
  CHECK(c.read("pong").at("ts") == 77);
}

// The finish reasons of all jobs, once each job is known to have ended.
inline std::multiset<std::string> finish_reasons(server_fixture& f) {
  std::multiset<std::string> reasons;
  f.until([&] {
    reasons.clear();
    for (const auto& j : f.list_jobs()) reasons.insert(j.finish_reason);
    return !reasons.contains("");
  });
  return reasons;
}

}  // namespace weir::tests
