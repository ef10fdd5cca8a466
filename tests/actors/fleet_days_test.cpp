// Days of a fleet in virtual time: three gateways and five workers with simulated engines, and everything
// that can befall them. Each job's text is the undisturbed function of its seed, whatever happens to its
// workers.
#include <algorithm>
#include <catch2/catch.hpp>

#include "actors/cell_jobs.h"
#include "core/fleet/control_frame.h"
#include "core/fleet/subjects.h"
#include "tests/actors/fleet_town.h"
#include "tests/support/budget.h"
#include "tests/support/seed.h"

namespace weir::tests::fleet_days_test {
namespace {

using std::chrono::seconds;

struct asked_job {
  std::shared_ptr<job_stream> stream;
  std::uint64_t seed = 0;
  std::uint32_t tokens = 0;
  std::string stop;  // empty: none
  bool cancelled = false;
  unsigned ends = 0;  // times that it went over
  std::size_t home = 0;    // index of its gateway
  bool handed = false;     // another gateway may have adopted it
  bool abandoned = false;  // its gateway was killed
  core::job_id answer{};   // of the first choice of its request
};

struct tally {
  unsigned jobs = 0, whole = 0, cancelled = 0, failed = 0, refused = 0;
  unsigned resumed = 0, not_found = 0, not_resumable = 0, handed = 0, handed_over = 0;
  unsigned lists = 0, ended_from_afar = 0;
  std::uint64_t moved = 0, hops = 0, again = 0, frames_void = 0, dead = 0, told_again = 0;
};

// One day: what happens is a function of its seed, and `seed % 8` is the kind of day (live()).
constexpr std::uint64_t kinds = 8;

// The seed of day `n` of a run: every run has days of each kind, drawn seeds or not.
std::uint64_t seed_of_day(std::uint64_t first, unsigned n) {
  const auto drawn = drawn_seed(first + n);
  return drawn - drawn % kinds + n % kinds;
}

class fleet_day {
 public:
  // `calm`: nothing befalls the fleet but resumes.
  explicit fleet_day(std::uint64_t seed, bool calm = false)
      : seed_(seed), calm_(calm), t_(seed, "rate=50,prefill=20000", calm ? net_manners() : manners()) {
    for (int i = 0; i < 5; ++i) t_.add_worker(fleet_town::quick());
    for (int i = 0; i < 3; ++i) t_.add_gateway();
    t_.wait(std::chrono::milliseconds(600));
  }

  void live(tally& sum) {
    for (int i = 0; i < 24; ++i) plan_job();
    for (int i = 0; i < 5 && !calm_; ++i) plan_trouble();
    if (seed_ % 3 == 1 && !calm_) plan_rest();
    if (seed_ % 4 == 1) plan_cell();
    if (seed_ % 4 == 2) plan_resumes();
    if (seed_ % 4 == 3)
      after(seconds(2) + within(seconds(5)), [this] { seed_ % 8 == 3 ? kill_gateway() : end_gateway(); });
    REQUIRE(t_.here.run([&] { return planned_ == 0; }, std::chrono::minutes(5)));
    REQUIRE(t_.here.run([&] { return std::ranges::all_of(jobs_, is_settled); }, std::chrono::minutes(5)));
    t_.wait(std::chrono::seconds(20));  // the ends of graces, and of what is kept
    judge(sum);
  }

 private:
  static bool is_settled(const std::shared_ptr<asked_job>& j) { return j->ends > 0 || j->abandoned; }
  static net_manners manners() { return {.loss = 0.01, .twice = 0.005}; }

  std::uint64_t below(std::uint64_t n) { return t_.here.random() % n; }
  core::duration within(core::duration d) {
    return core::duration(static_cast<std::int64_t>(below(static_cast<std::uint64_t>(d.count()))));
  }
  void after(core::duration d, std::function<void()> f) {
    ++planned_;
    t_.here.after(d, [this, f = std::move(f)] {
      --planned_;
      f();
    });
  }

