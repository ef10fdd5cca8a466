// Random days of a service whose models come and go, sleep and wake, and whose pools give way and grow:
// loads, sleeps, wakes and changes of pools that fail, swaps, unloads that do not wait, devices that fail,
// cancels, and jobs all the while. In virtual time.
#include <set>

#include "tests/actors/sim_town.h"
#include "tests/support/budget.h"
#include "tests/support/seed.h"

namespace weir::tests::model_days_test {

using namespace std::chrono_literals;
using actors::model_state;
using answer = actors::order_replies::answer;

namespace {

constexpr const char* names[] = {"a", "b", "c", "d"};

struct day {
  day(std::uint64_t seed, bool devices_fail)
      : random(seed), fails(devices_fail), town(seed, options(random)) {}

  static actors::service_options options(std::mt19937_64& random) {
    actors::service_options o;
    o.models.push_back({"a", "sim:rate=1000,prefill=100000,ctx=32768,pages=1024/32/16384"});
    o.known_models.push_back({"d", "sim:rate=2000,load=40,ctx=32768,mb=3000,pages=2048/32/16384"});
    o.devices.assign(1 + random() % 3, "sim");
    actors::planned_device device;
    device.name = "sim";
    device.total = std::uint64_t{8192} << 20;
    o.measured.push_back(device);
    o.owner.max_batch = 1 + random() % 4;
    o.owner.queue = random() % 6;
    o.owner.audit = true;
    o.sleep_bytes = (std::uint64_t{random() % 4} * 3000) << 20;
    o.seen = std::make_shared<core::incidents>([](std::string_view) {});
    return o;
  }

  std::uint64_t upto(std::uint64_t n) { return random() % n; }
  std::string any_name() { return names[upto(std::size(names))]; }

  std::string any_source() {
    if (upto(8) == 0) return "";  // where it was
    std::string s = "sim:prefill=100000,rate=" + std::to_string(500 + upto(2000));
    if (upto(2) == 0) s += ",load=" + std::to_string(upto(200));
    s += ",mb=" + std::to_string(upto(4096));
    if (upto(3) != 0) s += any_pool();
    if (upto(4) == 0) s += ",fault=load";
    if (upto(8) == 0)
      s += ",sleep=never";
    else if (upto(2) == 0)
      s += ",sleep=" + std::to_string(upto(100)) + "/" + std::to_string(upto(100));
    for (const char* kind : {"sleep", "sleep_room", "wake", "wake_room"})
      if (upto(3) == 0) s += std::string(",fault=") + kind + "@" + std::to_string(1 + upto(2));
    if (fails && upto(5) == 0) s += ",fault=device@" + std::to_string(1 + upto(200));
    if (upto(20) == 0) s += ",nonsense=1";
    return s;
  }
  // Pages of a megabyte or four, of which up to 2,048 or more are of use.
  std::string any_pool() {
    std::string s = ",ctx=" + std::to_string(4096u << upto(5));
    s += ",pages=" + std::to_string(1024u << (2 * upto(2))) + "/" + std::to_string(upto(5) * 32) + "/16384";
    for (const char* kind : {"pages", "pages_room"})
      if (upto(4) == 0 && (fails || kind[5] != 0))
        s += std::string(",fault=") + kind + "@" + std::to_string(1 + upto(4));
    return s;
  }
  std::vector<std::string> any_devices() {
    if (upto(2) == 0) return {};
    return std::vector<std::string>(1 + upto(3), upto(10) == 0 ? "cuda:7" : "sim");
  }

  struct order {
    std::optional<answer> begun, done;
  };
  actors::order_replies into() {
    orders.push_back(std::make_shared<order>());
    return {[o = orders.back()](answer a) {
              CHECK(!o->begun.has_value());
              o->begun = std::move(a);
            },
            [o = orders.back()](answer a) {
              CHECK(o->begun.has_value());
              CHECK(!o->done.has_value());
              o->done = std::move(a);
            }};
  }

  void some_order() {
    const auto ex = town.here.get_executor();
    auto& s = *town.service;
    switch (upto(8)) {
      case 4:
      case 5: {
        actors::sleep_order o{any_name(), {}, {}};
        if (upto(2) == 0) o.level = upto(2) ? actors::sleep_level::host : actors::sleep_level::disk;
        if (upto(2) == 0) o.drain = std::chrono::milliseconds(upto(200));
        return s.sleep_model(std::move(o), ex, into());
      }
      case 6:
      case 7:
        return s.wake_model({any_name()}, ex, into());
      case 0:
      case 1:
        return s.load_model({{any_name(), any_source()}, any_devices(), {}}, ex, into());
      case 2: {
        actors::unload_order o{any_name(), {}, upto(3) == 0};
        if (upto(2) == 0) {
          o.drain = std::chrono::milliseconds(upto(100));
          impatient.insert(o.name);
        }
        return s.unload_model(std::move(o), ex, into());
      }
      default: {
        std::vector<std::string> out;
        for (std::uint64_t n = 1 + upto(2); n > 0; --n) out.push_back(any_name());
        actors::swap_order o{std::move(out), {{any_name(), any_source()}, any_devices(), {}}, {}};
        if (upto(2) == 0) o.drain = std::chrono::milliseconds(upto(300));
        return s.swap_models(std::move(o), ex, into());
      }
    }
  }

