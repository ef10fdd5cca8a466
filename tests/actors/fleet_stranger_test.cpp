// A stranger on the bus of a fleet who may say anything: invented workers, questions without end. Frames and
// attempts are in fleet_edges_test.cpp, real servers in tests/e2e/fleet_stranger_test.js.
#include <catch2/catch.hpp>

#include "core/fleet/fleet_board.h"
#include "core/fleet/subjects.h"
#include "tests/actors/fleet_town.h"

namespace weir::tests::fleet_stranger_test {
namespace {

namespace wire = core::fleet;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct haunted_fleet : fleet_town {
  explicit haunted_fleet(std::uint64_t seed) : fleet_town(seed), stranger(net->join()) {
    add_worker();
    add_gateway();
    wait(seconds(1));
  }
  void say_board(const wire::fleet_board& b) {
    stranger->publish(names.board_of(b.worker), wire::json_of(b));
  }
  wire::fleet_board invented() {
    wire::fleet_board b;
    b.worker = name();
    b.number = 1;
    b.models.push_back({.name = "sim", .device = "sim", .engine = 1, .context = 100, .batch = 64});
    return b;
  }
  fleet::gateway_side& gateway() { return *gateways.front().side; }

  const std::unique_ptr<loop_net::endpoint> stranger;
  const wire::subjects names{"main"};
};

}  // namespace

TEST_CASE("workers that somebody invents keep no worker out, and are forgotten") {
  haunted_fleet t(81);
  t.workers.clear();
  t.wait(seconds(3));
  for (int i = 0; i < 1100; ++i) t.say_board(t.invented());
  t.wait(milliseconds(100));
  CHECK(t.gateway().workers().size() == 1024);
  t.add_worker();
  t.wait(milliseconds(700));
  const auto s = t.send(t.gateways.front(), ask("hello", 20, 8));
  REQUIRE(t.here.run([&] { return t.over(s); }, seconds(5)));
  CHECK(text_of(*s) == sim_text(8, 20));
  CHECK(t.gateway().counts().hops == 0);  // nobody asked an invented one
  t.wait(seconds(3));
  CHECK(t.gateway().workers().size() == 1);
}

TEST_CASE("a board under another worker's subject is dropped") {
  haunted_fleet t(82);
  const auto before = t.gateway().counts().broken;
  auto b = t.invented();
  const std::string own = t.workers.front().side->name();
  t.stranger->publish(t.names.board_of(own), wire::json_of(b));
  t.wait(milliseconds(200));
  CHECK(t.gateway().counts().broken == before + 1);
  REQUIRE(t.gateway().workers().size() == 1);
  CHECK(t.gateway().workers().front().board.worker == own);
}

TEST_CASE("a worker that is asked for its board without end says it 40 times a second at most") {
  haunted_fleet t(83);
  std::uint64_t boards = 0;
  const auto ear = t.stranger->subscribe(t.names.all_boards(), t.here.get_executor(),
                                         [&](actors::bus::message) { ++boards; });
  REQUIRE(ear.has_value());
  const auto until = t.here.now() + seconds(1);
  while (t.here.now() < until) {
    t.stranger->publish(t.names.hello(), "");
    t.wait(milliseconds(1));
  }
  t.wait(milliseconds(10));
  CHECK(boards >= 30);  // who says it is heard
  CHECK(boards <= 45);
}

}  // namespace weir::tests::fleet_stranger_test