  void plan_job() {
    const auto at = within(std::chrono::seconds(8));
    after(at, [this] {
      const auto g = some_gateway();
      auto r = ask("hello world", static_cast<std::int64_t>(5 + below(200)), below(1u << 30));
      if (below(4) == 0) r.top_logprobs = static_cast<std::int64_t>(below(4));
      if (below(5) == 0) {  // a word that the answer has
        const auto at = static_cast<std::uint32_t>(below(static_cast<std::uint64_t>(*r.max_tokens)));
        r.stop.push_back(fmt::format("w{:03d}", core::sim_token(*r.sampling.seed, at)));
      }
      submit(g, std::move(r), below(5) == 0 ? 2 : 1);
    });
  }

  std::size_t some_gateway() {
    const auto g = below(t_.gateways.size());
    return g == killed_ ? (g + 1) % t_.gateways.size() : g;
  }

  void submit(std::size_t g, actors::request r, std::uint32_t choices) {
    r.resumable = std::make_shared<const std::string>("client");
    const auto base = asked_job{nullptr,
                                *r.sampling.seed,
                                static_cast<std::uint32_t>(*r.max_tokens),
                                r.stop.empty() ? std::string() : r.stop.front(),
                                below(8) == 0,
                                0,
                                g};
    auto streams = t_.gateways[g].service->submit(std::move(r), choices, t_.here.get_executor(), [] {});
    const auto answer = streams.front()->id();
    for (auto& s : streams) {
      auto& j = keep(base, std::move(s));
      j.answer = answer;
      if (j.cancelled) after(within(std::chrono::seconds(3)), [s = j.stream] { s->cancel(); });
    }
  }

  asked_job& keep(const asked_job& base, std::shared_ptr<job_stream> s) {
    jobs_.push_back(std::make_shared<asked_job>(base));
    auto& j = *jobs_.back();
    j.stream = std::move(s);
    j.stream->follow([job = std::weak_ptr(jobs_.back())] {
      const auto j = job.lock();
      if (j && fleet_town::over(j->stream)) ++j->ends;
    });
    return j;
  }

  // Clients come to another gateway, whose first one lives.
  void plan_resumes() {
    for (int i = 0; i < 8; ++i)
      after(seconds(1) + within(seconds(8)), [this] {
        if (jobs_.empty()) return;
        const auto j = jobs_[below(jobs_.size())];
        if (fleet_town::over(j->stream) || j->handed) return;
        j->handed = true;
        resume(j, 1);
      });
  }

  // Somebody looks at the jobs of the cell now and then, and ends some of them by way of another gateway.
  void plan_cell() {
    for (int i = 0; i < 6; ++i) after(within(seconds(9)), [this] { list_cell(); });
    for (int i = 0; i < 6; ++i) after(seconds(1) + within(seconds(8)), [this] { end_from_afar(); });
  }

  void list_cell() {
    ++planned_;
    actors::list_cell_jobs(*t_.gateways[some_gateway()].service, {}, t_.here.get_executor(),
                           [this](const actors::cell_jobs& all) {
                             --planned_;
                             ++lists_;
                             std::set<core::job_id> ids;
                             for (const auto& j : all.jobs) CHECK(ids.insert(j.id).second);
                           });
  }

  void end_from_afar() {
    if (jobs_.empty()) return;
    const auto j = jobs_[below(jobs_.size())];
    const auto to = some_gateway();
    if (fleet_town::over(j->stream) || to == j->home) return;
    const auto id = j->stream->id();
    for (const auto& one : jobs_)
      if (one->stream->id() == id || one->answer == id) one->cancelled = true;
    ++planned_;
    actors::cancel_cell_job(*t_.gateways[to].service, {}, id, t_.here.get_executor(),
                            [this](const actors::cell_job& gone) {
                              --planned_;
                              if (gone.job && gone.job->finish_reason == "cancel") ++ended_from_afar_;
                            });
  }

