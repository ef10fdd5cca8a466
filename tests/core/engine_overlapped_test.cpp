// Steps that overlap: whatever happens to jobs, each gets from the overlapped loop what the plain one gives
// it, and the books balance after every step. The device is one that answers as late as it may
// (tests/support/late_model.h).
#include <algorithm>
#include <iostream>
#include <map>
#include <random>

#include "core/engine.h"
#include "core/model/load.h"
#include "tests/support/budget.h"
#include "tests/support/cuda_device.h"
#include "tests/support/engine_rig.h"
#include "tests/support/plain_layer.h"
#include "tests/support/seed.h"

namespace weir::tests::engine_overlapped_test {

using namespace weir::core;
using namespace std::chrono_literals;

namespace {

// A job of a day, with when it is submitted and when it is cancelled.
struct asked_job {
  job what;
  int round = 0;                            // when the job is submitted
  std::optional<std::size_t> cancel_after;  // cancelled once its reader has this many tokens
  std::optional<int> cancel_in;             // or after this many rounds, in any state
};

struct day {
  engine_config config;
  std::vector<asked_job> jobs;
  std::uint64_t faulty_seed = 0;  // its third draw fails
};

// Prompts are cut from three texts, so that they share pages, and may be longer than a page.
job random_job(std::mt19937& r, std::uint64_t n) {
  job j;
  j.id = engine_rig::id(n);
  const auto text = r() % 3;
  std::vector<token_id> prompt;
  for (std::size_t i = 0, most = r() % 180; i < most; ++i)
    prompt.push_back(static_cast<token_id>((text * 11 + i * i + 3 * i) % 60));
  for (std::size_t i = 0, most = 1 + r() % 12; i < most; ++i)
    prompt.push_back(static_cast<token_id>(r() % 60));
  j.prompt = std::move(prompt);
  j.max_tokens = r() % 8 == 0 ? 1 : 1 + r() % (r() % 3 == 0 ? 40 : 300);
  j.sampling.seed = n;
  j.sampling.temperature = r() % 3 == 0 ? 0.0f : 0.9f;
  if (r() % 3 == 0) j.sampling.repetition_penalty = 1.3f;
  if (r() % 4 == 0) j.sampling.presence_penalty = 0.6f;
  if (r() % 4 == 0) j.sampling.top_p = 0.8f;
  if (r() % 5 == 0) j.sampling.top_k = 9;
  if (r() % 3 == 0) j.stop = {"ab", "bca", r() % 2 ? "q" : "zz"};
  if (r() % 5 == 0) j.min_tokens = r() % 12;
  if (r() % 4 == 0) j.stop_token_ids = {3, 11};
  if (r() % 7 == 0) {  // repeats one token
    j.sampling.logit_bias = {{5, 40.0f}};
    j.max_repeats = 2 + r() % 9;
  }
  if (n % 3 == 0) j.top_logprobs = n % 21;
  j.priority = static_cast<int>(r() % 3);
  if (r() % 6 == 0) j.cache_salt = "apart";
  return j;
}

day random_day(std::uint64_t seed) {
  std::mt19937 r(seed);
  day d;
  d.config.max_batch = 1 + r() % 12;
  d.config.kv_pages = 5 + r() % 6;
  d.config.host_pages = r() % 3 == 0 ? 20 : 0;
  d.config.prefill_rows = 10 + r() % 100;
  const std::uint64_t jobs = 2 + r() % 24;
  for (std::uint64_t n = 0; n < jobs; ++n) {
    asked_job a;
    a.what = random_job(r, n);
    a.round = static_cast<int>(r() % 30);
    switch (r() % 8) {
      case 0:
      case 1:
        a.cancel_after = 1 + r() % 60;
        break;
      case 2:
        a.cancel_in = static_cast<int>(r() % 40);
        break;
      case 3:
        a.what.deadline = time_point(1s) + std::chrono::microseconds(r() % 400);
        break;
      default:
        break;
    }
    d.jobs.push_back(std::move(a));
  }
  d.faulty_seed = r() % (2 * jobs);
  return d;
}

struct outcome {
  std::vector<token_id> ids;
  std::vector<draw_logprobs> logprobs;
  ending end;
};

// Bit for bit.
bool same(const std::vector<draw_logprobs>& a, const std::vector<draw_logprobs>& b) {
  const auto equal = [](const token_logprob& x, const token_logprob& y) {
    return x.id == y.id && x.logprob == y.logprob;
  };
  return std::ranges::equal(a, b, [&](const draw_logprobs& x, const draw_logprobs& y) {
    return equal(x.drawn, y.drawn) && std::ranges::equal(x.top(), y.top(), equal);
  });
}

struct totals {
  engine_counts counts;
  std::uint64_t behind = 0, wasted = 0;
};

std::vector<outcome> live(const day& d, engine_rig& rig, totals& all) {
  if (rig.toy)
    rig.toy->broken = [&](std::uint64_t s, std::uint32_t i) { return s == d.faulty_seed && i == 2; };
  std::vector<std::shared_ptr<recording_sink>> sinks(d.jobs.size());
  const auto come = [&](int round) {
    for (std::size_t i = 0; i < sinks.size(); ++i)
      if (d.jobs[i].round == round) sinks[i] = rig.submit(d.jobs[i].what);
  };
  const auto go = [&](int round) {
    for (std::size_t i = 0; i < sinks.size(); ++i) {
      const asked_job& a = d.jobs[i];
      if (!sinks[i] || sinks[i]->end) continue;
      if ((a.cancel_after && sinks[i]->tokens.size() >= *a.cancel_after) ||
          (a.cancel_in && a.round + *a.cancel_in == round)) {
        REQUIRE(rig.engine->cancel(a.what.id));
        REQUIRE(rig.engine->check_integrity().empty());
      }
    }
  };
  for (int round = 0; round < 60 || !rig.engine->idle(); ++round) {
    REQUIRE(round < 20000);
    come(round);
    go(round);
    const auto report = rig.step();
    if (report.wait_until > rig.clock.now()) rig.clock.set(report.wait_until);
  }
  std::vector<outcome> out;
  for (const auto& s : sinks) {
    REQUIRE(s->finishes == 1);
    out.push_back({s->ids(), s->logprobs, *s->end});
  }
  all.counts += rig.engine->counts();
  if (rig.late) {
    all.behind += rig.late->behind;
    all.wasted += rig.late->wasted;
  }
  return out;
}

bool begins(const std::vector<token_id>& a, const std::vector<token_id>& b) {
  return std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())),
                    b.begin());
}

