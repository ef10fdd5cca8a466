// A bus over one real nats-server.
#include <catch2/catch.hpp>
#include <fstream>

#include "tests/net/bus/bus_hall.h"

namespace weir::tests::nats_bus_test {

using bus = actors::bus;
using how = enum bus::answer::how;

TEST_CASE("nats: messages of one publisher arrive in order, under all subjects of a subscription") {
  if (!can_run_nats()) return;
  nats_server server;
  bus_hall hall;
  const auto a = hall.join(server.url()), b = hall.join(server.url());
  CHECK(a->state() == bus::link::up);
  std::vector<std::string> heard;
  const auto all =
      hall.hear(*b, "weir.1.c.>", [&](bus::message m) { heard.push_back(m.subject + " " + m.bytes); });
  hall.settle(*b);
  for (int i = 0; i < 500; ++i) {
    REQUIRE(a->publish("weir.1.c.g.x.tok", std::to_string(2 * i)));
    REQUIRE(a->publish("weir.1.c.board.y", std::to_string(2 * i + 1)));
  }
  hall.until([&] { return heard.size() == 1000; });
  for (int i = 0; i < 1000; ++i)
    REQUIRE(heard[i] == (i % 2 ? "weir.1.c.board.y " : "weir.1.c.g.x.tok ") + std::to_string(i));
}

TEST_CASE("nats: a star stands for one word, and an arrow for the words that are left") {
  if (!can_run_nats()) return;
  nats_server server;
  bus_hall hall;
  const auto b = hall.join(server.url());
  std::string star, arrow;
  const auto one = hall.hear(*b, "a.*.c", [&](const bus::message& m) { star += m.bytes; });
  const auto rest = hall.hear(*b, "a.>", [&](const bus::message& m) { arrow += m.bytes; });
  for (const auto& [subject, bytes] :
       {std::pair{"a.b.c", "1"}, {"a.b", "2"}, {"a.b.c.d", "3"}, {"b.b.c", "4"}})
    REQUIRE(b->publish(subject, bytes));
  hall.settle(*b);
  hall.drain();
  CHECK(star == "1");
  CHECK(arrow == "123");
}

TEST_CASE("nats: bytes of every value and length pass") {
  if (!can_run_nats()) return;
  nats_server server;
  bus_hall hall;
  const auto b = hall.join(server.url());
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  bytes += "\r\nPUB other 0\r\n\r\n";
  std::vector<std::string> heard;
  const auto s = hall.hear(*b, "bytes", [&](bus::message m) { heard.push_back(std::move(m.bytes)); });
  const std::string longest(b->most_bytes(), 'x');
  REQUIRE(b->publish("bytes", bytes));
  REQUIRE(b->publish("bytes", ""));
  REQUIRE(b->publish("bytes", longest));
  hall.until([&] { return heard.size() == 3; });
  CHECK(heard[0] == bytes);
  CHECK(heard[1].empty());
  CHECK((heard[2] == longest));
}

TEST_CASE("nats: a question is answered, finds nobody, or waits too long") {
  if (!can_run_nats()) return;
  nats_server server;
  bus_hall hall;
  const auto a = hall.join(server.url()), b = hall.join(server.url());
  const auto echo = hall.hear(*b, "echo", [&](const bus::message& m) {
    CHECK_FALSE(m.answer_to.empty());
    CHECK(b->publish(m.answer_to, m.bytes + "!"));
    CHECK(b->publish(m.answer_to, "a second answer"));
  });
  const auto deaf = hall.hear(*b, "deaf", [](const bus::message&) {});
  hall.settle(*b);
  for (int i = 0; i < 100; ++i) {
    const auto got = hall.ask(*a, "echo", std::to_string(i));
    CHECK(got.how == how::came);
    CHECK(got.bytes == std::to_string(i) + "!");
  }
  CHECK(hall.ask(*a, "nobody").how == how::nobody_there);
  CHECK(hall.ask(*a, "deaf", "", std::chrono::milliseconds(20)).how == how::too_late);
}

TEST_CASE("nats: answers that nobody waits for change nothing") {
  if (!can_run_nats()) return;
  nats_server server;
  bus_hall hall;
  const auto a = hall.join(server.url()), b = hall.join(server.url());
  std::string answer_to;
  const auto s = hall.hear(*b, "q", [&](const bus::message& m) { answer_to = m.answer_to; });
  hall.settle(*b);
  std::optional<bus::answer> got;
  a->ask("q", "", std::chrono::seconds(30), hall.executor(), [&](bus::answer v) {
    REQUIRE_FALSE(got);
    got = std::move(v);
  });
  hall.until([&] { return !answer_to.empty(); });
  const auto inbox = answer_to.substr(0, answer_to.rfind('.'));
  for (const char* word : {"0", "2", "99999999999999999999999", "x", "-1"})
    b->publish(inbox + '.' + word, "forged");
  b->publish(answer_to, "true");
  hall.until([&] { return got.has_value(); });
  CHECK(got->how == how::came);
  CHECK(got->bytes == "true");
}

TEST_CASE("nats: a message that is published with an answer_to carries it") {
  if (!can_run_nats()) return;
  nats_server server;
  bus_hall hall;
  const auto b = hall.join(server.url());
  std::vector<std::string> heard;
  const auto jobs = hall.hear(*b, "job", [&](const bus::message& m) {
    CHECK(m.answer_to == "g.x.ctl");
    CHECK(b->publish(m.answer_to, "taken"));
  });
  const auto ctl = hall.hear(*b, "g.x.ctl", [&](const bus::message& m) { heard.push_back(m.bytes); });
  REQUIRE(b->publish("job", "g.x.ctl", "a job"));
  // The server's word that nobody hears a subject is no message of a subscription.
  REQUIRE(b->publish("nobody", "g.x.ctl", "a job"));
  REQUIRE(b->publish("job", "g.x.ctl", "a job"));
  hall.until([&] { return heard.size() == 2; });
  hall.settle(*b);
  hall.drain();
  CHECK(heard == std::vector<std::string>{"taken", "taken"});
}

TEST_CASE("nats: a message that is too long, or has no subject, is refused, and the link stays") {
  if (!can_run_nats()) return;
  scratch_directory scratch;
  const auto config = scratch.path() / "nats.conf";
  std::ofstream(config) << "max_payload: 10000\n";
  nats_server server({{"-c", config.string()}, {}, false});
  bus_hall hall;
  const auto b = hall.join(server.url());
  CHECK(b->most_bytes() == 10'000);
  CHECK(b->publish("a", std::string(10'000, 'x')));
  CHECK_FALSE(b->publish("a", std::string(10'001, 'x')));
  CHECK(hall.ask(*b, "a", std::string(10'001, 'x')).how == how::not_sent);
  for (const char* bad : {"", ".", "a.", ".a", "a..b", "a b", "a\r\nPUB b 0\r\n", "a.*", "a.>", "*", ">"}) {
    CAPTURE(bad);
    CHECK_FALSE(b->publish(bad, "x"));
    CHECK(hall.ask(*b, bad).how == how::not_sent);
    if (*bad) CHECK_FALSE(b->publish("a", bad, "x"));
  }
  CHECK_FALSE(b->publish(std::string(257, 'a'), "x"));
  for (const char* bad : {"", "a b", "a.>.b", "a*", "a.b>", "a..b"}) {
    CAPTURE(bad);
    CHECK_FALSE(b->subscribe(bad, hall.executor(), [](const bus::message&) {}).has_value());
  }
  hall.settle(*b);
  CHECK(b->state() == bus::link::up);
  CHECK(hall.troubles().empty());
}

TEST_CASE("nats: a hundred thousand small messages arrive, none lost") {
  if (!can_run_nats()) return;
  nats_server server;
  bus_hall hall;
  const auto a = hall.join(server.url()), b = hall.join(server.url());
  constexpr std::uint32_t messages = 100'000;
  std::uint32_t next = 0;
  bool in_order = true;
  const auto s = hall.hear(*b, "small", [&](const bus::message& m) {
    in_order = in_order && m.bytes == std::to_string(next);
    ++next;
  });
  hall.settle(*b);
  for (std::uint32_t i = 0; i < messages; ++i) {
    const auto text = std::to_string(i);
    while (!a->publish("small", text)) hall.drain();
  }
  hall.until([&] { return next == messages; });
  CHECK(in_order);
}

TEST_CASE("nats: a subscription that has ended hears nothing more, and others go on") {
  if (!can_run_nats()) return;
  nats_server server;
  bus_hall hall;
  const auto b = hall.join(server.url());
  int first = 0, second = 0;
  auto ended = hall.hear(*b, "a", [&](const bus::message&) { ++first; });
  const auto stays = hall.hear(*b, "a", [&](const bus::message&) { ++second; });
  REQUIRE(b->publish("a", "1"));
  hall.until([&] { return first == 1 && second == 1; });
  ended.reset();
  REQUIRE(b->publish("a", "2"));
  hall.settle(*b);
  hall.until([&] { return second == 2; });
  hall.drain();
  CHECK(first == 1);
  auto only = hall.hear(*b, "only", [](const bus::message&) {});
  hall.settle(*b);
  CHECK(hall.ask(*b, "only", "", std::chrono::milliseconds(20)).how == how::too_late);
  only.reset();
  CHECK(hall.ask(*b, "only").how == how::nobody_there);
}

TEST_CASE("nats: subscriptions and bus are destroyed in either order while messages arrive") {
  if (!can_run_nats()) return;
  nats_server server;
  bus_hall talk;
  const auto a = talk.join(server.url());
  for (int round = 0; round < 20; ++round) {
    CAPTURE(round);
    bus_hall hall;
    auto b = hall.join(server.url());
    int heard = 0;
    auto s = hall.hear(*b, "flood", [&](const bus::message&) { ++heard; });
    hall.settle(*b);
    for (int i = 0; i < 2000; ++i) a->publish("flood", "x");
    hall.until([&] { return heard > round; });
    b->ask("flood", "", std::chrono::seconds(30), hall.executor(),
           [](const bus::answer&) { FAIL("answered"); });
    if (round % 2)
      b.reset();
    else
      s.reset();
  }
}

}  // namespace weir::tests::nats_bus_test
