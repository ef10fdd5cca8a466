// sse.h — takes the text of a stream of server-sent events apart. Comments are left out.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace weir::tests {

struct sse_event {
  std::string type, data, id;  // empty: the event has no such line
};

// The whole events of a text. A line that no event may have fails the test.
inline std::vector<sse_event> whole_events(std::string_view text) {
  std::vector<sse_event> out;
  for (std::size_t end; (end = text.find("\n\n")) != text.npos; text.remove_prefix(end + 2)) {
    std::string_view lines = text.substr(0, end + 1);
    if (lines.starts_with(':')) continue;
    sse_event& e = out.emplace_back();
    for (; !lines.empty(); lines.remove_prefix(lines.find('\n') + 1)) {
      const auto line = lines.substr(0, lines.find('\n'));
      const auto colon = line.find(": ");
      REQUIRE(colon != line.npos);
      const auto name = line.substr(0, colon);
      std::string& member = name == "event" ? e.type : name == "data" ? e.data : e.id;
      REQUIRE((name == "event" || name == "data" || name == "id"));
      REQUIRE(member.empty());
      member = line.substr(colon + 2);
    }
  }
  return out;
}

// The data of the events of a text that is whole.
inline std::vector<std::string> event_data(std::string_view text) {
  REQUIRE((text.empty() || text.ends_with("\n\n")));
  std::vector<std::string> out;
  for (auto& e : whole_events(text)) out.push_back(std::move(e.data));
  return out;
}

}  // namespace weir::tests
