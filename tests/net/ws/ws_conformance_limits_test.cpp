// Group 9 of the Autobahn test suite, and what it leaves out: messages up to the limit and over it, lengths
// that nobody will ever send, and frames that cost the server more than the client.
#include <algorithm>
#include <chrono>
#include <fstream>

#include "net/limits.h"
#include "tests/support/plain_server.h"
#include "tests/support/ws_table.h"

namespace weir::tests::ws_conformance_limits_test {

using namespace weir::tests::ws_bytes;

namespace {

constexpr std::size_t limit = 256 * 1024;
constexpr std::size_t with_schema = limit + 1024 * 1024;  // what a frame's header may announce
const std::vector<std::string> too_big{"close 1009"};

std::string repeated(std::size_t times, std::string_view bytes) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += bytes;
  return out;
}

// Address space in use at its highest, in bytes: a buffer that was asked for counts, touched or not.
std::size_t most_memory() {
  std::ifstream status("/proc/self/status");
  std::string word;
  std::size_t kib = 0;
  while (status >> word)
    if (word == "VmPeak:") status >> kib;
  REQUIRE(kib > 0);
  return kib * 1024;
}

}  // namespace

TEST_CASE("ws conformance 9: messages up to the limit are read, larger ones close with 1009") {
  plain_server server;
  const std::string most = filled("1", limit), over = filled("1", limit + 1);
  std::vector<ws_row> rows = {
      {"the limit", whole(text, most), {"pong 1"}},
      {"the limit in binary", whole(binary, most), {"error bad_message"}},
      {"the limit, twice", whole(text, most) + whole(text, most), {"pong 1", "pong 1"}},
      {"one over", whole(text, over), too_big},
      {"one over, in binary", whole(binary, over), too_big},
      {"twice the limit", whole(text, over + over), too_big},
      {"one over in a last fragment", part(text, most) + part(more, " ", true), too_big},
      {"an empty last fragment", part(text, most) + part(more, "", true), {"pong 1"}},
      {"the limit, and a fragment of as much", part(text, most) + part(more, most, true), too_big},
  };
  for (const std::size_t size : {1024, 4096, 16384, 65536, 262144}) {
    rows.push_back({fmt::format("the limit in fragments of {}", size), in_fragments(most, size), {"pong 1"}});
    rows.push_back({fmt::format("one over in fragments of {}", size), in_fragments(over, size), too_big});
  }
  for (const std::size_t size : {65536, 131072}) {
    const std::string message = filled("1", size);
    rows.push_back({fmt::format("{} in one frame", size), whole(text, message), {"pong 1"}});
    rows.push_back({fmt::format("{} in fragments of 64", size), in_fragments(message, 64), {"pong 1"}});
  }
  for (const auto& r : rows) check_row(r, server.port());
  server.until_no_sessions();
}

TEST_CASE(
    "ws conformance 9: a length over the limit closes with 1009 before the bytes come, and costs no memory") {
  plain_server server;
  check_row({"a warm-up", whole(text, filled("1", limit)), {"pong 1"}}, server.port());
  const auto before = most_memory();
  for (const std::uint64_t length : {std::uint64_t{with_schema + 1}, std::uint64_t{1} << 21,
                                     std::uint64_t{1} << 31, std::uint64_t{1} << 32})
    for (const unsigned op : {text, binary}) {
      const std::string few = bytes_of({.op = op, .payload = ask("1"), .length_bytes = 8, .length = length});
      check_row({fmt::format("{} bytes of opcode {}", length, op), few, too_big}, server.port());
      const std::string in_parts =
          part(op, "") + bytes_of({.op = more, .payload = ask("1"), .length_bytes = 8, .length = length});
      check_row({fmt::format("{} bytes in a continuation", length), in_parts, too_big}, server.port());
    }
  const std::string beyond = bytes_of({.op = more, .payload = " ", .length = 2});
  check_row({"a continuation over what is left", part(text, filled("1", with_schema)) + beyond, too_big},
            server.port());
  CHECK(most_memory() - before < std::size_t{256} << 20);
  server.until_no_sessions();
}

