// Logprobs through the engine: those of the logits as the model computed them, for jobs that ask, and the
// same tokens for all.
#include <map>
#include <utility>

#include "core/engine.h"
#include "core/model/load.h"
#include "tests/support/engine_rig.h"
#include "tests/support/golden.h"
#include "tests/support/log_softmax.h"

namespace weir::tests::engine_logprobs_test {

using namespace weir::core;

namespace {

// A toy model that keeps the logits of every draw.
class row_keeper final : public model {
 public:
  using rows = std::map<std::pair<std::uint64_t, std::uint32_t>, std::vector<float>>;

  explicit row_keeper(std::shared_ptr<rows> into) : into_(std::move(into)) { toy_.some_rows_unwanted = true; }
  const model_info& info() const noexcept override { return toy_.info(); }
  result<void> allocate_pages(std::uint32_t count) override { return toy_.allocate_pages(count); }
  result<void> forward(const batch& b) override { return toy_.forward(b); }
  result<void> sample(std::span<const draw> draws, std::span<drawn> out) override {
    for (const draw& d : draws) {
      const auto row = toy_.logits(d.logits_row);
      (*into_)[{d.seed, d.position}].assign(row.begin(), row.end());
    }
    return toy_.sample(draws, out);
  }
  const draw_logprobs& logprobs_of(std::uint32_t i) const override { return toy_.logprobs_of(i); }
  std::span<const float> logits(std::uint32_t row) const override { return toy_.logits(row); }

 private:
  std::shared_ptr<rows> into_;
  toy_model toy_;
};

engine_rig rig_over(std::shared_ptr<row_keeper::rows> rows, loop_kind how, engine_config c) {
  std::unique_ptr<model> m = std::make_unique<row_keeper>(std::move(rows));
  if (how == loop_kind::overlapped) m = std::make_unique<late_model>(std::move(m));
  return engine_rig(std::move(m), letters(61), c);
}

// Penalties, biases, masks, cuts and temperatures: the logprobs stay those of the model.
std::vector<job> mixed_jobs(const engine_rig& rig) {
  std::vector<job> jobs;
  for (std::uint64_t n = 0; n < 24; ++n) {
    job j = rig.job(n, 30 + n, 3 + 7 * n);
    j.sampling.temperature = n % 4 == 0 ? 0.0f : 0.3f * static_cast<float>(n % 5 + 1);
    if (n % 2) j.sampling.repetition_penalty = 1.5f;
    if (n % 3) j.sampling.frequency_penalty = 0.7f;
    if (n % 3 == 1) j.sampling.top_k = 4;
    if (n % 5 == 1) j.sampling.logit_bias = {{3, 9.0f}, {8, -50.0f}};
    if (n % 7 == 1) j.min_tokens = 9;
    j.stop_token_ids = {8};
    if (n % 6 == 2) j.stop = {"abcd", "zz"};  // tokens are withheld
    jobs.push_back(std::move(j));
  }
  return jobs;
}

}  // namespace

TEST_CASE("logprobs of a job are the log-softmax of the model's own logits, in both loops") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    CAPTURE(how == loop_kind::plain);
    const auto rows = std::make_shared<row_keeper::rows>();
    auto config = small_config();
    config.kv_pages = 60;  // sequences are preempted
    engine_rig rig = rig_over(rows, how, config);
    auto jobs = mixed_jobs(rig);
    std::vector<std::shared_ptr<recording_sink>> sinks;
    for (std::uint64_t n = 0; n < jobs.size(); ++n) {
      if (n % 3 != 2) jobs[n].top_logprobs = n % 3 == 0 ? 20 : n % 21;
      sinks.push_back(rig.submit(jobs[n]));
      rig.step();
    }
    rig.run();
    for (std::size_t n = 0; n < jobs.size(); ++n) {
      CAPTURE(n);
      const recording_sink& s = *sinks[n];
      REQUIRE(s.logprobs.size() == (jobs[n].top_logprobs ? s.tokens.size() : 0));
      for (std::size_t i = 0; i < s.logprobs.size(); ++i) {
        const auto position = static_cast<std::uint32_t>(jobs[n].prompt.size() + i);
        check_logprobs(s.logprobs[i], rows->at({n, position}), s.tokens[i].id, *jobs[n].top_logprobs);
      }
    }
  }
}

