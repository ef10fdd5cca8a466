// What becomes of a request by its header alone: every refusal with its status, its code, its words and what
// it does to the connection.
#include "net/http/http_gate.h"

#include <boost/beast/http/parser.hpp>
#include <catch2/catch.hpp>

#include "net/protocol/json.h"

namespace weir::tests::http_gate_test {

using namespace weir::net;
namespace http = boost::beast::http;

namespace {

constexpr std::int64_t now_ms = 1'000'000;
const std::string token_secret(32, 's');

// How the server is run that the header comes to.
struct setting {
  bool keys = false;  // there are two, "user" and "chief", an admin's
  bool loopback = true;
  bool metrics_only = false;
  bool crowded = false, draining = false, bytes_behind = false;
  bool reserved = false;
  bool no_admin = false;
  const char* peer = "127.0.0.1";
};

net::server_options options_of(const setting& s) {
  net::server_options o;
  o.allow_origin = {"https://app.example"};
  o.limits.header_bytes = 1024;
  o.limits.body_bytes = 4096;
  o.limits.sockets_per_address = 3;
  o.no_admin = s.no_admin;
  if (!s.keys) return o;
  key_rights admin;
  admin.admin = true;
  o.api_keys = {"user", api_key("chief", admin)};
  return o;
}

// A gate and what it looks at.
struct place {
  explicit place(const setting& s)
      : how(s),
        options(options_of(s)),
        known(options.api_keys, token_secret),
        by{.metrics_only = s.metrics_only, .host = "127.0.0.1", .loopback = s.loopback},
        gate(options, known, by) {}

  std::string token(std::int64_t expires_ms, std::string origin = {}) const {
    token_claims c;
    c.expires_ms = expires_ms;
    c.origin = std::move(origin);
    return known.issue(known.judge("user", now_ms)->who.key, c);
  }
  // `lines`: a request's first line and header lines, each with its end.
  http_verdict ask(const std::string& lines) const {
    http::request_parser<http::string_body> p;
    p.body_limit(boost::none);
    boost::system::error_code ec;
    p.put(boost::asio::buffer(lines + "\r\n"), ec);
    INFO(lines);
    REQUIRE((!ec && p.is_header_done()));
    const auto length = p.content_length();
    return gate.judge({.header = p.get(),
                       .body_bytes = p.chunked() ? std::nullopt : std::optional(length ? *length : 0),
                       .bytes_behind = how.bytes_behind,
                       .crowded = how.crowded,
                       .reserved = how.reserved,
                       .draining = how.draining,
                       .now_ms = now_ms,
                       .peer = boost::asio::ip::make_address(how.peer)});
  }

