// RFC 9112, section 7.1: the chunked coding. Framing that carries no content has a bound of its own, over the
// whole request. Without the bound, a body of a few bytes could cost its reader any number of bytes.
#include <chrono>

#include "tests/support/http_table.h"
#include "tests/support/plain_server.h"

namespace weir::tests::http_conformance_chunked_test {
namespace {

constexpr std::size_t over_the_bound = 20 * 1024;
const std::string last = "0\r\n\r\n";

std::string one_chunk(std::string_view size_line) { return fmt::format("{}{}\r\n{}", size_line, hi, last); }
std::string with_size(std::string_view size) { return one_chunk(fmt::format("{}\r\n", size)); }
// The last chunk and what stands between it and the next request.
std::string ended_by(std::string_view end) { return fmt::format("d\r\n{}\r\n{}", hi, end); }
std::string with_trailers(std::string_view fields) { return ended_by(fmt::format("0\r\n{}\r\n", fields)); }

// `hi` in chunks of `n` bytes. `behind_the_size` follows the size of each chunk.
std::string in_chunks_of(std::size_t n, std::string_view behind_the_size = {}) {
  std::string out;
  for (std::size_t i = 0; i < hi.size(); i += n) {
    const auto data = hi.substr(i, n);
    out += fmt::format("{:x}{}\r\n{}\r\n", data.size(), behind_the_size, data);
  }
  return out + last;
}

// `hi` and then spaces, in chunks of one byte: much framing, and none of it is superfluous.
std::string spaced_out(std::size_t chunks) {
  std::string out;
  for (std::size_t i = 0; i < chunks; ++i) out += fmt::format("1\r\n{}\r\n", i < hi.size() ? hi[i] : ' ');
  return out + last;
}

std::string repeated(std::size_t times, std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}
std::string field_lines(std::size_t count) { return repeated(count, "X: y\r\n"); }

void check_all(const std::vector<http_row>& rows) {
  plain_server server;
  for (const auto& r : rows) {
    check_row({r.name, post("Transfer-Encoding: chunked\r\n", r.bytes), r.goes_on, r.ends}, server.port());
  }
}

const statuses refused{400}, too_much{400, 413}, too_long{400, 413, 431};

}  // namespace

TEST_CASE("http conformance: a chunk's size is hexadecimal digits, of a number that fits") {
  check_all({
      {"lower case", with_size("d"), {200}, {}},
      {"upper case", with_size("D"), {200}, {}},
      {"several chunks", in_chunks_of(5), {200}, {}},
      {"chunks of one byte", in_chunks_of(1), {200}, {}},
      {"many chunks of one byte", spaced_out(200), {200}, {}},
      {"a few leading zeros", with_size("000d"), {200}, {400}},
      {"a few zeros as the last size", ended_by("0000\r\n\r\n"), {200}, {400}},
      {"many leading zeros", with_size(std::string(over_the_bound, '0') + "d"), {}, too_long},
      {"many zeros as the last size", ended_by(std::string(over_the_bound, '0') + "\r\n\r\n"), {}, too_long},
      {"over the limit of a body", with_size("200001"), {}, {413}},
      {"2^32 + 13", with_size("10000000d"), {}, too_much},
      {"2^63", with_size("8000000000000000"), {}, too_much},
      {"2^64 - 1", with_size("ffffffffffffffff"), {}, too_much},
      {"2^64 + 13, which is 13 in 64 bits", with_size("1000000000000000d"), {}, too_much},
      {"2^68 - 1", with_size("fffffffffffffffff"), {}, too_much},
      {"no digits", with_size(""), {}, refused},
      {"an extension without a size", with_size(";a=b"), {}, refused},
      {"no hexadecimal digit", with_size("g"), {}, refused},
      {"a prefix", with_size("0xd"), {}, refused},
      {"a minus", with_size("-d"), {}, refused},
      {"a plus", with_size("+d"), {}, refused},
      {"an underscore", with_size("0_d"), {}, refused},
      {"a fraction", with_size("d.0"), {}, refused},
      {"a list", with_size("d,d"), {}, refused},
      {"two sizes", with_size("d d"), {}, refused},
      {"a space before it", with_size(" d"), {}, refused},
      {"a space behind it", with_size("d "), {200}, refused},
      {"a tab behind it", with_size("d\t"), {200}, refused},
      {"a vertical tab behind it", with_size("d\v"), {}, refused},
      {"NUL behind it", with_size(std::string("d\0", 2)), {}, refused},
      {"a byte over 127 behind it", with_size("d\xff"), {}, refused},
      {"an empty line before it", with_size("\r\nd"), {}, refused},
  });
}

TEST_CASE("http conformance: chunk extensions are ignored where they are few and well formed") {
  check_all({
      {"a name", with_size("d;a"), {200}, {}},
      {"a value", with_size("d;a=b"), {200}, {}},
      {"a quoted value", with_size("d;a=\"b c\""), {200}, {}},
      {"a quoted pair", with_size("d;a=\"b\\\"c\""), {200}, {}},
      {"an empty quoted value", with_size("d;a=\"\""), {200}, {}},
      {"several", with_size("d;a;b=c;d=\"e\""), {200}, {}},
      {"spaces around the marks", with_size("d ; a = b"), {200}, refused},
      {"on the last chunk", ended_by("0;a=b\r\n\r\n"), {200}, {}},
      {"on every chunk", in_chunks_of(1, ";a=b"), {200}, {}},
      {"one that looks like a size", with_size("d;5"), {200}, {}},
      {"no name", with_size("d;"), {}, refused},
      {"no name, a value", with_size("d;=b"), {}, refused},
      {"no value behind the mark", with_size("d;a="), {}, refused},
      {"a quote that does not end", with_size("d;a=\"b"), {}, refused},
      {"a quote that ends on the next line", with_size("d;a=\"b\r\nc\""), {}, refused},
      {"two words", with_size("d;a b"), {}, refused},
      {"a bare LF", with_size("d;a\nb"), {}, refused},
      {"a bare LF, then a chunk of another reader", with_size("d;\n5"), {}, refused},
      {"a bare LF in quotes", with_size("d;a=\"\n\""), {}, refused},
      {"a bare CR", with_size("d;a\rb"), {}, refused},
      {"NUL", with_size(std::string("d;a\0b", 5)), {}, refused},
      {"a byte over 127 in a name", with_size("d;\xff"), {}, refused},
      {"a long one", with_size("d;a=" + std::string(over_the_bound, 'b')), {}, too_long},
      {"a long one on the last chunk",
       ended_by("0;a=" + std::string(over_the_bound, 'b') + "\r\n\r\n"),
       {},
       too_long},
      {"many on one chunk", with_size("d" + repeated(over_the_bound / 2, ";a")), {}, too_long},
      {"some on every chunk", in_chunks_of(1, ";a=" + std::string(2 * 1024, 'b')), {}, too_long},
      {"a few on very many chunks", repeated(over_the_bound, "1;a=b\r\n \r\n") + last, {}, too_long},
  });
}

TEST_CASE("http conformance: lines of the chunked coding end in CRLF, and data is as long as was said") {
  check_all({
      {"a bare LF behind the size", one_chunk("d\n"), {}, refused},
      {"a bare CR behind the size", one_chunk("d\r"), {}, refused},
      {"two CR behind the size", one_chunk("d\r\r\n"), {}, refused},
      {"nothing behind the size", one_chunk("d"), {}, refused},
      {"a bare LF behind the data", fmt::format("d\r\n{}\n{}", hi, last), {}, refused},
      {"a bare CR behind the data", fmt::format("d\r\n{}\r{}", hi, last), {}, refused},
      {"nothing behind the data", fmt::format("d\r\n{}{}", hi, last), {}, refused},
      {"two bytes that are no CRLF", fmt::format("d\r\n{}xx{}", hi, last), {}, refused},
      {"data longer than said", fmt::format("c\r\n{}\r\n{}", hi, last), {}, refused},
      {"data shorter than said", fmt::format("e\r\n{}\r\n{}", hi, last), {}, refused},
      {"a bare LF behind the last size", ended_by("0\n\r\n"), {}, refused},
      {"a bare LF at the end", ended_by("0\r\n\n"), {}, refused},
      {"bare LF alone at the end", ended_by("0\n\n"), {}, refused},
      {"no last chunk", fmt::format("d\r\n{}\r\n", hi), {}, refused},
      {"no line behind the last chunk", ended_by("0\r\n"), {}, {nothing, 400}},
      {"no end of the data", "ffff\r\n{", {}, {nothing, 400, 408}},
  });
}

TEST_CASE("http conformance: trailers are read, bounded, and become no headers") {
  check_all({
      {"one", with_trailers("X: y\r\n"), {200}, {}},
      {"several", with_trailers(field_lines(20)), {200}, {}},
      {"a value of some length", with_trailers("X: " + std::string(500, 'y') + "\r\n"), {200}, {}},
      {"a long one", with_trailers("X: " + std::string(over_the_bound, 'y') + "\r\n"), {}, too_long},
      {"a long name", with_trailers(std::string(over_the_bound, 'x') + ": y\r\n"), {}, too_long},
      {"many", with_trailers(field_lines(4000)), {}, too_long},
      {"an extension and a trailer, long together",
       with_size("d;a=" + std::string(over_the_bound / 2, 'b')).substr(0, over_the_bound / 2 + 21) +
           "0\r\nX: " + std::string(over_the_bound / 2, 'y') + "\r\n\r\n",
       {},
       too_long},
      {"no colon", with_trailers("X\r\n"), {}, refused},
      {"no name", with_trailers(": y\r\n"), {}, refused},
      {"space before the colon", with_trailers("X : y\r\n"), {}, refused},
      {"space before the name", with_trailers(" X: y\r\n"), {}, refused},
      {"a folded line", with_trailers("X: y\r\n z\r\n"), {200}, refused},
      {"NUL", with_trailers(std::string("X: \0\r\n", 6)), {}, refused},
      {"a bare LF", with_trailers("X: y\nZ: z\r\n"), {}, refused},
      {"a bare CR", with_trailers("X: y\rZ: z\r\n"), {}, refused},
      {"a byte over 127 in a name", with_trailers("X\xff: y\r\n"), {}, refused},
      {"a length", with_trailers("Content-Length: 5\r\n"), {200}, refused},
      {"a transfer coding", with_trailers("Transfer-Encoding: chunked\r\n"), {200}, refused},
      {"another transfer coding", with_trailers("Transfer-Encoding: gzip\r\n"), {200}, {400, 501}},
      {"a host", with_trailers("Host: evil.example\r\n"), {200, 400}, refused},
      {"a type", with_trailers("Content-Type: text/plain\r\n"), {200}, refused},
      {"an end of the connection", with_trailers("Connection: close\r\n"), {200}, {200, 400}},
      {"an expectation", with_trailers("Expect: 100-continue\r\n"), {200}, refused},
  });
}

TEST_CASE("http conformance: a header that is only in a trailer was not sent") {
  plain_server server;
  const auto ask = [](std::string_view headers, std::string_view trailers) {
    return fmt::format("POST /v1/tokenize HTTP/1.1\r\n{}Transfer-Encoding: chunked\r\n\r\n{}", headers,
                       with_trailers(trailers));
  };
  const std::string host = "Host: localhost\r\n", type = "Content-Type: application/json\r\n";
  const http_row rows[] = {
      {"both are headers", ask(host + type, ""), {200}, {}},
      {"the type is a trailer", ask(host, type), {400, 415}, {400, 415}},
      {"the host is a trailer", ask(type, host), {400}, {400}},
  };
  for (const auto& r : rows) check_row(r, server.port());
}

// The connection stays open here, and every byte is one that could belong to a request: only a bound ends it.
// A server without one waits until the body's time is over, which is short here, and answers 408.
TEST_CASE("http conformance: framing that never ends is refused while it comes") {
  plain_server server(std::chrono::seconds(2));
  const std::string no_end(4 * over_the_bound, '0');
  const struct {
    const char* name;
    std::string body;
  } rows[] = {
      {"zeros of a size", no_end},
      {"an extension's name", "1;a" + no_end},
      {"an extension's value", "1;a=" + no_end},
      {"a quoted value", "1;a=\"" + no_end},
      {"an extension of the last chunk", "0;a=" + no_end},
      {"a trailer's name", "0\r\nX" + no_end},
      {"a trailer's value", "0\r\nX: " + no_end},
      {"trailers", "0\r\n" + field_lines(20'000)},
      {"extensions, a chunk each", repeated(20'000, "1;a=b\r\n \r\n")},
  };
  for (const auto& r : rows) {
    CAPTURE(r.name);
    raw_client c(server.port());
    c.send(post("Transfer-Encoding: chunked\r\n", r.body));
    const auto answers = answers_in(c.read_to_end(), false);
    REQUIRE(answers.size() == 1);
    CHECK_THAT(too_long, Catch::VectorContains(answers[0].status));
  }
}

}  // namespace weir::tests::http_conformance_chunked_test
