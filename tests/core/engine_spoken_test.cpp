// Jobs that go on behind tokens that were delivered before: job::spoken.
#include <random>

#include "core/engine.h"
#include "tests/support/budget.h"
#include "tests/support/job_kinds.h"
#include "tests/support/seed.h"

namespace weir::tests::engine_spoken_test {

using namespace weir::core;
using namespace std::chrono_literals;

namespace {

const std::vector<recording_sink>& undisturbed() {
  static const auto all = [] {
    std::vector<recording_sink> made;
    for (std::uint64_t kind = 0; kind < job_kinds; ++kind) made.push_back(run_of_kind(kind));
    return made;
  }();
  return all;
}

std::vector<token_id> first(const recording_sink& sink, std::size_t count) {
  auto ids = sink.ids();
  ids.resize(count);
  return ids;
}

void check_same(const draw_logprobs& a, const draw_logprobs& b) {
  REQUIRE(a.drawn.id == b.drawn.id);
  REQUIRE(a.drawn.logprob == b.drawn.logprob);
}

// `rest` is what `whole` has behind `spoken` tokens, with the same ending.
void check_rest(const recording_sink& rest, const recording_sink& whole, std::size_t spoken) {
  REQUIRE(rest.finishes == 1);
  if (rest.end->fault) INFO(rest.end->fault->message);
  const auto ids = whole.ids();
  REQUIRE(rest.ids() == std::vector<token_id>(ids.begin() + static_cast<std::ptrdiff_t>(spoken), ids.end()));
  REQUIRE(rest.logprobs.size() == (whole.logprobs.empty() ? 0 : rest.tokens.size()));
  for (std::size_t i = 0; i < rest.logprobs.size(); ++i)
    check_same(rest.logprobs[i], whole.logprobs[spoken + i]);
  REQUIRE(rest.end->reason == whole.end->reason);
  REQUIRE(rest.end->stop_string == whole.end->stop_string);
  REQUIRE(rest.end->shown_bytes == whole.end->shown_bytes);
  REQUIRE(rest.end->input_tokens == whole.end->input_tokens);
  REQUIRE(rest.end->output_tokens == whole.end->output_tokens);
  const auto &scored = rest.end->prompt_logprobs, &all_scored = whole.end->prompt_logprobs;
  REQUIRE((scored == nullptr) == (all_scored == nullptr));
  if (!scored) return;
  REQUIRE(scored->size() == all_scored->size());
  for (std::size_t i = 0; i < scored->size(); ++i) check_same((*scored)[i], (*all_scored)[i]);
}

// Job `n`, whose first tokens are scripted, with stop string "ab".
job until_ab(const engine_rig& rig, std::uint64_t n, std::vector<token_id> spoken) {
  auto j = rig.job(n, 6);
  j.stop = {"ab"};
  j.spoken = std::move(spoken);
  return j;
}

}  // namespace

TEST_CASE("a job goes on behind any delivered prefix as if nothing had happened") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    for (unsigned day = 0; day < weir::tests::rounds(12); ++day) {
      CAPTURE(how == loop_kind::plain, day);
      std::mt19937 random(static_cast<unsigned>(weir::tests::drawn_seed(day)));
      auto c = small_config();
      c.max_batch = 2 + random() % 31;
      c.kv_pages = 6 + random() % 60;  // few: many are preempted once they have gone on
      const auto helpers = day % 2 ? std::make_shared<lazy_helpers>() : nullptr;
      engine_rig rig(c, kind_words(), 4096, how, helpers);
      rig.toy->some_rows_unwanted = true;
      struct cut_job {
        std::uint64_t kind;
        std::size_t spoken;
        std::shared_ptr<recording_sink> sink;
      };
      std::vector<cut_job> jobs;
      for (std::uint64_t kind = 0; kind < job_kinds; ++kind) {
        const auto& whole = undisturbed()[kind];
        if (whole.tokens.size() < 2) continue;
        auto j = job_of_kind(rig, kind);
        if (j.sampling.mirostat_mode > 0) continue;  // is refused
        const std::size_t spoken = 1 + random() % (whole.tokens.size() - 1);
        j.spoken = first(whole, spoken);
        jobs.push_back({kind, spoken, rig.submit(std::move(j))});
        for (auto steps = random() % 3; steps > 0; --steps) {
          if (helpers) helpers->some(random);
          rig.step();
        }
      }
      REQUIRE(jobs.size() > job_kinds / 2);
      rig.run();
      for (const auto& j : jobs) {
        CAPTURE(j.kind, j.spoken);
        check_rest(*j.sink, undisturbed()[j.kind], j.spoken);
      }
    }
  }
}