  void some_job() {
    const auto prompt = upto(4) == 0 ? std::string(1 + upto(4000), 'x') : std::string("hello");
    auto r = ask(prompt, static_cast<std::int64_t>(1 + upto(150)), upto(1000));
    r.model = any_name();
    const auto job = town.send(std::move(r));
    if (upto(6) == 0)
      town.here.after(std::chrono::milliseconds(upto(200)), [weak = std::weak_ptr(job)] {
        if (const auto j = weak.lock()) j->cancel();
      });
  }

  void live() {
    for (std::uint64_t events = 10 + upto(60); events > 0; --events) {
      upto(4) == 0 ? some_order() : some_job();
      town.here.run([] { return false; }, std::chrono::milliseconds(upto(40)));
    }
    const bool over = town.here.run(
        [&] {
          return std::ranges::all_of(orders,
                                     [](const auto& o) { return o->begun && (!*o->begun || o->done); });
        },
        2h);
    REQUIRE(over);
    town.settle();
  }

  void judge() {
    for (const auto& s : town.all) {
      if (s->state() == phase::refused) continue;
      REQUIRE(s->state() == phase::done);
      const auto reason = s->ended().reason;
      const bool may_fail = fails || impatient.contains(s->model());
      CHECK((reason == core::finish_reason::length || reason == core::finish_reason::cancel || may_fail));
    }
    const auto stats = town.service->stats();
    CHECK(stats.engine.pages_used == 0);
    CHECK(stats.engine.queued + stats.engine.decoding + stats.engine.prefilling + stats.engine.paused == 0);
    for (const auto& m : town.service->all_models().models) {
      INFO(m.name);
      CHECK(m.running + m.queued == 0);
      CHECK((m.state == model_state::ready || m.state == model_state::absent ||
             m.state == model_state::failed || m.state == model_state::asleep));
      CHECK((m.state == model_state::asleep) == m.level.has_value());
      naps += m.sleeps + m.wakes;
      failures += m.nap_failures;
    }
    if (!fails) CHECK(town.service->ready().reason == "");
    std::uint64_t taken = 0;
    for (const auto& m : town.service->all_models().models) {
      taken += m.bytes.weights + m.bytes.pages;
      gave += m.gave_way;
      grew += m.grew;
    }
    CHECK(town.service->all_models().devices.at(0).models == taken);
    std::uint64_t asleep = 0;
    for (const auto& m : town.service->all_models().models) asleep += m.bytes.asleep;
    CHECK(town.service->all_models().sleep_taken == asleep);
    wake_all();
  }

  // What sleeps at the end wakes, or says why it cannot; then it answers.
  void wake_all() {
    for (const auto& m : town.service->all_models().models) {
      if (m.state != model_state::asleep) continue;
      town.service->wake_model({m.name}, town.here.get_executor(), into());
      const auto o = orders.back();
      REQUIRE(town.here.run([&] { return o->begun && (!*o->begun || o->done); }, 1h));
      if (!*o->begun || !*o->done) continue;
      auto r = ask("hello", 20, 77);
      r.model = m.name;
      const auto job = town.send(std::move(r));
      town.settle();
      REQUIRE(job->state() == phase::done);
      if (!fails) CHECK(text_of(*job) == sim_text(77, 20));
    }
  }

  std::mt19937_64 random;
  const bool fails;
  sim_town town;
  std::vector<std::shared_ptr<order>> orders;
  std::set<std::string> impatient;  // models that were unloaded without waiting for their jobs
  std::uint64_t naps = 0, failures = 0, gave = 0, grew = 0;
};

}  // namespace

TEST_CASE("model days: every order and every job has one end, and a swap aborts none") {
  const auto days = rounds(1000);
  std::uint64_t naps = 0, failures = 0, gave = 0, grew = 0;
  for (std::uint64_t i = 0; i < days; ++i) {
    const auto seed = drawn_seed(i);
    CAPTURE(seed);
    day d(seed, false);
    d.live();
    d.judge();
    naps += d.naps;
    failures += d.failures;
    gave += d.gave;
    grew += d.grew;
  }
  if (days < 1000) return;  // how often a nap fails is luck: fewer days say nothing
  CHECK(gave >= days / 100);
  CHECK(grew >= days / 100);
  CHECK(naps >= days / 4);
  CHECK(failures >= days / 200);
}

TEST_CASE("model days: devices that fail in the middle of an order leave nothing hanging") {
  for (std::uint64_t i = 0; i < rounds(300); ++i) {
    const auto seed = drawn_seed(10'000 + i);
    CAPTURE(seed);
    day d(seed, true);
    d.live();
    d.judge();
  }
}

}  // namespace weir::tests::model_days_test
