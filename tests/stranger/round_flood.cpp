#include "tests/stranger/frames.h"
#include "tests/stranger/request.h"
#include "tests/stranger/rounds.h"

namespace weir::stranger {
namespace {

constexpr std::size_t flood_bytes = 64 << 20;
constexpr std::size_t block_bytes = 64 << 10;
// The bytes that a server may take of something endless: the largest body in the smallest chunks, what the
// server reads and drops so that its refusal can be read, and what both kernels buffer in between.
constexpr std::size_t taken_bytes = 40 << 20;

std::string block_of(std::string_view text) {
  std::string out;
  out.reserve(block_bytes + text.size());
  while (out.size() < block_bytes) out += text;
  return out;
}

struct flood {
  const char* what;
  std::string begins;  // after the header or the handshake
  std::string goes_on;
  std::size_t most_taken = taken_bytes;
};

conversation after(std::vector<piece> script, const flood& f) {
  conversation c;
  c.what = f.what;
  c.script = std::move(script);
  c.script.back().bytes += f.begins;
  c.block = block_of(f.goes_on);
  c.block_bytes = flood_bytes;
  c.most_taken = f.most_taken;
  c.linger_ms = 200;
  return c;
}

// Half of these send no key: bytes must not be kept before the key is checked.
conversation of_http(random_source& draw, const target& t) {
  static const flood floods[] = {
      {"endless chunk extension", "1;", "a=b;"},
      {"endless name of a chunk extension", "1;", "aaaaaaaa"},
      {"endless zeros in a chunk's size", "", "00000000"},
      {"endless value of a trailer", "0\r\nx: ", "aaaaaaaa"},
      {"endless name of a trailer", "0\r\n", "aaaaaaaa"},
      {"endless trailers", "0\r\n", "a: b\r\n"},
      {"endless chunks of one byte", "", "1\r\nx\r\n"},
      {"endless chunks with an extension each", "", "1;" + std::string(500, 'e') + "\r\nx\r\n", no_bound},
      {"endless large chunks", "", "ffff\r\n" + std::string(0xffff, ' ') + "\r\n"}};
  const target nobody{t.port, {}};
  request r = post(draw, draw.chance(50) ? t : nobody, {"/v1/completions", ""});
  std::erase_if(r.lines,
                [](const std::string& l) { return l.starts_with("Content-L") || l.starts_with("Transfer"); });
  r.lines.push_back("Transfer-Encoding: chunked");
  r.body.clear();
  return after({{r.text()}}, draw.pick(floods));
}

conversation of_header(random_source& draw) {
  static const flood floods[] = {{"endless header lines", "", "a: b\r\n"},
                                 {"endless header line", "x: ", "aaaaaaaa"},
                                 {"endless empty lines before a request", "\r\n", "\r\n"},
                                 {"endless folds of a header line", "x: a\r\n", " b\r\n"}};
  const flood& f = draw.pick(floods);
  const bool empty = f.begins == "\r\n";
  if (!empty && draw.chance(30)) return after({{"GET /"}}, {"endless target", "", "aaaaaaaa"});
  return after({{empty ? "" : "GET / HTTP/1.1\r\nHost: localhost\r\n"}}, f);
}

conversation of_frames(random_source& draw, const target& t) {
  static const flood floods[] = {
      {"endless empty fragments", frame(op_text, "", false), frame(op_more, "", false)},
      {"endless empty texts", "", frame(op_text, "")},
      {"endless pings", "", frame(op_ping, "")},
      {"endless long pings", "", frame(op_ping, std::string(125, 'p'))},
      {"endless pongs", "", frame(op_pong, "")},
      {"endless fragments of a byte", frame(op_text, "\"", false), frame(op_more, "a", false)},
      {"endless pings inside a message", frame(op_text, "\"", false), frame(op_ping, "p")},
      {"endless pings of weir.v1", "", frame(op_text, R"({"type":"ping"})")},
      {"endless frame", promise(op_text, std::uint64_t{1} << 40), "aaaaaaaa"}};
  conversation c = after({{upgrade(draw, t).text()}, {"", 0, true}}, draw.pick(floods));
  if (draw.chance(30)) c.reads = appetite::nothing;
  return c;
}

}  // namespace

std::vector<conversation> flood_talk(random_source& draw, const target& t) {
  std::vector<conversation> all;
  for (std::size_t n = draw.between(1, 2); n > 0; --n) {
    const std::size_t kind = draw.below(10);
    all.push_back(kind < 4 ? of_http(draw, t) : kind < 6 ? of_header(draw) : of_frames(draw, t));
  }
  return all;
}

}  // namespace weir::stranger
