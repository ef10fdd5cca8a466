#include "tests/stranger/bytes.h"
#include "tests/stranger/request.h"
#include "tests/stranger/rounds.h"

namespace weir::stranger {
namespace {

request any_request(random_source& draw, const target& t) {
  const std::size_t kind = draw.below(100);
  if (kind < 25) return get(draw, t, any_path(draw));
  if (kind < 35) return upgrade(draw, t);
  return post(draw, t, kind < 55 ? honest_body(draw) : hostile_body(draw));
}

// A request that two readers might cut in two places: a server has to refuse it or hang up after it, for the
// second part must never be taken for a request.
conversation ambiguous(random_source& draw, const target& t) {
  static const std::string framings[] = {"Transfer-Encoding: chunked, identity",
                                         "Transfer-Encoding: identity",
                                         "Transfer-Encoding: xchunked",
                                         "Transfer-Encoding: gzip",
                                         "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
                                         "Transfer-Encoding: chunked, chunked",
                                         "Transfer-Encoding: chunked\r\nContent-Length: 4",
                                         "Content-Length: 4\r\nTransfer-Encoding: chunked",
                                         "Content-Length: 4\r\nContent-Length: 0",
                                         "Content-Length: 0\r\nContent-Length: 4",
                                         "Content-Length: -4",
                                         "Content-Length: 0x0",
                                         "Content-Length: 0, 4",
                                         "Content-Length : 0",
                                         "Transfer-Encoding : chunked"};
  const std::string& framing = draw.pick(framings);
  request inner = get(draw, t, "/v1/models/hidden");
  request outer = draw.chance(50) ? get(draw, t, "/v1/models") : post(draw, t, {"/v1/tokenize", "{}"});
  std::erase_if(outer.lines,
                [](const std::string& l) { return l.starts_with("Content-L") || l.starts_with("Transfer"); });
  outer.lines.push_back(framing);
  outer.body = (draw.chance(50) ? "0\r\n\r\n" : "") + inner.text();
  conversation c;
  c.what = "a request framed as «" + framing + "», another hidden in its body";
  c.script = {{outer.text()}};
  c.most_answers = 1;
  c.linger_ms = 300;
  return c;
}

conversation mangled(random_source& draw, const target& t) {
  conversation c;
  c.what = "a mangled request";
  std::string text;
  for (std::size_t n = draw.chance(20) ? draw.between(2, 20) : 1; n > 0; --n) {
    request r = any_request(draw, t);
    if (draw.chance(70)) r = spoiled(draw, t, std::move(r));
    text += r.text();
  }
  if (draw.chance(30)) text = damaged(draw, std::move(text));
  c.script = {{std::move(text)}};
  c.end = draw.chance(30) ? ending::half_close : draw.chance(20) ? ending::reset : ending::close;
  c.linger_ms = static_cast<int>(draw.between(0, 300));
  return c;
}

}  // namespace

std::vector<conversation> http_talk(random_source& draw, const target& t) {
  std::vector<conversation> all;
  for (std::size_t n = draw.between(20, 60); n > 0; --n) {
    all.push_back(draw.chance(15) ? ambiguous(draw, t) : mangled(draw, t));
    if (draw.chance(10)) all.back().from = loopback + static_cast<std::uint32_t>(draw.between(1, 50));
  }
  return all;
}

}  // namespace weir::stranger
