// Which jobs are admitted, which are refused and until when, and whether what was predicted comes true.
#include "actors/admission_control.h"

#include <random>
#include <thread>

#include "actors/pace_meter.h"
#include "tests/actors/service_fixture.h"
#include "tests/support/world.h"

namespace weir::tests::admission_control_test {

using actors::pace_meter;
using actors::admission_control;
using namespace std::chrono_literals;

namespace {

double seconds(core::duration d) { return std::chrono::duration<double>(d).count(); }

// Admits `jobs` jobs with prompts of `each` tokens. No prompt is computed, and no job ends.
void fill(admission_control& admission, unsigned jobs, std::uint32_t each) {
  for (unsigned i = 0; i < jobs; ++i) REQUIRE(admission.admit("m", each).has_value());
}

// Ends one job after `tokens` tokens, so that the admission knows how long answers are.
void answer_once(admission_control& admission, std::uint32_t tokens) {
  REQUIRE(admission.admit("m", 1).has_value());
  admission.prompt_done(1);
  admission.job_done(tokens);
}

}  // namespace

TEST_CASE("admission: the batch and the queue together, not one more") {
  admission_control admission(2, {.queue = 3});
  fill(admission, 5, 10);
  CHECK(admission.waiting() == 3);
  const auto no = admission.admit("m", 10);
  REQUIRE(no.has_error());
  CHECK(no.error().code == core::errc::overloaded);
  CHECK(no.error().message == "m has 5 jobs running or waiting, and takes no more for now");
  CHECK(no.error().retry_after_ms == 1000);
  admission.prompt_done(10);
  admission.job_done(4);
  CHECK(admission.admit("m", 10).has_value());
  CHECK_FALSE(admission.admit("m", 10).has_value());
}

TEST_CASE("admission: a full queue says when the next answer is likely to end") {
  admission_control admission(2, {.queue = 0});
  answer_once(admission, 600);
  fill(admission, 2, 10);
  admission.set_pace({.places = 2, .prompt_tokens_per_s = 1000, .tokens_per_s = 40});
  CHECK(admission.admit("m", 10).error().retry_after_ms == 15000);  // 600 tokens at 40/s
}

TEST_CASE("admission: prompts wait up to a number of tokens, however long the next one is") {
  admission_control admission(2, {.queue = 100, .queue_tokens = 1000});
  admission.set_pace({.places = 2, .prompt_tokens_per_s = 50, .tokens_per_s = 0});
  REQUIRE(admission.admit("m", 999).has_value());
  REQUIRE(admission.admit("m", 5000).has_value());  // less than 1000 waited
  const auto no = admission.admit("m", 1);
  REQUIRE(no.has_error());
  CHECK(no.error().code == core::errc::overloaded);
  CHECK(no.error().message == "prompts of 5999 tokens wait for m, which takes no more from 1000 on");
  CHECK(no.error().retry_after_ms == 100000);  // 5000 tokens at 50/s
  admission.prompt_done(5000);
  CHECK(admission.admit("m", 1).has_value());
}

TEST_CASE(
    "admission: the predicted wait is the longer of prompts and places, and nothing that was not measured") {
  struct row {
    admission_control::pace pace;
    unsigned jobs;
    double wait;
  };
  // Answers of 100 tokens, prompts of 30, a batch of 4.
  const row rows[] = {
      {{0, 0, 0}, 40, 0},
      {{4, 0, 50}, 3, 0},                   // a place is free
      {{4, 0, 50}, 4, 1 * 100 / 50.0},      // one has to end
      {{4, 0, 50}, 13, 10 * 100 / 50.0},
      {{2, 0, 50}, 13, 12 * 100 / 50.0},    // pages for two only
      {{4, 10, 0}, 8, 8 * 30 / 10.0},
      {{4, 10, 50}, 13, 13 * 30 / 10.0},    // prompts take longer
      {{4, 1000, 50}, 13, 10 * 100 / 50.0}, // places take longer
  };
  for (const auto& r : rows) {
    admission_control admission(4, {.queue = 100});
    answer_once(admission, 100);
    fill(admission, r.jobs, 30);
    admission.set_pace(r.pace);
    CAPTURE(r.jobs, r.pace.places, r.pace.prompt_tokens_per_s, r.pace.tokens_per_s);
    CHECK(seconds(admission.predicted_wait()) == Approx(r.wait));
  }
}

TEST_CASE("admission: a paused job counts nowhere, one that returned in the predicted wait alone") {
  using standing = admission_control::standing;
  admission_control admission(4, {.queue = 6});
  answer_once(admission, 100);
  fill(admission, 10, 10);
  CHECK_FALSE(admission.admit("m", 10).has_value());
  std::vector<standing> jobs(10, standing::counted);
  for (auto& job : jobs) job = admission.job_paused(job, true);
  admission.set_pace({.places = 4, .prompt_tokens_per_s = 1e9, .tokens_per_s = 50});
  CHECK(admission.waiting() == 0);
  CHECK(seconds(admission.predicted_wait()) < 0.01);
  fill(admission, 8, 0);
  CHECK(admission.waiting() == 4);
  CHECK(seconds(admission.predicted_wait()) == Approx(5 * 100 / 50.0));
  for (auto& job : jobs) job = admission.job_paused(job, false);  // each of the line lets one go first
  CHECK(admission.waiting() == 8);
  CHECK(seconds(admission.predicted_wait()) == Approx(10 * 100 / 50.0));
  admission.set_pace({.places = 4, .prompt_tokens_per_s = 1e9, .tokens_per_s = 50, .returning = 6});
  CHECK(admission.waiting() == 14);  // four of the ten run and six return, and the line has eight
  fill(admission, 2, 0);
  CHECK_FALSE(admission.admit("m", 10).has_value());
  for (auto& job : jobs) job = admission.job_paused(job, true);
  for (const auto job : jobs) admission.job_done(100, job);
  CHECK(admission.waiting() == 6);
}

TEST_CASE("admission: who would wait too long is told by how much") {
  admission_control admission(1, {.queue = 100, .queue_wait = 60s});
  answer_once(admission, 100);
  admission.set_pace({.places = 1, .prompt_tokens_per_s = 0, .tokens_per_s = 10});  // 10 s a job
  fill(admission, 7, 1);  // the last found six before it: 60 s
  const auto no = admission.admit("m", 1);
  REQUIRE(no.has_error());
  CHECK(no.error().code == core::errc::overloaded);
  CHECK(no.error().message == "m would begin this in about 70 s, and lets nobody wait longer than 60 s");
  CHECK(no.error().retry_after_ms == 10000);
}

TEST_CASE("admission: what was waited for before counts in the wait that nobody has to bear") {
  admission_control admission(1, {.queue = 100, .queue_wait = 60s});
  CHECK(admission.check_wait("m", 60s).has_value());
  const auto no = admission.check_wait("m", 61s);
  REQUIRE(no.has_error());
  CHECK(no.error().code == core::errc::overloaded);
  CHECK(no.error().retry_after_ms == 1000);
  answer_once(admission, 100);
  admission.set_pace({.places = 1, .prompt_tokens_per_s = 0, .tokens_per_s = 10});
  fill(admission, 4, 1);  // 40 s
  CHECK(admission.check_wait("m", 20s).has_value());
  CHECK(admission.check_wait("m", 45s).error().retry_after_ms == 25000);
}

TEST_CASE(
    "admission: a prompt that choices share counts until the first of them has a token, or none is left") {
  admission_control admission(10, {.queue = 0, .queue_tokens = 100});
  const auto full = [&] {
    const bool no = !admission.admit("m", 0).has_value();
    if (!no) admission.job_done(0);
    return no;
  };
  auto first = std::make_shared<actors::waiting_prompt>();
  first->counts(admission, 100);
  REQUIRE(admission.admit("m", 100, 2).has_value());
  CHECK(full());
  auto second = first;
  first.reset();  // a choice was cancelled
  CHECK(full());
  const bool computed = GENERATE(true, false);
  if (computed) second->computed();
  else second.reset();
  CHECK_FALSE(full());
  second.reset();
  CHECK(seconds(admission.predicted_wait()) == 0);
}

TEST_CASE("admission: rates that are next to nothing give no nonsense") {
  admission_control admission(1, {.queue = 100, .queue_wait = 60s});
  answer_once(admission, 4000000000u);
  admission.set_pace({.places = 1, .prompt_tokens_per_s = 1e-9, .tokens_per_s = 1e-9});
  fill(admission, 1, 1000000);
  CHECK(admission.admit("m", 1).error().retry_after_ms == 3600 * 1000);
}

TEST_CASE("admission: the number of jobs is exact, whoever comes at once") {
  admission_control admission(10, {.queue = 90});
  std::atomic<int> in{0};
  std::vector<std::thread> crowd;
  for (int t = 0; t < 4; ++t)
    crowd.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) in += admission.admit("m", 1).has_value() ? 1 : 0;
    });
  for (auto& t : crowd) t.join();
  CHECK(in == 100);
}

