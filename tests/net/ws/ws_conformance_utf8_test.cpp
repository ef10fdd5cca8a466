// RFC 6455, section 8.1, after group 6 of the Autobahn test suite: text is UTF-8, however it is cut, and what
// is not is refused with 1007, as soon as it is seen.
#include "tests/support/plain_server.h"
#include "tests/support/ws_table.h"

namespace weir::tests::ws_conformance_utf8_test {

using namespace weir::tests::ws_bytes;

namespace {

using namespace std::string_literals;

struct sample {
  std::string name, bytes;
};

// A ping with a member `said`, which the server does not answer.
std::string saying(std::string_view bytes) {
  return fmt::format(R"({{"type":"ping","ts":1,"said":"{}"}})", bytes);
}

// `c` in `size` bytes by the bit pattern of UTF-8, even where UTF-8 forbids the result.
std::string encoded(char32_t c, int size) {
  if (size == 1) return {static_cast<char>(c)};
  std::string out{static_cast<char>(0xff << (8 - size) | (c >> 6 * (size - 1)))};
  for (int i = size - 2; i >= 0; --i) out += static_cast<char>(0x80 | (c >> 6 * i & 0x3f));
  return out;
}
std::string encoded(char32_t c) { return encoded(c, c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4); }

std::vector<sample> valid_samples() {
  std::vector<sample> out = {
      {"Greek", "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5"},
      {"several alphabets", "Hello-\xc2\xb5@\xc3\x9f\xc3\xb6\xc3\xa4\xc3\xbc\xc3\xa0\xc3\xa1-UTF-8!!"},
      {"four bytes each", "\xf0\xa0\x9c\x8e\xf0\xa0\x9c\xb1\xf0\xa0\x9d\xb9"},
  };
  for (const char32_t c : {0x7full, 0x80ull, 0x7ffull, 0x800ull, 0xd7ffull, 0xe000ull, 0xfffdull, 0xffffull,
                           0x10000ull, 0x10ffffull})
    out.push_back({fmt::format("a boundary: U+{:04X}", static_cast<std::uint32_t>(c)), encoded(c)});
  for (char32_t plane = 0; plane <= 16; ++plane)
    for (const char32_t c : {0xfffeu, 0xffffu})
      out.push_back(
          {fmt::format("no character, and valid: U+{:04X}", static_cast<std::uint32_t>(plane << 16 | c)),
           encoded(plane << 16 | c)});
  return out;
}

std::vector<sample> invalid_samples() {
  std::vector<sample> out = {
      {"behind valid text",
       "\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80"
       "edited"},
      {"beyond the last code point", encoded(0x110000, 4)},
      {"the last of four bytes", encoded(0x1fffff, 4)},
      {"the first of five bytes", encoded(0x200000, 5)},
      {"the last of five bytes", encoded(0x3ffffff, 5)},
      {"the first of six bytes", encoded(0x4000000, 6)},
      {"the last of six bytes", encoded(0x7fffffff, 6)},
      {"FE", "\xfe"},
      {"FF", "\xff"},
      {"FE FE FF FF", "\xfe\xfe\xff\xff"},
      {"a pair of surrogates", encoded(0xd800) + encoded(0xdc00)},
      {"the last pair of surrogates", encoded(0xdbff) + encoded(0xdfff)},
  };
  for (std::size_t n = 1; n <= 6; ++n) {
    std::string lonely;
    for (std::size_t i = 0; i < n; ++i) lonely += i % 2 ? '\xbf' : '\x80';
    out.push_back({fmt::format("{} continuation bytes alone", n), lonely});
  }
  for (int b = 0x80; b < 0x100; ++b)
    out.push_back({fmt::format("{:X} and a space", b), {static_cast<char>(b), ' '}});
  for (int size = 2; size <= 6; ++size) {
    const char32_t most = size == 2   ? 0x7f
                          : size == 3 ? 0x7ff
                          : size == 4 ? 0xffff
                          : size == 5 ? 0x1fffff
                                      : 0x3ffffff;
    out.push_back({fmt::format("a slash in {} bytes", size), encoded('/', size)});
    out.push_back({fmt::format("NUL in {} bytes", size), encoded(0, size)});
    out.push_back({fmt::format("the last that needs fewer than {} bytes", size), encoded(most, size)});
    for (const char32_t c : {most + 1, most * 2})
      out.push_back({fmt::format("{} bytes, the last missing", size), encoded(c, size).substr(0, size - 1)});
  }
  for (const char32_t c : {0xd800, 0xdb7f, 0xdb80, 0xdbff, 0xdc00, 0xdf80, 0xdfff})
    out.push_back({fmt::format("a surrogate: {:X}", static_cast<std::uint32_t>(c)), encoded(c)});
  return out;
}

// The ways in which a message can arrive. `inside`: where two fragments are cut, inside the character.
std::vector<std::pair<const char*, std::string>> ways_of(const std::string& message, std::size_t inside) {
  const std::string two = part(text, message.substr(0, inside)) + part(more, message.substr(inside), true);
  return {{"in one frame", whole(text, message)},
          {"in two fragments", two},
          {"byte by byte", in_fragments(message, 1)}};
}

}  // namespace

TEST_CASE("ws conformance 6: valid UTF-8 is understood, however it was cut") {
  plain_server server;
  for (const auto& s : valid_samples())
    for (const auto& [way, bytes] : ways_of(saying(s.bytes), saying("").size() - 2))
      check_row(ws_row{s.name + ", " + way, bytes, {"pong 1"}}, server.port());
  check_row(ws_row{"text without any", whole(text), {"error bad_json"}}, server.port());
  check_row(ws_row{"binary that is no UTF-8", whole(binary, "\xff"), {"error bad_message"}}, server.port());
  server.until_no_sessions();
}

TEST_CASE("ws conformance 6: text that is no UTF-8 ends the connection, however it was cut") {
  plain_server server;
  for (const auto& s : invalid_samples()) {
    for (const auto& [way, bytes] : ways_of(saying(s.bytes), saying("").size() - 2))
      check_row(ws_row{s.name + ", " + way, bytes, {"close 1007"}}, server.port());
    check_row(ws_row{s.name + ", as all the text", whole(text, s.bytes), {"close 1007"}}, server.port());
    check_row(ws_row{s.name + ", behind a ping", whole(ping) + whole(text, s.bytes), {"PONG ", "close 1007"}},
              server.port());
  }
  for (const std::string end : {"\xce", "\xe1\xbd", "\xf0\x90\x80"}) {  // each could go on
    check_row(ws_row{"a character without its end", whole(text, end), {"close 1007"}}, server.port());
    check_row(ws_row{"a character without its end in a last fragment",
               part(text, "") + part(more, end, true),
               {"close 1007"}},
              server.port());
  }
  server.until_no_sessions();
}

TEST_CASE("ws conformance 6: a message that can no longer be UTF-8 is refused before its end") {
  plain_server server;
  const std::string good = R"({"type":"ping","ts":")";
  for (const std::string& bad :
       {"\xff"s, "\xed\xa0"s, "\xf4\x90"s, "\xc0"s, "\x80"s, "\xe0\x9f"s, "\xf0\x8f"s}) {
    // The ping behind would be a fault of its own, 1002 between fragments and payload inside a frame.
    check_row(ws_row{"in a fragment", part(text, good + bad), {"close 1007"}}, server.port());
    check_row(ws_row{"in a later fragment", part(text, good) + part(more, bad), {"close 1007"}},
              server.port());
    check_row(ws_row{"in a frame that has only begun",
                     bytes_of({.payload = good + bad, .length = 1000}),
                     {"close 1007"}},
              server.port());
  }
  server.until_no_sessions();
}

}  // namespace weir::tests::ws_conformance_utf8_test
