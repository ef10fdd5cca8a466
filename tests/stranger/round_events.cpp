#include "tests/stranger/bytes.h"
#include "tests/stranger/request.h"
#include "tests/stranger/rounds.h"

namespace weir::stranger {
namespace {

// An answer that goes on without its client, which leaves within a second.
conversation lost_answer(random_source& draw, const target& t) {
  const job_shape shape{draw.chance(60) ? endless_tokens : draw.between(1, 200), draw.chance(80), true};
  conversation c;
  c.what = "an answer that is to outlive its client";
  const std::size_t kind = draw.below(3);
  const body asked = kind == 0   ? completion(draw, shape)
                     : kind == 1 ? chat(draw, shape)
                                 : message(draw, shape);
  c.script = {{post(draw, t, asked).text()}};
  c.end = draw.chance(50) ? ending::reset : draw.chance(50) ? ending::half_close : ending::close;
  c.linger_ms = static_cast<int>(draw.between(50, 1000));
  return c;
}

std::string any_id(random_source& draw) {
  static const std::string ids[] = {"{answer}",
                                    "{answer}",
                                    "{answer}",
                                    "{answer}",
                                    "chatcmpl-{answer}",
                                    "resp_{answer}",
                                    "{answer}x",
                                    "{answer}/..",
                                    "%7Banswer%7D",
                                    "00000000000000000000000000000000",
                                    "msg_ffffffffffffffffffffffffffffffff",
                                    "",
                                    "%00",
                                    "..%2f..",
                                    "\xFF\xFE"};
  return draw.chance(95) ? draw.pick(ids) : std::string(draw.between(100, 8'000), 'a');
}

std::string any_cursor(random_source& draw) {
  static const std::string cursors[] = {"0",
                                        "0",
                                        "1",
                                        "5",
                                        "64",
                                        "0.0",
                                        "1.1",
                                        "4294967295",
                                        "4294967296",
                                        "99999999999999999999",
                                        "-1",
                                        "+1",
                                        ".",
                                        "1.",
                                        ".1",
                                        "1..1",
                                        "0x1",
                                        "1,1",
                                        "1 1",
                                        "nan",
                                        "1e3",
                                        "\xFF",
                                        "00",
                                        "1.0",
                                        "none",
                                        "\"1\"",
                                        "1\xE2\x82\xAC",
                                        "*",
                                        "%31",
                                        "1;2"};
  if (draw.chance(85)) return draw.pick(cursors);
  std::string long_one = "0";
  for (std::size_t n = draw.between(1, 2'000); n > 0; --n) long_one += draw.chance(90) ? ".0" : "1";
  return long_one;
}

conversation follower(random_source& draw, const target& t) {
  request r = get(draw, t, "/v1/jobs/" + any_id(draw) + "/events");
  if (draw.chance(30)) r.path += "?after=" + any_cursor(draw);
  if (draw.chance(60)) r.lines.push_back("Last-Event-ID: " + (draw.chance(50) ? "0" : any_cursor(draw)));
  if (draw.chance(10)) r.method = draw.chance(50) ? "HEAD" : "DELETE";
  if (draw.chance(10)) r = spoiled(draw, t, std::move(r));
  conversation c;
  c.what = "a follower of an answer";
  for (std::size_t n = draw.chance(20) ? draw.between(2, 5) : 1; n > 0; --n)
    c.script.push_back({r.text(), static_cast<int>(draw.below(400)), false, true});
  c.end = draw.chance(40) ? ending::reset : draw.chance(50) ? ending::half_close : ending::close;
  c.linger_ms = static_cast<int>(draw.between(20, 600));
  c.reads = draw.chance(60) ? appetite::everything : draw.chance(50) ? appetite::sips : appetite::nothing;
  return c;
}

}  // namespace

std::vector<conversation> event_talk(random_source& draw, const target& t) {
  std::vector<conversation> all;
  for (std::size_t n = draw.between(1, 3); n > 0; --n) all.push_back(lost_answer(draw, t));
  for (std::size_t n = draw.between(10, 80); n > 0; --n) all.push_back(follower(draw, t));
  return all;
}

}  // namespace weir::stranger