TEST_CASE(
    "pace_meter: rates count the time in which there was work, and prompts only while there were some") {
  pace_meter m;
  core::time_point now{1000s};
  CHECK(m.tokens_per_s() == 0);
  m.wake(now);
  const auto step = [&](core::duration took, core::step_report r) { m.add(now += took, r); };
  for (int i = 0; i < 10; ++i) step(100ms, {.tokens = 5, .prefilling = 2, .prompt_tokens = 64});
  CHECK(m.prompt_tokens_per_s() == Approx(640).epsilon(0.02));
  CHECK(m.tokens_per_s() == Approx(50).epsilon(0.02));
  now += 1h;  // nothing to do
  m.wake(now);
  for (int i = 0; i < 10; ++i) step(100ms, {.tokens = 5});
  CHECK(m.prompt_tokens_per_s() == Approx(640).epsilon(0.02));
  CHECK(m.tokens_per_s() == Approx(50).epsilon(0.02));
  for (int i = 0; i < 2000; ++i) step(100ms, {.tokens = 20});  // earlier steps are forgotten
  CHECK(m.tokens_per_s() == Approx(200).epsilon(0.01));
}

namespace {

struct admission_rig {
  explicit admission_rig(std::uint64_t seed, const std::function<void(actors::owner_options&)>& change,
                    const std::string& sim = "rate=100,prefill=100000")
      : here(seed) {
    actors::service_options o;
    o.models.push_back({"sim", "sim:" + sim});
    o.owner.device = "sim";
    change(o.owner);
    service = here.make_service(std::move(o));
  }
  std::shared_ptr<job_stream> submit(std::size_t prompt, std::int64_t tokens) {
    auto r = ask(std::string(prompt, 'x'), tokens, here.random());
    r.cache_salt = std::to_string(++submitted);  // nothing is found computed
    auto s = service->submit(std::move(r), here.get_executor(), [] {});
    REQUIRE(here.run([&] { return s->state() != phase::pending; }));
    return s;
  }
  void finish(const std::vector<std::shared_ptr<job_stream>>& all) {
    for (const auto& s : all) REQUIRE(here.run([&] { return s->state() == phase::done; }));
  }
  void wait(core::duration d) {
    bool over = false;
    here.after(d, [&] { over = true; });
    REQUIRE(here.run([&] { return over; }));
  }

