// Models on one device share its time. Simulated models, in virtual time: a step takes what its model says.
#include <deque>
#include <set>

#include "tests/actors/sim_town.h"
#include "tests/support/budget.h"
#include "tests/support/seed.h"

namespace weir::tests::shares_test {

using namespace std::chrono_literals;
using core::duration;

namespace {

// A model, the load that it is under, and what was seen of it.
struct tenant {
  std::string name, sim;
  double share = 1;
  unsigned streams = 1;
};

// A heavy model and a light one: what steps of 8 and of 1 thousand million weights take.
const char* const heavy = "step=5000/20/10";
const char* const light = "step=900/5/5";

constexpr std::int64_t endless = 100'000;  // tokens, more than a test waits for

struct house {
  explicit house(const std::vector<tenant>& who, std::uint64_t seed = 1,
                 const std::function<void(actors::service_options&)>& change = {})
      : town(seed, options(who, change)) {}

  static actors::service_options options(const std::vector<tenant>& who,
                                         const std::function<void(actors::service_options&)>& change) {
    actors::service_options o;
    for (const auto& t : who) {
      o.models.push_back({t.name, "sim:ctx=1000000," + t.sim});
      o.models.back().share = t.share;
    }
    o.owner.kv_tokens = 1 << 24;
    o.owner.max_batch = 64;
    if (change) change(o);
    return o;
  }

  std::shared_ptr<job_stream> ask_for(const std::string& model, std::int64_t tokens = endless,
                                      std::size_t prompt = 8) {
    std::string text(prompt, 'a');
    for (char& c : text) c = static_cast<char>('a' + town.here.random() % 26);
    auto r = ask(text, tokens, town.here.random());
    r.model = model;
    return town.send(std::move(r));
  }
  void begin(const std::vector<tenant>& who) {
    for (const auto& t : who)
      for (unsigned i = 0; i < t.streams; ++i) ask_for(t.name);
    pass(300ms);  // until all are there
  }
  void pass(duration d) {
    town.here.run([] { return false; }, d);
  }
  duration used(const std::string& model) const {
    return std::chrono::microseconds(town.figures(model).engine.device_us);
  }
  std::uint64_t tokens(const std::string& model) const { return town.figures(model).engine.tokens; }
  // Ends every job at once, so that no step is left.
  void stop() {
    for (const auto& s : town.all) s->cancel();
    town.settle();
  }

