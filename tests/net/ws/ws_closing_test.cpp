#include "net/ws/ws_closing.h"

#include <catch2/catch.hpp>
#include <functional>
#include <iterator>
#include <optional>
#include <random>

namespace weir::tests::ws_closing_test {

using net::close_code;
using net::ws_closing;
using phase = ws_closing::phase;
using todo = ws_closing::todo;
using std::chrono::milliseconds;

namespace {

constexpr ws_closing::time_point start{};
constexpr std::optional<ws_closing::time_point> none_waits;

net::server_limits bounds() {
  net::server_limits l;
  l.authenticate = milliseconds(10'000);
  l.max_age = milliseconds(100'000);
  l.closing_notice = milliseconds(30'000);
  l.write_time = milliseconds(8'000);
  l.handshake = milliseconds(5'000);
  l.backlog_bytes = 1000;
  return l;
}
const net::server_limits limits = bounds();

ws_closing::time_point at(int ms) { return start + milliseconds(ms); }

ws_closing opened() { return ws_closing(limits, start); }
ws_closing flushing() {
  ws_closing c = opened();
  CHECK(c.close(close_code::bad_key));
  return c;
}
ws_closing last_word() {
  ws_closing c = flushing();
  CHECK(c.all_written() == close_code::bad_key);
  return c;
}
ws_closing peer_ends() {
  ws_closing c = opened();
  c.peer_ends();
  return c;
}
ws_closing hung_up() {
  ws_closing c = opened();
  c.hang_up();
  return c;
}

}  // namespace

TEST_CASE("ws closing: the codes are those of the wire page") {
  const struct {
    close_code code;
    int number;
  } rows[] = {{close_code::going_away, 1001},        {close_code::protocol_fault, 1002},
              {close_code::no_status, 1005},         {close_code::abnormal, 1006},
              {close_code::bad_payload, 1007},       {close_code::too_big, 1009},
              {close_code::our_fault, 1011},         {close_code::overloaded, 1013},
              {close_code::bad_key, 4401},           {close_code::forbidden, 4403},
              {close_code::not_authenticated, 4408}, {close_code::too_many_messages, 4429},
              {close_code::slow_consumer, 4440},     {close_code::too_old, 4441}};
  for (const auto& r : rows) CHECK(static_cast<int>(r.code) == r.number);
}

TEST_CASE("ws closing: an open session writes and listens, and has no code") {
  ws_closing c = opened();
  CHECK(c.at() == phase::open);
  CHECK(c.writes());
  CHECK(c.listens());
  CHECK_FALSE(c.code());
  CHECK_FALSE(c.all_written());
  CHECK(c.at() == phase::open);
  CHECK(c.tick(start, false, none_waits) == todo::nothing);
}

TEST_CASE("ws closing: a session writes what is left, then its close frame, once") {
  ws_closing c = opened();
  CHECK(c.close(close_code::too_big));
  CHECK(c.at() == phase::flushing);
  CHECK(c.writes());
  CHECK_FALSE(c.listens());
  CHECK(c.code() == close_code::too_big);
  CHECK(c.all_written() == close_code::too_big);
  CHECK(c.at() == phase::last_word);
  CHECK_FALSE(c.writes());
  CHECK_FALSE(c.all_written());
}

TEST_CASE("ws closing: the first reason counts, in every phase") {
  for (ws_closing c : {flushing(), last_word()}) {
    const phase before = c.at();
    CHECK_FALSE(c.close(close_code::too_old));
    CHECK(c.at() == before);
    CHECK(c.code() == close_code::bad_key);
  }
  for (ws_closing c : {peer_ends(), hung_up()}) {  // nothing is written any more, the reason is counted
    const phase before = c.at();
    CHECK(c.listens());
    CHECK(c.close(close_code::our_fault));
    CHECK(c.at() == before);
    CHECK_FALSE(c.writes());
    CHECK_FALSE(c.listens());
    CHECK(c.code() == close_code::our_fault);
    CHECK_FALSE(c.all_written());
  }
}

TEST_CASE("ws closing: a client that ends is answered by Beast, unless the close frame was sent before") {
  for (ws_closing c : {opened(), flushing()}) {
    const auto code = c.code();
    c.peer_ends();
    CHECK(c.at() == phase::peer_ends);
    CHECK_FALSE(c.writes());
    CHECK_FALSE(c.all_written());
    CHECK(c.code() == code);
  }
  ws_closing said = last_word();
  said.peer_ends();
  CHECK(said.at() == phase::last_word);
  ws_closing gone = hung_up();
  gone.peer_ends();
  CHECK(gone.at() == phase::hung_up);
}

TEST_CASE("ws closing: a socket that is closed stays closed") {
  for (ws_closing c : {opened(), flushing(), last_word(), peer_ends(), hung_up()}) {
    const auto code = c.code();
    c.hang_up();
    CHECK(c.at() == phase::hung_up);
    CHECK_FALSE(c.writes());
    CHECK(c.code() == code);
    c.peer_ends();
    CHECK_FALSE(c.all_written());
    CHECK_FALSE(c.drain());
    CHECK(c.at() == phase::hung_up);
  }
}

TEST_CASE("ws closing: a session that drains is announced once, and ends when no lane is left") {
  ws_closing c = opened();
  CHECK_FALSE(c.no_lane_left());  // between two responses
  CHECK(c.at() == phase::open);
  CHECK(c.drain());
  CHECK(c.at() == phase::open);  // lanes go on
  CHECK_FALSE(c.drain());
  CHECK(c.no_lane_left());
  CHECK(c.at() == phase::flushing);
  CHECK_FALSE(c.no_lane_left());
  CHECK(c.all_written() == close_code::going_away);
}

TEST_CASE("ws closing: a drain says nothing to a client whose session ends") {
  for (ws_closing c : {flushing(), last_word()}) {
    CHECK_FALSE(c.drain());
    CHECK_FALSE(c.no_lane_left());
    CHECK(c.code() == close_code::bad_key);
  }
  for (ws_closing c : {peer_ends(), hung_up()}) CHECK_FALSE(c.drain());
}

TEST_CASE("ws closing: a client that does not authenticate in time is closed") {
  ws_closing c = opened();
  CHECK(c.tick(at(10'000), false, none_waits) == todo::nothing);
  CHECK(c.tick(at(10'001), true, none_waits) == todo::nothing);
  CHECK(c.at() == phase::open);
  CHECK(c.tick(at(10'001), false, none_waits) == todo::write);
  CHECK(c.all_written() == close_code::not_authenticated);
}

TEST_CASE("ws closing: an old session is announced once, and closed at its time") {
  ws_closing c = opened();
  CHECK(c.tick(at(70'000), true, none_waits) == todo::nothing);
  CHECK(c.tick(at(70'001), true, none_waits) == todo::announce);
  CHECK(c.tick(at(70'250), true, none_waits) == todo::nothing);
  CHECK_FALSE(c.drain());  // said already
  CHECK(c.tick(at(100'000), true, none_waits) == todo::nothing);
  CHECK(c.at() == phase::open);
  CHECK(c.tick(at(100'001), true, none_waits) == todo::write);
  CHECK(c.all_written() == close_code::too_old);
}

TEST_CASE("ws closing: a session that was announced to be old still ends with its last lane in a drain") {
  ws_closing c = opened();
  CHECK(c.tick(at(80'000), true, none_waits) == todo::announce);
  CHECK_FALSE(c.no_lane_left());
  CHECK_FALSE(c.drain());
  CHECK(c.no_lane_left());
  CHECK(c.all_written() == close_code::going_away);
}

TEST_CASE("ws closing: a client has the time of a handshake to end, from the first tick on") {
  for (ws_closing c : {flushing(), last_word(), peer_ends(), hung_up()}) {
    const auto code = c.code();
    CHECK(c.tick(at(20'000), false, none_waits) == todo::nothing);
    CHECK(c.tick(at(25'000), false, none_waits) == todo::nothing);
    CHECK(c.at() != phase::open);
    CHECK(c.tick(at(25'001), false, none_waits) == todo::hang_up);
    CHECK(c.at() == phase::hung_up);
    CHECK(c.code() == code);
  }
}

TEST_CASE("ws closing: while a frame waits for the kernel a client has the time of a write to end") {
  for (ws_closing c : {flushing(), peer_ends()}) {
    CHECK(c.tick(at(20'000), true, at(1'000)) == todo::nothing);
    CHECK(c.tick(at(28'000), true, at(1'000)) == todo::nothing);
    ws_closing same = c;
    CHECK(same.tick(at(28'001), true, at(1'000)) == todo::hang_up);
    CHECK(c.tick(at(28'000), true, none_waits) == todo::hang_up);  // the frame left, the client did not end
  }
}

TEST_CASE("ws closing: a client is too slow when a write takes too long or too much waits") {
  ws_closing c = opened();
  CHECK_FALSE(c.too_slow(at(8'000), at(0), 1000));
  CHECK(c.at() == phase::open);
  CHECK_FALSE(c.code());
  const bool late = GENERATE(false, true);
  CHECK((late ? c.too_slow(at(8'001), at(0), 0) : c.too_slow(at(1), at(0), 1001)));
  CHECK(c.at() == phase::hung_up);
  CHECK(c.code() == close_code::slow_consumer);
  CHECK_FALSE(c.all_written());  // a close frame would not reach the client
}

TEST_CASE("ws closing: whatever happens, the code stays, one close frame is sent, and the session ends") {
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    ws_closing c = opened();
    int now = 0, close_frames = 0;
    const std::function<void()> events[] = {
        [&] { c.close(close_code::too_big); },
        [&] { c.close(close_code::our_fault); },
        [&] { close_frames += c.all_written().has_value(); },
        [&] { c.drain(); },
        [&] { c.no_lane_left(); },
        [&] { c.peer_ends(); },
        [&] { c.tick(at(now), random() % 2, random() % 2 ? std::optional(at(now / 2)) : none_waits); },
        [&] {
          if (c.at() == phase::open) c.too_slow(at(now), at(now / 2), random() % 1100);
        },
    };
    for (int i = 0; i < 40; ++i) {
      const auto code = c.code();
      const phase before = c.at();
      now += static_cast<int>(random() % 300);
      events[random() % std::size(events)]();
      if (code) CHECK(c.code() == code);
      if (before == phase::hung_up) CHECK(c.at() == phase::hung_up);
      if (c.at() == phase::open) CHECK_FALSE(c.code());
      CHECK(close_frames <= 1);
    }
    c.tick(at(200'000), true, none_waits);
    c.tick(at(200'000), true, none_waits);
    c.tick(at(300'000), true, none_waits);
    CHECK(c.at() == phase::hung_up);
  }
}

}  // namespace weir::tests::ws_closing_test
