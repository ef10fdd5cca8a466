// Jobs that lose their worker, in a fleet whose workers compute in different ways: they go on where the
// arithmetic is theirs, elsewhere if there is nobody else, and nowhere else where the gateway is strict.
#include <catch2/catch.hpp>

#include "tests/actors/fleet_town.h"
#include "tests/support/seed.h"

namespace weir::tests::fleet_class_test {
namespace {

using std::chrono::seconds;

// Workers of builds, which alone make their classes here.
struct mixed_fleet : fleet_town {
  explicit mixed_fleet(std::uint64_t seed, bool strict = false) : fleet_town(seed), strict_(strict) {}

  worker& add(const std::string& build) {
    auto o = quick();
    o.build = build;
    return add_worker(std::move(o));
  }
  fleet::gateway_options manners() const {
    fleet::gateway_options o;
    o.strict_class = strict_;
    return o;
  }
  // A job that runs in the only worker.
  std::shared_ptr<job_stream> running(std::uint64_t seed, std::int64_t tokens = 200) {
    auto r = ask("hello", tokens, seed);
    r.who = {7, 0};
    r.resumable = std::make_shared<const std::string>("client");
    const auto s = send(std::move(r));
    REQUIRE(here.run([&] { return s->published() >= 20; }, seconds(30)));
    return s;
  }
  static bool has_jobs(const worker& w) {
    const auto e = w.service->stats().engine;
    return e.queued + e.prefilling + e.decoding > 0;
  }
  // Gives a worker jobs of its own, so that a gateway would rather go elsewhere.
  void load(worker& w, int jobs) {
    for (int i = 0; i < jobs; ++i)
      own.push_back(w.service->submit(ask("busy", 5000, 1), here.get_executor(), [] {}));
    wait(seconds(1));
  }
  const fleet::gateway_counts counts() {
    wait(seconds(1));
    return gateways.front().side->counts();
  }

  std::vector<std::shared_ptr<job_stream>> own;