TEST_CASE("jobs of one prompt with seeds of their own go on each with its own tokens") {
  engine_rig rig;
  std::vector<std::vector<token_id>> whole;
  for (std::uint64_t choice = 0; choice < 4; ++choice) {
    auto j = rig.job(3, 30);
    j.sampling.seed = choice;
    whole.push_back(rig.solo(std::move(j)));
  }
  REQUIRE(whole[0] != whole[1]);
  std::vector<std::shared_ptr<recording_sink>> rest;
  for (std::uint64_t choice = 0; choice < 4; ++choice) {
    auto j = rig.job(3, 30);
    j.id = rig.id(100 + choice);
    j.sampling.seed = choice;
    j.spoken.assign(whole[choice].begin(), whole[choice].begin() + 5 + static_cast<std::ptrdiff_t>(choice));
    rest.push_back(rig.submit(std::move(j)));
  }
  rig.run();
  for (std::uint64_t choice = 0; choice < 4; ++choice)
    CHECK(rest[choice]->ids() ==
          std::vector<token_id>(whole[choice].begin() + 5 + static_cast<std::ptrdiff_t>(choice),
                                whole[choice].end()));
}

TEST_CASE("every token but the stop id may be spoken: the stop id is drawn, and the job ends") {
  engine_rig rig;
  rig.toy->script = [](std::uint64_t, std::uint32_t i) { return i < 4 ? token_id{7} : token_id{60}; };
  auto j = rig.job(1, 20);
  j.stop_token_ids = {60};
  j.spoken = {7, 7, 7, 7};
  const auto sink = rig.submit(std::move(j));
  rig.run();
  CHECK(sink->tokens.empty());
  CHECK(sink->end->reason == finish_reason::stop);
  CHECK(sink->end->output_tokens == 5);
}

TEST_CASE("a stop string may begin in spoken tokens: it goes on as the text does") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    CAPTURE(how == loop_kind::plain);
    engine_rig rig(small_config(), how);
    const auto script = [](std::uint64_t n, std::uint32_t i) -> token_id {
      if (i == 0) return 2;                  // c
      if (i == 1) return 0;                  // a
      return i == 2 ? (n == 1 ? 1 : 3) : 4;  // b or d, then e
    };
    rig.toy->script = script;
    // a slow reader may have got the "a" alone, once it was known that "ad" comes
    const auto other = rig.submit(until_ab(rig, 2, {2, 0}));
    // nobody has got the "a" of "ab": nothing more is shown
    const auto matched = rig.submit(until_ab(rig, 1, {2, 0}));
    rig.run();
    CHECK(other->ids() == std::vector<token_id>{3, 4, 4, 4});
    CHECK(other->end->reason == finish_reason::length);
    CHECK(matched->tokens.empty());
    CHECK(matched->end->reason == finish_reason::stop);
    CHECK(matched->end->stop_string == 0);
  }
}

TEST_CASE("spoken tokens that cannot have been delivered end their job with an error, and hurt no other") {
  struct wrong {
    const char* why;
    std::vector<token_id> spoken;
    const char* message;
  };
  const wrong all[] = {
      {"as long as the job", std::vector<token_id>(20, 5), "spoken has 20 tokens"},
      {"longer", std::vector<token_id>(300, 5), "fewer than its maximum of 20"},
      {"no id of the model", {1, 61}, "spoken[1] is 61, which is no token of the model"},
      {"a negative id", {-1}, "spoken[0] is -1"},
      {"a stop id", {1, 2, 60}, "spoken[2] is token 60, a stop id of the job"},
      {"a stop string", {4, 25, 24, 1}, "spoken[2] ends the job: by a stop string"},
      {"a loop", {5, 5, 5, 5, 5}, "ends the job: by max_repeats"},
  };
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    engine_rig rig(small_config(), how);
    const auto alone = rig.solo(rig.job(1, 20));
    const auto good = rig.submit(rig.job(1, 20));
    for (const auto& w : all) {
      CAPTURE(w.why);
      auto j = rig.job(2, 20);
      j.stop_token_ids = {60};
      j.stop = {"zy"};
      j.max_repeats = 3;
      j.spoken = w.spoken;
      const auto sink = rig.submit(std::move(j));
      REQUIRE(sink->end);
      CHECK(sink->tokens.empty());
      CHECK(sink->end->reason == finish_reason::error);
      REQUIRE(sink->end->fault);
      CHECK(sink->end->fault->code == errc::invalid_param);
      CHECK(sink->end->fault->param == "spoken");
      CHECK_THAT(sink->end->fault->message, Catch::Contains(w.message));
    }
    auto steered = rig.job(4, 20);
    steered.sampling.mirostat_mode = 2;
    steered.spoken = {1};
    const auto refused = rig.submit(std::move(steered));
    REQUIRE(refused->end->fault);
    CHECK(refused->end->fault->param == "spoken");
    auto full = rig.job(3, 20, 4090);
    full.spoken = {1, 2, 3, 4, 5, 6};  // the context has no room for a seventh
    CHECK(rig.submit(std::move(full))->end->fault->param == "spoken");
    rig.run();
    CHECK(good->ids() == alone);
    CHECK(rig.engine->bad_endings() == 0);
  }
}

