// RFC 9112, sections 2, 3 and 9, and RFC 9110, section 10.1.1: where a request begins, in which order
// requests are answered, and when a connection ends.
#include "tests/support/http_table.h"
#include "tests/support/plain_server.h"

namespace weir::tests::http_conformance_test {
namespace {

using namespace std::string_literals;

const statuses fine{200}, refused{400};

std::string line(std::string_view request_line, std::string_view headers = "Host: localhost\r\n") {
  return fmt::format("{}\r\n{}\r\n", request_line, headers);
}
std::string kept(std::string_view connection, std::string_view version = "1.1") {
  return fmt::format("GET /health/live HTTP/{}\r\nHost: localhost\r\n{}\r\n", version, connection);
}
std::string numbered(int n) { return line(fmt::format("GET /v1/models/m{} HTTP/1.1", n)); }

// What came back for all these bytes, sent in pieces of this size.
std::vector<raw_answer> talk(unsigned short port, std::string_view bytes, std::size_t piece,
                             bool head = false) {
  raw_client c(port);
  c.send_in_pieces(bytes, piece);
  c.finish();
  return answers_in(c.read_to_end(), head);
}

}  // namespace

TEST_CASE("http conformance: a request line is a method, a target and a version, or it is refused") {
  plain_server server;
  const http_row rows[] = {
      {"a line", line("GET /health/live HTTP/1.1"), fine, {}},
      {"a query", line("GET /health/live?x=1 HTTP/1.1"), fine, {}},
      {"the absolute form", line("GET http://localhost/health/live HTTP/1.1"), fine, {}},
      {"the asterisk form", line("OPTIONS * HTTP/1.1"), {200, 204, 400, 404, 405}, {400, 404, 405, 501}},
      {"the authority form",
       line("CONNECT localhost:80 HTTP/1.1"),
       {400, 404, 405, 501},
       {400, 404, 405, 501}},
      {"a method in lower case", line("get /health/live HTTP/1.1"), {400, 405, 501}, {400, 405, 501}},
      {"a method that nobody knows", line("BREW /health/live HTTP/1.1"), {400, 405, 501}, {400, 405, 501}},
      {"a method of some length",
       line(std::string(500, 'M') + " /health/live HTTP/1.1"),
       {400, 405, 501},
       {400, 405, 501}},
      {"a method with a colon", line("GET: /health/live HTTP/1.1"), {}, refused},
      {"a method over 127", line("G\xff /health/live HTTP/1.1"), {}, refused},
      {"an empty line before it", "\r\n" + line("GET /health/live HTTP/1.1"), fine, refused},
      {"a bare LF before it", "\n" + line("GET /health/live HTTP/1.1"), fine, refused},
      {"space before it", " " + line("GET /health/live HTTP/1.1"), {}, refused},
      {"two spaces before the target", line("GET  /health/live HTTP/1.1"), {}, refused},
      {"two spaces before the version", line("GET /health/live  HTTP/1.1"), {}, refused},
      {"a tab before the target", line("GET\t/health/live HTTP/1.1"), {}, refused},
      {"a tab before the version", line("GET /health/live\tHTTP/1.1"), {}, refused},
      {"space behind the version", line("GET /health/live HTTP/1.1 "), {}, refused},
      {"space in the target", line("GET /health live HTTP/1.1"), {}, refused},
      {"NUL in the target", line("GET /health/live\0 HTTP/1.1"s), {}, refused},
      {"a control in the target", line("GET /health/live\x01 HTTP/1.1"), {}, refused},
      {"a byte over 127 in the target", line("GET /health/live\xff HTTP/1.1"), {404}, refused},
      {"no target", line("GET HTTP/1.1"), {}, refused},
      {"no version", line("GET /health/live"), {}, {400, 505}},
      {"a method alone", line("GET"), {}, refused},
      {"a target over the limit", line("GET /" + std::string(9000, 'x') + " HTTP/1.1"), {}, {400, 414, 431}},
      {"a method over the limit", line(std::string(9000, 'M') + " / HTTP/1.1"), {}, {400, 414, 431, 501}},
      {"HTTP/0.9", line("GET /health/live HTTP/0.9"), {}, {400, 505}},
      {"HTTP/1.0", line("GET /health/live HTTP/1.0"), {}, fine},
      {"HTTP/1.2", line("GET /health/live HTTP/1.2"), fine, {400, 505}},
      {"HTTP/2.0", line("GET /health/live HTTP/2.0"), {}, {400, 505}},
      {"HTTP/11", line("GET /health/live HTTP/11"), {}, {400, 505}},
      {"HTTP/1.10", line("GET /health/live HTTP/1.10"), {}, {400, 505}},
      {"HTTP/1.", line("GET /health/live HTTP/1."), {}, {400, 505}},
      {"HTTP/1,1", line("GET /health/live HTTP/1,1"), {}, {400, 505}},
      {"a version in lower case", line("GET /health/live http/1.1"), {}, {400, 505}},
      {"another protocol", line("GET /health/live ICAP/1.1"), {}, {400, 505}},
      {"a bare LF behind the line", "GET /health/live HTTP/1.1\nHost: localhost\r\n\r\n", {}, refused},
      {"a bare CR behind the line", "GET /health/live HTTP/1.1\rHost: localhost\r\n\r\n", {}, refused},
      {"the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {}, {400, 505}},
      {"a TLS handshake",
       "\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03"s + std::string(500, '\x7f') + "\r\n\r\n",
       {},
       refused},
  };
  for (const auto& r : rows) check_row(r, server.port());
}

TEST_CASE("http conformance: a connection is kept or closed as was asked") {
  plain_server server;
  const http_row rows[] = {
      {"nothing said", kept(""), fine, {}},
      {"close", kept("Connection: close\r\n"), {}, fine},
      {"close in other case", kept("Connection: CLOSE\r\n"), {}, fine},
      {"close in a list", kept("Connection: x, close\r\n"), {}, fine},
      {"close beside keep-alive", kept("Connection: keep-alive, close\r\n"), {}, fine},
      {"close on a line of its own", kept("Connection: keep-alive\r\nConnection: close\r\n"), {}, fine},
      {"keep-alive", kept("Connection: keep-alive\r\n"), fine, {}},
      {"another word", kept("Connection: closer\r\n"), fine, {}},
      {"an empty list", kept("Connection:\r\n"), fine, refused},
      {"no list", kept("Connection: @\r\n"), fine, refused},
      {"HTTP/1.0, nothing said", kept("", "1.0"), {}, fine},
      {"HTTP/1.0, keep-alive", kept("Connection: keep-alive\r\n", "1.0"), fine, {}},
      {"HTTP/1.0, close", kept("Connection: close\r\n", "1.0"), {}, fine},
      {"a refusal that is about nothing but the request", line("GET /nothing HTTP/1.1"), {404}, {}},
      {"the same, with a body", post("Content-Length: 2\r\n", "[]"), {400}, {}},
      {"a HEAD", line("HEAD /health/live HTTP/1.1"), fine, {}},
      {"a HEAD of nothing", line("HEAD /nothing HTTP/1.1"), {404}, {}},
      {"a HEAD of what takes POST", line("HEAD /v1/tokenize HTTP/1.1"), {405}, {}},
  };
  for (const auto& r : rows) check_row(r, server.port());
  for (const auto connection : {"close", "keep-alive"}) {  // and the answer says so
    const auto answers = talk(server.port(), kept(fmt::format("Connection: {}\r\n", connection)), 1);
    REQUIRE(answers.size() == 1);
    const bool closes = field_of(answers[0], "connection").value_or("") == "close";
    CHECK(closes == (connection == "close"s));
  }
}

TEST_CASE("http conformance: HEAD is answered as GET is, without the body") {
  plain_server server;
  for (const std::string target : {"/v1/models", "/weir.js", "/nothing"}) {
    CAPTURE(target);
    const auto got = talk(server.port(), line("GET " + target + " HTTP/1.1"), 4096);
    const auto head = talk(server.port(), line("HEAD " + target + " HTTP/1.1"), 4096, true);
    REQUIRE(got.size() == 1);
    REQUIRE(head.size() == 1);  // bytes of a body would be no answer
    CHECK(head[0].status == got[0].status);
    for (const auto field : {"content-length", "content-type"})
      CHECK(field_of(head[0], field) == field_of(got[0], field));
  }
}

TEST_CASE("http conformance: requests in one write are answered in their order") {
  plain_server server;
  constexpr int count = 50;
  std::string bytes;
  for (int i = 0; i < count; ++i) {  // each with its own name in the answer, and a body between any two
    bytes += numbered(i);
    bytes += i % 2 ? post("Content-Length: 13\r\n", hi)
                   : post("Transfer-Encoding: chunked\r\n", "1\r\n{\r\nc\r\n\"text\":\"hi\"}\r\n0\r\n\r\n");
  }
  for (const std::size_t piece : {bytes.size(), std::size_t{1000}, std::size_t{7}}) {
    CAPTURE(piece);
    const auto answers = talk(server.port(), bytes, piece);
    REQUIRE(answers.size() == 2 * count);
    for (int i = 0; i < count; ++i) {
      CHECK_THAT(answers[2 * i].body, Catch::Contains(fmt::format("'m{}'", i)));
      CHECK_THAT(answers[2 * i + 1].body, Catch::Contains(std::string(tokens_of_hi)));
    }
  }
}

TEST_CASE("http conformance: nothing behind a refused request or a close is answered") {
  plain_server server;
  for (const auto& end : {post("Content-Length: x\r\n", hi), kept("Connection: close\r\n")}) {
    CAPTURE(end);
    const auto answers =
        talk(server.port(), numbered(1) + numbered(2) + end + numbered(3) + numbered(4), 4096);
    REQUIRE(answers.size() == 3);
    CHECK_THAT(answers[1].body, Catch::Contains("'m2'"));
  }
}

TEST_CASE("http conformance: a client that expects 100 is told to go on before it sends its body") {
  plain_server server;
  for (const auto value : {"100-continue", "100-Continue"})
    for (const auto& [framing, body] :
         {std::pair{"Content-Length: 13\r\n", std::string(hi)},
          std::pair{"Transfer-Encoding: chunked\r\n", "d\r\n" + std::string(hi) + "\r\n0\r\n\r\n"}}) {
      CAPTURE(value, framing);
      raw_client c(server.port());
      c.send(post(fmt::format("Expect: {}\r\n{}", value, framing), ""));
      REQUIRE(c.read_until("\r\n\r\n").starts_with("HTTP/1.1 100"));
      c.send(body);
      c.finish();
      const auto answers = answers_in(c.read_to_end(), false);
      REQUIRE(answers.size() == 2);
      CHECK_THAT(answers[1].body, Catch::Contains(std::string(tokens_of_hi)));
    }
}

TEST_CASE("http conformance: an expectation changes nothing where there is nothing to wait for") {
  plain_server server;
  const std::string expect = "Expect: 100-continue\r\n";
  const http_row rows[] = {
      {"the body came along", post(expect + "Content-Length: 13\r\n", hi), fine, {}},
      {"no body", get(expect), fine, {}},
      {"an empty body", post(expect + "Content-Length: 0\r\n", ""), {400}, {}},
      {"a body over the limit", post(expect + "Content-Length: 9999999\r\n", ""), {}, {413}},
      {"a length that is none", post(expect + "Content-Length: x\r\n", ""), {}, refused},
      {"another expectation", post("Expect: cake\r\nContent-Length: 13\r\n", hi), {200, 417}, {417}},
  };
  for (const auto& r : rows) check_row(r, server.port());
}

TEST_CASE(
    "http conformance: no interim answer goes to one who does not know of any, or has no body to send") {
  plain_server server;
  const std::string expect = "Expect: 100-continue\r\n";
  const std::string fields = "Host: localhost\r\nContent-Type: application/json\r\n" + expect;
  const struct {
    const char* name;
    std::string bytes;
    unsigned status;
  } rows[] = {
      {"HTTP/1.0", "POST /v1/tokenize HTTP/1.0\r\n" + fields + "Content-Length: 13\r\n\r\n" + std::string(hi),
       200},
      {"HTTP/1.1 without a body", get(expect), 200},
      {"HTTP/1.1 with a body over the limit", post(expect + "Content-Length: 9999999\r\n", ""), 413},
  };
  for (const auto& r : rows) {
    CAPTURE(r.name);
    raw_client c(server.port());
    const auto end_of_head = r.bytes.find("\r\n\r\n") + 4;
    c.send(r.bytes.substr(0, end_of_head));  // the head is all there is when the server decides
    c.send(r.bytes.substr(end_of_head));
    c.finish();
    const auto answers = answers_in(c.read_to_end(), false);
    REQUIRE_FALSE(answers.empty());
    CHECK(answers[0].status == r.status);
  }
}

}  // namespace weir::tests::http_conformance_test