TEST_CASE("logprobs change no token of any job") {
  std::vector<std::vector<token_id>> ids[2];
  for (const bool asked : {false, true}) {
    engine_rig rig;
    std::vector<std::shared_ptr<recording_sink>> sinks;
    for (job& j : mixed_jobs(rig)) {
      if (asked) j.top_logprobs = 20;
      sinks.push_back(rig.submit(std::move(j)));
    }
    rig.run();
    for (const auto& s : sinks) ids[asked].push_back(s->ids());
  }
  CHECK(ids[0] == ids[1]);
}

TEST_CASE("logprobs wait with their tokens for a sink that has no room, however many they are") {
  engine_rig rig;
  job j = rig.job(1, 900);
  j.top_logprobs = 3;
  const auto sink = rig.submit(std::move(j));
  sink->room = 5;
  for (int i = 0; i < 700; ++i) rig.step();
  CHECK(sink->logprobs.size() == 5);
  sink->room = 200;
  rig.step();
  CHECK(sink->logprobs.size() == 205);
  sink->room = std::numeric_limits<std::size_t>::max();
  rig.run();
  CHECK(sink->logprobs.size() == 900);
}

TEST_CASE("a sim's logprobs are those of its page, and its tokens are the same with them") {
  engine_rig rig(parse_sim_spec("rate=1000").value());
  job j = rig.job(5, 8);
  const auto plain = rig.solo(j);
  j.id = engine_rig::id(6);
  j.top_logprobs = 2;
  const auto sink = rig.submit(std::move(j));
  rig.run();
  CHECK(sink->ids() == plain);
  REQUIRE(sink->logprobs.size() == 8);
  for (const draw_logprobs& l : sink->logprobs) {
    CHECK(l.drawn.logprob == Approx(std::log(0.5)));
    REQUIRE(l.count == 2);
    CHECK(l.likeliest[0].id == l.drawn.id);
    CHECK(l.likeliest[1].id == (l.drawn.id + 1) % 1000);
    CHECK(l.likeliest[1].logprob == Approx(std::log(0.25)));
  }
}

namespace {

// The logits that follow each proper prefix of `prompt`, from jobs that draw one token.
std::vector<std::vector<float>> rows_behind(const std::vector<token_id>& prompt) {
  const auto rows = std::make_shared<row_keeper::rows>();
  engine_rig rig = rig_over(rows, loop_kind::plain, small_config());
  std::vector<std::vector<float>> out;
  for (std::size_t n = 1; n < prompt.size(); ++n) {
    job j = rig.job(n, 1);
    j.prompt = std::vector<token_id>(prompt.begin(), prompt.begin() + std::ptrdiff_t(n));
    rig.submit(std::move(j));
    rig.run();
    out.push_back(rows->at({n, static_cast<std::uint32_t>(n)}));
  }
  return out;
}

void check_prompt(const ending& how, const std::vector<token_id>& prompt,
                  const std::vector<std::vector<float>>& rows, std::uint32_t top) {
  REQUIRE(how.prompt_logprobs);
  REQUIRE(how.prompt_logprobs->size() == prompt.size() - 1);
  for (std::size_t i = 0; i + 1 < prompt.size(); ++i) {
    CAPTURE(i);
    const scored_token& got = (*how.prompt_logprobs)[i];
    check_logprobs(got, rows[i], prompt[i + 1], top);
    const auto ids = ranking(rows[i]);
    REQUIRE(ids[got.rank - 1] == prompt[i + 1]);
  }
}

}  // namespace

TEST_CASE("logprobs of a prompt are those of its rows, whatever the batch and the prefix cache hold") {
  std::vector<token_id> prompt;
  for (std::size_t i = 0; i < 130; ++i) prompt.push_back(static_cast<token_id>(i * i % 59));
  const auto rows = rows_behind(prompt);
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    for (const std::uint32_t places : {1u, 3u, 32u}) {
      CAPTURE(how == loop_kind::plain, places);
      auto config = small_config();
      config.max_batch = places;
      config.kv_pages = 24;  // for one of these jobs and a few others: sequences are preempted
      engine_rig rig(config, how);
      const auto scored = [&](std::uint64_t n, std::uint32_t top) {
        job j = rig.job(n, 40);
        j.prompt = prompt;
        j.prompt_logprobs = top;
        if (n % 2) j.top_logprobs = 2;
        return j;
      };
      const auto first = rig.submit(scored(1, 20));
      rig.run();
      check_prompt(*first->end, prompt, rows, 20);

      // Again, with all of the prompt's rows in the cache, among other jobs that share its beginning.
      std::vector<std::shared_ptr<recording_sink>> others;
      const auto second = rig.submit(scored(2, 0)), third = rig.submit(scored(3, 7));
      for (std::uint64_t n = 4; n < 12; ++n) {
        job j = rig.job(n, 60);
        if (n % 2) j.prompt = std::vector<token_id>(prompt.begin(), prompt.begin() + 100);
        others.push_back(rig.submit(std::move(j)));
        rig.step();
      }
      rig.run();
      check_prompt(*second->end, prompt, rows, 0);
      check_prompt(*third->end, prompt, rows, 7);
      CHECK(second->tokens.size() == 40);
      for (const auto& s : others) CHECK(!s->end->prompt_logprobs);
      // Logprobs of a prompt change no token.
      job plain = scored(2, 0);
      plain.id = engine_rig::id(99);
      plain.prompt_logprobs.reset();
      CHECK(second->ids() == rig.solo(std::move(plain)));
    }
  }
}

