// A bus whose servers come, go and hang.
#include <catch2/catch.hpp>

#include "tests/net/bus/bus_hall.h"

namespace weir::tests::nats_link_test {

using bus = actors::bus;
using how = enum bus::answer::how;

TEST_CASE("nats: a server that is killed and started again takes up what it had") {
  if (!can_run_nats()) return;
  nats_server server;
  bus_hall hall;
  const auto a = hall.join(server.url()), b = hall.join(server.url());
  std::vector<bus::link> changes;
  a->watch(hall.executor(), [&](bus::link now) { changes.push_back(now); });
  std::vector<std::string> heard;
  const auto s = hall.hear(*b, "a", [&](const bus::message& m) { heard.push_back(m.bytes); });
  hall.settle(*b);
  REQUIRE(a->publish("a", "before"));
  hall.until([&] { return heard.size() == 1; });
  for (int round = 0; round < 3; ++round) {
    heard.clear();
    changes.clear();
    server.kill();
    hall.until([&] { return changes.size() == 1 && b->state() == bus::link::down; });
    CHECK(changes.back() == bus::link::down);
    CHECK(a->state() == bus::link::down);
    CHECK_FALSE(a->publish("a", "lost"));
    CHECK(hall.ask(*a, "a").how == how::not_sent);
    server.start_again();
    hall.until([&] { return changes.size() == 2 && b->state() == bus::link::up; });
    CHECK(changes.back() == bus::link::up);
    hall.settle(*b);  // the server has the subscription again
    REQUIRE(a->publish("a", "after"));
    hall.until([&] { return heard.size() == 1; });
    CHECK(heard.front() == "after");
    CHECK(hall.ask(*a, "nobody").how == how::nobody_there);
  }
}

TEST_CASE("nats: a bus is made before any server is there, and its link comes up") {
  if (!can_run_nats()) return;
  nats_server server;
  server.kill();
  bus_hall hall;
  const auto b = hall.join(server.url());
  CHECK(b->state() == bus::link::down);
  CHECK(hall.troubles().find(server.url()) != std::string::npos);
  CHECK_FALSE(b->publish("a", "x"));
  CHECK(hall.ask(*b, "a").how == how::not_sent);
  int heard = 0;
  const auto s = hall.hear(*b, "a", [&](const bus::message&) { ++heard; });
  server.start_again();
  hall.until([&] { return b->state() == bus::link::up; });
  REQUIRE(b->publish("a", "x"));
  hall.until([&] { return heard == 1; });
}

TEST_CASE("nats: a bus is destroyed while no server is there") {
  if (!can_run_nats()) return;
  nats_server server;
  bus_hall hall;
  auto b = hall.join(server.url());
  const auto s = hall.hear(*b, "a", [](const bus::message&) {});
  server.kill();
  hall.until([&] { return b->state() == bus::link::down; });
  b.reset();
}

TEST_CASE("nats: while a server hangs, publish refuses what is too much, and nothing waits") {
  if (!can_run_nats()) return;
  nats_server server;
  bus_hall hall;
  const auto b = hall.join(server.url());
  hall.settle(*b);
  server.stop_running();
  const std::string bytes(512 << 10, 'x');
  std::size_t taken = 0;
  while (b->publish("a", bytes)) ++taken;
  // 64 MiB wait in the bus; what the system's buffers of the socket take comes on top. Where this thread was
  // held up for seconds, the link is down before so much was said.
  if (b->state() == bus::link::up) CHECK(taken >= (60u << 20) / bytes.size());
  CHECK(taken <= (128u << 20) / bytes.size());
  CHECK(hall.ask(*b, "a", bytes).how == how::not_sent);
  server.run_on();
  hall.until([&] { return b->state() == bus::link::up && hall.ask(*b, "nobody").how == how::nobody_there; });
  CHECK(b->publish("a", bytes));
}

TEST_CASE("nats: of three servers one is killed, and its processes go on by the others") {
  if (!can_run_nats()) return;
  scratch_directory scratch;
  // The ports of the routes between the servers are drawn by servers that end at once.
  std::vector<std::string> routes;
  {
    std::vector<std::unique_ptr<nats_server>> drawn;
    for (int i = 0; i < 3; ++i) {
      drawn.push_back(std::make_unique<nats_server>());
      routes.push_back(drawn.back()->url());
    }
  }
  const std::string all = routes[0] + "," + routes[1] + "," + routes[2];
  std::vector<std::unique_ptr<nats_server>> servers;
  for (const auto& own : routes)
    servers.push_back(std::make_unique<nats_server>(
        nats_server::options{{"--cluster_name", "test", "--cluster", own, "--routes", all}, {}, false}));
  bus_hall hall;
  const auto near = [&](int i) {
    return servers[i]->url() + "," + servers[(i + 1) % 3]->url() + "," + servers[(i + 2) % 3]->url();
  };
  std::vector<std::unique_ptr<bus>> buses;
  std::vector<std::unique_ptr<bus::subscription>> subscriptions;
  for (int i = 0; i < 3; ++i) {
    buses.push_back(hall.join(near(i)));
    auto* b = buses.back().get();
    subscriptions.push_back(hall.hear(*b, "who." + std::to_string(i),
                                      [b](const bus::message& m) { b->publish(m.answer_to, m.bytes); }));
  }
  const auto everyone_hears = [&] {
    for (int from = 0; from < 3; ++from)
      for (int to = 0; to < 3; ++to)
        hall.until([&] {
          return hall.ask(*buses[from], "who." + std::to_string(to), "x", std::chrono::seconds(1)).how ==
                 how::came;
        });
  };
  everyone_hears();
  for (int i = 0; i < 3; ++i) {
    CAPTURE(i);
    servers[i]->kill();
    everyone_hears();
    servers[i]->start_again();
    everyone_hears();
  }
}

}  // namespace weir::tests::nats_link_test