TEST_CASE("spoken tokens that a constraint does not write end their job where its first mask is made") {
  struct wrong {
    const char* regex;
    std::vector<token_id> spoken;
    const char* message;
  };
  const wrong all[] = {{"[ab]{9}", {0, 1, 2}, "spoken[2] is token 2"},
                       {"abcdefgh[xy]z", {0, 1, 3}, "does not write there"},  // forced
                       {"[ab]{3}", {0, 1, 0}, "is a whole text"},
                       {"[ab]{3}", {0, 1, 0, 0}, "spoken[3] is token 0"}};
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    for (const bool helped : {false, true}) {
      for (const auto force : {grammar::forcing::canonical, grammar::forcing::off}) {
        engine_rig rig(small_config(), letters(61), 4096, how,
                       helped ? std::make_shared<lazy_helpers>() : nullptr);
        rig.toy->some_rows_unwanted = true;
        const auto good = rig.submit(rig.job(1, 20));
        for (const auto& w : all) {
          CAPTURE(how == loop_kind::plain, helped, w.regex, w.message);
          auto j = rig.job(2, 40);
          j.constraint = fresh_constraint(w.regex, views_of(letters(61)));
          j.force = force;
          j.spoken = w.spoken;
          const auto sink = rig.submit(std::move(j));
          while (!sink->end) rig.step();
          CHECK(sink->tokens.empty());
          REQUIRE(sink->end->fault);
          CHECK(sink->end->fault->code == errc::invalid_param);
          CHECK(sink->end->fault->param == "spoken");
          CHECK_THAT(sink->end->fault->message, Catch::Contains(w.message));
        }
        rig.run();
        CHECK(good->end->reason == finish_reason::length);
        CHECK(rig.engine->bad_endings() == 0);
      }
    }
  }
}

TEST_CASE("a job with spoken tokens is no first token in the measures, and its ending counts all of them") {
  for (const auto how : {loop_kind::plain, loop_kind::overlapped}) {
    auto c = small_config();
    c.slo.ttft = 1ms;
    c.slo.tpot = 1ms;
    engine_rig rig(c, how);
    auto j = rig.job(1, 10);
    j.spoken = {1, 2, 3, 4};
    rig.clock.advance(1s);
    const auto sink = rig.submit(std::move(j));
    std::vector<sequence_view> listed;
    rig.engine->list(listed);
    REQUIRE(listed.size() == 1);
    CHECK(listed[0].state == sequence_state::queued);
    CHECK(listed[0].output_tokens == 4);
    rig.run();
    CHECK(sink->tokens.size() == 6);
    CHECK(sink->end->output_tokens == 10);
    CHECK(sink->end->scheduled);
    CHECK(*sink->end->first_token == sink->tokens.front().at);
    CHECK(*sink->end->last_token == sink->tokens.back().at);
    CHECK(sink->end->max_gap <= 2us);
    const auto counts = rig.engine->counts();
    CHECK(counts.tokens == 6);
    CHECK(counts.prompt_tokens == 0);
    CHECK(counts.slo_met + counts.slo_missed + counts.ttft_met + counts.ttft_missed == 0);
    CHECK(rig.engine->measures().ttft.count() == 0);
    CHECK(rig.engine->measures().gap.count() == 5);
  }
}

}  // namespace weir::tests::engine_spoken_test
