#include "tests/stranger/bytes.h"
#include "tests/stranger/frames.h"
#include "tests/stranger/request.h"
#include "tests/stranger/rounds.h"

namespace weir::stranger {
namespace {

// A message in several frames, a control frame between some of them.
std::string fragments(random_source& draw, std::string_view text) {
  std::string out;
  unsigned op = op_text;
  while (!text.empty()) {
    const std::size_t n = draw.between(0, text.size());
    const bool last = n == text.size() && draw.chance(90);
    out += frame(op, text.substr(0, n), last);
    text.remove_prefix(n);
    op = draw.chance(95) ? op_more : op_text;
    if (draw.chance(30)) out += frame(draw.chance(50) ? op_ping : op_pong, odd_text(draw));
    if (draw.chance(5)) out += close_frame(draw);
  }
  return out;
}

std::string any_frames(random_source& draw, const target& t) {
  const std::size_t kind = draw.below(100);
  if (kind < 35) return odd_frame(draw);
  if (kind < 40) return close_frame(draw);
  if (kind < 50) return fragments(draw, hostile_message(draw, t));
  if (kind < 55) return frame(op_ping, std::string(draw.below(126), 'p'));
  if (kind < 58) return frame(op_binary, hostile_message(draw, t));
  if (kind < 60) return damaged(draw, frame(op_text, hostile_message(draw, t)));
  return frame(op_text, hostile_message(draw, t));
}

}  // namespace

std::vector<conversation> websocket_talk(random_source& draw, const target& t) {
  std::vector<conversation> all;
  for (std::size_t n = draw.between(20, 60); n > 0; --n) {
    request hello = upgrade(draw, t);
    if (draw.chance(10)) hello = spoiled(draw, t, std::move(hello));
    conversation c;
    c.what = "a WebSocket of odd frames";
    c.script = {{hello.text()}, {"", 0, true}};
    if (draw.chance(5)) c.script[0].bytes += any_frames(draw, t);  // before the server has agreed
    for (std::size_t m = draw.between(1, 20); m > 0; --m) {
      c.script.push_back({any_frames(draw, t), draw.chance(10) ? static_cast<int>(draw.below(50)) : 0});
    }
    c.end = draw.chance(20) ? ending::half_close : draw.chance(30) ? ending::reset : ending::close;
    c.linger_ms = static_cast<int>(draw.between(0, 300));
    if (draw.chance(10)) c.reads = appetite::nothing;
    all.push_back(std::move(c));
  }
  return all;
}

}  // namespace weir::stranger