engine_rig overlapped(engine_config c = small_config()) { return engine_rig(c, loop_kind::overlapped); }

// What both loops made of a day.
void compare(const day& d, const std::vector<outcome>& plain, const std::vector<outcome>& ahead,
             std::map<finish_reason, int>& reasons) {
  for (std::size_t i = 0; i < plain.size(); ++i) {
    INFO("job " << i);
    const outcome &w = plain[i], &g = ahead[i];
    // A round or a time is another moment in the other loop, so such ends may differ. All else is equal.
    const bool by_time = d.jobs[i].cancel_in || d.jobs[i].what.deadline;
    REQUIRE(begins(w.ids, g.ids));
    if (by_time && (w.end.reason != g.end.reason || w.end.reason == finish_reason::cancel ||
                    w.end.reason == finish_reason::timeout))
      continue;
    REQUIRE(g.ids == w.ids);
    REQUIRE(same(g.logprobs, w.logprobs));
    REQUIRE(g.logprobs.size() == (d.jobs[i].what.top_logprobs ? g.ids.size() : 0));
    REQUIRE(g.end.reason == w.end.reason);
    REQUIRE(g.end.shown_bytes == w.end.shown_bytes);
    REQUIRE(g.end.output_tokens == w.end.output_tokens);
    REQUIRE(g.end.fault.has_value() == w.end.fault.has_value());
    if (w.end.fault) REQUIRE(g.end.fault->message == w.end.fault->message);
    ++reasons[w.end.reason];
  }
}

}  // namespace