  const setting how;
  const net::server_options options;
  const known_bearers known;
  const entrance by;
  const http_gate gate;
};

const std::string host = "Host: localhost\r\n";
const std::string json = "Content-Type: application/json\r\n";
const std::string handshake =
    "GET /v1/stream HTTP/1.1\r\n" + host + "Connection: Upgrade\r\nUpgrade: websocket\r\n";
const std::string socket_key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
const std::string version_13 = "Sec-WebSocket-Version: 13\r\n";
const std::string upgrade = handshake + version_13 + socket_key;

enum class then { goes_on, reads_body, closes };

struct refusal_row {
  std::string lines;
  setting how;
  unsigned status;
  std::string_view code, words;  // words: a part of the message
  then connection = then::goes_on;
};

void check(const refusal_row& row) {
  const place at(row.how);
  const auto v = at.ask(row.lines);
  INFO(row.lines);
  const auto* no = std::get_if<turned_away>(&v.what);
  REQUIRE(no);
  CHECK(no->with.status == row.status);
  CHECK(no->with.code == row.code);
  CHECK_THAT(no->with.problem, Catch::Contains(std::string(row.words)));
  CHECK(no->with.close == (row.connection == then::closes));
  CHECK(no->reads_body_first == (row.connection == then::reads_body));
}

std::string value_of(const net::reply& r, std::string_view name) {
  for (const auto& [key, value] : r.headers)
    if (key == name) return value;
  return {};
}

}  // namespace

TEST_CASE("http gate: what is wrong with the framing or the connection ends the connection") {
  const std::string post = "POST /v1/completions HTTP/1.1\r\n" + host + json;
  const refusal_row rows[] = {
      {post + "Transfer-Encoding: gzip, chunked\r\n", {}, 501, "not_implemented", "chunked", then::closes},
      {post + "Transfer-Encoding: odd, chunked\r\n", {}, 400, "bad_request", "does not exist", then::closes},
      {"GET / HTTP/1.1\r\n" + host, {.crowded = true}, 429, "overloaded", "3 connections", then::closes},
      {post + "Content-Length: 9\r\n", {.crowded = true}, 429, "overloaded", "3 conn", then::closes},
  };
  for (const auto& row : rows) check(row);
}

TEST_CASE("http gate: a host that is missing, double or not the server's is refused") {
  const setting outside{.loopback = false};
  const refusal_row rows[] = {
      {"GET / HTTP/1.1\r\n", {}, 400, "bad_request", "the Host header is missing"},
      {"GET / HTTP/1.1\r\n" + host + host, {}, 400, "bad_request", "several Host headers"},
      {"GET / HTTP/1.1\r\n" + host + host, outside, 400, "bad_request", "several Host headers"},
      {"GET / HTTP/1.1\r\nHost: evil.example\r\n", {}, 403, "host_forbidden", "localhost"},
      {"GET http://evil.example/ HTTP/1.1\r\n" + host, {}, 403, "host_forbidden", "localhost"},
  };
  for (const auto& row : rows) check(row);
  for (const char* fine :
       {"GET / HTTP/1.1\r\nHost: app.example\r\n", "GET / HTTP/1.1\r\nHost: 127.0.0.1:9\r\n",
        "GET http://localhost/ HTTP/1.1\r\nHost: evil.example\r\n"})
    CHECK(std::holds_alternative<comes_in>(place({}).ask(fine).what));
  const auto anywhere = place(outside).ask("GET / HTTP/1.1\r\nHost: evil.example\r\n");
  CHECK(std::holds_alternative<comes_in>(anywhere.what));
}

TEST_CASE("http gate: keys are asked for, may come once, and open what they are for") {
  const setting keyed{.keys = true};
  const std::string get = "GET /v1/models HTTP/1.1\r\n" + host, user = "Authorization: Bearer user\r\n";
  const std::string metrics = "GET /metrics HTTP/1.1\r\n" + host, nothing = "GET /no HTTP/1.1\r\n" + host;
  const refusal_row rows[] = {
      {get, keyed, 401, "invalid_api_key", "a key is needed"},
      {nothing, keyed, 401, "invalid_api_key", "a key is needed"},
      {get + "x-api-key: other\r\n", keyed, 401, "invalid_api_key", "not known"},
      {get + user + user, keyed, 400, "bad_request", "several Authorization headers"},
      {get + "x-api-key: a\r\nx-api-key: a\r\n", keyed, 400, "bad_request", "several x-api-key headers"},
      {get + user + "x-api-key: chief\r\n", keyed, 400, "bad_request", "different keys"},
      {metrics + user, keyed, 403, "key_forbidden", "admin"},
      {nothing + user, keyed, 404, "not_found", "nothing at /no"},
  };
  for (const auto& row : rows) check(row);
  const place at(keyed);
  const auto in = at.ask(get + user + "x-api-key: user\r\n");
  REQUIRE(std::holds_alternative<comes_in>(in.what));
  CHECK(std::get<comes_in>(in.what).from.who == at.known.judge("user", now_ms)->who);
  CHECK(std::holds_alternative<comes_in>(at.ask(metrics + "x-api-key: chief\r\n").what));
  for (const char* open : {"/", "/health", "/health/live"}) {
    const auto v = at.ask(fmt::format("GET {} HTTP/1.1\r\n{}", open, host));
    REQUIRE(std::holds_alternative<comes_in>(v.what));
    CHECK(std::get<comes_in>(v.what).from.key == nullptr);
  }
  const auto refused = at.ask(get);
  CHECK(value_of(std::get<turned_away>(refused.what).with, "WWW-Authenticate") == "Bearer");
}

TEST_CASE("http gate: a browser token opens five routes, for its origin, until it expires") {
  const setting keyed{.keys = true};
  const place at(keyed);
  const auto with = [](const std::string& target, const std::string& token) {
    return fmt::format("GET {} HTTP/1.1\r\n{}Authorization: Bearer {}\r\n", target, host, token);
  };
  const std::string good = at.token(now_ms + 1), old = at.token(now_ms);
  const std::string bound = at.token(now_ms + 1, "https://app.example");
  const refusal_row rows[] = {
      {with("/v1/models", old), keyed, 401, "token_expired", "expired"},
      {with("/v1/jobs", good), keyed, 403, "token_forbidden", "GET /v1/stats alone"},
      {with("/no", good), keyed, 403, "token_forbidden", "alone"},
      {with("/v1/admin/models", good), keyed, 403, "token_forbidden", "alone"},
      {with("/v1/models", bound) + "Origin: https://other.example\r\n", keyed, 403, "origin_forbidden",
       "another origin"},
  };
  for (const auto& row : rows) check(row);
  for (const char* target : {"/v1/models", "/v1/models/x", "/v1/stats", "/models/sse", "/props"})
    CHECK(std::holds_alternative<comes_in>(at.ask(with(target, good)).what));
  CHECK(std::holds_alternative<comes_in>(at.ask(with("/v1/models", bound)).what));
}

TEST_CASE("http gate: models are changed by admins, and read as orders of bounded length") {
  const std::string admin = " /v1/admin/models HTTP/1.1\r\n" + host,
                    chief = "Authorization: Bearer chief\r\n";
  const std::string user = "Authorization: Bearer user\r\n";
  const setting keyed{.keys = true}, closed{.no_admin = true}, far{.loopback = false, .peer = "192.0.2.1"};
  const refusal_row rows[] = {
      {"GET" + admin, keyed, 401, "invalid_api_key", "a key is needed"},
      {"GET" + admin + user, keyed, 403, "key_forbidden", "admin"},
      {"POST" + admin + json + user + "Content-Length: 9\r\n", keyed, 403, "key_forbidden", "admin",
       then::reads_body},
      {"GET" + admin, far, 403, "admin_forbidden", "loopback"},
      {"GET" + admin + "Origin: https://app.example\r\n", {}, 403, "admin_forbidden", "Origin"},
      {"GET" + admin, closed, 404, "not_found", "nothing at /v1/admin/models"},
      {"PUT" + admin, closed, 404, "not_found", "nothing at /v1/admin/models"},
      {"PUT" + admin, {}, 405, "method_not_allowed", "PUT"},
      {"POST" + admin + "Content-Type: text/plain\r\n", {}, 415, "unsupported_media_type", "json"},
  };
  for (const auto& row : rows) check(row);
  for (const auto& [lines, how] :
       {std::pair{"GET" + admin, setting{}}, std::pair{"GET" + admin + chief, keyed},
        std::pair{"GET" + admin + chief, setting{.keys = true, .loopback = false, .peer = "192.0.2.1"}}})
    CHECK(std::holds_alternative<comes_in>(place(how).ask(lines).what));
  const auto in = place({}).ask("POST" + admin + json);
  REQUIRE(std::holds_alternative<comes_in>(in.what));
  CHECK(std::get<comes_in>(in.what).most_body == 4096);
}

TEST_CASE("http gate: methods, paths and types that are not served are refused by name") {
  const refusal_row rows[] = {
      {"GET /nothing HTTP/1.1\r\n" + host, {}, 404, "not_found", "nothing at /nothing"},
      {"POST /v1/stream/tokens HTTP/1.1\r\n" + host + json, {}, 404, "not_found", "/v1/stream/tokens"},
      {"GET /v1/models HTTP/1.1\r\n" + host, {.metrics_only = true}, 404, "not_found", "/v1/models"},
      {"PUT /v1/models HTTP/1.1\r\n" + host, {}, 405, "method_not_allowed", "does not take PUT"},
      {"POST /v1/completions HTTP/1.1\r\n" + host + "Content-Type: text/plain\r\n",
       {},
       415,
       "unsupported_media_type",
       "application/json"},
  };
  for (const auto& row : rows) check(row);
  const auto wrong = place({}).ask("PUT /v1/models HTTP/1.1\r\n" + host);
  CHECK(value_of(std::get<turned_away>(wrong.what).with, "Allow") == "GET, HEAD");
  const auto typed =
      place({}).ask("POST /v1/completions HTTP/1.1\r\n" + host + "Content-Type: application/JSON ;a=b\r\n");
  CHECK(std::holds_alternative<comes_in>(typed.what));
}

TEST_CASE("http gate: a connection of the reserve is for health alone, and for metrics at their entrance") {
  const std::string version = " HTTP/1.1\r\n" + host;
  const setting reserved{.reserved = true};
  const refusal_row rows[] = {
      {"GET /v1/models" + version, reserved, 503, "overloaded", "no room", then::closes},
      {"GET /metrics" + version, reserved, 503, "overloaded", "no room", then::closes},
      {"GET /nothing" + version, reserved, 503, "overloaded", "no room", then::closes},
      {upgrade, reserved, 503, "overloaded", "no room", then::closes},
  };
  for (const auto& row : rows) check(row);
  for (const char* target : {"/health", "/health/live", "/health/ready"})
    CHECK(std::holds_alternative<comes_in>(place(reserved).ask("GET " + (target + version)).what));
  const auto metrics = place({.metrics_only = true, .reserved = true}).ask("GET /metrics" + version);
  CHECK(std::holds_alternative<comes_in>(metrics.what));
}

TEST_CASE("http gate: the short body of a refused request is read, and a longer one ends the connection") {
  const std::string to_nothing = "POST /nothing HTTP/1.1\r\n" + host + json;
  const std::string to_route = "POST /v1/completions HTTP/1.1\r\n" + host + json;
  const refusal_row rows[] = {
      {to_nothing + "Content-Length: 0\r\n", {}, 404, "not_found", "", then::goes_on},
      {to_nothing + "Content-Length: 1024\r\n", {}, 404, "not_found", "", then::reads_body},
      {to_nothing + "Content-Length: 1025\r\n", {}, 404, "not_found", "", then::closes},
      {to_nothing + "Transfer-Encoding: chunked\r\n", {}, 404, "not_found", "", then::closes},
      {to_route + "Content-Length: 4097\r\n", {}, 413, "body_too_large", "over 4096 bytes", then::closes},
      {to_route + "Content-Encoding: gzip\r\nContent-Length: 9\r\n",
       {},
       415,
       "unsupported_media_type",
       "Content-Encoding",
       then::reads_body},
  };
  for (const auto& row : rows) check(row);
  CHECK(std::holds_alternative<comes_in>(place({}).ask(to_route + "Content-Length: 4096\r\n").what));
  CHECK(std::holds_alternative<comes_in>(place({}).ask(to_route + "Transfer-Encoding: chunked\r\n").what));
  const std::string as_it_is = "Content-Encoding: Identity\r\nContent-Length: 9\r\n";
  CHECK(std::holds_alternative<comes_in>(place({}).ask(to_route + as_it_is).what));
}

TEST_CASE("http gate: an upgrade is refused by the header that is wrong, and its connection ends") {
  const auto closes = then::closes;
  const setting keyed{.keys = true};
  const std::string several = "several Sec-WebSocket-Key headers";
  const std::string auth = "Authorization: Bearer a\r\n", origin = "Origin: https://evil.example\r\n";
  const std::string bound = place(keyed).token(now_ms + 1, "https://app.example");
  const refusal_row rows[] = {
      {handshake + host + version_13 + socket_key, {}, 400, "bad_request", "several Host", closes},
      {upgrade + socket_key, {}, 400, "bad_request", several, closes},
      {upgrade + auth + auth, {}, 400, "bad_request", "several Authorization", closes},
      {handshake + socket_key, {}, 426, "upgrade_required", "version 13", closes},
      {handshake + version_13 + "Sec-WebSocket-Key: x\r\n", {}, 400, "bad_request", "16 bytes", closes},
      {upgrade + origin, {}, 403, "origin_forbidden", "may not use this server", closes},
      {upgrade + "Origin: http://localhost\r\nAuthorization: Bearer " + bound + "\r\n", keyed, 403,
       "origin_forbidden", "another origin", closes},
      {upgrade + "Sec-WebSocket-Protocol: mqtt\r\n", {}, 400, "bad_subprotocol", "weir.v1 only", closes},
      {upgrade + "Content-Length: 0\r\n", {}, 400, "bad_request", "has no body", closes},
      {upgrade, {.bytes_behind = true}, 400, "bad_request", "frames came before", closes},
      {upgrade, {.draining = true}, 503, "unavailable", "shutting down", closes},
  };
  for (const auto& row : rows) check(row);
}

TEST_CASE("http gate: an upgrade comes in with what its handshake says, also with a wrong key") {
  const auto how = [](const std::string& lines, const setting& s) {
    const auto v = place(s).ask(lines);
    REQUIRE(std::holds_alternative<upgrades>(v.what));
    const admission& a = std::get<upgrades>(v.what).how;
    return std::tuple(a.authenticated, a.wrong_key, a.subprotocol, a.origin);
  };
  const std::string page = "Origin: https://app.example\r\n";
  const std::string offers = "Sec-WebSocket-Protocol: weir.v1, bearer.";
  CHECK(how(upgrade, {}) == std::tuple(true, false, false, ""));
  CHECK(how(upgrade + page, {}) == std::tuple(true, false, false, "https://app.example"));
  CHECK(how(upgrade, {.keys = true}) == std::tuple(false, false, false, ""));
  CHECK(how(upgrade + offers + "dXNlcg\r\n", {.keys = true}) == std::tuple(true, false, true, ""));
  CHECK(how(upgrade + offers + "bm8\r\n", {.keys = true}) == std::tuple(false, true, true, ""));
  const auto elsewhere = place({.metrics_only = true}).ask(upgrade);
  CHECK(std::get<turned_away>(elsewhere.what).with.status == 404);
  CHECK(std::holds_alternative<comes_in>(place({}).ask("GET /v1/stream HTTP/1.1\r\n" + host).what));
}

TEST_CASE("http gate: the form of the answer follows from the header") {
  const auto ask = [](const std::string& lines) { return place({}).ask(lines); };
  const std::string get = "GET /v1/models HTTP/1.1\r\n" + host, old = "GET /v1/models HTTP/1.0\r\n" + host;
  CHECK(ask(get).keep_alive);
  CHECK_FALSE(ask(get + "Connection: close\r\n").keep_alive);
  CHECK_FALSE(ask(get + "Connection: x\r\nConnection: close\r\n").keep_alive);
  CHECK_FALSE(ask(old).keep_alive);
  CHECK(ask(old + "Connection: keep-alive\r\n").keep_alive);
  CHECK(ask(old).form.version == 10);
  CHECK_FALSE(ask(get).form.head_only);
  CHECK(ask("HEAD /v1/models HTTP/1.1\r\n" + host).form.head_only);
  CHECK_FALSE(ask(get).form.anthropic);
  CHECK(ask("POST /v1/messages HTTP/1.1\r\n" + host + json).form.anthropic);
  CHECK(ask(get + "Origin: https://app.example\r\n").form.cors.origin == "https://app.example");
  CHECK(ask(get).form.cors.varies);
}

TEST_CASE("http gate: a granted preflight is answered before a key is asked for, and not by a stranger's") {
  const place at({.keys = true});
  const std::string lines =
      "OPTIONS /v1/messages HTTP/1.1\r\n" + host + "Access-Control-Request-Method: POST\r\nOrigin: https://";
  const auto granted = at.ask(lines + "app.example\r\n"), refused = at.ask(lines + "evil.example\r\n");
  CHECK(std::get<turned_away>(granted.what).with.status == 204);
  CHECK_FALSE(std::get<turned_away>(granted.what).with.close);
  CHECK(std::get<turned_away>(refused.what).with.status == 403);
  CHECK(std::get<turned_away>(refused.what).with.problem.find("--allow-origin") != std::string::npos);
}

TEST_CASE(
    "http gate: what cannot be read is refused by its cause, and a client that is gone is told nothing") {
  const place at({});
  const auto status = [&](boost::system::error_code why, bool late = false) {
    const auto no = at.gate.unreadable(why, late);
    return no ? fmt::format("{} {}", no->status, no->code) : std::string("nothing");
  };
  namespace errc = boost::system::errc;
  CHECK(status(boost::asio::error::operation_aborted, true) == "408 timeout");
  CHECK(status(make_error_code(errc::not_enough_memory)) == "503 overloaded");
  CHECK(status(http::make_error_code(http::error::header_limit)) == "431 header_too_large");
  CHECK(status(http::make_error_code(http::error::buffer_overflow)) == "431 framing_too_large");
  CHECK(status(http::make_error_code(http::error::bad_version)) == "400 bad_request");
  CHECK(status(http::make_error_code(http::error::end_of_stream)) == "nothing");
  CHECK(status(http::make_error_code(http::error::partial_message)) == "nothing");
  CHECK(status(boost::asio::error::connection_reset) == "nothing");
  CHECK(http_gate::body_too_large(9).status == 413);
}

}  // namespace weir::tests::http_gate_test
