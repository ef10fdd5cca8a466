// RFC 6455, sections 5.2 to 5.5, after the groups of the Autobahn test suite: 1 frames of every length, 2
// pings and pongs, 3 reserved bits, 4 reserved opcodes, 5 fragments. The server is no echo: its own ping and
// pong stand for one.
#include "tests/support/plain_server.h"
#include "tests/support/ws_table.h"

namespace weir::tests::ws_conformance_test {

using namespace weir::tests::ws_bytes;

namespace {

using answers = std::vector<std::string>;

const answers fault{"close 1002"};

std::string repeated(std::size_t times, std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += bytes;
  return out;
}

template <class Rows>
void check_all(const Rows& rows) {
  plain_server server;
  for (const ws_row& r : rows) check_row(r, server.port());
  server.until_no_sessions();
}

const std::string one = whole(text, ask("1")), two = whole(text, ask("2"));

}  // namespace

TEST_CASE("ws conformance 1: a message of every length is read, in pieces of any size") {
  plain_server server;
  for (const std::size_t size : {22, 125, 126, 127, 128, 65535, 65536, 65537}) {
    check_row({fmt::format("text of {}", size), whole(text, filled("1", size)), {"pong 1"}}, server.port());
    check_row({fmt::format("binary of {}", size), whole(binary, filled("1", size)), {"error bad_message"}},
              server.port());
  }
  for (const std::size_t piece : {2, 3, 7, 997, 2048, 65535}) {
    const ws_row row{"text", whole(text, filled("1", 65536)), {}};
    if (row.bytes.size() / piece < 10'000)
      CHECK(answers_to(row, server.port(), piece) == answers{"pong 1", goes_on});
  }
  check_row({"empty text", whole(text), {"error bad_json"}}, server.port());
  check_row({"empty binary", whole(binary), {"error bad_message"}}, server.port());
  check_row({"several messages in one write",
             one + two + whole(binary, "x") + one,
             {"pong 1", "pong 2", "error bad_message", "pong 1"}},
            server.port());
  for (const std::uint32_t key : {0u, 1u, 0xffffffffu, 0x80000000u}) {
    const std::string bytes = bytes_of({.payload = ask("1"), .key = key});
    check_row({fmt::format("mask {:x}", key), bytes, {"pong 1"}}, server.port());
  }
  server.until_no_sessions();
}

TEST_CASE("ws conformance 2: pings are answered with their payload, pongs are not answered") {
  const std::string longest(125, 'x'), odd("\0\xff\xfe\x80", 4);
  std::string ten;
  answers ten_pongs;
  for (int i = 0; i < 10; ++i) {
    ten += whole(ping, fmt::format("payload {}", i));
    ten_pongs.push_back(fmt::format("PONG payload {}", i));
  }
  check_all(std::vector<ws_row>{
      {"empty", whole(ping), {"PONG "}},
      {"a payload", whole(ping, "hello"), {"PONG hello"}},
      {"bytes that are no text", whole(ping, odd), {"PONG " + odd}},
      {"the longest", whole(ping, longest), {"PONG " + longest}},
      {"too long", whole(ping, longest + "x"), fault},
      {"far too long", whole(ping, std::string(65536, 'x')), fault},
      {"ten", ten, ten_pongs},
      {"unsolicited pong", whole(pong), {}},
      {"unsolicited pong with a payload", whole(pong, "hello"), {}},
      {"unsolicited pong, then a ping", whole(pong, "hello") + whole(ping, "x"), {"PONG x"}},
      {"ten unsolicited pongs", repeated(10, whole(pong, longest)), {}},
      {"a pong too long", whole(pong, longest + "x"), fault},
      {"between messages", one + whole(ping, "x") + two, {"pong 1", "PONG x", "pong 2"}},
  });
}

TEST_CASE("ws conformance 3: reserved bits end the connection") {
  std::vector<ws_row> rows;
  for (unsigned rsv = 1; rsv < 8; ++rsv)
    for (const unsigned op : {text, binary, closing, ping, pong}) {
      const std::string bad = bytes_of({.op = op, .payload = op == text ? ask("1") : "", .rsv = rsv});
      rows.push_back({fmt::format("bits {} on opcode {}", rsv, op), bad, fault});
      if (op == text)
        rows.push_back({fmt::format("bits {} behind a message", rsv), two + bad, {"pong 2", "close 1002"}});
    }
  const std::string half = part(text, ask("1").substr(0, 5)), rest = ask("1").substr(5);
  rows.push_back(
      {"a bit on a continuation", half + bytes_of({.op = more, .payload = rest, .rsv = 4}), fault});
  rows.push_back({"a bit, and the payload never comes", bytes_of({.rsv = 4, .length = 100}), fault});
  check_all(rows);
}

TEST_CASE("ws conformance 4: reserved opcodes end the connection") {
  std::vector<ws_row> rows;
  for (const unsigned op : {3, 4, 5, 6, 7, 11, 12, 13, 14, 15}) {
    rows.push_back({fmt::format("opcode {}", op), whole(op), fault});
    rows.push_back({fmt::format("opcode {} with a payload", op), whole(op, "hello"), fault});
    rows.push_back(
        {fmt::format("opcode {} behind a message", op), one + whole(op) + two, {"pong 1", "close 1002"}});
    rows.push_back({fmt::format("opcode {} between fragments", op), part(text, "{") + whole(op), fault});
    rows.push_back(
        {fmt::format("opcode {} in fragments", op), part(op, "he") + part(more, "llo", true), fault});
  }
  check_all(rows);
}

TEST_CASE("ws conformance 5: a message in fragments is read, and controls stand between them") {
  const std::string message = filled("1", 100);
  std::vector<ws_row> rows;
  for (const std::size_t size : {1, 2, 7, 21, 50, 99, 100})
    rows.push_back({fmt::format("fragments of {}", size), in_fragments(message, size), {"pong 1"}});
  check_all(rows);
  const std::string a = part(text, ask("1").substr(0, 9)), b = part(more, ask("1").substr(9), true);
  const std::string empty = part(more, "");
  const std::string binary_parts = part(binary, "a") + part(more, "b", true);
  const std::string end = part(more, "", true);
  check_all(std::vector<ws_row>{
      {"two", a + b, {"pong 1"}},
      {"an empty first", part(text, "") + part(more, ask("1"), true), {"pong 1"}},
      {"an empty one between", a + empty + b, {"pong 1"}},
      {"an empty last", part(text, ask("1")) + end, {"pong 1"}},
      {"nothing but empty ones", part(text, "") + empty + end, {"error bad_json"}},
      {"binary", binary_parts, {"error bad_message"}},
      {"empty binary", part(binary, "") + end, {"error bad_message"}},
      {"a ping between", a + whole(ping, "x") + b, {"PONG x", "pong 1"}},
      {"a pong between", a + whole(pong, "x") + b, {"pong 1"}},
      {"pings between many",
       in_fragments(ask("1"), 4, whole(ping, "x")),
       {"PONG x", "PONG x", "PONG x", "PONG x", "PONG x", "pong 1"}},
      {"two messages", a + b + a + b, {"pong 1", "pong 1"}},
      {"text behind binary in parts", binary_parts + one, {"error bad_message", "pong 1"}},
      {"a close between", a + close_frame(1000) + b, {"close 1000"}},
      {"a ping in fragments", part(ping, "he") + part(more, "llo", true), fault},
      {"a pong in fragments", part(pong, "he") + part(more, "llo", true), fault},
      {"a close in fragments", part(closing, "\x03\xe8"), fault},
      {"a ping in fragments between fragments", a + part(ping, "x") + b, fault},
      {"a continuation of nothing", end, fault},
      {"a continuation of nothing, with more to come", empty, fault},
      {"a continuation of nothing, with a payload", b, fault},
      {"a continuation behind a message", one + b, {"pong 1", "close 1002"}},
      {"a continuation behind fragments", a + b + b, {"pong 1", "close 1002"}},
      {"a continuation behind a ping", whole(ping, "x") + b, {"PONG x", "close 1002"}},
      {"text inside text", a + one, fault},
      {"text begun inside text", a + a, fault},
      {"binary inside text", a + whole(binary, "x"), fault},
      {"text inside binary", part(binary, "x") + one, fault},
  });
}

TEST_CASE("ws conformance: frames without a mask, and lengths in too many bytes, end the connection") {
  std::vector<ws_row> rows;
  for (const unsigned op : {text, binary, closing, ping, pong}) {
    const std::string payload = op == closing ? "\x03\xe8" : op == text ? ask("1") : "x";
    rows.push_back({fmt::format("no mask, opcode {}", op),
                    bytes_of({.op = op, .payload = payload, .masked = false}), fault});
  }
  rows.push_back({"no mask, empty", bytes_of({.op = ping, .masked = false}), fault});
  rows.push_back({"no mask behind a message",
                  two + bytes_of({.payload = ask("1"), .masked = false}),
                  {"pong 2", "close 1002"}});
  const std::pair<std::size_t, int> long_winded[] = {{0, 2},   {22, 2},  {125, 2},  {0, 8},
                                                     {125, 8}, {126, 8}, {65535, 8}};
  for (const auto& [size, bytes] : long_winded) {
    const std::string payload = size ? filled("1", size) : "";
    rows.push_back({fmt::format("{} said in {} bytes", size, bytes),
                    bytes_of({.payload = payload, .length_bytes = bytes}), fault});
  }
  rows.push_back(
      {"a ping's length in two bytes", bytes_of({.op = ping, .payload = "x", .length_bytes = 2}), fault});
  rows.push_back({"a close's length in eight bytes",
                  bytes_of({.op = closing, .payload = "\x03\xe8", .length_bytes = 8}), fault});
  check_all(rows);
}

}  // namespace weir::tests::ws_conformance_test