// RFC 6455, section 5.2: the highest bit of a length is 0, so that beside 1009 the last two are 1002.
TEST_CASE("ws conformance 9: lengths of the far end of 64 bits close with 1009, and cost no memory") {
  plain_server server;
  check_row({"a warm-up", whole(text, filled("1", limit)), {"pong 1"}}, server.port());
  const auto before = most_memory();
  for (const std::uint64_t length : {std::uint64_t{1} << 35, std::uint64_t{1} << 46, std::uint64_t{1} << 62,
                                     std::uint64_t{1} << 63, ~std::uint64_t{}}) {
    const bool no_length = length >> 63;
    const auto check = [&](const char* name, const std::string& bytes) {
      const std::vector<std::string> or_else = no_length ? std::vector<std::string>{"close 1002"} : too_big;
      check_row({fmt::format("{} of {:x}", name, length), bytes, too_big, or_else}, server.port());
    };
    const std::string rest = bytes_of({.op = more, .payload = ask("1"), .length_bytes = 8, .length = length});
    check("text", bytes_of({.payload = ask("1"), .length_bytes = 8, .length = length}));
    check("binary", bytes_of({.op = binary, .payload = "x", .length_bytes = 8, .length = length}));
    check("a continuation", part(text, "{") + rest);
    check("a head alone", bytes_of({.length_bytes = 8, .length = length}));
  }
  CHECK(most_memory() - before < std::size_t{256} << 20);
  server.until_no_sessions();
}

TEST_CASE("ws conformance: fragments without end close with 4429") {
  plain_server server;
  const std::vector<std::string> abuse{"close 4429"};
  constexpr std::size_t many = 100'000;
  const ws_row rows[] = {
      {"empty text", part(text, "") + repeated(many, part(more, "")), abuse},
      {"empty binary", part(binary, "") + repeated(many, part(more, "")), abuse},
      {"empty, behind a beginning", part(text, "{") + repeated(many, part(more, "")), abuse},
      {"of one byte", part(text, "{") + repeated(many, part(more, " ")), abuse, too_big},
  };
  for (const auto& r : rows) check_row(r, server.port());
  server.until_no_sessions();
}

TEST_CASE("ws conformance: a flood of pings closes with 4429, and an honest number of them is answered") {
  plain_server server;
  using std::chrono::steady_clock;
  constexpr std::size_t honest = 20, flood = 100'000;
  const net::server_limits limits;
  for (const std::string payload : {"", "x"}) {
    const ws_row few{"few", repeated(honest, whole(ping, payload)),
                     std::vector<std::string>(honest, "PONG " + payload)};
    check_row(few, server.port());
    const auto began = steady_clock::now();
    const auto answers =
        answers_to({"many", repeated(flood, whole(ping, payload)), {}}, server.port(), 1 << 16);
    const std::chrono::duration<double> took = steady_clock::now() - began;
    const auto pongs = std::count(answers.begin(), answers.end(), "PONG " + payload);
    REQUIRE_FALSE(answers.empty());
    CHECK(answers.back() == "close 4429");
    CHECK(pongs >= static_cast<long>(honest));
    CHECK(static_cast<double>(pongs) <= limits.frame_burst + limits.frames_per_s * took.count());
  }
  server.until_no_sessions();
}

TEST_CASE("ws conformance: a server that was sent all of this still answers others") {
  plain_server server;
  {
    raw_socket other(server.port());  // on one shard, while the rows come to either
    for (int i = 0; i < 4; ++i) {
      answers_to({"a fault", whole(3), {}}, server.port(), 1);
      answers_to({"a bad text", whole(text, "\xff"), {}}, server.port(), 1);
      answers_to({"too much", whole(text, std::string(limit + 1, ' ')), {}}, server.port(), 4096);
    }
    other.wire().send(whole(text, ask("1")));
    while (other.words().empty()) REQUIRE(other.read_more());
    CHECK(other.words() == std::vector<std::string>{"pong 1"});
    other.wire().send(close_frame(1000));
    other.wire().read_to_end();
  }
  server.until_no_sessions();
}

}  // namespace weir::tests::ws_conformance_limits_test