  // A gateway is killed, and its clients come to the others.
  void kill_gateway() {
    killed_ = below(t_.gateways.size());
    lose_gateway();
  }

  // A gateway is told to end. It hands its jobs over, and ends a while later.
  void end_gateway() {
    killed_ = below(t_.gateways.size());
    ++planned_;
    t_.gateways[killed_].side->hand_over(seconds(1), t_.here.get_executor(), [this](std::uint32_t left) {
      --planned_;
      handed_over_ += left;
      after(std::chrono::milliseconds(500), [this] { lose_gateway(); });
    });
  }

  void lose_gateway() {
    t_.gateways[killed_].bus->kill();
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      const auto j = jobs_[i];
      if (j->home != killed_) continue;
      const bool handed_over = j->stream->state() == phase::done && j->stream->ended().fault &&
                               j->stream->ended().fault->code == core::errc::handed_over;
      if (fleet_town::over(j->stream) && !handed_over) continue;
      j->abandoned = true;
      if (handed_over || j->stream->state() == phase::running)
        after(within(seconds(2)), [this, j] { resume(j, 3); });
    }
  }

  // A client asks once more where nothing was found: a question and its answer may be lost.
  void resume(const std::shared_ptr<asked_job>& j, int tries) {
    auto to = some_gateway();
    if (to == j->home) to = (to + 1) % t_.gateways.size();
    if (to == killed_) to = (to + 1) % t_.gateways.size();
    if (to == j->home) return;
    ++planned_;
    actors::job_search s{
        j->stream->id(), {}, {}, t_.here.get_executor(), [this, j, tries, to](actors::job_search::answer a) {
          --planned_;
          take(j, tries, to, a);
        }};
    t_.gateways[to].service->find_elsewhere(std::move(s));
  }

  void take(const std::shared_ptr<asked_job>& j, int tries, std::size_t to, actors::job_search::answer& a) {
    using end = actors::job_search::end;
    if (a.how == end::refused && a.why->code == core::errc::not_supported) return void(++not_resumable_);
    if (a.how != end::found) {
      if (tries > 1) return after(seconds(1), [this, j, tries] { resume(j, tries - 1); });
      return void(++not_found_);
    }
    ++resumed_;
    CHECK(a.job->client.empty() == (a.job->choices.empty()));
    auto base = *j;
    base.home = to;
    base.ends = 0;
    base.handed = base.abandoned = false;
    keep(base, a.job->stream);
  }

  void plan_trouble() {
    const auto at = within(std::chrono::seconds(9));
    switch (below(5)) {
      case 0:
        after(at, [this] { kill(); });
        break;
      case 1:
        after(at, [this] { stall(); });
        break;
      case 2:
        after(at, [this] { cut(*some_worker().bus); });
        break;
      case 3:
        after(at, [this] { cut(*t_.gateways[some_gateway()].bus); });
        break;
      case 4:
        after(at, [this] { drain(); });
        break;
    }
  }

  // An operator drains a worker, and lets it take jobs again later. Either order may be lost.
  void plan_rest() {
    after(within(std::chrono::seconds(6)), [this] {
      const auto to = core::fleet::subjects("main").control_of(some_worker().side->name());
      operator_->publish(to, frame_of(core::fleet::drain{within(std::chrono::seconds(1))}));
      after(within(std::chrono::seconds(4)),
            [this, to] { operator_->publish(to, frame_of(core::fleet::undrain())); });
    });
  }

  fleet_town::worker& some_worker() { return t_.workers[below(t_.workers.size())]; }

