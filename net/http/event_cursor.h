// event_cursor.h — the `id` of an event: how many tokens of each choice a client has once it has the event.
//
// An id has one number for each choice of the answer, with dots between them: `12` where there is one choice,
// `12.7.0` where there are three.
//
// Pure functions: any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::net {

// The numbers of an id. nullopt: `text` is no id, or has more choices than an answer may have.
std::optional<std::vector<std::uint32_t>> parse_event_id(std::string_view text);

// Puts an id on the last event of `out`, which has none. each(f) calls f(tokens) for each choice. REQUIRES:
// `out` ends with an event.
template <class Each>
void append_event_id(std::string& out, const Each& each) {
  out.back() = 'i';  // of the empty line that ended the event
  out += "d: ";
  each([&](std::uint32_t tokens) {
    if (out.back() != ' ') out += '.';
    out += std::to_string(tokens);
  });
  out += "\n\n";
}

}  // namespace weir::net
