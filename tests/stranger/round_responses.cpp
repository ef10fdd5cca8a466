#include "tests/stranger/bytes.h"
#include "tests/stranger/frames.h"
#include "tests/stranger/request.h"
#include "tests/stranger/rounds.h"

namespace weir::stranger {
namespace {

ending any_ending(random_source& draw) {
  return draw.chance(40) ? ending::reset : draw.chance(50) ? ending::half_close : ending::close;
}

job_shape any_shape(random_source& draw) {
  return {draw.chance(30) ? endless_tokens : draw.between(1, 100), draw.chance(60), draw.chance(40)};
}

// A request whose body has the length that it gets when ids stand for an_answer.
request making(random_source& draw, const target& t) {
  constexpr std::size_t id_size = 37;
  request r = get(draw, t, "/v1/responses");
  r.method = "POST";
  r.body = response(draw, any_shape(draw)).json;
  std::size_t more = 0;
  for (auto at = r.body.find(an_answer); at != r.body.npos; at = r.body.find(an_answer, at + 1))
    more += id_size - an_answer.size();
  r.lines.push_back("Content-Type: application/json");
  r.lines.push_back("Content-Length: " + std::to_string(r.body.size() + more));
  return r;
}

// Makes responses, some of which the client does not wait for.
conversation maker(random_source& draw, const target& t) {
  conversation c;
  c.what = "a client that makes responses";
  for (std::size_t n = draw.between(1, 4); n > 0; --n)
    c.script.push_back({making(draw, t).text(), 0, false, true});
  c.end = any_ending(draw);
  c.linger_ms = static_cast<int>(draw.between(20, 600));
  return c;
}

std::string any_target(random_source& draw) {
  static const std::string ids[] = {"{answer}", "{answer}", "{answer}", "resp_{answer}",
                                    "resp_",    "x",        "%00",      "{answer}/{answer}"};
  static const std::string rests[] = {"",
                                      "?stream=true",
                                      "?stream=true&starting_after=0",
                                      "?stream=true&starting_after=30",
                                      "?stream=true&starting_after=9223372036854775807",
                                      "?stream=true&starting_after=9223372036854775808",
                                      "?stream=true&starting_after=-1",
                                      "?stream=false&starting_after=x",
                                      "/input_items",
                                      "/input_items?limit=1&order=asc&after={answer}_0",
                                      "/input_items?limit=0",
                                      "/input_items?order=%00",
                                      "/cancel"};
  return "/v1/responses/" + draw.pick(ids) + draw.pick(rests);
}

// Asks for responses that others have made.
conversation asker(random_source& draw, const target& t) {
  conversation c;
  c.what = "a client that asks for responses";
  for (std::size_t n = draw.between(1, 5); n > 0; --n) {
    request r = get(draw, t, any_target(draw));
    if (r.path.ends_with("/cancel")) r.method = "POST";
    if (draw.chance(10)) r.method = draw.chance(50) ? "HEAD" : "DELETE";
    if (draw.chance(10)) r = spoiled(draw, t, std::move(r));
    c.script.push_back({r.text(), static_cast<int>(draw.below(200)), false, true});
  }
  c.end = any_ending(draw);
  c.linger_ms = static_cast<int>(draw.between(20, 600));
  c.reads = draw.chance(60) ? appetite::everything : draw.chance(50) ? appetite::sips : appetite::nothing;
  return c;
}

std::string any_message(random_source& draw) {
  const std::size_t kind = draw.below(100);
  if (kind < 10) return odd_frame(draw);
  if (kind < 15) return frame(op_ping, std::string(draw.below(126), 'p'));
  if (kind < 18) return frame(op_binary, hostile_response_message(draw));
  if (kind < 21) return close_frame(draw);
  if (kind < 50) return frame(op_text, hostile_response_message(draw));
  return frame(op_text, response_message(draw, any_shape(draw)));
}

// The placeholder for an answer cannot stand inside a frame, whose length comes first: it stays as it is.
conversation talker(random_source& draw, const target& t) {
  request hello = upgrade_to_responses(draw, t);
  if (draw.chance(10)) hello = spoiled(draw, t, std::move(hello));
  conversation c;
  c.what = "a WebSocket of responses";
  c.script = {{hello.text()}, {"", 0, true}};
  for (std::size_t n = draw.between(1, 14); n > 0; --n)
    c.script.push_back({any_message(draw), draw.chance(50) ? static_cast<int>(draw.below(100)) : 0});
  c.end = any_ending(draw);
  c.linger_ms = static_cast<int>(draw.between(0, 500));
  if (draw.chance(15)) c.reads = draw.chance(50) ? appetite::sips : appetite::nothing;
  return c;
}

}  // namespace

std::vector<conversation> response_talk(random_source& draw, const target& t) {
  std::vector<conversation> all;
  for (std::size_t n = draw.between(2, 10); n > 0; --n) all.push_back(maker(draw, t));
  for (std::size_t n = draw.between(10, 40); n > 0; --n) all.push_back(asker(draw, t));
  for (std::size_t n = draw.between(5, 30); n > 0; --n) all.push_back(talker(draw, t));
  return all;
}

}  // namespace weir::stranger