  // A worker that is killed is replaced: the fleet keeps its size.
  void kill() {
    some_worker().bus->kill();
    add_one();
  }
  void stall() {
    auto* const bus = some_worker().bus.get();
    bus->stall(true);
    after(std::chrono::milliseconds(300) + within(std::chrono::seconds(5)), [bus] { bus->stall(false); });
  }
  void cut(loop_net::endpoint& bus) {
    bus.cut(true);
    after(within(std::chrono::seconds(3)), [&bus] { bus.cut(false); });
  }
  void drain() {
    auto& w = some_worker();
    ++planned_;
    w.side->drain(within(std::chrono::seconds(1)), t_.here.get_executor(), [this] { --planned_; });
    add_one();
  }
  // Loading runs the world, which a handler must not do: it is added when the day's loop is between two.
  void add_one() { t_.add_worker_later(fleet_town::quick()); }

  void judge(tally& sum) {
    for (const auto& j : jobs_)
      if (!j->abandoned) judge(*j, sum);
    sum.resumed += resumed_, sum.not_found += not_found_, sum.not_resumable += not_resumable_;
    sum.handed_over += handed_over_;
    sum.lists += lists_, sum.ended_from_afar += ended_from_afar_;
    for (std::size_t i = 0; i < t_.gateways.size(); ++i) {
      if (i == killed_) continue;
      const auto& g = t_.gateways[i];
      const auto c = g.side->counts();
      CHECK(c.jobs == 0);
      sum.moved += c.moved, sum.hops += c.hops, sum.again += c.asked_again, sum.frames_void += c.void_news;
      sum.dead += c.dead;
      const auto models = g.service->doors().list.models();
      for (const auto& m : *models)
        for (const auto& p : m->places) CHECK(p->admission->unfinished() == 0);
      CHECK(g.service->all_models().models.size() == 1);
    }
    for (const auto& w : t_.workers) {
      const auto stats = w.service->stats();
      CHECK(stats.engine.pages_used == 0);
      CHECK(stats.engine.queued + stats.engine.prefilling + stats.engine.decoding == 0);
      CHECK(w.service->ready().ready);  // and no broken invariant of the engine
      CHECK(w.service->memory()->used() == 0);
      const auto c = w.side->counts();
      CHECK(c.jobs == 0);
      CHECK(c.kept == 0);
      sum.told_again += c.told_again;
      const auto models = w.service->doors().list.models();
      for (const auto& m : *models)
        for (const auto& p : m->places) CHECK(p->admission->unfinished() == 0);
    }
  }

  void judge(const asked_job& j, tally& sum) {
    CHECK(j.ends == 1);
    ++sum.jobs;
    if (j.stream->state() == phase::refused) {
      ++sum.refused;
      return;
    }
    const auto& out = j.stream->ended();
    const auto size = j.stream->log().size();
    std::string all = sim_text(j.seed, j.tokens);
    if (!j.stop.empty()) all.resize(all.find(j.stop));
    CHECK(size <= j.tokens);
    CHECK(text_of(*j.stream) == all.substr(0, text_of(*j.stream).size()));
    switch (out.reason) {
      case core::finish_reason::stop:
        ++sum.whole;
        CHECK(out.stop_string == 0u);
        CHECK(text_of(*j.stream) == all);
        break;
      case core::finish_reason::length:
        ++sum.whole;
        CHECK(j.stop.empty());
        CHECK(text_of(*j.stream) == all);
        CHECK(size == j.tokens);
        CHECK(out.output_tokens == j.tokens);
        break;
      case core::finish_reason::cancel:
        ++sum.cancelled;
        CHECK(j.cancelled);
        break;
      case core::finish_reason::error: {
        REQUIRE(out.fault.has_value());
        if (out.fault->code == core::errc::adopted) {
          CHECK((j.handed || goes_on_elsewhere(j)));
          return void(++sum.handed);
        }
        ++sum.failed;
        CAPTURE(out.fault->message);
        CHECK(is_expected(*out.fault));
        break;
      }
      default:
        FAIL("a job ended with " << core::name(out.reason));
    }
  }