 private:
  const bool strict_;
};

bool ended_by_class(const job_stream& s) {
  return s.state() == phase::done && s.ended().fault && s.ended().fault->code == core::errc::class_changed;
}

}  // namespace

TEST_CASE("fleet class: a job that moves prefers its class to an idle worker of another one") {
  mixed_fleet t(drawn_seed(201));
  auto& a = t.add("one");
  t.add_gateway(t.manners());
  t.wait(seconds(1));
  const auto s = t.running(8);
  auto& other = t.add("two");
  auto& same = t.add("one");
  t.load(same, 4);
  a.bus->kill();
  REQUIRE(t.here.run([&] { return s->published() >= 80; }, seconds(30)));
  CHECK(!t.has_jobs(other));
  CHECK(same.side->counts().jobs == 1);
  t.finish(s);
  CHECK(text_of(*s) == sim_text(8, 200));
  CHECK(t.counts().moved == 1);
  CHECK(t.counts().between_classes == 0);
  // A newcomer goes where it is quickest: its class does not matter yet.
  const auto late = t.send(ask("hello", 5, 9));
  t.finish(late);
  t.wait(seconds(1));
  CHECK(other.side->counts().taken == 1);
}

TEST_CASE("fleet class: a job goes on in another class where there is nobody else, and is counted") {
  mixed_fleet t(drawn_seed(202));
  auto& a = t.add("one");
  t.add_gateway(t.manners());
  t.wait(seconds(1));
  const auto s = t.running(8, 400);
  auto& b = t.add("two");
  t.wait(seconds(1));
  a.bus->kill();
  REQUIRE(t.here.run([&] { return s->published() >= 120; }, seconds(30)));
  CHECK(t.counts().between_classes == 1);
  auto& again = t.add("one");  // where the output began
  t.add("two");
  t.load(again, 4);
  b.bus->kill();
  REQUIRE(t.here.run([&] { return s->published() >= 250; }, seconds(60)));
  CHECK(again.side->counts().jobs == 1);
  t.finish(s);
  CHECK(text_of(*s) == sim_text(8, 400));
  CHECK(t.counts().moved == 2);
  CHECK(t.counts().between_classes == 2);
}

TEST_CASE("fleet class: a strict gateway ends a job by name where all others compute otherwise") {
  for (const bool drained : {false, true}) {
    mixed_fleet t(drawn_seed(203), true);
    auto& a = t.add("one");
    t.add_gateway(t.manners());
    t.wait(seconds(1));
    const auto s = t.running(8);
    t.add("two");
    t.wait(seconds(1));
    if (drained)
      a.side->drain(std::chrono::milliseconds(200), t.here.get_executor(), [] {});
    else
      a.bus->kill();
    t.finish(s);
    CHECK(ended_by_class(*s));
    CHECK(text_of(*s) == sim_text(8, 200).substr(0, text_of(*s).size()));
    CHECK(t.counts().between_classes == 0);
    const auto late = t.send(ask("hello", 5, 9));  // it begins on the other class
    t.finish(late);
    CHECK(text_of(*late) == sim_text(9, 5));
  }
}

TEST_CASE("fleet class: a strict gateway moves a job within its class, and waits for a worker that is full") {
  mixed_fleet t(drawn_seed(204), true);
  t.most_jobs = 2;
  auto& a = t.add("one");
  t.add_gateway(t.manners());
  t.wait(seconds(1));
  const auto s = t.running(8);
  auto& same = t.add("one");
  t.add("two");
  t.wait(seconds(1));
  for (int i = 0; i < 2; ++i)
    t.own.push_back(same.service->submit(ask("busy", 300, 1), t.here.get_executor(), [] {}));
  t.wait(seconds(1));
  a.bus->kill();
  t.wait(seconds(3));
  CHECK(!fleet_town::over(s));  // its class lives, and has no room now
  t.finish(s);
  CHECK(text_of(*s) == sim_text(8, 200));
  CHECK(t.counts().moved == 1);
  CHECK(t.counts().between_classes == 0);
}

TEST_CASE("fleet class: a strict gateway waits for whoever comes where there is no worker at all") {
  for (const bool same : {true, false}) {
    mixed_fleet t(drawn_seed(205), true);
    auto& a = t.add("one");
    t.add_gateway(t.manners());
    t.wait(seconds(1));
    const auto s = t.running(8);
    a.bus->kill();
    t.wait(seconds(5));
    CHECK(!fleet_town::over(s));
    t.add(same ? "one" : "two");
    t.finish(s);
    CHECK(ended_by_class(*s) == !same);
    if (same) CHECK(text_of(*s) == sim_text(8, 200));
  }
}

TEST_CASE("fleet class: a job without a token begins on any class, however strict the gateway is") {
  mixed_fleet t(drawn_seed(206), true);
  t.spec = "sim:rate=50,prefill=10";
  auto& a = t.add("one");
  t.add_gateway(t.manners());
  t.wait(seconds(1));
  const auto s = t.send(ask("a prompt of some letters", 5, 8));
  t.wait(seconds(1));
  REQUIRE(s->published() == 0);
  REQUIRE(a.side->counts().jobs == 1);
  t.add("two");
  t.wait(std::chrono::milliseconds(500));
  a.bus->kill();
  t.finish(s);
  CHECK(text_of(*s) == sim_text(8, 5));
  CHECK(t.counts().between_classes == 0);
}

TEST_CASE("fleet class: the class of a worker of an earlier build is not known, and is nobody's") {
  for (const bool strict : {false, true}) {
    mixed_fleet t(drawn_seed(207), strict);
    auto& a = t.add("one");
    t.add_gateway(t.manners());
    t.wait(seconds(1));
    const auto s = t.running(8);
    t.says_class = false;
    t.add("one");
    t.wait(seconds(1));
    a.bus->kill();
    t.finish(s);
    CHECK(ended_by_class(*s) == strict);
    if (!strict) CHECK(text_of(*s) == sim_text(8, 200));
    CHECK(t.counts().between_classes == (strict ? 0 : 1));
  }
}

TEST_CASE("fleet class: a gateway that adopts a job learns the class on which it began") {
  for (const bool moved_before : {false, true}) {
    mixed_fleet t(drawn_seed(208));
    auto* at = &t.add("one");
    t.add_gateway(t.manners());
    t.add_gateway(t.manners());
    t.wait(seconds(1));
    const auto s = t.running(8, 500);
    if (moved_before) {
      auto& b = t.add("two");
      t.wait(seconds(1));
      at->bus->kill();
      at = &b;
      REQUIRE(t.here.run([&] { return s->published() >= 120; }, seconds(30)));
    }
    t.gateways.front().bus->kill();
    std::optional<actors::job_search::answer> found;
    t.gateways.back().service->find_elsewhere(
        {s->id(), {7, 0}, {}, t.here.get_executor(), [&](actors::job_search::answer a) {
           found = std::move(a);
         }});
    REQUIRE(t.here.run([&] { return found.has_value(); }, seconds(10)));
    REQUIRE(found->how == actors::job_search::end::found);
    const auto on = found->job->stream;
    REQUIRE(t.here.run([&] { return on->published() >= 150; }, seconds(30)));
    auto& same = t.add("one");
    t.add("two");
    t.load(same, 4);
    at->bus->kill();
    REQUIRE(t.here.run([&] { return on->published() >= 320; }, seconds(60)));
    CHECK(same.side->counts().jobs == 1);
    t.finish(on);
    CHECK(text_of(*on) == sim_text(8, 500));
    CHECK(t.gateways.back().side->counts().between_classes == (moved_before ? 1 : 0));
    found.reset();
  }
}

}  // namespace weir::tests::fleet_class_test
