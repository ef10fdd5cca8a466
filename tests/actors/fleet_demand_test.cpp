// Requests at gateways for models that no worker has ready: one worker is asked to load, and they wait.
#include <catch2/catch.hpp>

#include "tests/actors/demand_fleet.h"

namespace weir::tests::fleet_demand_test {
namespace {

using namespace std::chrono_literals;
using actors::model_state;
using actors::request;

constexpr auto sim = [](std::string name, const std::string& more = {}) {
  return demand_fleet::sim(std::move(name), more);
};
constexpr auto answered = demand_fleet::answered;
constexpr auto state = demand_fleet::state;
constexpr auto status = demand_fleet::status;

}  // namespace

TEST_CASE("fleet demand: a request waits until a worker has loaded its model, and is answered") {
  demand_fleet t(401);
  auto& w = t.add_host({sim("a")}, {sim("b", ",load=2000,mb=100")});
  t.add_door({"a", "b"});
  t.wait(1s);
  const auto first = t.send_to("b"), second = t.send_to("b");
  t.wait(1s);
  CHECK(first->state() == phase::pending);
  CHECK(first->awaited_model() == "b");
  CHECK(second->awaited_model() == "b");
  CHECK(first->queue_position() + second->queue_position() == 1);
  CHECK(state(w, "b") == model_state::loading);
  CHECK(t.gateways.front().side->counts().waiting == 2);
  t.settle();
  CHECK(text_of(*first) == sim_text(7, 20));
  CHECK(text_of(*second) == sim_text(7, 20));
  CHECK(status(w, "b").loads == 1);
  CHECK(t.gateways.front().side->counts().loads == 1);
  CHECK(t.gateways.front().side->counts().loads_refused == 0);
  CHECK(t.gateways.front().side->counts().hops == 0);
  const auto later = t.send_to("b");
  CHECK(later->awaited_model().empty());
  t.settle();
  CHECK(answered(later));
  CHECK(t.wishes() == 1);
  t.check_empty();
}

TEST_CASE("fleet demand: a request that does not wait is told when to come again, and loads nothing") {
  demand_fleet t(402);
  auto& w = t.add_host({sim("a")}, {sim("b", ",load=2000")});
  t.add_door({"a", "b"});
  t.wait(1s);
  const auto no = t.send_to("b", 20, request::load::refuse),
             ready = t.send_to("a", 20, request::load::refuse);
  t.settle();
  REQUIRE(no->state() == phase::refused);
  CHECK(no->refusal().code == core::errc::unavailable);
  CHECK(no->refusal().param == "model");
  CHECK(no->refusal().retry_after_ms >= 1000);
  CHECK(answered(ready));
  t.wait(5s);
  CHECK(state(w, "b") == model_state::absent);
  CHECK(t.wishes() == 0);
}

TEST_CASE("fleet demand: lists, figures and texts load nothing, and say that the model could be loaded") {
  demand_fleet t(403);
  auto& w = t.add_host({sim("a")}, {sim("b")});
  auto& g = t.add_door({"a", "b", "unknown"});
  t.wait(1s);
  CHECK(g.service->takes_model("b"));
  CHECK_FALSE(g.service->takes_model("unknown"));
  const auto all = g.service->all_models().models;
  REQUIRE(all.size() == 3);
  for (const auto& m : all) {
    INFO(m.name);
    CHECK(m.state == (m.name == "a"   ? model_state::ready
                      : m.name == "b" ? model_state::absent
                                      : model_state::failed));
  }
  CHECK(g.service->models().size() == 1);
  g.service->figures();
  g.service->stats();
  g.service->ready();
  std::optional<bool> there;
  g.service->tokenize("b", "hello", true, t.here.get_executor(),
                      [&](core::result<actors::tokenized> r) { there = r.has_value(); });
  t.wait(5s);
  CHECK(there == true);  // a gateway has the tokenizer of its models
  CHECK(state(w, "b") == model_state::absent);
  CHECK(t.wishes() == 0);
}

TEST_CASE("fleet demand: a model that no worker knows, or that none loads by itself, is refused at once") {
  demand_fleet t(404);
  t.add_host({sim("a")}, {sim("b")}, [](auto& o) { o.demand.on = false; });
  t.add_door({"a", "b", "c"});
  t.wait(1s);
  for (const char* name : {"b", "c"}) {
    const auto no = t.send_to(name);
    t.wait(100ms);
    REQUIRE(no->state() == phase::refused);
    CHECK(no->refusal().code == core::errc::unavailable);
  }
  CHECK(t.wishes() == 0);
}

TEST_CASE("fleet demand: a request that is wrong is refused without a load") {
  demand_fleet t(405);
  auto& w = t.add_host({sim("a")}, {sim("b")});
  t.add_door({"a", "b"});
  t.wait(1s);
  auto r = demand_fleet::asked("b");
  r.sampling.temperature = 7;
  const auto no = t.send(t.gateways.front(), r);
  t.wait(5s);
  REQUIRE(no->state() == phase::refused);
  CHECK(no->refusal().param == "temperature");
  CHECK(state(w, "b") == model_state::absent);
}

TEST_CASE("fleet demand: where a worker refuses the next one is asked, each once") {
  demand_fleet t(406);
  // The first one has most room, and is asked first.
  const auto full = [](actors::service_options& o) {
    o.owner.models = 1;
    o.models.front().pinned = true;
  };
  auto& no = t.add_host({sim("a")}, {sim("b")}, full);
  auto& fails = t.add_host({sim("a", ",mb=2000")}, {sim("b", ",load=500,fault=load")});
  auto& yes = t.add_host({sim("a", ",mb=4000")}, {sim("b", ",load=500")});
  t.add_door({"a", "b"});
  t.wait(1s);
  const auto job = t.send_to("b");
  t.settle();
  CHECK(answered(job));
  CHECK(no.side->counts().wishes == 1);
  CHECK(fails.side->counts().wishes == 1);
  CHECK(status(fails, "b").load_failures == 1);
  CHECK(status(yes, "b").loads == 1);
  CHECK(t.gateways.front().side->counts().loads == 3);
  CHECK(t.gateways.front().side->counts().loads_refused == 2);
  t.check_empty();
}

TEST_CASE("fleet demand: after the last refusal those that wait hear its reason") {
  demand_fleet t(407);
  auto pinned = sim("a", ",mb=6000");
  pinned.pinned = true;
  t.add_host({pinned}, {sim("b", ",mb=6000")});
  t.add_host({pinned}, {sim("b", ",mb=6000")});
  t.add_door({"a", "b"});
  t.wait(1s);
  const auto one = t.send_to("b"), two = t.send_to("b");
  t.wait(3s);
  for (const auto& s : {one, two}) {
    REQUIRE(s->state() == phase::refused);
    CHECK(s->refusal().code == core::errc::does_not_fit);
    CHECK(s->refusal().param == "model");
    CHECK(s->refusal().message.find("lacks 3992977408 bytes") != std::string::npos);
  }
  CHECK(t.wishes() == 2);
  const auto fine = t.send_to("a");
  t.settle();
  CHECK(answered(fine));
  t.check_empty();
}

TEST_CASE("fleet demand: nobody waits for longer than load_wait, and a deadline goes on") {
  demand_fleet t(413);
  auto& w = t.add_host({sim("a")}, {sim("b", ",load=200000")});
  t.add_door({"a", "b"}, [](auto& o) { o.demand.load_wait = 30s; });
  t.wait(1s);
  const auto late = t.send_to("b");
  auto r = demand_fleet::asked("b");
  r.deadline = 3000ms;
  const auto short_time = t.send(t.gateways.front(), r);
  t.wait(4s);
  REQUIRE(short_time->state() == phase::done);
  CHECK(short_time->ended().reason == core::finish_reason::timeout);
  t.wait(25s);
  CHECK(late->state() == phase::pending);
  t.wait(2s);
  REQUIRE(late->state() == phase::refused);
  CHECK(late->refusal().code == core::errc::unavailable);
  CHECK(late->refusal().param == "model");
  CHECK(late->refusal().message.find("after 30 s") != std::string::npos);
  t.wait(1s);
  CHECK(state(w, "b") == model_state::absent);
}

TEST_CASE("fleet demand: two gateways that ask at once make one load") {
  for (std::uint64_t seed = 420; seed < 430; ++seed) {
    INFO(seed);
    demand_fleet t(seed);
    for (int i = 0; i < 3; ++i) t.add_host({sim("a")}, {sim("b", ",load=2000")});
    auto& one = t.add_door({"a", "b"});
    auto& two = t.add_door({"a", "b"});
    t.wait(1s);
    const auto x = t.send(one, demand_fleet::asked("b")), y = t.send(two, demand_fleet::asked("b"));
    t.settle();
    CHECK(answered(x));
    CHECK(answered(y));
    CHECK(t.loads("b") == 1);
    CHECK(t.wishes() == 2);  // so that the load goes on where one of them leaves
  }
}

TEST_CASE("fleet demand: a load goes on for one gateway where those of the other leave") {
  demand_fleet t(431);
  auto& w = t.add_host({sim("a")}, {sim("b", ",load=5000")});
  auto& one = t.add_door({"a", "b"});
  auto& two = t.add_door({"a", "b"});
  t.wait(1s);
  const auto x = t.send(one, demand_fleet::asked("b"));
  t.wait(1s);
  const auto y = t.send(two, demand_fleet::asked("b"));
  t.wait(1s);
  x->cancel();
  t.settle();
  CHECK(answered(y));
  CHECK(status(w, "b").loads == 1);
}

TEST_CASE("fleet demand: a key waits for one model at a time, and only so many of its requests wait") {
  demand_fleet t(432);
  t.add_host({sim("a")}, {sim("b", ",load=3000"), sim("c", ",load=3000")});
  t.add_door({"a", "b", "c"});
  t.wait(1s);
  std::vector<std::shared_ptr<job_stream>> same;
  for (int i = 0; i < 64; ++i) same.push_back(t.send_to("b", 20, {}, 7));
  t.wait(200ms);
  const auto more = t.send_to("b", 20, {}, 7), other = t.send_to("c", 20, {}, 7),
             foreign = t.send_to("c", 20, {}, 8);
  t.wait(200ms);
  REQUIRE(more->state() == phase::refused);
  CHECK(more->refusal().code == core::errc::overloaded);
  CHECK(more->refusal().param == "model");
  REQUIRE(other->state() == phase::refused);
  CHECK(other->refusal().code == core::errc::busy);
  CHECK(other->refusal().param == "model");
  std::vector<std::shared_ptr<job_stream>> rest;
  for (int i = 0; i < 191; ++i) rest.push_back(t.send_to("b"));
  t.wait(200ms);
  const auto last = t.send_to("b");
  t.wait(200ms);
  REQUIRE(last->state() == phase::refused);
  CHECK(last->refusal().code == core::errc::overloaded);
  CHECK(t.gateways.front().side->counts().waiting == 256);
  t.settle();
  for (const auto& s : same) CHECK(answered(s));
  CHECK(answered(foreign));
  t.check_empty();
}

TEST_CASE("fleet demand: a model of other tokens under the name is not waited for") {
  demand_fleet t(438);
  auto other = sim("b", ",load=1000");
  other.source = "random:tiny";
  t.add_host({sim("a")}, {other});
  t.add_door({"a", "b"}, [](auto& o) { o.demand.load_wait = 60s; });
  t.wait(1s);
  const auto job = t.send_to("b");
  t.wait(15s);
  REQUIRE(job->state() == phase::refused);
  CHECK(job->refusal().code == core::errc::unavailable);
}

}  // namespace weir::tests::fleet_demand_test
