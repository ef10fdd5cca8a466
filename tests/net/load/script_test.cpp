// A server played from a script, in virtual time: what it sends, as bytes, and when each read would see it.
// Its faults are planted one by one: each is caught by its name, and a clean run has none.
#include <catch2/catch.hpp>

#include "net/load/answer_reader.h"
#include "net/load/pool.h"

namespace weir::tests::script_test {

using namespace weir::load;

namespace {

struct delta {
  double at_ms;                     // read by the client
  std::uint64_t seq;
  std::uint32_t n = 1;
  std::optional<double> sampled_ms; // on the server's clock, which is 7 s ahead
};

using script = std::vector<delta>;

// n tokens, sampled every 20 ms from `first` on and delivered `delay` later.
script even(int n, double first = 100, double delay = 1) {
  script s;
  for (int i = 0; i < n; ++i)
    s.push_back({first + 20 * i + delay, static_cast<std::uint64_t>(i + 1), 1, 7000 + first + 20 * i});
  return s;
}

std::string framed(const std::string& text) {
  std::string out = "\x81";
  out += static_cast<char>(126);
  out += static_cast<char>(text.size() >> 8);
  out += static_cast<char>(text.size());
  return out + text;
}

// The script as bytes of weir.v1, read by the client's half of the protocol.
stream_record over_websocket(const script& s, std::uint64_t index) {
  manner m;
  m.to = parse_url("url", "ws://127.0.0.1").value();
  talk t(m, index);
  t.feed("HTTP/1.1 101 S\r\nSec-WebSocket-Accept: " + ws_accept(http_header(t.hello(), "sec-websocket-key")) +
         "\r\n\r\n");
  stream_record r;
  r.index = index;
  answer_reader h(std::move(r), true);
  question q;
  q.id = "x";
  t.ask(q);
  for (std::size_t i = 0; i < s.size();) {
    const double at = s[i].at_ms;
    for (; i < s.size() && s[i].at_ms == at; ++i) {
      const std::string n = s[i].n == 1 ? "" : fmt::format(R"("n":{},)", s[i].n);
      const std::string when = s[i].sampled_ms ? fmt::format(R"("t":{:.0f},)", *s[i].sampled_ms * 1000) : "";
      t.feed(framed(fmt::format(R"({{"type":"response.delta","id":"x","seq":{},{}{}"delta":"w"}})", s[i].seq,
                                n, when)));
    }
    h.understand(t, static_cast<micros>(at * 1000));
  }
  t.feed(framed(
      fmt::format(R"({{"type":"response.done","id":"x","seq":{},"status":"completed"}})", s.back().seq)));
  h.understand(t, static_cast<micros>(s.back().at_ms * 1000));
  REQUIRE(h.over());
  h.record().ended = static_cast<micros>(s.back().at_ms * 1000);
  return h.record();
}

// The script as events of OpenAI's protocol, which have neither seq nor t.
stream_record over_sse(const script& s, std::uint64_t index) {
  manner m;
  m.to = parse_url("url", "http://127.0.0.1").value();
  talk t(m, index);
  stream_record r;
  r.index = index;
  answer_reader h(std::move(r), true);
  t.ask({});
  const auto chunk = [](const std::string& text) { return fmt::format("{:x}\r\n{}\r\n", text.size(), text); };
  t.feed("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (const auto& d : s) {
    t.feed(chunk("data: {\"choices\":[{\"text\":\"w\",\"finish_reason\":null}]}\n\n"));
    h.understand(t, static_cast<micros>(d.at_ms * 1000));
  }
  t.feed(chunk("data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n") +
         "0\r\n\r\n");
  h.understand(t, static_cast<micros>(s.back().at_ms * 1000));
  REQUIRE(h.over());
  h.record().ended = static_cast<micros>(s.back().at_ms * 1000);
  return h.record();
}

using play = stream_record (*)(const script&, std::uint64_t);

// Nine clean streams, and `s` as the tenth.
pool among_others(play how, const script& s) {
  pool p({});
  for (std::uint64_t i = 0; i < 9; ++i) p.add(how(even(50, 100 + static_cast<double>(i)), i));
  p.add(how(s, 9));
  p.conclude(10);
  return p;
}

void only(const pool& p, const std::string& name) {
  CAPTURE(name);
  CHECK(p.found().size() == 1);
  REQUIRE(p.findings().size() == 1);
  CHECK(p.findings()[0].name == name);
  CHECK(p.findings()[0].stream == 9);
}

}  // namespace

TEST_CASE("a clean script: hand-computed figures, and nothing found") {
  for (play how : {over_websocket, over_sse}) {
    const auto p = among_others(how, even(50));
    CHECK(p.found().empty());
    CHECK(p.number(figure::completed) == 10);
    CHECK(p.number(figure::output_tokens) == 500);
    CHECK(*p.value("ttft_ms", "min") == Approx(101));
    CHECK(*p.value("ttft_ms", "max") == Approx(109));
    CHECK(*p.value("itl_ms", "min") == Approx(20));
    CHECK(*p.value("itl_ms", "max") == Approx(20));
    CHECK(*p.value("tpot_ms", "mean") == Approx(20));
    CHECK(*p.value("e2el_ms", "min") == Approx(101 + 49 * 20));
    CHECK(*p.value("gap_cv", "max") == Approx(0).margin(1e-6));
    CHECK(*p.value("fluidity", "min") == 1);
    CHECK(*p.value("qoe", "min") == 1);
    CHECK(p.number(figure::stall_count) == 0);
    CHECK(p.number(figure::coalesced_frac) == 0);
    CHECK(p.number(figure::on_schedule_frac) == 1);
    CHECK(p.value("added_jitter_ms", "max").has_value() == (how == over_websocket));
  }
}

TEST_CASE("a clean script has no added jitter, though the clocks are seven seconds apart") {
  CHECK(*among_others(over_websocket, even(50)).value("added_jitter_ms", "max") == 0);
}

TEST_CASE("planted: sixteen tokens at once") {
  for (play how : {over_websocket, over_sse}) {
    auto s = even(50);
    for (int i = 20; i < 36; ++i) s[i].at_ms = s[35].at_ms;  // held back until the last of them is there
    const auto p = among_others(how, s);
    CHECK(p.found().contains("burst"));
    CHECK(p.number(figure::burst_count) == 1);
    CHECK(p.number(figure::coalesced_frac) == Approx(15.0 / 500));
    if (how == over_websocket) CHECK(*p.value("added_jitter_ms", "max") == Approx(300).epsilon(0.001));
  }
}

TEST_CASE("planted: sixteen tokens in one frame, in time for the last of them") {
  auto s = even(50);
  s.erase(s.begin() + 20, s.begin() + 28);
  s[20].n = 9;  // 160 ms without a token, then nine: no stall, but a burst
  const auto p = among_others(over_websocket, s);
  only(p, "burst");
  CHECK(p.number(figure::coalesced_frac) == Approx(9.0 / 500));
}

TEST_CASE("planted: a lost token") {
  auto s = even(50);
  s.erase(s.begin() + 30);
  const auto p = among_others(over_websocket, s);
  only(p, "lost token");
  CHECK(p.number(figure::gaps) == 1);
  CHECK(p.number(figure::repeats) == 0);
}

TEST_CASE("planted: the last token lost, which only the end tells") {
  auto s = even(50);
  s[48].seq = 48;
  s[49].seq = 50;
  s.erase(s.begin() + 48);
  only(among_others(over_websocket, s), "lost token");
}

TEST_CASE("planted: a token that comes twice") {
  auto s = even(50);
  auto again = s[30];
  again.at_ms += 10;
  s.insert(s.begin() + 31, again);
  const auto p = among_others(over_websocket, s);
  only(p, "repeated token");
  CHECK(p.number(figure::repeats) == 1);
  CHECK(p.number(figure::gaps) == 0);
  CHECK(p.number(figure::output_tokens) == 500);
}

TEST_CASE("planted: a stall of 300 ms, of the device or of delivery") {
  for (const bool device : {true, false}) {
    auto s = even(50);
    for (int i = 25; i < 50; ++i) {
      s[i].at_ms += 300;
      if (device) *s[i].sampled_ms += 300;
    }
    const auto p = among_others(over_websocket, s);
    only(p, "stall");
    CHECK(p.number(figure::stall_count) == 1);
    CHECK(p.number(figure::source_stall_count) == (device ? 1 : 0));
    CHECK(*p.value("stall_ratio", "max") ==
          Approx(120.0 / (49 * 20 + 300)).epsilon(0.001));  // 320 ms, 200 of them allowed
    CHECK(*p.value("gap_max_ms", "max") == Approx(320).epsilon(0.001));
    CHECK(*p.value("added_jitter_ms", "max") == Approx(device ? 0 : 300).epsilon(0.001));
  }
  auto s = even(50);
  for (int i = 25; i < 50; ++i) s[i].at_ms += 300;
  only(among_others(over_sse, s), "stall");
}

TEST_CASE("planted: a late first token") {
  for (play how : {over_websocket, over_sse}) only(among_others(how, even(50, 700)), "late first token");
}

TEST_CASE("texts that differ are named, over either protocol") {
  for (play how : {over_websocket, over_sse}) {
    pool p({});
    p.compare_text(3, how(even(20), 0));
    auto other = how(even(20), 1);
    p.compare_text(3, other);
    CHECK(p.number(figure::text_mismatches) == 0);
    other.text[7] = 'x';
    p.compare_text(3, other);
    CHECK(p.found().at("text mismatch") == 1);
  }
}

}  // namespace weir::tests::script_test