TEST_CASE("logprobs of a prompt that is cancelled on the way are as many as were computed") {
  engine_rig rig;
  job j = rig.job(1, 10, 200);
  j.prompt_logprobs = 1;
  const auto sink = rig.submit(std::move(j));
  for (int i = 0; i < 3; ++i) rig.step();
  rig.engine->cancel(engine_rig::id(1));
  CHECK(sink->end->prompt_logprobs->size() == 3 * 16);
}

namespace {

// Compares logprobs with the reference's. Ids are compared only where neighbours in the ranking are clearly
// apart. `within`: how far a logprob may be off.
void check_golden(const draw_logprobs& got, const golden_logits& wanted, double within) {
  REQUIRE(got.count == 20);
  for (std::size_t i = 0; i < 20; ++i) {
    CAPTURE(i);
    CHECK(std::abs(got.likeliest[i].logprob - wanted.logprobs[i]) <= within);
    const bool apart = (i == 0 || wanted.logits[i - 1] - wanted.logits[i] > 2 * within) && i < 19 &&
                       wanted.logits[i] - wanted.logits[i + 1] > 2 * within;
    if (apart) CHECK(got.likeliest[i].id == wanted.ids[i]);
    if (got.drawn.id == wanted.ids[i]) CHECK(std::abs(got.drawn.logprob - wanted.logprobs[i]) <= within);
  }
}

}  // namespace

TEST_CASE("logprobs of every reference model are the reference's, on the reference and cpu backends") {
  for (const auto& [device, within] : {std::pair{"reference", 5e-5}, {"cpu", 1e-3}}) {
    for (const auto& dir : reference_models()) {
      CAPTURE(device, dir.filename());
      auto loaded = load_model(dir.string(), make_backend(device, 2).value());
      REQUIRE(loaded.has_value());
      engine_rig rig(std::move(loaded->weights), *load_tokenizer(dir.string()), small_config());
      const golden g = read_golden(dir);
      for (std::size_t n = 0; n < g.at.size(); ++n) {
        const golden_logits& wanted = g.at[n];
        CAPTURE(wanted.position);
        job j = rig.job(n, 1);
        const auto behind = g.input_ids.begin() + std::ptrdiff_t(wanted.position) + 1;
        j.prompt = std::vector<token_id>(g.input_ids.begin(), behind);
        j.ignore_eos = true;
        j.sampling.temperature = 0;
        j.sampling.logit_bias = {{wanted.ids[3], 100.0f}};  // what is drawn is not the likeliest
        j.top_logprobs = 20;
        const auto sink = rig.submit(std::move(j));
        rig.run();
        REQUIRE(sink->logprobs.size() == 1);
        CHECK(sink->logprobs[0].drawn.id == wanted.ids[3]);
        check_golden(sink->logprobs[0], wanted, within);
      }
      job whole = rig.job(100, 1);
      whole.prompt = g.input_ids;
      whole.ignore_eos = true;
      whole.prompt_logprobs = 20;
      const auto sink = rig.submit(std::move(whole));
      rig.run();
      REQUIRE(sink->end->prompt_logprobs->size() == g.input_ids.size() - 1);
      for (const golden_logits& wanted : g.at)
        if (wanted.position + 1 < g.input_ids.size())
          check_golden((*sink->end->prompt_logprobs)[wanted.position], wanted, within);
    }
  }
}

}  // namespace weir::tests::engine_logprobs_test
