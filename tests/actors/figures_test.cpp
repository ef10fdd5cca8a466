// The figures of each model, in virtual time: they add up to what the streams of the jobs say, and a device
// that is made anew takes none of them away.
#include <map>

#include "tests/actors/sim_town.h"

namespace weir::tests::figures_test {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t reason(core::finish_reason r) { return static_cast<std::size_t>(r); }

// A service of two simulated models.
struct two_models : sim_town {
  explicit two_models(std::uint64_t seed) : sim_town(seed, options()) {}
  static actors::service_options options() {
    actors::service_options o;
    o.models.push_back({"quick", "sim:rate=1000,prefill=100000"});
    o.models.push_back({"slow", "sim:rate=20,prefill=1000"});
    o.owner.models = 2;
    o.owner.max_batch = 4;
    o.owner.queue = 6;
    return o;
  }
  std::shared_ptr<job_stream> submit(const char* model, std::size_t prompt, std::int64_t tokens) {
    auto r = ask(std::string(prompt, 'x'), tokens, here.random());
    r.model = model;
    return send(std::move(r));
  }
};

// What the streams of one model's jobs say.
struct told {
  actors::ended_jobs::counts ended{};
  std::uint64_t tokens = 0, prompt = 0, begun = 0;
  double queue_ms = 0, prefill_ms = 0, ttft_ms = 0, decode_ms = 0;
  explicit told(const std::vector<std::shared_ptr<job_stream>>& all, std::string_view model) {
    for (const auto& s : all) {
      if (s->state() != phase::done || s->model() != model) continue;
      const auto& o = s->ended();
      ++ended[reason(o.reason)];
      tokens += o.output_tokens;
      if (o.output_tokens == 0) continue;
      ++begun;
      prompt += o.input_tokens;
      queue_ms += o.queue_ms;
      prefill_ms += o.prefill_ms;
      ttft_ms += o.ttft_ms;
      decode_ms += o.decode_ms;
    }
  }
};

template <class Histogram>
double sum_ms(const Histogram& h) {
  return static_cast<double>(h.sum()) / 1e6;
}

}  // namespace

TEST_CASE("figures: each model's add up to what its streams say, whatever ended them") {
  two_models t(3);
  for (int i = 0; i < 30; ++i) {
    const char* model = i % 3 == 0 ? "slow" : "quick";
    const auto job = t.submit(model, 20 + static_cast<std::size_t>(i) * 3, 5 + i % 4 * 10);
    if (i % 5 == 4) t.here.after(10ms, [job] { job->cancel(); });
    t.here.run([] { return false; }, 25ms);
  }
  auto late = ask("x", 100000);
  late.model = "slow";
  late.deadline = 500ms;
  t.all.push_back(t.service->submit(late, t.here.get_executor(), [] {}));
  t.settle();

  for (const char* model : {"quick", "slow"}) {
    CAPTURE(model);
    const told said(t.all, model);
    const auto f = t.figures(model);
    CHECK(f.ended == said.ended);
    CHECK(said.ended[reason(core::finish_reason::length)] > 2);
    CHECK(f.engine.tokens == said.tokens);
    CHECK(f.engine.prompt_tokens == said.prompt);
    const auto& m = f.measures;
    CHECK(m.ttft.count() == said.begun);
    CHECK(sum_ms(m.ttft) == Approx(said.ttft_ms));
    CHECK(sum_ms(m.queue) == Approx(said.queue_ms));
    CHECK(sum_ms(m.prefill) == Approx(said.prefill_ms));
    CHECK(sum_ms(m.gap) == Approx(said.decode_ms));
    CHECK(m.gap.count() == said.tokens - said.begun);
    CHECK(m.step_time.count() == f.engine.steps);
    CHECK(f.engine.queued + f.engine.prefilling + f.engine.decoding + f.engine.finishing == 0);
    CHECK(f.engine.pages_total == f.engine.pages_free + f.engine.pages_cached);
  }
  CHECK(t.figures("slow").ended[reason(core::finish_reason::timeout)] == 1);
  CHECK(t.figures("quick").ended[reason(core::finish_reason::cancel)] > 0);

  const auto all = t.service->stats();
  CHECK(all.engine.tokens == t.figures("quick").engine.tokens + t.figures("slow").engine.tokens);
  std::uint64_t done = 0;
  for (const auto& s : t.all) done += s->state() == phase::done ? 1 : 0;
  CHECK(all.ended == done);
}

TEST_CASE("figures: a refused job has not ended, and a job cancelled before its admission has") {
  two_models t(4);
  for (int i = 0; i < 12; ++i) t.submit("slow", 5, 50);  // there is room for ten
  t.submit("other", 5, 5);
  const auto early = t.submit("quick", 5, 5);
  early->cancel();
  t.settle();
  std::uint64_t refused = 0;
  for (const auto& s : t.all) refused += s->state() == phase::refused ? 1 : 0;
  CHECK(refused == 3);
  CHECK(t.figures("slow").ended[reason(core::finish_reason::length)] == 10);
  CHECK(t.figures("quick").ended[reason(core::finish_reason::cancel)] == 1);
  CHECK(t.service->stats().ended == 11);
}

TEST_CASE("figures: a device that is made anew keeps the totals of the one before") {
  world here(5);
  actors::service_options o;
  o.models.push_back({"sim", "sim:rate=1000,fault=device@60"});
  o.owner.device = "sim";
  const auto service = here.make_service(std::move(o));
  const auto run = [&](std::int64_t tokens) {
    const auto s = service->submit(ask("x", tokens), here.get_executor(), [] {});
    REQUIRE(here.run([&] { return s->state() == phase::done; }));
    here.run([] { return false; }, 1s);
    return s->ended();
  };
  const auto first = run(100);  // over two devices
  REQUIRE(first.reason == core::finish_reason::length);
  REQUIRE(first.output_tokens == 100);
  const auto before = service->figures().front();
  CHECK(before.engine.tokens == 100);
  CHECK(before.engine.continued == 1);
  CHECK(before.engine.pages_used == 0);
  const auto second = run(3);
  REQUIRE(second.reason == core::finish_reason::length);
  const auto after = service->figures().front();
  CHECK(after.engine.tokens == before.engine.tokens + 3);
  CHECK(after.engine.steps == before.engine.steps + 3);
  CHECK(after.measures.ttft.count() == 2);
  CHECK(after.measures.gap.count() == after.engine.tokens - 2);
  CHECK(after.engine.pages_total == before.engine.pages_total);  // and not the sum of two
  CHECK(after.ended[reason(core::finish_reason::error)] == 0);
  CHECK(after.ended[reason(core::finish_reason::length)] == 2);
}

TEST_CASE("board: what is offered is what is seen, and an engine that is not there has done nothing") {
  actors::board b;
  const auto first = std::make_shared<actors::owner_picture>();
  first->at = core::time_point(1s);
  CHECK(b.offer(first));
  CHECK(b.look() == first);
  CHECK(b.look()->of(actors::engine_id{7}).counts.pages_total == 0);
}

}  // namespace weir::tests::figures_test
