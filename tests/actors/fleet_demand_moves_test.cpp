// What befalls a load that requests at gateways wait for: workers and gateways that go, clients that leave,
// models that make way, messages that are lost, and a stranger.
#include <catch2/catch.hpp>

#include "core/fleet/control_frame.h"
#include "core/fleet/order_frame.h"
#include "core/fleet/subjects.h"
#include "tests/actors/demand_fleet.h"

namespace weir::tests::fleet_demand_moves_test {
namespace {

using namespace std::chrono_literals;
using actors::model_state;
namespace wire = core::fleet;

constexpr auto sim = [](std::string name, const std::string& more = {}) {
  return demand_fleet::sim(std::move(name), more);
};
constexpr auto answered = demand_fleet::answered;
constexpr auto state = demand_fleet::state;
constexpr auto status = demand_fleet::status;

// The worker that loads the model now.
fleet_town::worker& loader_of(demand_fleet& t, std::string_view model) {
  for (auto& w : t.workers)
    if (state(w, model) == model_state::loading) return w;
  FAIL("no worker loads it");
  return t.workers.front();
}

}  // namespace

TEST_CASE("fleet demand: a worker that dies while it loads is left for another") {
  demand_fleet t(408);
  t.add_host({sim("a")}, {sim("b", ",load=5000")});
  t.add_host({sim("a")}, {sim("b", ",load=5000")});
  t.add_door({"a", "b"});
  t.wait(1s);
  const auto job = t.send_to("b");
  t.wait(2s);
  auto& dead = loader_of(t, "b");
  dead.bus->kill();
  t.settle();
  CHECK(text_of(*job) == sim_text(7, 20));
  CHECK(t.gateways.front().side->counts().loads == 2);
  // It was alone with a wish that nobody says any more.
  t.wait(10s);
  CHECK(state(dead, "b") == model_state::absent);
  CHECK(status(dead, "b").loads == 0);
  t.check_empty(&dead);
}

TEST_CASE("fleet demand: a worker that drains while it loads is left for another") {
  demand_fleet t(409);
  t.add_host({sim("a")}, {sim("b", ",load=5000")});
  t.add_host({sim("a")}, {sim("b", ",load=5000")});
  t.add_door({"a", "b"});
  t.wait(1s);
  const auto job = t.send_to("b");
  t.wait(1s);
  auto& gone = loader_of(t, "b");
  bool free = false;
  gone.side->drain(30s, t.here.get_executor(), [&] { free = true; });
  t.wait(2s);
  CHECK(free);
  CHECK(state(gone, "b") == model_state::absent);
  t.settle();
  CHECK(answered(job));
  CHECK(status(gone, "b").loads == 0);
  t.check_empty();
}

TEST_CASE(
    "fleet demand: where the last worker that could load is gone, a request waits for another a while") {
  demand_fleet t(410);
  t.add_host({sim("a")}, {sim("b", ",load=3000")});
  t.add_door({"a", "b"});
  t.wait(1s);
  const auto job = t.send_to("b");
  t.wait(1s);
  t.workers.front().bus->kill();
  t.wait(6s);
  CHECK(job->state() == phase::pending);
  t.add_host({sim("a")}, {sim("b", ",load=3000")});
  t.settle();
  CHECK(answered(job));
  const auto other = t.send_to("b");
  t.settle();
  CHECK(answered(other));
  t.workers.back().bus->kill();
  t.wait(3s);
  const auto none = t.send_to("b");
  t.wait(1s);
  REQUIRE(none->state() == phase::refused);
  CHECK(none->refusal().code == core::errc::unavailable);
}

TEST_CASE("fleet demand: where the worker that has the model drains, another one loads it") {
  demand_fleet t(441);
  auto& first = t.add_host({sim("b")}, {});
  auto& second = t.add_host({sim("a")}, {sim("b", ",load=1000")});
  t.add_door({"a", "b"});
  t.wait(1s);
  t.send_to("b", 3000);
  t.wait(1s);
  bool free = false;
  first.side->drain(30s, t.here.get_executor(), [&] { free = true; });
  t.send_to("b");
  t.wait(500ms);
  const auto later = t.send_to("b");
  t.wait(100ms);
  CHECK(later->awaited_model() == "b");
  t.settle();
  for (const auto& s : t.all) CHECK(answered(s));
  CHECK(first.side->counts().taken == 1);
  CHECK(status(second, "b").loads == 1);
  CHECK(t.gateways.front().side->counts().moved == 0);
  t.wait(1s);
  CHECK(free);
  t.check_empty();
}

TEST_CASE("fleet demand: a load that nobody waits for any more is undone") {
  demand_fleet t(411);
  auto& w = t.add_host({sim("a")}, {sim("b", ",load=20000")});
  t.add_door({"a", "b"});
  t.wait(1s);
  const auto one = t.send_to("b"), two = t.send_to("b");
  t.wait(1s);
  CHECK(state(w, "b") == model_state::loading);
  one->cancel();
  t.wait(1s);
  CHECK(state(w, "b") == model_state::loading);
  two->cancel();
  t.settle();
  CHECK(one->ended().reason == core::finish_reason::cancel);
  t.wait(1s);
  CHECK(state(w, "b") == model_state::absent);
  CHECK(status(w, "b").loads + status(w, "b").load_failures == 0);
  t.check_empty();
}

TEST_CASE("fleet demand: a load whose gateway is gone is undone") {
  demand_fleet t(412);
  auto& w = t.add_host({sim("a")}, {sim("b", ",load=20000")});
  t.add_door({"a", "b"});
  t.wait(1s);
  t.send_to("b");
  t.wait(1s);
  CHECK(state(w, "b") == model_state::loading);
  t.gateways.front().bus->kill();
  t.wait(3s);
  CHECK(state(w, "b") == model_state::absent);
}

TEST_CASE("fleet demand: models leave for others as on one server, and no job ends for that") {
  demand_fleet t(433);
  auto& w = t.add_host({sim("a", ",mb=6000")}, {sim("b", ",mb=6000,load=1000")});
  t.add_door({"a", "b"});
  t.wait(1s);
  t.send_to("a", 5000);
  t.wait(1s);
  t.send_to("b");
  t.wait(1s);
  t.send_to("a", 5000);
  t.send_to("a", 5000);
  t.settle();
  for (const auto& s : t.all) CHECK(answered(s));
  CHECK(state(w, "b") == model_state::ready);
  CHECK(state(w, "a") == model_state::absent);
  t.send_to("a");
  t.settle();
  CHECK(answered(t.all.back()));
  CHECK(state(w, "a") == model_state::ready);
  t.check_empty();
}

TEST_CASE("fleet demand: a busy model makes way, and what comes for it later waits") {
  demand_fleet t(434);
  t.add_host({demand_fleet::slow_sim("a", ",mb=6000")}, {sim("b", ",mb=6000,load=1000")});
  t.add_door({"a", "b"});
  t.wait(1s);
  bool flows = true;
  std::function<void()> more = [&] {
    if (!flows) return;
    t.send_to("a", 75);  // for 1.5 s
    t.here.after(1s, more);
  };
  more();
  t.wait(5s);
  const auto b = t.send_to("b");
  t.wait(29s);
  CHECK(b->state() == phase::pending);
  t.wait(12s);
  CHECK(answered(b));
  flows = false;
  t.settle();
  for (const auto& s : t.all) CHECK(answered(s));
  t.check_empty();
}

TEST_CASE("fleet demand: a job whose worker dies goes on at one that loads its model first") {
  demand_fleet t(435);
  auto& first = t.add_host({sim("b")}, {});
  auto& second = t.add_host({sim("a")}, {sim("b", ",load=4000")});
  t.add_door({"a", "b"});
  t.wait(1s);
  const auto job = t.send_to("b", 3000);
  t.wait(1s);
  CHECK(job->published() > 0);
  first.bus->kill();
  t.settle();
  CHECK(answered(job));
  CHECK(text_of(*job) == sim_text(7, 3000));
  CHECK(status(second, "b").loads == 1);
  CHECK(t.gateways.front().side->counts().moved == 1);
  t.check_empty(&first);
}

TEST_CASE("fleet demand: a model stays for as long as a request wishes, within the worker's bound") {
  demand_fleet t(436);
  auto a = demand_fleet::slow_sim("a");
  a.idle_unload = 20s;
  auto& w = t.add_host({a}, {}, [](auto& o) { o.demand.longest_stay = 60s; });
  t.add_door({"a"});
  t.wait(1s);
  auto r = demand_fleet::asked("a", 750);  // for 15 s
  r.stay = std::chrono::hours(5);
  t.send(t.gateways.front(), r);
  t.settle();
  t.wait(55s);
  CHECK(state(w, "a") == model_state::ready);
  t.wait(10s);
  CHECK(state(w, "a") == model_state::absent);
  t.send_to("a", 750);
  t.settle();
  CHECK(state(w, "a") == model_state::ready);
  t.wait(15s);
  CHECK(state(w, "a") == model_state::ready);  // its time counts from the end of its last job
  t.wait(10s);
  CHECK(state(w, "a") == model_state::absent);
}

TEST_CASE("fleet demand: a gateway that drains refuses those that wait, and the load is undone") {
  demand_fleet t(437);
  auto& w = t.add_host({sim("a")}, {sim("b", ",load=20000")});
  t.add_door({"a", "b"});
  t.wait(1s);
  const auto job = t.send_to("b");
  t.wait(1s);
  bool idle = false;
  t.gateways.front().service->drain(t.here.get_executor(), [&] { idle = true; });
  t.wait(1s);
  CHECK(job->state() == phase::refused);
  CHECK(idle);
  CHECK(state(w, "b") == model_state::absent);
}

TEST_CASE("fleet demand: wishes without a permit move nothing and are counted") {
  demand_fleet t(439);
  auto& w = t.add_host({sim("a")}, {sim("b")});
  t.add_door({"a", "b"});
  t.wait(1s);
  const auto stranger = t.net->join();
  const wire::subjects names("main");
  const auto before = w.side->counts().broken;
  for (std::uint64_t n = 0; n < 50; ++n)
    stranger->publish(names.control_of(w.side->name()),
                      wire::frame_of(wire::load_wish{n, t.gateways.front().side->name(), "b", false}));
  t.wait(1s);
  CHECK(w.side->counts().broken == before + 50);
  CHECK(w.side->counts().wishes == 0);
  CHECK(state(w, "b") == model_state::absent);
  // Who hears the permit may ask. The number is another wish's then: not for another gateway, or model.
  std::optional<std::uint64_t> number;
  stranger->ask(names.control_of(w.side->name()), wire::frame_of(wire::permit_wish()), 1s,
                t.here.get_executor(),
                [&](actors::bus::answer a) { number = wire::read_permit(a.bytes)->number; });
  REQUIRE(t.here.run([&] { return number.has_value(); }, 2s));
  const auto say = [&](const std::string& gateway, const std::string& model, bool over) {
    stranger->publish(names.control_of(w.side->name()),
                      wire::frame_of(wire::load_wish{*number, gateway, model, over}));
    t.wait(300ms);  // counts are shown with a board
  };
  const auto mine = t.name();
  say(mine, "b", false);
  CHECK(w.side->counts().wishes == 1);
  say(t.name(), "b", true);
  say(mine, "a", true);
  CHECK(w.side->counts().broken == before + 52);
  t.wait(1s);
  CHECK(state(w, "b") == model_state::ready);
  t.wait(5s);
  say(mine, "b", false);  // its time is over, and a permit is good once
  CHECK(w.side->counts().broken == before + 53);
}

TEST_CASE("fleet demand: a wish says how the load stands, and is over once the model has come and gone") {
  demand_fleet t(442);
  auto& w = t.add_host({sim("a")}, {sim("b", ",load=1000")});
  const auto someone = t.net->join();
  const auto to = wire::subjects("main").control_of(w.side->name());
  const auto answer_to = [&](const std::string& frame) {
    std::optional<std::string> got;
    someone->ask(to, frame, 1s, t.here.get_executor(), [&](actors::bus::answer a) { got = a.bytes; });
    REQUIRE(t.here.run([&] { return got.has_value(); }, 2s));
    return *got;
  };
  const auto permit = wire::read_permit(answer_to(wire::frame_of(wire::permit_wish())));
  REQUIRE(permit.has_value());
  const auto wish = wire::frame_of(wire::load_wish{permit->number, t.name(), "b", false});
  const auto stand = [&] { return std::get<wire::load_news>(*wire::read_control(answer_to(wish))).now; };
  CHECK(stand() == wire::load_stand::waits);
  for (int i = 0; i < 20; ++i) {
    t.wait(100ms);
    stand();
  }
  CHECK(stand() == wire::load_stand::ready);
  const auto keep = [&](core::duration d) {
    for (core::duration past{}; past < d; past += 500ms) {
      t.wait(500ms);
      CHECK(stand() == wire::load_stand::ready);
    }
  };
  keep(3s);
  bool gone = false;
  w.service->unload_model({"b", {}, false}, t.here.get_executor(), {[&](auto) { gone = true; }, {}});
  REQUIRE(t.here.run([&] { return gone && state(w, "b") == model_state::absent; }, 5s));
  CHECK(stand() == wire::load_stand::unknown);
  t.wait(2s);
  CHECK(state(w, "b") == model_state::absent);  // nobody has wished for it again
}

TEST_CASE(
    "fleet demand: wishes reach their worker where messages are lost, doubled and overtake each other") {
  net_manners lossy;
  lossy.loss = 0.05;
  lossy.twice = 0.1;
  demand_fleet t(440, lossy);
  t.add_host({},
             {sim("a", ",load=300,mb=3000"), sim("b", ",load=300,mb=3000"), sim("c", ",load=300,mb=3000")});
  t.add_door({"a", "b", "c"});
  t.wait(2s);
  for (int i = 0; i < 12; ++i) {
    for (const char* name : {"a", "b", "c"}) t.send_to(name);
    t.wait(15s);
  }
  t.settle();
  for (const auto& s : t.all) CHECK(text_of(*s) == sim_text(7, 20));
  t.check_empty();
}

}  // namespace weir::tests::fleet_demand_moves_test