TEST_CASE("overlapped steps: over a thousand random days every job gets what the plain loop gives it") {
  totals plain, ahead;
  std::map<finish_reason, int> reasons;
  for (unsigned n = 0; n < rounds(1000); ++n) {
    const auto seed = drawn_seed(n);
    INFO("day " << seed);
    const day d = random_day(seed);
    engine_rig one(d.config, loop_kind::plain), other(d.config, loop_kind::overlapped);
    const auto wanted = live(d, one, plain), got = live(d, other, ahead);
    compare(d, wanted, got, reasons);
  }
  for (const auto why : {finish_reason::stop, finish_reason::length, finish_reason::cancel,
                         finish_reason::repetition, finish_reason::error}) {
    INFO(name(why));
    CHECK(reasons[why] > static_cast<int>(rounds(100)));
  }
  for (const totals* t : {&plain, &ahead}) {
    CHECK(t->counts.preemptions > rounds(200));
    CHECK(t->counts.prefix_hits > rounds(300));
    CHECK(t->counts.restored > rounds(30));
  }
  CHECK(ahead.behind > rounds(30000));
  CHECK(ahead.wasted > rounds(1000));
}

TEST_CASE(
    "overlapped steps: over random days on cuda --deterministic every job gets what the plain loop gives "
    "it") {
  const auto backend = cuda_device(true);
  if (!backend) return;
  random_model shape = parse_random_model("tiny-110m:bf16", 4096).value();
  model_config& m = shape.config;
  m.shape.hidden = 768;
  m.shape.vocab = 512;
  set_layers(m, 2, plain_layer(2048, 12, 4, 64));
  m.shape.layers[1].mixer.rule.window = 40;
  totals plain, ahead;
  std::map<finish_reason, int> reasons;
  for (unsigned seed = 0; seed < 60; ++seed) {
    INFO("day " << seed);
    day d = random_day(seed);
    const auto rig = [&](bool run_ahead) {
      d.config.run_ahead = run_ahead;
      auto made = make_random_model(shape, backend).value();
      REQUIRE(made.weights->info().runs_ahead);
      return engine_rig(std::move(made.weights), letters(512), d.config);
    };
    auto one = rig(false), other = rig(true);
    const auto wanted = live(d, one, plain), got = live(d, other, ahead);
    compare(d, wanted, got, reasons);
  }
  CHECK(reasons[finish_reason::length] > 50);
  CHECK(ahead.counts.preemptions > 10);
  CHECK(ahead.counts.prefix_hits > 10);
}

TEST_CASE("overlapped steps: a token is delivered while the step behind it runs, one token a step") {
  engine_rig rig = overlapped();
  auto a = rig.submit(rig.job(1, 10));
  CHECK(rig.step().rows == 0);  // the prompt is begun
  CHECK(a->tokens.empty());
  CHECK(rig.step().rows == 5);  // and alone in its step: nothing is begun behind it
  CHECK(a->tokens.size() == 1);
  CHECK(rig.late->behind == 0);
  CHECK(rig.step().rows == 0);
  for (std::uint32_t i = 1; i < 9; ++i) {
    const auto report = rig.step();
    CHECK(report.rows == 1);
    CHECK(report.tokens == 1);
    CHECK(a->tokens.size() == i + 1);
    CHECK(rig.late->behind == std::min(i, 8u));
  }
  CHECK(rig.step().tokens == 1);
  CHECK(a->end->reason == finish_reason::length);
  CHECK(rig.engine->idle());
  CHECK(rig.late->wasted == 0);  // the loop knew that the tenth token is the last
  CHECK(rig.toy->forwards == 10);
}

TEST_CASE("overlapped steps: what is known is on its way before the device is given more draws") {
  engine_rig rig = overlapped();
  auto a = rig.submit(rig.job(1, 20)), b = rig.submit(rig.job(2, 30, 90));
  int looked = 0;
  rig.late->on_draws = [&] {
    ++looked;
    CHECK(a->tokens.size() + b->tokens.size() == rig.late->told);
  };
  rig.run();
  CHECK(looked > 20);
}