  sim_town town;
};

// The parts of the device's time that each model took, over every window of `window` within `d`.
struct parts_seen {
  std::vector<double> least, most;
};
parts_seen watch(house& h, const std::vector<tenant>& who, duration d, duration window = 2s) {
  constexpr duration every = 100ms;
  std::deque<std::vector<duration>> past;
  parts_seen out{std::vector<double>(who.size(), 1), std::vector<double>(who.size(), 0)};
  for (duration t{}; t <= d; t += every) {
    std::vector<duration> now;
    for (const auto& m : h.town.service->figures())
      now.push_back(std::chrono::microseconds(m.engine.device_us));
    REQUIRE(now.size() == who.size());
    past.push_back(now);
    if (past.size() > static_cast<std::size_t>(window / every) + 1) past.pop_front();
    if (past.size() == static_cast<std::size_t>(window / every) + 1) {
      duration all{};
      for (std::size_t i = 0; i < now.size(); ++i) all += now[i] - past.front()[i];
      for (std::size_t i = 0; i < now.size(); ++i) {
        const double part = static_cast<double>((now[i] - past.front()[i]).count()) /
                            static_cast<double>(std::max<std::int64_t>(1, all.count()));
        out.least[i] = std::min(out.least[i], part);
        out.most[i] = std::max(out.most[i], part);
      }
    }
    h.pass(every);
  }
  return out;
}

double rate_alone(const tenant& t) {
  house h({t});
  h.begin({t});
  const auto before = h.tokens(t.name);
  h.pass(2s);
  const auto n = h.tokens(t.name) - before;
  h.stop();
  return static_cast<double>(n) / 2;
}

// The longest time between two tokens of a stream.
duration longest_gap(const job_stream& s) {
  std::int64_t most = 0;
  for (std::uint32_t i = 1; i < s.published(); ++i)
    most = std::max(most, s.sampled_at_us(i) - s.sampled_at_us(i - 1));
  return std::chrono::microseconds(most);
}

}  // namespace

TEST_CASE("shares of models: device time is within 3 points of what was asked, over any 2 s") {
  const auto shares = GENERATE(std::pair(1.0, 1.0), std::pair(3.0, 1.0), std::pair(1.0, 9.0));
  const unsigned streams = GENERATE(1u, 32u);
  CAPTURE(shares.first, shares.second, streams);
  const std::vector<tenant> who{{"a", heavy, shares.first, 1}, {"b", light, shares.second, streams}};
  house h(who);
  h.begin(who);
  const auto a = h.tokens("a"), b = h.tokens("b");
  const auto seen = watch(h, who, 4s);
  const double asked = shares.first / (shares.first + shares.second);
  CHECK(seen.least[0] >= asked - 0.03);
  CHECK(seen.most[0] <= asked + 0.03);
  const double seconds = 4.1;
  const double kept = static_cast<double>(h.tokens("a") - a) / seconds / rate_alone(who[0]) +
                      static_cast<double>(h.tokens("b") - b) / seconds / rate_alone(who[1]);
  CHECK(kept >= 0.95);
  for (const auto& m : h.town.service->all_models().models) {
    const double part = m.name == "a" ? asked : 1 - asked;
    CHECK(m.share == (m.name == "a" ? shares.first : shares.second));
    CHECK(m.share_asked == Approx(part));
    CHECK(m.share_got == Approx(part).margin(0.03));
  }
  h.stop();
}

TEST_CASE("shares of models: three models, and one that rests leaves its part to the others") {
  const std::vector<tenant> who{{"a", heavy, 2, 2}, {"b", light, 1, 4}, {"c", "step=2000/10/10", 1, 1}};
  house h(who);
  h.begin(who);
  const auto all = watch(h, who, 3s);
  const double asked[] = {0.5, 0.25, 0.25};
  for (std::size_t i = 0; i < who.size(); ++i) {
    CHECK(all.least[i] >= asked[i] - 0.03);
    CHECK(all.most[i] <= asked[i] + 0.03);
  }
  for (const auto& s : h.town.all)
    if (s->model() == "a") s->cancel();
  h.pass(200ms);
  const auto rest = watch(h, who, 3s);
  CHECK(rest.most[0] == 0);
  CHECK(rest.least[1] >= 0.47);
  CHECK(rest.least[2] >= 0.47);
  // It comes back: no burst, and no wait.
  const auto before = std::pair(h.used("a"), h.used("b"));
  h.ask_for("a");
  h.pass(500ms);
  const auto got = h.used("a") - before.first;
  CHECK(got <= 290ms);
  CHECK(got >= 180ms);
  CHECK(h.used("b") - before.second >= 90ms);
  h.stop();
}

TEST_CASE("shares of models: a share that changes holds from the next steps on") {
  const std::vector<tenant> who{{"a", heavy, 1, 1}, {"b", light, 1, 1}};
  house h(who);
  h.begin(who);
  std::optional<actors::order_replies::answer> done;
  h.town.service->set_terms({"a", 4}, h.town.here.get_executor(),
                            {{}, [&](actors::order_replies::answer a) { done = std::move(a); }});
  REQUIRE(h.town.here.run([&] { return done.has_value(); }, 1s));
  REQUIRE(done->has_value());
  CHECK((*done)->share == 4);
  h.pass(100ms);
  const auto seen = watch(h, who, 3s);
  CHECK(seen.least[0] >= 0.77);
  CHECK(seen.most[0] <= 0.83);
  done.reset();
  h.town.service->set_terms({"nobody", 4}, h.town.here.get_executor(),
                            {[&](actors::order_replies::answer a) { done = std::move(a); }, {}});
  REQUIRE(h.town.here.run([&] { return done.has_value(); }, 1s));
  REQUIRE(done->has_error());
  CHECK(done->error().fault.code == core::errc::model_not_found);
  h.stop();
}

TEST_CASE(
    "shares of models: the light model's gap is its step and its neighbour's, and a slice of a prompt") {
  // Steps of 1 and of 4 ms.
  const std::vector<tenant> who{{"heavy", "step=4000/50/0", 1, 1}, {"light", "step=1000/1/0", 1, 1}};
  SECTION("both decode") {
    house h(who);
    const auto s = h.ask_for("light");
    h.ask_for("heavy");
    h.pass(3s);
    CHECK(s->published() > 1000);
    CHECK(longest_gap(*s) <= 5ms + 10us);
    h.stop();
  }
  SECTION("a prompt of 2,000 tokens a second comes to the neighbour") {
    const bool streams = GENERATE(false, true);
    house h(who);
    const auto s = h.ask_for("light");
    if (streams) h.ask_for("heavy");
    for (int second = 0; second < 4; ++second) {
      h.ask_for("heavy", 20, 2000);
      h.pass(1s);
    }
    CHECK(h.town.figures("heavy").engine.prompt_tokens >= 6000);
    CHECK(longest_gap(*s) <= 1ms + 4ms + 20ms);
    CHECK(longest_gap(*s) >= 10ms);  // there were slices that fill most of a turn
    h.stop();
  }
  SECTION("alone, the heavy model takes the whole prompt at once") {
    house h(who);
    h.ask_for("heavy", 20, 64);
    h.pass(1s);
    h.ask_for("heavy", 20, 2000);
    h.pass(1s);
    const auto figures = h.town.figures("heavy");
    const auto steps = figures.measures.step_tokens.view();
    std::uint64_t large = 0;
    for (std::size_t i = 0; i < steps.counts.size(); ++i)
      if (i == steps.bounds.size() || steps.bounds[i] > 1024) large += steps.counts[i];
    CHECK(large == 1);
    h.stop();
  }
}

TEST_CASE("shares of models: a model alone steps as it did before") {
  // The order of all steps, as the times of tokens say: those of a device that nobody shares.
  const tenant t{"a", heavy, 1, 3};
  const auto days = [&](bool beside) {
    std::vector<tenant> who{t};
    if (beside) who.push_back({"b", light, 7, 0});  // it is there, and nobody asks it anything
    house h(who);
    for (unsigned i = 0; i < t.streams; ++i) h.ask_for("a", 200, 40 + i);
    h.town.settle();
    const auto f = h.town.figures("a");
    std::vector<std::uint64_t> out{f.engine.steps, f.engine.tokens, f.engine.device_us,
                                   static_cast<std::uint64_t>(f.measures.gap.sum()),
                                   static_cast<std::uint64_t>(f.measures.ttft.sum())};
    return out;
  };
  CHECK(days(false) == days(true));
}

TEST_CASE("limits of a model hold for it alone") {
  const std::vector<tenant> who{{"a", heavy}, {"b", light}};
  house h(who, 1, [](actors::service_options& o) {
    o.models[0].limits.batch = 2;
    o.models[0].limits.queue = 1;
    o.models[0].limits.max_tokens = 50;
    o.models[0].limits.kv_tokens = 4096;
  });
  for (const auto& m : h.town.service->all_models().models)
    CHECK(m.kv_tokens == (m.name == "a" ? 4096u : 1u << 24));
  const auto long_answer = h.ask_for("a", 51);
  h.pass(10ms);
  CHECK(long_answer->state() == phase::refused);
  std::vector<std::shared_ptr<job_stream>> all;
  for (int i = 0; i < 5; ++i) all.push_back(h.ask_for("a", 50));
  for (int i = 0; i < 5; ++i) h.ask_for("b", 500);
  h.pass(100ms);
  CHECK(std::ranges::count_if(all, [](const auto& s) { return s->state() == phase::refused; }) == 2);
  const auto counts = h.town.figures("a").engine;
  CHECK(counts.prefilling + counts.decoding == 2);
  CHECK(h.town.figures("b").engine.decoding == 5);
  h.stop();
}

TEST_CASE("random shares: every model that has work gets its part, whatever comes and goes") {
  for (std::uint64_t seed = 0; seed < rounds(16); ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(drawn_seed(seed));
    const double weights[] = {0.25, 0.5, 1, 2, 5};
    std::vector<tenant> who;
    double all = 0;
    for (std::size_t i = 0; i < 2 + random() % 3; ++i) {
      tenant t{std::string(1, static_cast<char>('a' + i)),
               {},
               weights[random() % std::size(weights)],
               static_cast<unsigned>(1 + random() % 8)};
      t.sim = "step=" + std::to_string(300 + random() % 6000) + "/20/" + std::to_string(random() % 40);
      all += t.share;
      who.push_back(std::move(t));
    }
    house h(who, seed);
    h.begin(who);
    const auto seen = watch(h, who, 2500ms);
    for (std::size_t i = 0; i < who.size(); ++i) {
      CAPTURE(i, who[i].sim, who[i].share, who[i].streams);
      CHECK(seen.least[i] >= who[i].share / all - 0.03);
      CHECK(seen.most[i] <= who[i].share / all + 0.03);
    }
    // One of them leaves. The device goes on without a pause, and what is left divides all of it.
    const std::size_t leaves = random() % who.size();
    for (const auto& s : h.town.all)
      if (s->model() == who[leaves].name) s->cancel();
    h.pass(200ms);
    const auto rest = watch(h, who, 2500ms);
    for (std::size_t i = 0; i < who.size(); ++i) {
      const double part = i == leaves ? 0 : who[i].share / (all - who[leaves].share);
      CHECK(rest.least[i] >= part - 0.03);
      CHECK(rest.most[i] <= part + 0.03);
    }
    h.stop();
    for (const auto& t : who) CHECK(h.town.figures(t.name).engine.pages_used == 0);
  }
}

}  // namespace weir::tests::shares_test
