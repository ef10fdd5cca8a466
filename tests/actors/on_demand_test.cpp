// Requests for models that are not ready: they wait, are refused, or make models leave. In virtual time.
#include <set>

#include "tests/actors/demand_town.h"
#include "tests/support/budget.h"
#include "tests/support/seed.h"

namespace weir::tests::on_demand_test {

using namespace std::chrono_literals;
using actors::model_state;
using actors::request;

namespace {

constexpr std::uint64_t mb = one_mb;

actors::model_spec sim(std::string name, std::string more = "") {
  return sim_model(std::move(name), std::move(more));
}

actors::service_options options(std::vector<actors::model_spec> ready,
                                std::vector<actors::model_spec> known) {
  return demand_options(std::move(ready), std::move(known));
}

struct asking_town : demand_town {
  using demand_town::demand_town;

  std::shared_ptr<job_stream> send_to(std::string model, std::int64_t tokens = 20,
                                      std::optional<request::load> how = {}, std::uint64_t key = 0) {
    auto r = ask("hello", tokens);
    r.model = std::move(model);
    r.when_not_loaded = how;
    r.who.key = key;
    return send(std::move(r));
  }
};

bool answered(const std::shared_ptr<job_stream>& s) {
  return s->state() == phase::done && s->ended().reason == core::finish_reason::length;
}

}  // namespace

TEST_CASE("on demand: a request for a model that is known waits for its load, and is answered") {
  asking_town t(options({sim("a")}, {sim("b", ",load=2000,mb=100")}));
  const auto first = t.send_to("b"), second = t.send_to("b");
  t.wait(1s);
  CHECK(first->state() == phase::pending);
  CHECK(first->awaited_model() == "b");
  CHECK(second->awaited_model() == "b");
  CHECK(first->queue_position() + second->queue_position() == 1);
  CHECK(t.state("b") == model_state::loading);
  t.settle();
  CHECK(answered(first));
  CHECK(answered(second));
  CHECK(t.status("b").loads == 1);
  CHECK(t.send_to("unknown")->awaited_model().empty());
  t.settle();
  CHECK(t.all.back()->refusal().code == core::errc::model_not_found);
}

TEST_CASE("on demand: a request that does not wait is told when to come again, and loads nothing") {
  asking_town t(options({sim("a")}, {sim("b", ",load=2000")}));
  const auto no = t.send_to("b", 20, request::load::refuse);
  t.settle();
  REQUIRE(no->state() == phase::refused);
  CHECK(no->refusal().code == core::errc::unavailable);
  CHECK(no->refusal().param == "model");
  CHECK(no->refusal().retry_after_ms >= 1000);
  CHECK(t.state("b") == model_state::absent);
  CHECK(t.status("b").loads == 0);
  CHECK(answered(t.send_to("a", 20, request::load::refuse)) == false);
  t.settle();
  CHECK(answered(t.all.back()));  // it was ready
}

TEST_CASE("on demand: lists, figures and text load nothing") {
  asking_town t(options({sim("a")}, {sim("b")}));
  t.service->all_models();
  t.service->figures();
  t.service->stats();
  t.service->ready();
  t.service->models();
  CHECK(t.service->takes_model("b"));
  std::optional<bool> there;
  t.service->tokenize("b", "hello", true, t.here.get_executor(),
                      [&](core::result<actors::tokenized> r) { there = r.has_value(); });
  t.wait(5s);
  CHECK(there == false);
  CHECK(t.state("b") == model_state::absent);
}

TEST_CASE("on demand: nobody waits for longer than load_wait, and a load that nobody waits for is undone") {
  auto o = options({sim("a")}, {sim("b", ",load=200000")});
  asking_town t(std::move(o));
  const auto late = t.send_to("b");
  t.wait(119s);
  CHECK(late->state() == phase::pending);
  t.wait(2s);
  REQUIRE(late->state() == phase::refused);
  CHECK(late->refusal().code == core::errc::unavailable);
  CHECK(late->refusal().param == "model");
  CHECK(t.state("b") == model_state::absent);
  CHECK(t.status("b").loads + t.status("b").load_failures == 0);
  const auto left = t.send_to("b");
  t.wait(1s);
  left->cancel();
  t.settle();
  CHECK(left->ended().reason == core::finish_reason::cancel);
  t.wait(1s);
  CHECK(t.state("b") == model_state::absent);
  CHECK(answered(t.send_to("a")) == false);
  t.settle();
  CHECK(answered(t.all.back()));
}

TEST_CASE("on demand: the deadline of a request goes on while it waits") {
  asking_town t(options({sim("a")}, {sim("b", ",load=20000")}));
  auto r = ask("hello", 20);
  r.model = "b";
  r.deadline = 3000ms;
  const auto job = t.send(std::move(r));
  t.settle();
  REQUIRE(job->state() == phase::done);
  CHECK(job->ended().reason == core::finish_reason::timeout);
}

TEST_CASE("on demand: a load that fails fails those that wait for it, and is not tried again at once") {
  asking_town t(options({sim("a")}, {sim("b", ",load=2000,fault=load")}));
  const auto first = t.send_to("b");
  t.settle();
  REQUIRE(first->state() == phase::refused);
  CHECK(first->refusal().code == core::errc::unavailable);
  CHECK(first->refusal().message.find("could not be loaded") != std::string::npos);
  CHECK(t.state("b") == model_state::failed);
  const auto soon = t.send_to("b");
  t.wait(1s);
  CHECK(soon->state() == phase::refused);
  CHECK(t.status("b").load_failures == 1);
  t.wait(10s);
  t.send_to("b");
  t.settle();
  CHECK(t.status("b").load_failures == 2);
}

TEST_CASE("on demand: a model that rests leaves for another, and one that was just used stays for a while") {
  asking_town t(options({sim("a", ",mb=3000"), sim("b", ",mb=3000")}, {sim("c", ",mb=3000")}));
  t.wait(60s);
  t.send_to("b");
  t.settle();
  CHECK(answered(t.send_to("c")) == false);
  t.wait(2s);
  CHECK(answered(t.all.back()));
  CHECK(t.state("a") == model_state::absent);  // b was used 1 s before
  CHECK(t.state("b") == model_state::ready);
  const auto back = t.send_to("a");
  t.wait(5s);
  CHECK(back->state() == phase::pending);  // b and c are in use
  t.settle();
  CHECK(answered(back));
  CHECK(t.state("c") == model_state::ready);
  CHECK(t.state("b") == model_state::absent);
}

TEST_CASE("on demand: what left for a load that fails is loaded again") {
  asking_town t(options({sim("a", ",mb=6000")}, {sim("b", ",mb=6000,load=1000,fault=load")}));
  t.wait(60s);
  const auto no = t.send_to("b");
  t.settle();
  REQUIRE(no->state() == phase::refused);
  CHECK(t.state("a") == model_state::ready);
  CHECK(t.status("a").loads == 2);
  CHECK(answered(t.send_to("a")) == false);
  t.settle();
  CHECK(answered(t.all.back()));
}

TEST_CASE("on demand: pinned models stay, and a request for one that has no room is told the numbers") {
  auto a = sim("a", ",mb=6000");
  a.pinned = true;
  asking_town t(options({a}, {sim("b", ",mb=6000")}));
  t.wait(60s);
  const auto no = t.send_to("b");
  t.wait(1s);
  REQUIRE(no->state() == phase::refused);
  CHECK(no->refusal().code == core::errc::does_not_fit);
  CHECK(no->refusal().param == "model");
  CHECK(no->refusal().message.find("lacks 3992977408 bytes") != std::string::npos);
  CHECK(t.state("a") == model_state::ready);
}

TEST_CASE("on demand: an order pins a model, and another one lets it leave again") {
  asking_town t(options({sim("a", ",mb=6000")}, {sim("b", ",mb=6000")}));
  t.wait(60s);
  const auto pin = [&](bool yes) {
    std::optional<actors::order_replies::answer> said;
    t.service->set_terms({"a", {}, yes}, t.here.get_executor(), {{}, [&](auto a) { said = std::move(a); }});
    t.wait(1s);
    REQUIRE(said.has_value());
    REQUIRE(said->has_value());
    CHECK((*said)->pinned == yes);
    CHECK((*said)->share == 1);
  };
  pin(true);
  const auto no = t.send_to("b");
  t.wait(1s);
  REQUIRE(no->state() == phase::refused);
  CHECK(no->refusal().code == core::errc::does_not_fit);
  CHECK(t.state("a") == model_state::ready);
  pin(false);
  const auto yes = t.send_to("b");
  t.settle();
  CHECK(answered(yes));
  CHECK(t.state("a") != model_state::ready);
}

TEST_CASE("on demand: A B A A becomes A A A B, and no job is aborted") {
  asking_town t(options({sim("a", ",mb=6000")}, {sim("b", ",mb=6000")}));
  std::vector<std::string> ended;
  const auto note = [&](const std::string& model, std::int64_t tokens) {
    auto r = ask("hello", tokens);
    r.model = model;
    auto s = std::make_shared<std::weak_ptr<job_stream>>();
    t.all.push_back(t.service->submit(std::move(r), t.here.get_executor(), [&ended, s, model] {
      if (const auto job = s->lock(); job && job->state() == phase::done) ended.push_back(model);
    }));
    *s = t.all.back();
  };
  note("a", 5000);
  t.wait(1s);
  note("b", 20);
  t.wait(1s);
  note("a", 5000);
  note("a", 5000);
  t.settle();
  CHECK(ended == std::vector<std::string>{"a", "a", "a", "b"});
  for (const auto& s : t.all) CHECK(answered(s));
}

TEST_CASE("on demand: a busy model makes way after swap_wait, and what comes for it later waits in line") {
  asking_town t(options({sim("a", ",mb=6000")}, {sim("b", ",mb=6000")}));
  bool flows = true;
  std::function<void()> more = [&] {  // a is asked every second, for as long as it flows
    if (!flows) return;
    t.send_to("a", 1500);
    t.here.after(1s, more);
  };
  more();
  t.wait(5s);
  const auto b = t.send_to("b");
  t.wait(29s);
  CHECK(b->state() == phase::pending);
  t.wait(10s);
  CHECK(answered(b));
  flows = false;
  t.settle();
  for (const auto& s : t.all) CHECK(answered(s));
  CHECK(t.state("a") == model_state::ready);
}

TEST_CASE("on demand: a model without jobs is unloaded after its time, which a request may lengthen") {
  auto a = sim("a");
  a.idle_unload = 20s;
  auto o = options({a}, {});
  o.demand.longest_stay = 60s;
  asking_town t(std::move(o));
  t.wait(15s);
  CHECK(t.state("a") == model_state::ready);
  t.wait(7s);
  CHECK(t.state("a") == model_state::absent);
  auto r = ask("hello", 20);
  r.model = "a";
  r.stay = std::chrono::hours(5);
  t.send(std::move(r));
  t.settle();
  CHECK(answered(t.all.back()));
  t.wait(50s);
  CHECK(t.state("a") == model_state::ready);
  t.wait(15s);
  CHECK(t.state("a") == model_state::absent);
}

TEST_CASE("on demand: a key waits for one model at a time") {
  asking_town t(options({}, {sim("a", ",load=3000"), sim("b", ",load=3000")}));
  const auto one = t.send_to("a", 20, {}, 7), same = t.send_to("a", 20, {}, 7),
             other = t.send_to("b", 20, {}, 7), foreign = t.send_to("b", 20, {}, 8);
  t.settle();
  CHECK(answered(one));
  CHECK(answered(same) != (answered(other)));  // the order of their wishes is the executor's
  CHECK(answered(foreign));
}

TEST_CASE("on demand: a server that drains refuses those that wait") {
  asking_town t(options({sim("a")}, {sim("b", ",load=20000")}));
  const auto job = t.send_to("b");
  t.wait(1s);
  bool idle = false;
  t.service->drain(t.here.get_executor(), [&] { idle = true; });
  t.wait(1s);
  CHECK(job->state() == phase::refused);
  CHECK(idle);
}

// ---- random days

namespace {

constexpr const char* names[] = {"a", "b", "c", "d", "e"};

struct day {
  explicit day(std::uint64_t seed) : random(seed), town(days_options(random), seed) {}