  world here;
  std::unique_ptr<actors::service> service;
  int submitted = 0;
};

}  // namespace

TEST_CASE("the predicted wait is the wait, whether the batch is full or the pages are") {
  const bool few_pages = GENERATE(false, true);
  CAPTURE(few_pages);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    admission_rig r(seed, [&](auto& o) {
      o.max_batch = few_pages ? 32 : 4;
      o.queue = 1000;
      if (few_pages) o.kv_tokens = 11 * core::page_tokens;  // four jobs of two pages, and room to grow
    });
    std::vector<std::shared_ptr<job_stream>> all;
    for (int i = 0; i < 80; ++i) all.push_back(r.submit(10, 100));
    r.finish(all);
    all.clear();
    for (int i = 0; i < 40; ++i) all.push_back(r.submit(10, 100));
    r.wait(500ms);  // the batch is full again
    const double predicted = r.service->stats().predicted_wait_ms;
    const auto asked = r.here.now();
    all.push_back(r.submit(10, 100));
    r.finish(all);
    const double waited = all.back()->ended().queue_ms;
    CAPTURE(predicted, waited, asked.time_since_epoch().count());
    CHECK(waited > 5000);
    CHECK(predicted == Approx(waited).epsilon(0.25));
  }
}

TEST_CASE("prompts that take long to compute are predicted, too") {
  admission_rig r(
      3, [](auto& o) { o.max_batch = 1; }, "rate=1000,prefill=1000");
  std::vector<std::shared_ptr<job_stream>> all;
  for (int i = 0; i < 8; ++i) all.push_back(r.submit(500, 2));
  r.finish(all);
  all.clear();
  for (int i = 0; i < 30; ++i) all.push_back(r.submit(500, 2));
  const double predicted = r.service->stats().predicted_wait_ms;
  all.push_back(r.submit(500, 2));
  r.finish(all);
  CHECK(predicted > 100);
  CHECK(predicted == Approx(all.back()->ended().queue_ms).epsilon(0.35));
}