  // Whether a stream of the job at another gateway was not told that the job was adopted. Two clients may
  // resume one job at two gateways. A claim that was lost and comes again may come behind that of the later
  // gateway, and the earlier gateway has the job then.
  bool goes_on_elsewhere(const asked_job& j) const {
    return std::ranges::any_of(jobs_, [&](const auto& other) {
      if (other.get() == &j || other->stream->id() != j.stream->id()) return false;
      if (other->stream->state() != phase::done) return true;
      const auto& fault = other->stream->ended().fault;
      return !fault || fault->code != core::errc::adopted;
    });
  }

  static bool is_expected(const core::error& e) {
    return e.code == core::errc::unavailable || e.code == core::errc::overloaded;
  }

  const std::uint64_t seed_;
  const bool calm_;
  fleet_town t_;
  const std::unique_ptr<loop_net::endpoint> operator_ = t_.net->join();
  std::vector<std::shared_ptr<asked_job>> jobs_;
  unsigned planned_ = 0, resumed_ = 0, not_found_ = 0, not_resumable_ = 0, handed_over_ = 0;
  unsigned lists_ = 0, ended_from_afar_ = 0;
  std::size_t killed_ = SIZE_MAX;  // index of the gateway that was killed, or has ended
};

void live_days(unsigned days, std::uint64_t first) {
  tally sum;
  for (unsigned n = 0; n < days; ++n) {
    const auto seed = seed_of_day(first, n);
    INFO("seed " << seed);
    fleet_day day(seed);
    day.live(sum);
  }
  CAPTURE(sum.jobs, sum.whole, sum.cancelled, sum.failed, sum.refused, sum.moved, sum.hops, sum.again,
          sum.frames_void, sum.dead, sum.told_again, sum.resumed, sum.not_found, sum.not_resumable,
          sum.handed, sum.handed_over, sum.lists, sum.ended_from_afar);
  CHECK(sum.whole >= sum.jobs * 3 / 4);
  CHECK((sum.failed + sum.refused) * 50 <= sum.jobs);
  CHECK(sum.again > 0);
  // How often something befalls a fleet is luck: fewer days say nothing.
  if (days < 100) return;
  CHECK(sum.lists >= days);
  CHECK(sum.ended_from_afar >= days / 8);
  CHECK(sum.moved >= days / 4);
  CHECK(sum.again >= days / 4);
  CHECK(sum.resumed >= days / 2);
  CHECK(sum.handed >= days / 16);
  CHECK(sum.handed_over >= days / 16);
  // A gateway that is cut off while its clients resume finds none of their jobs, so that one day may have
  // most of them.
  CHECK(sum.not_found * 4 <= sum.resumed);
}

}  // namespace

TEST_CASE("whatever befalls a fleet, each job gives the text of its seed and ends once") {
  live_days(rounds(200), 1000);
}

TEST_CASE("on days without other trouble every resume finds its job") {
  tally sum;
  for (unsigned n = 0; n < rounds(60); ++n) {
    const auto seed = seed_of_day(5000, n);
    INFO("seed " << seed);
    fleet_day day(seed, true);
    day.live(sum);
  }
  CAPTURE(sum.resumed, sum.not_found, sum.handed);
  CHECK(sum.not_found == 0);
  CHECK(sum.failed + sum.refused == 0);
  if (rounds(60) >= 60) CHECK(sum.resumed >= rounds(60) / 2);
}

// The ending of a job was lost, and so was the question for it.
TEST_CASE("a worker that is silent about a job is asked until it answers: seed 100152") {
  tally sum;
  fleet_day(100152).live(sum);
  CHECK(sum.whole > 0);
}

// Two clients resume one job at two gateways, and a message is lost in between.
TEST_CASE("of two gateways that adopt a job one has it: seeds 4855808724853482802, 14484609710615369190") {
  for (const auto seed : {4855808724853482802u, 14484609710615369190u}) {
    tally sum;
    fleet_day(seed).live(sum);
    CHECK(sum.handed > 1);
    CHECK(sum.whole > 0);
  }
}

TEST_CASE("many days of a fleet", "[long]") { live_days(rounds(1'000), 100'000); }

}  // namespace weir::tests::fleet_days_test
