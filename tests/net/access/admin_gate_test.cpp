// Who may change models, as a table of requests: by key, by peer, by Host, by Origin, through a proxy.
#include "net/access/admin_gate.h"

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <catch2/catch.hpp>

namespace weir::tests::admin_gate_test {
namespace {

using namespace weir::net;
namespace http = boost::beast::http;

const std::string post = "POST /v1/admin/models HTTP/1.1\r\n";
const std::string local = "Host: localhost:8080\r\n";

// `lines`: a request's first line and header lines, each with its end.
std::optional<std::string> judge(const std::string& lines, const char* peer, bool no_keys = true,
                                 bool admin_key = false) {
  http::request_parser<http::string_body> p;
  boost::system::error_code ec;
  p.put(boost::asio::buffer(lines + "\r\n"), ec);
  INFO(lines);
  REQUIRE((!ec && p.is_header_done()));
  return admin_refusal(p.get(), {no_keys, admin_key, boost::asio::ip::make_address(peer)});
}

void check_refused(const std::string& lines, const char* peer, const char* words) {
  CAPTURE(lines, peer);
  const auto why = judge(lines, peer);
  REQUIRE(why);
  CHECK_THAT(*why, Catch::Contains(words));
}

}  // namespace

TEST_CASE("admin gate: with keys an admin's key alone counts, wherever it comes from") {
  const std::string far = post + "Host: weir.example\r\nOrigin: https://a.example\r\nVia: 1.1 p\r\n";
  CHECK_FALSE(judge(far, "192.0.2.1", false, true));
  for (const char* peer : {"127.0.0.1", "192.0.2.1"}) {
    const auto why = judge(post + local, peer, false, false);
    REQUIRE(why);
    CHECK_THAT(*why, Catch::Contains("key of an admin"));
  }
}

TEST_CASE("admin gate: without keys a program of this machine may, by any spelling of a local host") {
  for (const char* peer : {"127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"}) {
    CAPTURE(peer);
    CHECK_FALSE(judge(post + local, peer));
  }
  for (const char* host : {"localhost", "LOCALHOST", "localhost:1", "127.0.0.1", "127.0.0.1:65535",
                           "127.1.2.3", "[::1]", "[::1]:8080", "[::ffff:127.0.0.1]:8080", "[0:0::1]"}) {
    CAPTURE(host);
    CHECK_FALSE(judge(post + "Host: " + host + "\r\n", "127.0.0.1"));
  }
  CHECK_FALSE(judge("POST http://localhost:8080/v1/admin/models HTTP/1.1\r\n" + local, "::1"));
}

TEST_CASE("admin gate: without keys no other machine may") {
  for (const char* peer : {"192.0.2.1", "10.0.0.1", "0.0.0.0", "128.0.0.1", "::", "::2", "fe80::1",
                           "::ffff:10.0.0.1", "::127.0.0.1"})
    check_refused(post + local, peer, "loopback address");
}

TEST_CASE("admin gate: a name that only resolves to this machine is no local host") {
  for (const char* host : {"evil.example",
                           "localhost.evil.com",
                           "127.0.0.1.nip.io",
                           "127.0.0.1.nip.io:8080",
                           "localhost.",
                           "localhost.:8080",
                           "127.0.0.1.",
                           "0.0.0.0",
                           "[::]",
                           "[localhost]",
                           "[127.0.0.1]",
                           "127.1",
                           "2130706433",
                           "0x7f.0.0.1",
                           "localhost:",
                           "localhost:65536",
                           "localhost:80:80",
                           "localhost@evil.com",
                           "evil.com#localhost",
                           "localhost,evil.com",
                           "localhost evil.com",
                           "10.0.0.1",
                           "[::1%25lo]",
                           "[::1]evil.com",
                           "xn--localhost",
                           "\x80localhost"})
    check_refused(post + "Host: " + host + "\r\n", "127.0.0.1", "not to the host");
  check_refused(post + "Host: \r\n", "127.0.0.1", "not to the host");
}

TEST_CASE("admin gate: every host that a request names has to be local, and there is one") {
  check_refused("POST http://evil.example/v1/admin/models HTTP/1.1\r\n" + local, "127.0.0.1", "evil.example");
  check_refused("POST http://localhost/v1/admin/models HTTP/1.1\r\nHost: evil.example\r\n", "127.0.0.1",
                "evil.example");
  check_refused("POST http://localhost@evil.example/v1/admin/models HTTP/1.1\r\n" + local, "127.0.0.1",
                "evil.example");
  check_refused("POST http:///v1/admin/models HTTP/1.1\r\n" + local, "127.0.0.1", "not to the host");
  check_refused(post + local + local, "127.0.0.1", "one Host header");
  check_refused(post + local + "Host: evil.example\r\n", "127.0.0.1", "one Host header");
  check_refused("POST /v1/admin/models HTTP/1.0\r\n", "127.0.0.1", "one Host header");
}

TEST_CASE("admin gate: a page of another site may not, and a page of this server may") {
  for (const char* origin :
       {"https://evil.example", "http://localhost", "http://localhost:8081", "http://127.0.0.1:8080",
        "https://localhost:8080", "null", "file://", "", "localhost:8080", "http://localhost:8080.evil.com",
        "http://evil.com/localhost:8080"})
    check_refused(post + local + "Origin: " + origin + "\r\n", "127.0.0.1", "Origin");
  const std::string own = "Origin: http://localhost:8080\r\n";
  CHECK_FALSE(judge(post + local + own, "127.0.0.1"));
  CHECK_FALSE(judge(post + "Host: LocalHost:8080\r\n" + own, "127.0.0.1"));
  CHECK_FALSE(judge(post + "Host: localhost\r\nOrigin: http://localhost\r\n", "127.0.0.1"));
  check_refused(post + local + own + own, "127.0.0.1", "Origin");
  // by DNS rebinding a page's origin is the host that it asks, and neither is local
  check_refused(post + "Host: evil.example:8080\r\nOrigin: http://evil.example:8080\r\n", "127.0.0.1",
                "evil.example");
}

TEST_CASE("admin gate: what comes through a proxy is not from this machine") {
  for (const char* line : {"Via: 1.1 proxy", "VIA: 1.1 proxy", "Forwarded: for=192.0.2.1",
                           "forwarded:", "X-Forwarded-For: 127.0.0.1", "x-forwarded-for: 192.0.2.1",
                           "X-Forwarded-Host: localhost", "X-Forwarded-Proto: https",
                           "X-Forwarded-Anything: 1", "X-Real-IP: 192.0.2.1"})
    check_refused(post + local + line + "\r\n", "127.0.0.1", "proxy");
  CHECK_FALSE(judge(post + local + "X-Forward: 1\r\nX-Request-Id: 1\r\n", "127.0.0.1"));
}

TEST_CASE("admin gate: what a client wrote comes back as plain text") {
  const auto why = judge(post + "Host: \xE2\x80\xAE\xFF\r\n", "127.0.0.1");
  REQUIRE(why);
  CHECK(why->find_first_of("\xE2\xFF") == why->npos);
  const auto loud = judge(post + local + "Origin: " + std::string(3000, 'o') + "\r\n", "127.0.0.1");
  REQUIRE(loud);
  CHECK(loud->size() < 400);
}

}  // namespace weir::tests::admin_gate_test