TEST_CASE(
    "overlapped steps: a cancel frees its pages at once, and what was under way for it reaches nobody") {
  engine_rig rig = overlapped();
  auto other = rig.job(2, 30);
  const auto alone = engine_rig().solo(other);
  auto a = rig.submit(rig.job(1, 100)), b = rig.submit(other);
  while (a->tokens.size() < 7) rig.step();
  const auto said = a->tokens.size();
  CHECK(rig.engine->counts().pages_used == 2);
  REQUIRE(rig.engine->cancel(rig.id(1)));
  CHECK(rig.engine->counts().pages_used == 1);
  CHECK(a->end->reason == finish_reason::cancel);
  auto c = rig.submit(rig.job(3, 30));  // takes the page while the other's row is under way
  rig.run();
  CHECK(a->tokens.size() == said);
  CHECK(b->ids() == alone);
  CHECK(c->ids() == engine_rig().solo(rig.job(3, 30)));
}

TEST_CASE("overlapped steps: the last job's cancel leaves a step under way, which comes to its end") {
  engine_rig rig = overlapped();
  auto a = rig.submit(rig.job(1, 100));
  while (a->tokens.size() < 3) rig.step();
  REQUIRE(rig.engine->cancel(rig.id(1)));
  CHECK_FALSE(rig.engine->idle());
  CHECK(rig.step().rows == 1);
  CHECK(rig.engine->idle());
  CHECK(rig.engine->counts().pages_used == 0);
  CHECK(a->tokens.size() == 3);
}

TEST_CASE("overlapped steps: a job that waits for a place takes it at once, however far its deadline is") {
  auto c = small_config();
  c.max_batch = 1;
  engine_rig rig(c, loop_kind::overlapped);
  auto first = rig.submit(rig.job(1, 3));
  auto later = rig.job(2, 3);
  later.deadline = rig.clock.now() + std::chrono::hours(1);
  auto second = rig.submit(std::move(later));
  for (int steps = 0; !second->end; ++steps) {
    REQUIRE(steps < 100);
    const auto report = rig.step();
    CHECK((rig.engine->idle() || report.wait_until <= rig.clock.now()));
  }
  CHECK(second->end->reason == finish_reason::length);
}

TEST_CASE("overlapped steps: a page that decoding filled is found by the next prompt that begins so") {
  engine_rig rig = overlapped();
  auto first = rig.job(1, 150, 20);
  auto a = rig.submit(first);
  rig.run();
  auto second = rig.job(2, 4, 0);
  std::vector<token_id> both(first.prompt.begin(), first.prompt.end());
  for (const auto id : a->ids()) both.push_back(id);
  second.prompt = std::move(both);
  auto b = rig.submit(second);
  rig.run();
  CHECK(b->end->cached_tokens >= 128);
  CHECK(b->ids() == engine_rig().solo(second));
}

TEST_CASE("overlapped steps: a device that fails is found out late, and ends every job with its error") {
  engine_rig rig = overlapped();
  rig.toy->before_forward = [&](const batch&) -> result<void> {
    if (rig.toy->forwards == 6) return make_error(errc::internal, "the device caught fire");
    return {};
  };
  auto a = rig.submit(rig.job(1, 50)), b = rig.submit(rig.job(2, 50));
  rig.step();
  auto waits = rig.submit(rig.job(3, 50, 200));
  bool told = false;
  for (int i = 0; i < 10 && !told; ++i) {
    const auto report = rig.step();
    told = rig.engine->fault().has_value();
    if (told) CHECK(report.rows > 0);  // the owner looks at steps that were
  }
  REQUIRE(told);
  CHECK(rig.engine->idle());
  for (const auto& s : {a, b, waits}) {
    REQUIRE(s->finishes == 1);
    CHECK(s->end->fault->message == "the device caught fire");
  }
  CHECK(rig.engine->counts().pages_used == 0);
  auto late = rig.submit(rig.job(4, 5));
  CHECK(late->end->fault.has_value());
}

TEST_CASE("overlapped steps: they can be switched off") {
  auto c = small_config();
  c.run_ahead = false;
  auto toy = std::make_unique<toy_model>();
  toy->change_info().runs_ahead = true;
  engine_rig rig(std::move(toy), letters(61), c);
  auto a = rig.submit(rig.job(1, 9));
  CHECK(rig.step().tokens == 1);
  rig.run();
  CHECK(a->ids() == engine_rig().solo(rig.job(1, 9)));
}

}  // namespace weir::tests::engine_overlapped_test
