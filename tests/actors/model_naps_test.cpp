// Models that sleep and wake by order, in virtual time: what they give back and take again, and what happens
// where a step of either fails.
#include "tests/actors/order_town.h"

namespace weir::tests::model_naps_test {

using namespace std::chrono_literals;
using actors::model_state;
using actors::sleep_level;
using core::errc;

namespace {

constexpr std::uint64_t mb = one_mb;
constexpr const char* quick = "sim:rate=1000,prefill=100000";

// A service on simulated devices of 10,000 MB, with 8,000 MB of host memory for sleep.
struct nap_town : order_town {
  explicit nap_town(const std::string& a, std::size_t hosts = 1, std::uint64_t sleep_mb = 8000)
      : order_town(11, options(a, hosts, sleep_mb)) {}
  static actors::service_options options(const std::string& a, std::size_t hosts, std::uint64_t sleep_mb) {
    actors::service_options o;
    o.models.push_back({"a", quick + a});
    o.known_models.push_back({"b", std::string(quick) + ",mb=6000"});
    o.devices.assign(hosts, "sim");
    o.copies = static_cast<std::uint32_t>(hosts);
    o.owner.max_batch = 4;
    o.owner.queue = 8;
    o.owner.audit = true;
    o.sleep_bytes = sleep_mb * mb;
    o.measured.push_back(sim_device(10'000));
    o.seen = std::make_shared<core::incidents>([](std::string_view) {});
    return o;
  }
};

}  // namespace

TEST_CASE("naps: a model that sleeps on the host frees its weights, and answers as ever once it is awake") {
  nap_town t(",mb=6000,sleep=200/300");
  t.answers("a");
  CHECK(t.taken_mb() == 6000);
  const auto asleep = t.well(t.sleep("a"));
  CHECK(asleep.state == model_state::asleep);
  CHECK(asleep.level == sleep_level::host);
  CHECK(asleep.bytes.weights == 0);
  CHECK(asleep.bytes.asleep == 6000 * mb);
  CHECK(t.taken_mb() == 0);
  CHECK(t.held_mb() == 6000);
  t.well(t.load("b"));  // there is room now
  t.well(t.unload("b"));
  const auto began = t.here.now();
  const auto awake = t.well(t.wake("a"));
  CHECK(t.here.now() - began >= 300ms);
  CHECK(awake.state == model_state::ready);
  CHECK_FALSE(awake.level.has_value());
  CHECK(awake.loads == 1);
  CHECK(awake.sleeps == 1);
  CHECK(awake.wakes == 1);
  CHECK(awake.last_wake_s.value() == Approx(0.3).margin(0.01));
  CHECK(t.taken_mb() == 6000);
  CHECK(t.held_mb() == 6000);  // for its next sleep
  CHECK(awake.bytes.asleep == 6000 * mb);
  t.answers("a", 9);
  CHECK(t.figures("a").engine.tokens == 80);  // the engine counts on
  t.well(t.sleep("a"));
  CHECK(t.held_mb() == 6000);
  t.well(t.unload("a"));
  CHECK(t.held_mb() == 0);
}

TEST_CASE("naps: what a model counted does not go back while it sleeps") {
  nap_town t(",mb=100,sleep=0/0");
  t.answers("a");
  t.well(t.sleep("a"));
  t.pass(1s);
  CHECK(t.figures("a").engine.tokens == 40);
  CHECK(t.service->stats().engine.tokens == 40);
  CHECK(t.figures("a").engine.pages_total == 0);
  t.well(t.sleep("a", sleep_level::disk));
  t.pass(1s);
  CHECK(t.figures("a").engine.tokens == 40);
  CHECK(t.service->stats().engine.tokens == 40);
}

TEST_CASE("naps: jobs run to their ends before a model sleeps, and new ones are refused") {
  nap_town t(",mb=6000");
  const auto running = t.ask_of("a", 200);
  t.pass(20ms);
  const auto o = t.sleep("a");
  t.pass(20ms);
  CHECK(t.state("a") == model_state::draining);
  const auto late = t.ask_of("a", 5);
  t.pass(1ms);
  REQUIRE(late->state() == phase::refused);
  CHECK(late->refusal().code == errc::unavailable);
  CHECK(late->refusal().message == "a is being put to sleep");
  t.well(o);
  CHECK(text_of(*running) == sim_text(3, 200));
  const auto asleep = t.ask_of("a", 5);
  t.pass(1ms);
  REQUIRE(asleep->state() == phase::refused);
  CHECK(asleep->refusal().code == errc::unavailable);
  CHECK(asleep->refusal().message == "a sleeps");
}

TEST_CASE("naps: a job that takes too long ends the order and not the job, and nothing has changed") {
  nap_town t(",mb=6000");
  const auto slow = t.ask_of("a", 3000);
  t.pass(20ms);
  for (const auto level : {sleep_level::host, sleep_level::disk}) {
    const auto why = t.ill(t.sleep("a", level, 100ms));
    CHECK(why.code == errc::busy);
    CHECK(why.message == "1 jobs still run after 0 s; nothing was changed");
    CHECK(t.state("a") == model_state::ready);
    CHECK(t.held_mb() == 0);
  }
  const auto beside = t.ask_of("a", 30, 4);
  t.settle();
  CHECK(text_of(*slow) == sim_text(3, 3000));
  CHECK(text_of(*beside) == sim_text(4, 30));
}

TEST_CASE("naps: on the disk a model takes nothing, and its wake is a load") {
  nap_town t(",mb=6000,load=700");
  t.answers("a");
  const auto asleep = t.well(t.sleep("a", sleep_level::disk));
  CHECK(asleep.state == model_state::asleep);
  CHECK(asleep.level == sleep_level::disk);
  CHECK(t.taken_mb() == 0);
  CHECK(t.held_mb() == 0);
  const auto began = t.here.now();
  const auto awake = t.well(t.wake("a"));
  CHECK(t.here.now() - began >= 700ms);
  CHECK(awake.state == model_state::ready);
  CHECK(awake.loads == 2);
  CHECK(awake.wakes == 1);
  CHECK(t.taken_mb() == 6000);
  t.answers("a");
  CHECK(t.figures("a").engine.tokens == 80);
}

TEST_CASE("naps: a sleep that names no level is on the host where there is room, and can become deeper") {
  nap_town roomy(",mb=6000"), none(",mb=6000", 1, 0), tight(",mb=6000", 1, 5999);
  CHECK(roomy.well(roomy.sleep("a", {})).level == sleep_level::host);
  CHECK(none.well(none.sleep("a", {})).level == sleep_level::disk);
  CHECK(tight.well(tight.sleep("a", {})).level == sleep_level::disk);
  CHECK(roomy.well(roomy.sleep("a", sleep_level::disk)).level == sleep_level::disk);
  CHECK(roomy.held_mb() == 0);
  CHECK(roomy.ill(roomy.sleep("a", sleep_level::host)).code == errc::already_there);
  roomy.well(roomy.wake("a"));
  roomy.answers("a");
}

TEST_CASE("naps: orders that cannot be met say why, and change nothing") {
  nap_town t(",mb=6000"), none(",mb=6000", 1, 0), tight(",mb=6000", 1, 5999), never(",mb=6000,sleep=never");
  CHECK(none.ill(none.sleep("a")).code == errc::not_supported);
  CHECK(none.ill(none.sleep("a")).param == "level");
  CHECK(none.ill(none.sleep("a")).message.find("--sleep-mb") != std::string::npos);
  CHECK(tight.ill(tight.sleep("a")).code == errc::does_not_fit);
  CHECK(tight.ill(tight.sleep("a")).message ==
        "a: its weights take 6291456000 bytes of host memory, and 6290407424 of --sleep-mb are free");
  CHECK(never.ill(never.sleep("a")).code == errc::not_supported);
  CHECK(never.ill(never.sleep("a")).message == "a cannot sleep at level 'host' on sim");
  CHECK(never.well(never.sleep("a", sleep_level::disk)).state == model_state::asleep);
  CHECK(t.ill(t.sleep("nobody")).code == errc::model_not_found);
  CHECK(t.ill(t.sleep("b")).message == "b is not loaded: it is absent");
  CHECK(t.ill(t.wake("nobody")).code == errc::model_not_found);
  CHECK(t.ill(t.wake("b")).message == "b does not sleep: it is absent");
  CHECK(t.ill(t.wake("a")).code == errc::already_there);
  t.well(t.sleep("a"));
  CHECK(t.ill(t.sleep("a")).message == "a sleeps already, at level host");
  CHECK(t.ill(t.load("a")).message == "a model is called 'a' already, and it is asleep");
  CHECK(t.ill(t.swap({"a"}, "b")).message == "a is not loaded: it is asleep");
  t.well(t.load("b"));
  CHECK(t.ill(t.wake("a")).code == errc::does_not_fit);
  CHECK(t.ill(t.wake("a")).message == "a: sim lacks 2097152000 bytes for the weights and pages of a wake");
  CHECK(t.state("a") == model_state::asleep);
  CHECK(t.held_mb() == 6000);
  t.well(t.unload("b"));
  t.well(t.wake("a"));
  t.answers("a");
}

TEST_CASE("naps: one order at a time, whatever it is") {
  nap_town t(",mb=6000,sleep=3000/3000");
  const auto first = t.sleep("a");
  t.pass(1s);
  for (const auto& o : {t.sleep("a"), t.wake("a"), t.load("b")}) {
    CHECK(t.ill(o).code == errc::busy);
    CHECK(t.ill(o).message == "another order for models is being carried out: a is being put to sleep");
  }
  t.well(first);
  const auto second = t.wake("a");
  t.pass(1s);
  CHECK(t.state("a") == model_state::loading);
  CHECK(t.ill(t.unload("a")).message == "another order for models is being carried out: a is being woken");
  t.well(second);
}

TEST_CASE("naps: where host memory is short the model is awake as before") {
  nap_town t(",mb=6000,fault=sleep_room@1");
  CHECK(t.ill(t.sleep("a")).code == errc::does_not_fit);
  CHECK(t.state("a") == model_state::ready);
  CHECK(t.status("a").nap_failures == 1);
  CHECK(t.taken_mb() == 6000);
  CHECK(t.held_mb() == 0);
  t.answers("a");
  t.well(t.sleep("a"));
  t.well(t.wake("a"));
  t.answers("a");
}

TEST_CASE("naps: where the device is full the model sleeps on") {
  nap_town t(",mb=6000,fault=wake_room@1");
  t.well(t.sleep("a"));
  CHECK(t.ill(t.wake("a")).code == errc::does_not_fit);
  CHECK(t.state("a") == model_state::asleep);
  CHECK(t.status("a").reason.find("wake_room@1") != std::string::npos);
  CHECK(t.taken_mb() == 0);
  CHECK(t.held_mb() == 6000);
  t.well(t.wake("a"));
  CHECK(t.status("a").reason.empty());
  t.answers("a");
}

TEST_CASE("naps: a model that breaks is destroyed, failed and without memory, and can be loaded again") {
  for (const std::string what : {"sleep", "wake"}) {
    nap_town t(",mb=6000,fault=" + what + "@1");
    t.answers("a");
    if (what == "wake") t.well(t.sleep("a"));
    const auto why = t.ill(what == "wake" ? t.wake("a") : t.sleep("a"));
    CHECK(why.code == errc::internal);
    CHECK(why.message == "the simulated " + what + " failed, as fault=" + what + "@1 asks");
    CHECK(t.state("a") == model_state::failed);
    CHECK(t.status("a").reason == why.message);
    CHECK(t.status("a").nap_failures == 1);
    CHECK(t.taken_mb() == 0);
    CHECK(t.held_mb() == 0);
    CHECK(t.service->stats().engine.tokens == 40);
    CHECK(t.service->ready().ready);
    t.well(t.load("a"));
    t.answers("a");
  }
}

TEST_CASE("naps: of several places all sleep or none, and those that slept are woken for one that cannot") {
  nap_town t(",mb=3000,fault=sleep_room@1", 2);
  CHECK(t.status("a").devices.size() == 2);
  CHECK(t.ill(t.sleep("a")).code == errc::does_not_fit);  // the first place
  CHECK(t.ill(t.sleep("a")).code == errc::does_not_fit);  // the second one: the first is woken again
  CHECK(t.state("a") == model_state::ready);
  CHECK(t.taken_mb() == 6000);
  for (std::uint64_t seed = 0; seed < 8; ++seed) t.ask_of("a", 50, seed);
  t.settle();
  for (const auto& job : t.all) CHECK(job->state() == phase::done);
  t.well(t.sleep("a"));
  CHECK(t.held_mb() == 6000);
  t.well(t.wake("a"));
  t.answers("a");

  nap_town w(",mb=3000,fault=wake_room@1", 2);
  w.well(w.sleep("a"));
  CHECK(w.ill(w.wake("a")).code == errc::does_not_fit);
  CHECK(w.ill(w.wake("a")).code == errc::does_not_fit);
  CHECK(w.state("a") == model_state::asleep);
  CHECK(w.taken_mb() == 0);
  w.well(w.wake("a"));
  for (std::uint64_t seed = 0; seed < 8; ++seed) w.ask_of("a", 50, seed);
  w.settle();
  for (const auto& job : w.all) CHECK(job->state() == phase::done);
}

TEST_CASE("naps: where what was done cannot be undone, all places are closed") {
  nap_town t(",mb=3000,fault=sleep_room@1,fault=wake@1", 2);
  CHECK(t.ill(t.sleep("a")).code == errc::does_not_fit);
  CHECK(t.ill(t.sleep("a")).code == errc::internal);
  CHECK(t.state("a") == model_state::failed);
  CHECK(t.taken_mb() == 0);
  CHECK(t.held_mb() == 0);
  t.well(t.load("a"));
  t.answers("a");
}

TEST_CASE("naps: a model that sleeps is unloaded and forgotten as another") {
  for (const auto level : {sleep_level::host, sleep_level::disk}) {
    nap_town t(",mb=6000");
    t.answers("a");
    t.well(t.sleep("a", level));
    CHECK(t.well(t.unload("a")).state == model_state::absent);
    CHECK(t.taken_mb() + t.held_mb() == 0);
    t.well(t.load("a"));
    t.answers("a");
    t.well(t.sleep("a", level));
    t.well(t.unload("a", {}, true));
    CHECK(t.service->all_models().models.size() == 1);  // b
    CHECK(t.taken_mb() + t.held_mb() == 0);
    CHECK(t.service->stats().engine.tokens == 80);
  }
}

TEST_CASE("naps: a device that fails takes the models that sleep there, and their wake says so") {
  nap_town t(",mb=3000");
  t.well(t.load("c", std::string(quick) + ",mb=10,fault=device@70"));
  t.well(t.sleep("a"));
  const auto job = t.ask_of("c", 100);
  t.settle();
  REQUIRE(job->state() == phase::done);
  CHECK(text_of(*job) == sim_text(3, 100));  // the device was started again
  const auto why = t.ill(t.wake("a"));
  CHECK(why.code == errc::internal);
  CHECK(why.message == "its engine was lost with the device");
  CHECK(t.state("a") == model_state::failed);
  CHECK(t.taken_mb() == 10);
  CHECK(t.held_mb() == 0);
  t.well(t.load("a"));
  t.answers("a");
}

TEST_CASE("naps: a device that fails while an engine is on its way to sleep or back") {
  for (const bool wakes : {false, true}) {
    nap_town t(",mb=3000,sleep=500/500");
    t.well(t.load("c", std::string(quick) + ",mb=10,fault=device@70"));
    if (wakes) t.well(t.sleep("a"));
    const auto o = wakes ? t.wake("a") : t.sleep("a");
    t.pass(10ms);
    const auto job = t.ask_of("c", 100);
    CHECK(t.ill(o).code == errc::internal);
    t.settle();
    CHECK(text_of(*job) == sim_text(3, 100));
    CHECK(t.state("a") == model_state::failed);
    CHECK(t.taken_mb() == 10);
    CHECK(t.held_mb() == 0);
    t.well(t.load("a"));
    t.answers("a");
  }
}

TEST_CASE("naps: a model beside one that sleeps and wakes runs on as if it were alone") {
  nap_town alone(",mb=100"), t(",mb=100");
  t.well(t.load("c", std::string(quick) + ",mb=3000,sleep=50/50"));
  alone.pass(t.here.now() - alone.here.now());
  const auto calm = alone.ask_of("a", 600), beside = t.ask_of("a", 600);
  t.pass(50ms);
  for (int i = 0; i < 3; ++i) {
    t.well(t.sleep("c"));
    t.well(t.wake("c"));
  }
  t.settle();
  alone.settle();
  CHECK(text_of(*beside) == sim_text(3, 600));
  CHECK(beside->sampled_at_us(599) - beside->sampled_at_us(0) ==
        calm->sampled_at_us(599) - calm->sampled_at_us(0));
}

TEST_CASE("naps: the shares of models that are awake leave out one that sleeps") {
  nap_town t(",mb=100");
  t.well(t.load("c", std::string(quick) + ",mb=100"));
  t.pass(1s);
  CHECK(t.status("a").share_asked == Approx(0.5));
  t.well(t.sleep("c"));
  t.pass(1s);
  CHECK(t.status("a").share_asked == Approx(1));
  CHECK(t.status("c").share_asked == 0);
}

TEST_CASE("naps: work on texts needs no model that is awake") {
  nap_town t(",mb=100");
  for (const auto level : {sleep_level::host, sleep_level::disk}) {
    t.well(t.sleep("a", level));
    std::optional<std::size_t> ids;
    t.service->tokenize("a", "hello", false, t.here.get_executor(), [&](core::result<actors::tokenized> r) {
      REQUIRE(r.has_value());
      ids = r->ids.size();
    });
    REQUIRE(t.here.run([&] { return ids.has_value(); }));
    CHECK(ids == 5);
    CHECK(t.state("a") == model_state::asleep);
  }
}

}  // namespace weir::tests::model_naps_test
