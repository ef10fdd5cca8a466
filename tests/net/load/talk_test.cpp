// The client's protocols on bytes alone: whole, in halves, and one byte at a time.
#include "tests/net/load/spoken.h"

namespace weir::tests::talk_test {

using namespace weir::load;
using kind = happening::kind;

namespace {

std::string framed(std::string_view payload, int op = 1) {
  std::string out(1, static_cast<char>(0x80 | op));
  if (payload.size() < 126) {
    out += static_cast<char>(payload.size());
  } else {
    out += static_cast<char>(126);
    out += static_cast<char>(payload.size() >> 8);
    out += static_cast<char>(payload.size());
  }
  return out.append(payload);
}

struct heard {
  kind is;
  std::uint32_t n;
  std::uint64_t seq;
  std::string text, why;
};

// Feeds in pieces and keeps everything that happened.
std::vector<heard> listen(talk& t, std::string_view bytes, std::size_t piece) {
  std::vector<heard> all;
  happening h;
  while (!bytes.empty()) {
    t.feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    while (t.next(h)) all.push_back({h.is, h.n, h.seq.value_or(0), std::string(h.text), h.why});
  }
  return all;
}

std::string unmasked(std::string_view bytes) {
  const auto b = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  REQUIRE((b(1) & 0x80) != 0);
  std::size_t length = b(1) & 0x7F, at = 2;
  if (length == 126) length = static_cast<std::size_t>(b(2) << 8 | b(3)), at = 4;
  std::string out;
  for (std::size_t i = 0; i < length; ++i) out += static_cast<char>(b(at + 4 + i) ^ b(at + i % 4));
  CHECK(at + 4 + length == bytes.size());
  return out;
}

}  // namespace

TEST_CASE("the WebSocket key is answered as RFC 6455 says") {
  CHECK(ws_accept("dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST_CASE("a delta says the same whether its text is plain or needs a whole JSON parser") {
  const auto m = speaking("ws://h");
  const auto hear = [&](std::string_view message) {
    talk t(m, 1);
    t.feed(upgrade_answer(t));
    question q;
    q.id = "x";
    t.ask(q);
    t.feed(framed(message));
    happening h;
    if (!t.next(h)) return std::string("nothing");
    if (h.is != kind::tokens) return h.why;
    return fmt::format("{} {} {} {}", h.n, h.seq.value_or(77), h.sampled.value_or(-1), h.text);
  };
  const std::string plain = R"({"type":"response.delta","id":"x","seq":12,"n":3,"t":4567,"delta":"a b"})";
  CHECK(hear(plain) == "3 12 4567 a b");
  for (const auto& [message, means] : std::initializer_list<std::pair<std::string, std::string>>{
           {R"({ "type":"response.delta","id":"x","seq":12,"n":3,"t":4567,"delta":"a b"})", "3 12 4567 a b"},
           {R"({"delta":"a b","t":4567,"n":3,"seq":12,"id":"x","type":"response.delta"})", "3 12 4567 a b"},
           {R"({"type":"response.delta","id":"x","seq":12,"delta":"a\n\u00e9"})", "1 12 -1 a\né"},
           {R"({"type":"response.delta","id":"x","seq":12,"more":[{}],"delta":"\u00e9"})", "1 12 -1 é"},
           {R"({"type":"response.delta","id":"x","seq":1.2e1,"delta":""})", "1 12 -1 "},
           {R"({"type":"response.delta","id":"x","delta":""})", "1 0 -1 "},
           {R"({"type":"response.delta","id":"other","seq":12,"delta":"a"})", "nothing"},
           {R"({"type":"later","id":"x","seq":12})", "nothing"}}) {
    CAPTURE(message);
    CHECK(hear(message) == means);
  }
  for (std::size_t cut = 0; cut < plain.size(); ++cut)
    CHECK_THAT(hear(plain.substr(0, cut)), Catch::StartsWith("a frame that is no JSON object"));
  for (const auto& broken : {plain + "}", plain + " x", "," + plain, plain.substr(1)}) {
    CAPTURE(broken);
    CHECK_THAT(hear(broken), Catch::StartsWith("a frame that is no JSON object"));
  }
  std::string zero = plain;
  zero.replace(zero.find("12"), 2, "012");
  CHECK_THAT(hear(zero), Catch::StartsWith("a frame that is no JSON object"));
}

TEST_CASE("a weir.v1 stream, however its bytes are cut") {
  for (std::size_t piece : {1u, 2u, 7u, 100u, 100000u}) {
    CAPTURE(piece);
    const auto m = speaking("ws://127.0.0.1:1");
    talk t(m, 42);
    const std::string first = upgrade_answer(t) + framed(R"({"type":"session.created","session_id":"x"})");
    auto all = listen(t, first, piece);
    REQUIRE(all.size() == 1);
    CHECK(all[0].is == kind::opened);
    question q;
    q.id = "r1";
    q.prompt = "say \"so\"";
    q.max_tokens = 7;
    const auto asked = boost::json::parse(unmasked(t.ask(q))).as_object();
    CHECK(asked.at("type") == "response.create");
    CHECK(asked.at("input") == "say \"so\"");
    CHECK(asked.at("max_tokens") == 7);
    CHECK(asked.at("timing") == true);
    const std::string more =
        framed(R"({"type":"response.created","id":"r1","response_id":"a","seq":0,"model":"m"})") +
        framed(R"({"type":"response.delta","id":"r1","seq":1,"delta":"a","t":77})") +
        framed("are you there", 9) +
        framed(R"({"type":"response.delta","id":"other","seq":9,"delta":"not ours"})") +
        framed(R"({"type":"response.delta","id":"r1","seq":4,"n":3,"delta":")" + std::string(200, 'b') +
               "\"}") +
        framed(
            R"({"type":"response.done","id":"r1","response_id":"a","seq":4,"status":"completed","usage":{"input_tokens":3,"output_tokens":4}})");
    all = listen(t, more, piece);
    REQUIRE(all.size() == 4);
    CHECK(all[0].is == kind::created);
    CHECK(all[1].is == kind::tokens);
    CHECK(all[1].seq == 1);
    CHECK(all[1].text == "a");
    CHECK(all[2].n == 3);
    CHECK(all[2].text.size() == 200);
    CHECK(all[3].is == kind::done);
    CHECK(unmasked(t.take_to_send()) == "are you there");
    CHECK(t.take_to_send().empty());
  }
}

TEST_CASE("an answer in several frames is one message") {
  const auto m = speaking("ws://h");
  talk t(m, 1);
  listen(t, upgrade_answer(t), 1000);
  question q;
  q.id = "r";
  t.ask(q);
  std::string parts = framed(R"({"type":"response.delta",)");
  parts[0] = 1;  // not the last
  std::string rest = framed(R"("id":"r","seq":1,"delta":"x"})");
  rest[0] = static_cast<char>(0x80);
  const auto all = listen(t, parts + framed("", 9) + rest, 3);
  REQUIRE(all.size() == 1);
  CHECK(all[0].text == "x");
}

TEST_CASE("what a server must not send ends the conversation by name") {
  const auto why = [](std::string bytes, bool upgraded = true) {
    const auto m = speaking("ws://h");
    talk t(m, 1);
    if (upgraded) bytes = upgrade_answer(t) + bytes;
    const auto all = listen(t, bytes, 5);
    REQUIRE(!all.empty());
    CHECK((all.back().is == kind::failed || all.back().is == kind::closed));
    return all.back().why;
  };
  CHECK_THAT(why("HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: x\r\n\r\n", false),
             Catch::Contains("Accept"));
  CHECK_THAT(why("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\n{}", false), Catch::Contains("403"));
  CHECK_THAT(why("\xC1\x01x"), Catch::Contains("reserved"));
  CHECK_THAT(why(std::string("\x81\x81\0\0\0\0x", 7)), Catch::Contains("masked"));
  CHECK_THAT(why(std::string("\x80\x01x", 3)), Catch::Contains("continues"));
  CHECK_THAT(why("\x83\x01x"), Catch::Contains("unknown"));
  CHECK_THAT(why(std::string("\x81\x7F\x7F\0\0\0\0\0\0\0", 10)), Catch::Contains("long"));
  CHECK_THAT(why(framed("[1]")), Catch::Contains("no JSON object"));
  CHECK_THAT(why(framed("\x11\x58", 8)), Catch::Contains("4440"));
  CHECK_THAT(why(framed("", 8)), Catch::Contains("1005"));
}

TEST_CASE("a refusal of a lane is one error frame, and a failed answer says why") {
  const auto m = speaking("ws://h");
  talk t(m, 1);
  listen(t, upgrade_answer(t), 1000);
  question q;
  q.id = "r";
  t.ask(q);
  auto all =
      listen(t, framed(R"({"type":"error","id":"r","code":"overloaded","message":"come back"})"), 1000);
  REQUIRE(all.size() == 1);
  CHECK(all[0].is == kind::refused);
  CHECK(all[0].why == "overloaded: come back");
  t.ask(q);
  all = listen(
      t,
      framed(
          R"({"type":"response.done","id":"r","seq":0,"status":"failed","error":{"code":"internal","message":"m"}})"),
      1000);
  REQUIRE(all.size() == 1);
  CHECK(all[0].is == kind::failed);
  CHECK(all[0].why == "internal: m");
}

namespace {

std::string chunked(std::string_view body, std::size_t size) {
  std::string out =
      "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
  while (!body.empty()) {
    const auto part = body.substr(0, size);
    char head[20];
    std::snprintf(head, sizeof head, "%zx\r\n", part.size());
    out.append(head).append(part).append("\r\n");
    body.remove_prefix(part.size());
  }
  return out + "0\r\n\r\n";
}

}  // namespace

TEST_CASE("a stream of completions, however it is cut into chunks and reads") {
  const std::string body =
      ": hello\n\ndata: {\"choices\":[{\"index\":0,\"text\":\"a\",\"finish_reason\":null}]}\n\n"
      "data: {\"choices\":[{\"index\":0,\"text\":\"bc\",\"token_ids\":[5,6],\"finish_reason\":null}]}\r\n\r\n"
      "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"length\"}]}\n\n"
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":4,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n";
  for (std::size_t chunk : {1u, 13u, 10000u})
    for (std::size_t piece : {1u, 9u, 10000u}) {
      CAPTURE(chunk, piece);
      const auto m = speaking("http://h:1");
      talk t(m, 1);
      for (int again = 0; again < 2; ++again) {  // on one connection
        question q;
        q.prompt = "p";
        const std::string asked = t.ask(q);
        CHECK(asked.starts_with("POST /v1/completions HTTP/1.1\r\nHost: h:1\r\n"));
        const auto all = listen(t, chunked(body, chunk), piece);
        REQUIRE(all.size() == 3);
        CHECK(all[0].text == "a");
        CHECK(all[1].n == 2);
        CHECK(all[2].is == kind::done);
        CHECK(t.reusable());
      }
    }
}

TEST_CASE("a chat's chunks: an opening role is no token, reasoning is") {
  const auto m = speaking("https://api.example/v1/chat/completions");
  CHECK(m.to.tls);
  CHECK(m.to.port == "443");
  talk t(m, 1);
  question q;
  q.prompt = "p";
  const std::string asked = t.ask(q);
  CHECK_THAT(asked, Catch::Contains("Host: api.example\r\n"));
  const auto sent = boost::json::parse(asked.substr(asked.find("\r\n\r\n") + 4)).as_object();
  CHECK(sent.at("messages").at(0).at("content") == "p");
  CHECK(sent.at("stream_options").at("include_usage") == true);
  const auto all =
      listen(t,
             chunked("data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n"
                     "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n"
                     "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\n",
                     50),
             30);
  REQUIRE(all.size() == 3);
  CHECK(all[0].text == "hm");
  CHECK(all[1].text == "x");
  CHECK(all[2].is == kind::done);
}

TEST_CASE("HTTP errors, errors inside a stream, and streams that break off are told apart") {
  const auto last = [](std::string bytes, bool hang_up = false) {
    const auto m = speaking("http://h");
    talk t(m, 1);
    t.ask({});
    auto all = listen(t, bytes, 1000);
    happening h;
    if (hang_up && t.ended(h)) all.push_back({h.is, 0, 0, {}, h.why});
    REQUIRE(!all.empty());
    return all.back();
  };
  auto h = last(
      "HTTP/1.1 429 Too Many\r\nContent-Length: "
      "49\r\n\r\n{\"error\":{\"code\":\"overloaded\",\"message\":\"later\"}}");
  CHECK(h.is == kind::refused);
  CHECK(h.why == "429 overloaded: later");
  h = last(
      chunked("data: {\"error\":{\"code\":\"internal\",\"message\":\"gone\"}}\n\ndata: [DONE]\n\n", 100));
  CHECK(h.is == kind::failed);
  CHECK(h.why == "internal: gone");
  h = last(chunked("data: {\"choices\":[{\"text\":\"x\",\"finish_reason\":null}]}\n\n", 100));
  CHECK(h.is == kind::failed);
  CHECK_THAT(h.why, Catch::Contains("finish_reason"));
  h = last("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nda", true);
  CHECK(h.is == kind::failed);
  CHECK_THAT(h.why, Catch::Contains("lost"));
  h = last("HTTP/1.0 200 OK\r\n\r\ndata: {\"choices\":[{\"text\":\"x\",\"finish_reason\":\"stop\"}]}\n\n",
           true);
  CHECK(h.is == kind::done);
  h = last("no http at all, but long enough to be a first line\r\n\r\n");
  CHECK(h.is == kind::failed);
  h = last("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
  CHECK(h.is == kind::failed);
}

TEST_CASE("URLs: scheme, host, port, path, and what each defaults to") {
  const auto ws = parse_url("url", "ws://127.0.0.1:8080").value();
  CHECK((ws.host == "127.0.0.1" && ws.port == "8080" && ws.path == "/v1/stream" &&
         ws.speaks == protocol::weir && !ws.tls));
  const auto six = parse_url("url", "https://[::1]:9/v1/chat/completions").value();
  CHECK((six.host == "::1" && six.port == "9" && six.chat() && six.tls && six.authority() == "[::1]:9"));
  CHECK(parse_url("url", "http://h/").value().path == "/v1/completions");
  for (const char* bad : {"", "h:80", "ftp://h", "http://", "http://h:0", "http://h:99999", "http://h:x",
                          "http://h:", "http://[::1", "http://u@h", "http://h/a b", "ws://:80"}) {
    CAPTURE(bad);
    const auto r = parse_url("vs", bad);
    REQUIRE(!r);
    CHECK(r.error().param == "vs");
  }
}

TEST_CASE("fields of one's own go over ours") {
  auto m = speaking("http://h");
  m.extra = {{"ignore_eos", true}, {"temperature", 0.5}};
  m.model = "m";
  m.key = "secret";
  talk t(m, 1);
  const std::string asked = t.ask({});
  CHECK_THAT(asked, Catch::Contains("Authorization: Bearer secret\r\n"));
  const auto sent = boost::json::parse(asked.substr(asked.find("\r\n\r\n") + 4)).as_object();
  CHECK(sent.at("temperature") == 0.5);
  CHECK(sent.at("ignore_eos") == true);
  CHECK(sent.at("model") == "m");
}

}  // namespace weir::tests::talk_test