namespace {

// The time of a world, moved on by a second at every look at the clock.
class slow_time final : public actors::timekeeper {
 public:
  explicit slow_time(world& w) : world_(w) {}
  core::time_point now() const noexcept override { return world_.now() + ++looks_ * 1s; }
  std::unique_ptr<timer> make_timer(boost::asio::any_io_executor e,
                                    std::function<void()> ring) const override {
    return world_.make_timer(e, std::move(ring));
  }
  void spend(core::duration d) const override { world_.spend(d); }
  std::shared_ptr<const core::clock> lasting() const override {
    return {std::shared_ptr<const core::clock>(), this};
  }

 private:
  world& world_;
  mutable int looks_ = 0;
};

}  // namespace

TEST_CASE("the wait for a text to be tokenised is predicted, and refuses where it is too long") {
  world here(11);
  slow_time time(here);
  actors::service_options o;
  o.models.push_back({"sim", "sim"});
  o.owner.device = "sim";
  o.owner.queue_wait = 500ms;
  o.simulated.emplace(actors::simulation{here.get_executor(), [&] {
                                           return core::job_id{here.random(), here.random()};
                                         }});
  actors::service service(std::move(o), time);
  bool loaded = false;
  service.load({}, here.get_executor(), [&](const auto&) { loaded = true; });
  REQUIRE(here.run([&] { return loaded; }));

  const std::string text(8192, 'x');
  int done = 0;
  const auto tokenize = [&] {
    service.tokenize("sim", text, true, here.get_executor(), [&](const auto&) { ++done; });
  };
  tokenize();
  REQUIRE(here.run([&] { return done == 1; }));
  CHECK(service.stats().predicted_wait_ms == 0);
  tokenize();  // nobody has begun it
  CHECK(service.stats().text.bytes == text.size());
  CHECK(service.stats().predicted_wait_ms >= 1000);
  const auto all = service.submit(ask("hello", 3), 2, here.get_executor(), [] {});
  REQUIRE(here.run([&] { return all[0]->state() == phase::refused && all[1]->state() == phase::refused; }));
  CHECK(all[0]->refusal().code == core::errc::overloaded);
  CHECK(all[0]->refusal().retry_after_ms >= 1000);
  CHECK(all[0]->refusal().message.find("lets nobody wait longer than") != std::string::npos);
  REQUIRE(here.run([&] { return done == 2; }));
  const auto later = service.submit(ask("hello", 3), here.get_executor(), [] {});
  REQUIRE(here.run([&] { return later->state() == phase::running; }));
}

