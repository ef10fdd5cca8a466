// Days of a fleet whose workers load models for requests at gateways: models that do not all fit, gateways
// that ask at once, workers that die, loads that fail, clients that leave. In virtual time.
#include <catch2/catch.hpp>

#include "tests/actors/demand_fleet.h"
#include "tests/support/budget.h"
#include "tests/support/seed.h"

namespace weir::tests::fleet_demand_days_test {
namespace {

using actors::model_state;
using actors::request;
using std::chrono::milliseconds;
using std::chrono::seconds;

const std::vector<std::string> names{"a", "b", "c", "d", "e"};

struct tally {
  std::uint64_t jobs = 0, whole = 0, refused = 0, failed = 0, cancelled = 0, late = 0;
  std::uint64_t loads = 0, wishes = 0, asked = 0, no = 0, moved = 0;
};

class demand_day {
 public:
  explicit demand_day(std::uint64_t seed) : t_(seed, {.loss = seed % 3 == 0 ? 0.01 : 0}) {
    for (const auto& n : names) {
      auto& m = specs_.emplace_back();
      m.name = n;
      m.source = fmt::format("sim:prefill=100000,rate=50,mb={},load={}", below(8500), below(5000));
    }
    for (int i = 0; i < 3; ++i) {
      auto o = host();
      t_.add_host({}, std::move(o.known_models), [&](auto& to) { to.demand = o.demand; });
    }
    for (int i = 0; i < 2; ++i) t_.add_door(names);
    t_.wait(seconds(1));
  }

  void live(tally& sum) {
    for (int i = 0; i < 30; ++i) after(within(seconds(60)), [this] { submit(); });
    if (below(2) == 0) after(within(seconds(60)), [this] { kill(); });
    if (below(2) == 0) after(within(seconds(60)), [this] { drain(); });
    if (below(2) == 0) after(within(seconds(60)), [this] { cut(); });
    if (below(3) == 0) after(within(seconds(60)), [this] { unload(); });
    REQUIRE(t_.here.run([&] { return planned_ == 0 && std::ranges::all_of(jobs_, is_over); },
                        std::chrono::minutes(20)));
    t_.wait(seconds(60));  // what was under way is over, or undone
    judge(sum);
  }

 private:
  struct asked_job {
    std::shared_ptr<job_stream> stream;
    std::uint64_t seed = 0;
    std::uint32_t tokens = 0;
    bool cancelled = false, timed = false;
    unsigned ends = 0;
  };
  using job_ptr = std::shared_ptr<asked_job>;
  static bool is_over(const job_ptr& j) { return j->ends > 0; }

  std::uint64_t below(std::uint64_t n) { return t_.here.random() % n; }
  core::duration within(core::duration d) {
    return milliseconds(below(static_cast<std::uint64_t>(d / milliseconds(1))));
  }
  void after(core::duration d, std::function<void()> f) {
    ++planned_;
    t_.here.after(d, [this, f = std::move(f)] {
      --planned_;
      f();
    });
  }

  // A worker that knows most models; one in eight of its loads fails always.
  actors::service_options host() {
    demand_fleet::specs known;
    for (auto s : specs_) {
      if (below(4) == 0) continue;
      if (below(8) == 0) s.source += ",fault=load";
      known.push_back(std::move(s));
    }
    auto o = demand_fleet::host_options({}, std::move(known));
    o.demand.stay = seconds(below(5));
    o.demand.swap_wait = seconds(1 + below(10));
    return o;
  }

  void submit() {
    auto& g = t_.gateways[below(t_.gateways.size())];
    auto r = demand_fleet::asked(names[below(names.size())], static_cast<std::int64_t>(1 + below(300)),
                                 below(1000));
    const auto j = std::make_shared<asked_job>();
    j->seed = *r.sampling.seed;
    j->tokens = static_cast<std::uint32_t>(*r.max_tokens);
    j->cancelled = below(8) == 0;
    if (below(10) == 0) r.when_not_loaded = request::load::refuse;
    if (below(10) == 0) r.stay = seconds(below(60));
    if (below(10) == 0) {
      r.deadline = seconds(1 + below(20));
      j->timed = true;
    }
    j->stream = g.service->submit(std::move(r), t_.here.get_executor(), [] {});
    j->stream->follow([weak = std::weak_ptr(j)] {
      const auto j = weak.lock();
      if (j && fleet_town::over(j->stream)) ++j->ends;
    });
    jobs_.push_back(j);
    if (j->cancelled) after(within(seconds(8)), [s = j->stream] { s->cancel(); });
  }

