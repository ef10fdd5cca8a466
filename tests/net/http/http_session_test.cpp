// A connection as such: what is refused, and how; bodies and headers of every kind; who waits for whom.
#include "tests/support/http_client.h"
#include "tests/support/raw_client.h"
#include "tests/support/server_fixture.h"

namespace weir::tests::http_session_test {

TEST_CASE("http: every answer has a request id, and every refusal OpenAI's shape") {
  server_fixture f;
  const struct {
    const char *method, *target, *body, *more;
    unsigned status;
  } rows[] = {
      {"GET", "/nothing", "", "", 404},
      {"GET", "/v1/jobs/xyz", "", "", 404},
      {"DELETE", "/v1/jobs/00000000000000000000000000000000", "", "", 404},
      {"GET", "/v1/completions", "", "", 405},
      {"PUT", "/v1/jobs/x", "", "", 405},
      {"GET", "/v1/stream", "", "", 426},
      {"POST", "/v1/completions", "{}", "Content-Type: text/plain\r\n", 415},
      {"POST", "/v1/completions", "", "", 400},
      {"POST", "/v1/completions", "{\"prompt\":5}", "", 400},
      {"POST", "/v1/completions", "{\"prompt\":\"x\",\"temperature\":9}", "", 400},
      {"POST", "/v1/completions", "{\"prompt\":\"x\",\"model\":\"other\"}", "", 404},
      {"POST", "/v1/completions", "{\"prompt\":[1000000]}", "", 400},
      {"POST", "/v1/chat/completions", "{\"messages\":[]}", "", 400},
      {"POST", "/v1/tokenize", "{}", "", 400},
      {"POST", "/v1/detokenize", "{\"ids\":[1000000]}", "", 400},
      {"GET", "/v1/stats", "", "Host: evil.example\r\n", 403},
  };
  http_client c(f.port());
  for (const auto& r : rows) {
    CAPTURE(r.method, r.target, r.body);
    auto a = c.ask(r.method, r.target, r.body, r.more);
    CHECK(a.status == r.status);
    CHECK(a.header("x-request-id").size() == 32);
    CHECK(a.header("Content-Type") == "application/json");
    auto e = a.error().as_object();
    for (const char* field : {"message", "type", "param", "code"}) CHECK(e.contains(field));
  }
  CHECK(c.get("/v1/completions").header("Allow") == "POST");
  CHECK(c.post("/v1/completions", R"({"prompt":"x","top_p":1.5})").error().at("param") == "top_p");
}

TEST_CASE("http: a body that is too large is refused readably, declared or chunked") {
  server_fixture f;
  const std::string big(3 << 20, 'x');
  {
    http_client c(f.port());
    auto a = c.post("/v1/completions", big);
    CHECK(a.status == 413);
    CHECK(a.error().at("code").is_string());
    CHECK(c.ended());
  }
  {
    http_client c(f.port());
    c.send(
        "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 3; ++i) c.send("100000\r\n" + big.substr(0, 1 << 20) + "\r\n");
    CHECK(c.read().status == 413);
  }
}

TEST_CASE("http: headers that are too long, and bytes that are no request, are refused readably") {
  server_fixture f;
  http_client longer(f.port());
  auto a = longer.get("/", "X-Long: " + std::string(9000, 'x') + "\r\n");
  CHECK(a.status == 431);
  CHECK(a.header("x-request-id").size() == 32);
  http_client noise(f.port());
  noise.send("\x16\x03\x01 this is not HTTP\r\n\r\n");
  CHECK(noise.read().status == 400);
}

TEST_CASE("http: chunked bodies, Expect, pipelined requests and Connection: close work") {
  server_fixture f;
  http_client c(f.port());
  c.send(
      "POST /v1/tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json; charset=utf-8\r\n"
      "Transfer-Encoding: chunked\r\n\r\n8\r\n{\"text\":\r\n5\r\n\"hi\"}\r\n0\r\n\r\n");
  CHECK(c.read().status == 200);
  c.send(
      "POST /v1/tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: "
      "100-continue\r\n"
      "Content-Length: 13\r\n\r\n");
  CHECK(c.read_until("\r\n\r\n").starts_with("HTTP/1.1 100"));
  c.send("{\"text\":\"hi\"}");
  CHECK(c.read().status == 200);
  c.send(c.request("GET", "/health/live", {}, {}) +
         c.request("GET", "/v1/models", {}, "Connection: close\r\n"));
  CHECK(c.read().json().at("status") == "live");
  auto last = c.read();
  CHECK(last.json().at("object") == "list");
  CHECK(last.header("Connection") == "close");
  CHECK(c.ended());
}

TEST_CASE("http: an empty line before a request is skipped, in one or two pieces, and a second one is not") {
  server_fixture f;
  const std::string get = "GET /health/live HTTP/1.1\r\nHost: localhost\r\n";
  const auto answers = [&](std::vector<std::string> pieces) {
    raw_client c(f.port());
    for (const std::string& piece : pieces) c.send(piece);
    const std::string heard = c.read_to_end();
    std::size_t count = 0;
    for (std::size_t at = 0; (at = heard.find("HTTP/1.1 200 OK", at)) != heard.npos; ++at) ++count;
    return count;
  };
  const std::string last = get + "Connection: close\r\n\r\n";
  CHECK(answers({"\r\n" + last}) == 1);
  CHECK(answers({"\r", "\n" + last}) == 1);
  CHECK(answers({get + "\r\n\r\n" + last}) == 2);
  CHECK(answers({"\r\n\r\n" + last}) == 0);
}

TEST_CASE("http: a client that says nothing is not waited for") {
  server_options o;
  o.net.limits.handshake = std::chrono::milliseconds(200);
  server_fixture f(o);
  http_client silent(f.port()), slow(f.port());
  slow.send("GET / HT");
  CHECK(silent.ended());
  CHECK(slow.read().status == 408);
  CHECK(slow.ended());
}

// Bytes come so fast that the server, when the time is over, has always just read some: there is no read to
// cancel.
TEST_CASE("http: a body that goes on coming is ended at its time") {
  server_options o;
  o.net.limits.body_time = std::chrono::milliseconds(300);
  o.net.limits.body_bytes = 256 << 20;
  server_fixture f(o);
  raw_client c(f.port());
  c.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
      "application/json\r\nContent-Length: " +
      std::to_string(o.net.limits.body_bytes) + "\r\n\r\n");
  std::size_t sent = 0;
  while (c.heard().empty() && ++sent < o.net.limits.body_bytes) c.send(" ");
  CHECK_THAT(c.heard(), Catch::StartsWith("HTTP/1.1 408 "));
}

TEST_CASE("http: a full queue is 429 with Retry-After") {
  auto o = slow();
  o.owner.max_batch = 1;
  o.owner.queue = 0;
  server_fixture f(o);
  http_client busy(f.port()), c(f.port());
  busy.send(
      busy.request("POST", "/v1/completions", R"({"prompt":"x","max_tokens":100000,"stream":true})", {}));
  busy.read_until("w");
  auto a = c.post("/v1/completions", R"({"prompt":"x","stream":true})");
  CHECK(a.status == 429);
  CHECK(a.header("Retry-After") == "1");
  CHECK(a.error().at("type") == "rate_limit_error");
}

TEST_CASE("http: draining refuses new jobs with 503 and lets a stream finish") {
  server_fixture f(slow());
  http_client c(f.port());
  c.send(
      c.request("POST", "/v1/completions", R"({"prompt":"x","max_tokens":40,"seed":1,"stream":true})", {}));
  const auto first = c.read_until("w");
  std::promise<void> over;
  f.server->drain([&] { over.set_value(); });
  {
    http_client late(f.port());
    f.until([&] { return http_client(f.port()).get("/health/ready").status == 503; });
    auto refused = late.post("/v1/completions", R"({"prompt":"x"})");
    CHECK(refused.status == 503);
    CHECK(refused.header("Retry-After") == "1");
    CHECK(http_client(f.port()).get("/health/live").status == 200);
  }
  CHECK(c.read_until("[DONE]").find("\"length\"") != std::string::npos);
  over.get_future().get();
}

TEST_CASE("http: headers that may come once are refused by name where they come twice") {
  server_options o;
  o.net.api_keys = {"key"};
  server_fixture f(o);
  http_client c(f.port());
  const auto two = c.get("/v1/models", "Authorization: Bearer key\r\nAuthorization: Bearer key\r\n");
  CHECK(two.status == 400);
  CHECK(two.error().at("message") == "several Authorization headers");
  CHECK(c.get("/v1/models", "Authorization: Bearer key\r\n").status == 200);
  const auto hosts = c.get("/v1/models", "Host: localhost\r\nHost: localhost\r\n");
  CHECK(hosts.status == 400);
  CHECK(hosts.error().at("message") == "several Host headers");
}

TEST_CASE("http: an upgrade whose headers are not a WebSocket's is refused by the header's name") {
  server_fixture f;
  const std::string asks = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n";
  const std::string key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  const auto upgrade = [&](const std::string& more) {
    http_client c(f.port());
    c.send(c.request("GET", "/v1/stream", {}, asks + more));
    return c.read();
  };
  CHECK(upgrade(key).status == 101);
  const auto refused = [&](const std::string& more) {
    const auto a = upgrade(more);
    CHECK(a.status == 400);
    return std::string(a.error().at("message").as_string());
  };
  const std::string not_a_key = "Sec-WebSocket-Key has to be base64 of 16 bytes";
  CHECK(refused("") == not_a_key);
  CHECK(refused("Sec-WebSocket-Key: short\r\n") == not_a_key);
  CHECK(refused("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZXM=\r\n") == not_a_key);  // 17 bytes
  CHECK(refused(key + key) == "several Sec-WebSocket-Key headers");
  CHECK(refused(key + "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n") ==
        "several Authorization headers");
}

TEST_CASE("http: what came from the client is cut where it comes back") {
  server_fixture f;
  http_client c(f.port());
  const std::string longest(3000, 'n'), cut = std::string(61, 'n') + "…";
  const auto message = [](const http_answer& a) { return std::string(a.error().at("message").as_string()); };
  CHECK(message(c.get("/" + longest)) == "there is nothing at /" + std::string(60, 'n') + "…");
  CHECK(message(c.get("/v1/models/" + longest)) == "no model is called '" + cut + "'");
  CHECK(message(c.ask(longest, "/v1/models", {}, {})) == "this path does not take " + cut);
  CHECK(message(c.post("/v1/completions", R"({"prompt":"x","model":")" + longest + "\"}")) ==
        "no model is called '" + cut + "'; there is sim");
}

TEST_CASE("http: a body of two million values is refused before it is built") {
  server_fixture f;
  http_client c(f.port());
  std::string body = R"({"prompt":[)";
  while (body.size() < 2000000) body += "0,";
  const auto a = c.post("/v1/completions", body + "0]}");
  CHECK(a.status == 400);
  CHECK(a.error().at("message") == "the JSON has too many values");
  CHECK(c.post("/v1/detokenize", R"({"ids":[)" + body.substr(11) + "0]}").status == 400);
}

}  // namespace weir::tests::http_session_test