TEST_CASE(
    "who is sent away by the predicted wait and comes when told is let in, the second time at the latest") {
  admission_rig r(5, [](auto& o) {
    o.max_batch = 2;
    o.queue = 1000;
    o.queue_wait = 10s;
  });
  std::vector<std::shared_ptr<job_stream>> all;
  for (int i = 0; i < 10; ++i) all.push_back(r.submit(10, 100));
  r.finish(all);
  all.clear();
  for (;;) {
    auto s = r.submit(10, 100);
    if (s->state() == phase::refused) {
      CHECK(s->refusal().code == core::errc::overloaded);
      CHECK(s->refusal().message.find("lets nobody wait longer than 10 s") != s->refusal().message.npos);
      r.wait(std::chrono::milliseconds(s->refusal().retry_after_ms));
      break;
    }
    REQUIRE(all.size() < 200);
    all.push_back(s);
  }
  CHECK(all.size() > 15);  // two a second for ten seconds
  CHECK(all.size() < 25);
  auto again = r.submit(10, 100);
  if (again->state() == phase::refused) {  // jobs end two at a time: perhaps none has ended yet
    r.wait(std::chrono::milliseconds(again->refusal().retry_after_ms));
    again = r.submit(10, 100);
  }
  CHECK(again->state() == phase::running);
  all.push_back(again);
  r.finish(all);
}

TEST_CASE("prompts count until their first token, or until they end without one") {
  admission_rig r(7, [](auto& o) {
    o.max_batch = 2;
    o.queue_tokens = 1000;
  });
  std::vector<std::shared_ptr<job_stream>> all;
  const auto full = [&] {
    auto s = r.submit(1, 1);
    if (s->state() == phase::refused)
      return s->refusal().message.find("takes no more from 1000 on") != std::string::npos;
    all.push_back(s);
    return false;
  };
  CHECK_FALSE(full());
  for (int i = 0; i < 2; ++i) all.push_back(r.submit(600, 300));
  CHECK(full());
  REQUIRE(r.here.run([&] { return all[1]->published() > 0 && all[2]->published() > 0; }));
  all.push_back(r.submit(600, 300));  // cannot begin before another ends
  CHECK_FALSE(full());
  auto fourth = r.submit(600, 300);
  CHECK(full());
  fourth->cancel();
  REQUIRE(r.here.run([&] { return fourth->state() == phase::done; }));
  CHECK_FALSE(full());
  r.finish(all);
  CHECK_FALSE(full());
  r.finish(all);
  CHECK(r.service->stats().predicted_wait_ms == 0);
}

TEST_CASE("every cancelled or late job counts once in cancel_to_release, at its true delay, and no other") {
  admission_rig r(9, [](auto& o) {
    o.max_batch = 2;
    o.audit = true;
  });
  const auto& released = r.service->cancel_to_release();
  std::vector<std::shared_ptr<job_stream>> all;
  all.push_back(r.submit(5, 3));
  r.finish(all);
  CHECK(released.count() == 0);
  auto late = ask("x", 100000);
  late.deadline = 700ms;
  all.push_back(r.service->submit(late, r.here.get_executor(), [] {}));
  for (int i = 0; i < 4; ++i) all.push_back(r.submit(5, 100000));
  REQUIRE(r.here.run([&] { return all[1]->published() > 3; }));
  for (std::size_t i = 2; i < all.size(); ++i) all[i]->cancel();
  for (std::size_t i = 2; i < all.size(); ++i) all[i]->cancel();
  r.finish(all);
  CHECK(released.count() == 5);
  CHECK(released.quantile_ms(1) == 0);  // in virtual time, a release takes none
}

}  // namespace weir::tests::admission_control_test