  fleet_town::worker& some_worker() { return t_.workers[below(t_.workers.size())]; }
  void kill() {
    some_worker().bus->kill();
    t_.add_host_later(host());
  }
  void drain() {
    ++planned_;
    some_worker().side->drain(within(seconds(2)), t_.here.get_executor(), [this] { --planned_; });
    t_.add_host_later(host());
  }
  void cut() {
    auto* const bus = some_worker().bus.get();
    bus->cut(true);
    after(within(seconds(4)), [bus] { bus->cut(false); });
  }
  void unload() {
    some_worker().service->unload_model({names[below(names.size())], {}, false}, t_.here.get_executor(),
                                        {[](auto) {}, {}});
  }

  void judge(tally& sum) {
    for (const auto& j : jobs_) judge(*j, sum);
    jobs_.clear();
    t_.wait(seconds(1));
    for (const auto& g : t_.gateways) {
      const auto c = g.side->counts();
      CHECK(c.jobs == 0);
      CHECK(c.waiting == 0);
      CHECK(g.service->memory()->used() == 0);
      const auto models = g.service->doors().list.models();
      for (const auto& m : *models)
        for (const auto& p : m->places) CHECK(p->admission->unfinished() == 0);
      sum.asked += c.loads;
      sum.no += c.loads_refused;
      sum.moved += c.moved;
    }
    for (const auto& w : t_.workers) judge(w, sum);
  }

  static void judge(const fleet_town::worker& w, tally& sum) {
    const auto stats = w.service->stats();
    CHECK(stats.engine.pages_used == 0);
    CHECK(stats.engine.queued + stats.engine.prefilling + stats.engine.decoding == 0);
    CHECK(w.service->memory()->used() == 0);
    CHECK(w.side->counts().jobs == 0);
    CHECK(w.side->counts().kept == 0);
    std::uint64_t taken = 0;
    const auto all = w.service->all_models();
    for (const auto& m : all.models) {
      INFO(m.name);
      CHECK(m.running + m.queued == 0);
      CHECK((m.state == model_state::ready || m.state == model_state::absent ||
             m.state == model_state::failed));
      taken += m.bytes.weights;
      sum.loads += m.loads;
    }
    CHECK(all.devices.at(0).models == taken);
    sum.wishes += w.side->counts().wishes;
  }

  static void judge(const asked_job& j, tally& sum) {
    CHECK(j.ends == 1);
    ++sum.jobs;
    if (j.stream->state() == phase::refused) {
      CHECK(is_expected(j.stream->refusal()));
      return void(++sum.refused);
    }
    const auto size = j.stream->log().size();
    CHECK(size <= j.tokens);
    CHECK(text_of(*j.stream) == sim_text(j.seed, size));
    switch (j.stream->ended().reason) {
      case core::finish_reason::length:
        CHECK(size == j.tokens);
        ++sum.whole;
        break;
      case core::finish_reason::cancel:
        CHECK(j.cancelled);
        ++sum.cancelled;
        break;
      case core::finish_reason::timeout:
        CHECK(j.timed);
        ++sum.late;
        break;
      case core::finish_reason::error:
        REQUIRE(j.stream->ended().fault.has_value());
        CHECK(is_expected(*j.stream->ended().fault));
        ++sum.failed;
        break;
      default:
        FAIL("a job ended with " << core::name(j.stream->ended().reason));
    }
  }
  static bool is_expected(const core::error& e) {
    CAPTURE(e.message);
    return e.code == core::errc::unavailable || e.code == core::errc::does_not_fit ||
           e.code == core::errc::overloaded;
  }

  demand_fleet t_;
  demand_fleet::specs specs_;
  std::vector<job_ptr> jobs_;
  unsigned planned_ = 0;
};

}  // namespace

TEST_CASE("fleet demand days: every job has one end, its text is its seed's, and the books are exact") {
  tally sum;
  const auto days = rounds(40);
  for (std::uint64_t n = 0; n < days; ++n) {
    const auto seed = drawn_seed(n);
    CAPTURE(seed);
    demand_day day(seed);
    day.live(sum);
  }
  CAPTURE(sum.jobs, sum.whole, sum.refused, sum.failed, sum.cancelled, sum.late, sum.loads, sum.wishes,
          sum.asked, sum.no, sum.moved);
  CHECK(sum.whole >= sum.jobs / 2);
  CHECK(sum.failed * 50 <= sum.jobs);
  CHECK(sum.loads >= days);
  CHECK(sum.asked >= sum.wishes / 2);
  // How often something befalls a fleet is luck: fewer days say nothing.
  if (days < 100) return;
  CHECK(sum.no >= days / 4);
  CHECK(sum.moved >= days / 8);
}

}  // namespace weir::tests::fleet_demand_days_test
