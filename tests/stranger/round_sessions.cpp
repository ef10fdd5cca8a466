#include <algorithm>

#include "tests/stranger/bytes.h"
#include "tests/stranger/frames.h"
#include "tests/stranger/request.h"
#include "tests/stranger/rounds.h"

namespace weir::stranger {
namespace {

job_shape any_shape(random_source& draw) {
  return {draw.chance(50) ? endless_tokens : draw.between(1, 100), draw.chance(50)};
}

std::vector<piece> http_session(random_source& draw, const target& t) {
  std::vector<piece> script;
  for (std::size_t n = draw.between(1, 4); n > 0; --n) {
    const job_shape shape = any_shape(draw);
    const bool plain = draw.chance(50);
    script.push_back(
        {post(draw, t, plain ? completion(draw, shape) : chat(draw, shape)).text(), 0, draw.chance(50)});
  }
  return script;
}

std::vector<piece> websocket_session(random_source& draw, const target& t) {
  std::vector<piece> script = {{upgrade(draw, t).text()}, {"", 0, true}};
  for (std::size_t n = draw.between(1, 8); n > 0; --n) {
    const std::string lane = "lane-" + std::to_string(n);
    script.push_back({frame(op_text, create_message(draw, lane, any_shape(draw)))});
    if (draw.chance(30))
      script.push_back({frame(op_text, cancel_message(lane)), static_cast<int>(draw.below(100))});
    if (draw.chance(30))
      script.push_back({frame(op_text, ack_message(lane, draw.below(70))), static_cast<int>(draw.below(50))});
    if (draw.chance(30)) script.push_back({frame(op_ping, "still there?")});
  }
  return script;
}

void cut(random_source& draw, std::vector<piece>& script) {
  script.resize(draw.between(1, script.size()));
  std::string& last = script.back().bytes;
  last.resize(draw.below(last.size() + 1));
}

void join(std::vector<piece>& script) {
  for (std::size_t i = 1; i < script.size(); ++i) script[0].bytes += script[i].bytes;
  script.resize(1);
}

void swap_two(random_source& draw, std::vector<piece>& script) {
  std::swap(script[draw.below(script.size())], script[draw.below(script.size())]);
}

// Splits one piece of the script into at most 300 pieces of a few bytes each.
void draw_out(random_source& draw, std::vector<piece>& script) {
  const std::size_t at = draw.below(script.size());
  const std::string whole = script[at].bytes;
  std::vector<piece> slow;
  const std::size_t step = 1 + whole.size() / 300;
  for (std::size_t i = 0; i < whole.size(); i += step) slow.push_back({whole.substr(i, step), 1, false});
  script.erase(script.begin() + static_cast<std::ptrdiff_t>(at));
  script.insert(script.begin() + static_cast<std::ptrdiff_t>(at), slow.begin(), slow.end());
  if (script.empty()) script.push_back({});
}

void repeat(random_source& draw, std::vector<piece>& script) {
  const std::vector<piece> once = script;
  for (std::size_t n = draw.between(1, 5); n > 0; --n) script.insert(script.end(), once.begin(), once.end());
}

// A client that says a little more than its request while the answer is awaited, and is gone then.
conversation one_byte_more(random_source& draw, const target& t) {
  conversation c;
  c.what = "an endless job, some bytes of a next request, and nobody there any more";
  const job_shape shape{endless_tokens, draw.chance(30)};
  c.script = {{post(draw, t, completion(draw, shape)).text()}, {random_bytes(draw, draw.between(1, 4)), 50}};
  c.end = draw.chance(50) ? ending::half_close : ending::reset;
  c.linger_ms = static_cast<int>(draw.between(20, 400));
  return c;
}

conversation disturbed(random_source& draw, const target& t) {
  conversation c;
  c.what = "a session cut short, hurried or drawn out";
  c.script = draw.chance(50) ? http_session(draw, t) : websocket_session(draw, t);
  if (draw.chance(15)) repeat(draw, c.script);
  if (draw.chance(15)) swap_two(draw, c.script);
  if (draw.chance(20)) join(c.script);
  if (draw.chance(15)) draw_out(draw, c.script);
  if (draw.chance(40)) cut(draw, c.script);
  c.end = draw.chance(35) ? ending::half_close : draw.chance(50) ? ending::reset : ending::close;
  c.linger_ms = static_cast<int>(draw.below(500));
  c.reads = draw.chance(70) ? appetite::everything : draw.chance(50) ? appetite::sips : appetite::nothing;
  return c;
}

}  // namespace

std::vector<conversation> session_talk(random_source& draw, const target& t) {
  std::vector<conversation> all;
  for (std::size_t n = draw.between(10, 40); n > 0; --n) {
    all.push_back(draw.chance(20) ? one_byte_more(draw, t) : disturbed(draw, t));
  }
  return all;
}

}  // namespace weir::stranger