  static actors::service_options days_options(std::mt19937_64& random) {
    const auto upto = [&](std::uint64_t n) { return random() % n; };
    std::vector<actors::model_spec> known;
    for (const auto* name : names) {
      auto m = sim(name, ",mb=" + std::to_string(upto(9000)) + ",load=" + std::to_string(upto(20'000)) +
                             (upto(6) == 0 ? ",fault=load" : "") + nap_of(random));
      if (upto(4) == 0) m.idle_sleep = std::chrono::seconds(5 + upto(60));
      m.pinned = upto(8) == 0;
      if (upto(3) == 0) m.idle_unload = std::chrono::seconds(5 + upto(60));
      known.push_back(m);
    }
    auto o = options({}, std::move(known));
    o.devices.assign(1 + upto(2), "sim");
    o.owner.models = 1 + upto(4);
    o.sleep_bytes = upto(3) * 6000 * mb;
    o.demand.load_wait = std::chrono::seconds(20 + upto(100));
    o.demand.swap_wait = std::chrono::seconds(5 + upto(30));
    return o;
  }
  static std::string nap_of(std::mt19937_64& random) {
    if (random() % 8 == 0) return ",sleep=never";
    std::string s = ",sleep=" + std::to_string(random() % 800) + "/" + std::to_string(random() % 3000);
    for (const char* kind : {"sleep", "sleep_room", "wake", "wake_room"})
      if (random() % 8 == 0) s += std::string(",fault=") + kind + "@" + std::to_string(1 + random() % 2);
    return s;
  }
  std::uint64_t upto(std::uint64_t n) { return random() % n; }

  void live() {
    const auto ex = town.here.get_executor();
    for (std::uint64_t events = 10 + upto(50); events > 0; --events) {
      const auto what = upto(12);
      const std::string name = names[upto(std::size(names))];
      if (what == 0) {
        ++orders;
        town.service->load_model({{name, ""}, {}, {}}, ex, {[this](auto) { --orders; }, {}});
      } else if (what == 1) {
        ++orders;
        town.service->unload_model({name, {}, false}, ex, {[this](auto) { --orders; }, {}});
      } else if (what == 10) {
        ++orders;
        std::optional<actors::sleep_level> level;
        if (upto(2) == 0) level = upto(2) ? actors::sleep_level::host : actors::sleep_level::disk;
        town.service->sleep_model({name, level, {}}, ex, {[this](auto) { --orders; }, {}});
      } else if (what == 11) {
        ++orders;
        town.service->wake_model({name}, ex, {[this](auto) { --orders; }, {}});
      } else {
        seeds.push_back(upto(1000));
        auto r = ask("hello", static_cast<std::int64_t>(1 + upto(8000)), seeds.back());
        r.model = name;
        r.who.key = upto(3);
        if (upto(8) == 0) r.when_not_loaded = request::load::refuse;
        if (upto(8) == 0) r.deadline = std::chrono::milliseconds(1 + upto(30'000));
        if (upto(8) == 0) r.stay = std::chrono::seconds(upto(100));
        const auto job = town.send(std::move(r));
        if (upto(5) == 0)
          town.here.after(std::chrono::milliseconds(upto(20'000)), [weak = std::weak_ptr(job)] {
            if (const auto j = weak.lock()) j->cancel();
          });
      }
      town.wait(std::chrono::milliseconds(upto(6000)));
    }
    town.settle();
    town.wait(600s);
  }

  // Whatever slept or woke: the tokens are the sim's.
  static bool is_of_the_function(const job_stream& s, std::uint64_t seed) {
    for (std::uint32_t i = 0; i < std::min(s.published(), 50u); ++i)
      if (s.token_at(i) != core::sim_token(seed, i)) return false;
    return true;
  }

  void judge() {
    CHECK(orders == 0);
    for (std::size_t i = 0; i < town.all.size(); ++i) {
      const auto& s = town.all[i];
      if (s->state() == phase::refused) continue;
      REQUIRE(s->state() == phase::done);
      CHECK(is_of_the_function(*s, seeds.at(i)));
      const auto why = s->ended().reason;
      CHECK((why == core::finish_reason::length || why == core::finish_reason::cancel ||
             why == core::finish_reason::timeout));
      ++ends;
    }
    const auto stats = town.service->stats();
    CHECK(stats.engine.pages_used == 0);
    CHECK(stats.engine.queued + stats.engine.decoding + stats.engine.prefilling == 0);
    std::uint64_t taken = 0, asleep = 0;
    for (const auto& m : town.service->all_models().models) {
      INFO(m.name);
      CHECK(m.running + m.queued == 0);
      CHECK((m.state == model_state::ready || m.state == model_state::absent ||
             m.state == model_state::failed || m.state == model_state::asleep));
      taken += m.bytes.weights;
      asleep += m.bytes.asleep;
      loads += m.loads;
      naps += m.sleeps + m.wakes;
    }
    CHECK(town.service->all_models().devices.at(0).models == taken);
    CHECK(town.service->all_models().sleep_taken == asleep);
  }

  std::mt19937_64 random;
  asking_town town;
  int orders = 0;  // under way
  std::vector<std::uint64_t> seeds;  // of town.all
  std::uint64_t loads = 0, ends = 0, naps = 0;
};

}  // namespace

TEST_CASE("on demand days: every job has one end, no swap aborts one, and the books are exact") {
  std::uint64_t loads = 0, ends = 0, naps = 0;
  const auto days = rounds(60);
  for (std::uint64_t i = 0; i < days; ++i) {
    const auto seed = drawn_seed(i);
    CAPTURE(seed);
    day d(seed);
    d.live();
    d.judge();
    loads += d.loads;
    ends += d.ends;
    naps += d.naps;
  }
  CHECK(ends >= 4 * days);
  if (days < 60) return;  // how often models come and rest is luck: fewer days say nothing
  CHECK(naps >= days / 2);
  CHECK(loads >= days / 4);
}

}  // namespace weir::tests::on_demand_test
