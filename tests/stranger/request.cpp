#include "tests/stranger/request.h"

#include <algorithm>
#include <cstdio>

#include "tests/stranger/bytes.h"

namespace weir::stranger {
namespace {

std::string base64url(std::string_view text) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::string out;
  unsigned held = 0;
  int bits = 0;
  for (const char c : text) {
    held = held << 8 | static_cast<unsigned char>(c);
    for (bits += 8; bits >= 6; bits -= 6) out += digits[held >> (bits - 6) & 63];
  }
  if (bits > 0) out += digits[held << (6 - bits) & 63];
  return out;
}

std::string wrong_line(random_source& draw) {
  static const std::string lines[] = {"Host: localhost",
                                      "Host: evil.example",
                                      "Host:",
                                      "Host: [::1]:99999",
                                      "Host: localhost:80:80",
                                      "host : localhost",
                                      "Authorization: Bearer wrong",
                                      "Authorization: Basic eDp4",
                                      "Authorization: Bearer",
                                      "Authorization:",
                                      "Content-Length: -1",
                                      "Content-Length: 5",
                                      "Content-Length: 18446744073709551616",
                                      "Content-Length: 99999999999",
                                      "Content-Length: 0x10",
                                      "Content-Length: 5, 6",
                                      "Content-Length: +5",
                                      "Content-Length:",
                                      "Transfer-Encoding: chunked",
                                      "Transfer-Encoding: chunked, identity",
                                      "Transfer-Encoding: xchunked",
                                      "Transfer-Encoding: gzip, chunked",
                                      "Transfer-Encoding: identity",
                                      "Transfer-Encoding : chunked",
                                      "Transfer-Encoding: chunked, chunked",
                                      "Transfer-Encoding:\x0b"
                                      "chunked",
                                      "Transfer-Encoding: \"chunked\"",
                                      "Expect: 100-continue",
                                      "Expect: 200-maybe",
                                      "Connection: close",
                                      "Connection: keep-alive",
                                      "Connection: upgrade",
                                      "Upgrade: websocket",
                                      "Upgrade: h2c",
                                      "Sec-WebSocket-Version: 12",
                                      "Sec-WebSocket-Key: x",
                                      "Sec-WebSocket-Protocol: weir.v1, bearer.!!!",
                                      "Sec-WebSocket-Protocol: weir.v2",
                                      "Sec-WebSocket-Extensions: permessage-deflate",
                                      "Origin: null",
                                      "Origin: http://evil.example",
                                      "Content-Type: text/plain",
                                      "Content-Type: application/json; charset=x",
                                      "no colon here",
                                      ": no name",
                                      "a b: c",
                                      "X-Folded: a\r\n b",
                                      " folded: first",
                                      "X-Bare-LF: a\nX-Inner: b",
                                      "X-Bare-CR: a\rX-Inner: b",
                                      std::string("X-Nul: a\0b", 10),
                                      "X-High: \xFF\xFE",
                                      "Accept-Encoding: gzip",
                                      "Last-Event-ID: 0.0"};
  if (draw.chance(90)) return draw.pick(lines);
  return "X-Long: " + std::string(draw.between(1'000, 200'000), 'v');
}

void spoil_first_line(random_source& draw, request& r) {
  static const std::string methods[] = {
      "GET",     "HEAD", "POST", "PUT",   "DELETE", "OPTIONS",  "TRACE",
      "CONNECT", "PRI",  "get",  "G E T", "",       "M-SEARCH", std::string(5'000, 'A'),
      "\xFF"};
  static const std::string versions[] = {"HTTP/1.0", "HTTP/1.2", "HTTP/2.0",  "HTTP/0.9", "HTTP/1",
                                         "http/1.1", "",         "HTTP/1.1 ", "HTTP/11.1"};
  switch (draw.below(4)) {
    case 0:
      r.method = draw.pick(methods);
      break;
    case 1:
      r.version = draw.pick(versions);
      break;
    default:
      r.path = any_path(draw);
  }
}

void spoil_lines(random_source& draw, request& r) {
  for (std::size_t n = draw.between(1, 4); n > 0; --n) {
    const auto at = r.lines.begin() + static_cast<std::ptrdiff_t>(draw.below(r.lines.size() + 1));
    r.lines.insert(at, wrong_line(draw));
  }
  if (draw.chance(15))
    r.lines.erase(r.lines.begin() + static_cast<std::ptrdiff_t>(draw.below(r.lines.size())));
  if (draw.chance(5)) r.lines.resize(r.lines.size() + draw.between(50, 3000), "a: b");
}

}  // namespace

std::string request::text() const {
  std::string out = method + " " + path + " " + version + line_end;
  for (const auto& l : lines) (out += l) += line_end;
  return out + line_end + body;
}

request get(random_source& draw, const target& t, std::string_view path) {
  request r;
  r.path = path;
  if (!t.keys.empty()) r.lines.push_back("Authorization: Bearer " + draw.pick(t.keys));
  return r;
}

request post(random_source& draw, const target& t, const body& b) {
  request r = get(draw, t, b.path);
  r.method = "POST";
  r.lines.push_back("Content-Type: application/json");
  r.body = b.json;
  if (draw.chance(70)) {
    r.lines.push_back("Content-Length: " + std::to_string(b.json.size()));
  } else {
    r.lines.push_back("Transfer-Encoding: chunked");
    r.body = chunked(draw, b.json);
  }
  return r;
}

request upgrade(random_source& draw, const target& t) {
  request r;
  r.path = "/v1/stream";
  std::string protocol = "Sec-WebSocket-Protocol: weir.v1";
  if (!t.keys.empty() && draw.chance(50)) {
    protocol += ", bearer." + base64url(draw.pick(t.keys));
  } else if (!t.keys.empty()) {
    r.lines.push_back("Authorization: Bearer " + draw.pick(t.keys));
  }
  r.lines.insert(r.lines.end(), {"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", protocol});
  return r;
}

request upgrade_to_responses(random_source& draw, const target& t) {
  request r;
  r.path = draw.chance(90) ? "/v1/responses" : "/responses/";
  if (!t.keys.empty()) r.lines.push_back("Authorization: Bearer " + draw.pick(t.keys));
  r.lines.insert(r.lines.end(), {"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
                                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="});
  return r;
}

std::string chunked(random_source& draw, std::string_view text) {
  std::string out;
  char head[32];
  while (!text.empty()) {
    const std::size_t n = std::min(text.size(), draw.between(1, 1 + text.size()));
    std::snprintf(head, sizeof head, draw.chance(50) ? "%zx\r\n" : "%zX;ext=1\r\n", n);
    ((out += head) += text.substr(0, n)) += "\r\n";
    text.remove_prefix(n);
  }
  return out + "0\r\n\r\n";
}

std::string any_path(random_source& draw) {
  static const std::string paths[] = {"/",
                                      "/weir.js",
                                      "/v1/stream",
                                      "/v1/completions",
                                      "/v1/chat/completions",
                                      "/v1/messages",
                                      "/v1/messages/count_tokens",
                                      "/v1/models",
                                      "/v1/models/sim",
                                      "/v1/models/%00%ff",
                                      "/v1/tokenize",
                                      "/v1/detokenize",
                                      "/models",
                                      "/models/sse",
                                      "/models/load",
                                      "/props?model=%00%ff&model=sim",
                                      "/v1/admin/models",
                                      "/v1/admin/models/guest-1",
                                      "/v1/admin/swap",
                                      "/v1/jobs",
                                      "/v1/jobs/00000000000000000000000000000000",
                                      "/v1/jobs/..%2f..%2fetc%2fpasswd",
                                      "/v1/jobs/00000000000000000000000000000000/events?after=0",
                                      "/v1/jobs//events",
                                      "/v1/responses",
                                      "/v1/responses/resp_00000000000000000000000000000000",
                                      "/v1/responses/resp_/input_items?limit=99999999999999999999&after=%00",
                                      "/v1/responses/x?stream=true&starting_after=-1",
                                      "/v1/stats",
                                      "/health/live",
                                      "/health/ready",
                                      "/metrics",
                                      "*",
                                      "",
                                      "//",
                                      "/v1/../v1/stats",
                                      "http://localhost/v1/stats",
                                      "https://",
                                      "http://[",
                                      "/%",
                                      "/%zz",
                                      "/v1/stats?a=b#c",
                                      "/v1/jobs/\xFF\x01",
                                      "localhost:80"};
  const std::size_t kind = draw.below(100);
  if (kind < 85) return draw.pick(paths);
  if (kind < 95) return draw.pick(paths) + std::string(draw.between(100, 100'000), kind % 2 ? '%' : 'a');
  return "/" + random_bytes(draw, draw.between(1, 100));
}

request spoiled(random_source& draw, const target& t, request r) {
  static const std::string line_ends[] = {"\n", "\r", "\r\r\n", "\r\n "};
  for (std::size_t n = draw.between(1, 3); n > 0; --n) {
    switch (draw.below(5)) {
      case 0:
        spoil_first_line(draw, r);
        break;
      case 1:
        r.body = chunked(draw, r.body);
        break;
      case 2:
        if (!t.keys.empty()) r.lines.push_back("Authorization: Bearer " + draw.pick(t.keys));
        [[fallthrough]];
      default:
        spoil_lines(draw, r);
    }
  }
  if (draw.chance(5)) r.line_end = draw.pick(line_ends);
  return r;
}

}  // namespace weir::stranger
