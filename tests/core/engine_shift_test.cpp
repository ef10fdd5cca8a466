// Jobs whose older tokens leave a full context: job::shifts.
#include <random>

#include "core/engine.h"
#include "core/model/load.h"
#include "core/sample/pipeline.h"
#include "core/schedule/context_shift.h"
#include "core/text/tokenizer/tokenizer.h"
#include "tests/support/budget.h"
#include "tests/support/constraints.h"
#include "tests/support/data.h"
#include "tests/support/engine_rig.h"
#include "tests/support/seed.h"
#include "tests/support/toy_directory.h"

namespace weir::tests::engine_shift_test {

using namespace weir::core;
using namespace std::chrono_literals;

namespace {

constexpr loop_kind both_loops[] = {loop_kind::plain, loop_kind::overlapped};

engine_config with_context(std::uint32_t longest) {
  auto c = small_config();
  c.max_seq_len = longest;
  return c;
}

engine_rig shifting_rig(std::uint32_t longest, loop_kind how) {
  engine_rig rig(with_context(longest), how);
  rig.toy->contexts_shift = true;
  return rig;
}

job shifting(job j, std::uint32_t kept = 0) {
  j.shifts = true;
  j.kept = kept;
  return j;
}

struct answer {
  std::vector<token_id> tokens;
  std::uint32_t shifts = 0;
};

// The definition: token after token, from the logits behind what the context has.
answer defined(const job& j, std::uint32_t longest) {
  answer out;
  std::vector<token_id> context(j.prompt.begin(), j.prompt.end());
  const token_set prompt{std::vector<token_id>(context)};
  sampler chooser(j.sampling, toy_model::default_vocab, prompt,
                  {.max_tokens = j.max_tokens, .prompt = {j.prompt.data(), j.prompt.size()}});
  sample_scratch scratch(toy_model::default_vocab);
  while (out.tokens.size() < j.max_tokens) {
    if (context.size() == longest) {
      const auto first = context.begin() + j.kept;
      context.erase(first, first + (longest - j.kept) / 2);
      ++out.shifts;
    }
    const auto position = static_cast<std::uint32_t>(j.prompt.size() + out.tokens.size());
    const auto id =
        chooser.pick(toy_model::logits_behind(context, toy_model::default_vocab), position, scratch);
    REQUIRE(id);
    out.tokens.push_back(*id);
    context.push_back(*id);
    chooser.accept(*id);
  }
  return out;
}

void check(const recording_sink& sink, const answer& wanted) {
  REQUIRE(sink.end);
  CHECK(sink.ids() == wanted.tokens);
  CHECK(sink.end->reason == finish_reason::length);
  CHECK(sink.end->shifts == wanted.shifts);
  CHECK(sink.end->output_tokens == wanted.tokens.size());
}

job varied(const engine_rig& rig, std::uint64_t n, std::mt19937& random) {
  auto j = rig.job(n, 100 + random() % 500, 1 + random() % 199);
  const std::uint32_t most = std::min<std::uint32_t>(static_cast<std::uint32_t>(j.prompt.size()), 60);
  j = shifting(std::move(j), random() % (most + 1));
  j.sampling.temperature = n % 3 == 0 ? 0.0f : 0.9f;
  if (n % 4 == 1) j.sampling.repetition_penalty = 1.3f;
  if (n % 4 == 2) j.sampling.frequency_penalty = 0.2f;
  if (n % 5 == 1) j.sampling.dry_multiplier = 1;
  if (n % 7 == 3) j.sampling.no_repeat_ngram_size = 3;
  return j;
}

}  // namespace

TEST_CASE("shift: how many tokens leave, and that a shift which frees little is none") {
  CHECK(tokens_that_leave(4096, 0) == 2048);
  CHECK(tokens_that_leave(4096, 1) == 2047);
  CHECK(tokens_that_leave(4096, 2048) == 1024);
  CHECK(tokens_that_leave(4096, 2049) == 0);  // less than a quarter
  CHECK(tokens_that_leave(128, 0) == 64);
  CHECK(tokens_that_leave(128, 1) == 0);  // less than a page
  CHECK(tokens_that_leave(127, 0) == 0);
  CHECK(tokens_that_leave(100, 100) == 0);
  CHECK(tokens_that_leave(100, 101) == 0);
}

TEST_CASE("shift: each token is that behind what the context has, with the draw of its place in the whole") {
  for (const auto how : both_loops) {
    std::mt19937 random(5);
    for (std::uint64_t n = 0; n < weir::tests::rounds(12); ++n) {
      CAPTURE(how == loop_kind::plain, n);
      auto rig = shifting_rig(200, how);
      const auto j = varied(rig, n, random);
      const auto sink = rig.submit(j);
      rig.run();
      const auto wanted = defined(j, 200);
      check(*sink, wanted);
      CHECK(rig.engine->counts().shifts == wanted.shifts);
    }
  }
}

TEST_CASE("shift: jobs side by side, preempted and paused, give what each gives alone") {
  for (const auto how : both_loops) {
    for (unsigned day = 0; day < weir::tests::rounds(4); ++day) {
      CAPTURE(how == loop_kind::plain, day);
      std::mt19937 random(static_cast<unsigned>(weir::tests::drawn_seed(day)));
      auto c = with_context(200);
      c.kv_pages = 8 + random() % 30;  // few: many are preempted
      c.host_pages = day % 2 ? 40 : 0;
      engine_rig rig(c, how);
      rig.toy->contexts_shift = rig.toy->some_rows_unwanted = true;
      std::vector<job> jobs;
      std::vector<std::shared_ptr<recording_sink>> sinks;
      for (std::uint64_t n = 0; n < 12; ++n) {
        jobs.push_back(varied(rig, n, random));
        sinks.push_back(rig.submit(jobs.back()));
        for (auto steps = random() % 40; steps > 0; --steps) {
          if (random() % 8 == 0) rig.engine->pause(rig.id(random() % 12), rig.clock.now() + 20us);
          rig.step();
        }
      }
      while (!rig.engine->idle()) {
        if (random() % 16 == 0) rig.engine->pause(rig.id(random() % 12), rig.clock.now() + 20us);
        const auto report = rig.step();
        if (report.wait_until > rig.clock.now()) rig.clock.set(report.wait_until);
      }
      for (std::size_t n = 0; n < jobs.size(); ++n) {
        CAPTURE(n);
        check(*sinks[n], defined(jobs[n], 200));
      }
    }
  }
}

TEST_CASE("shift: without it, and where what stays is too long, a full context ends the job") {
  for (const auto how : both_loops) {
    auto rig = shifting_rig(400, how);
    auto plain = rig.job(1, 1000, 240);
    const auto ends = rig.submit(plain);
    const auto too_long = rig.submit(shifting(rig.job(2, 1000, 240), 201));
    const auto goes_on = rig.submit(shifting(rig.job(3, 1000, 240), 200));
    rig.run();
    for (const auto& sink : {ends, too_long}) {
      CHECK(sink->end->reason == finish_reason::length);
      CHECK(sink->tokens.size() == 160);
      CHECK(sink->end->shifts == 0);
    }
    CHECK(goes_on->tokens.size() == 1000);
    CHECK(goes_on->end->shifts == 9);  // behind 160 tokens, then each 100
    CHECK(rig.engine->counts().shifts == 9);
  }
}

TEST_CASE("shift: max_tokens at the end of a full context, and one more") {
  for (const auto how : both_loops) {
    auto rig = shifting_rig(200, how);
    const auto all = rig.submit(shifting(rig.job(1, 80, 120)));
    const auto more = rig.submit(shifting(rig.job(2, 81, 120)));
    rig.run();
    CHECK(all->tokens.size() == 80);
    CHECK(all->end->shifts == 0);
    check(*more, defined(shifting(rig.job(2, 81, 120)), 200));
    CHECK(more->end->shifts == 1);
  }
}

TEST_CASE("shift: stop strings and stop ids count in the whole output") {
  for (const auto how : both_loops) {
    auto rig = shifting_rig(200, how);
    // "ab" stands across the first shift: the context is full behind 80 tokens
    rig.toy->script = [](std::uint64_t n, std::uint32_t i) -> token_id {
      if (n == 1) return i == 79 ? 0 : i == 80 ? 1 : 5;
      return i == 150 ? 60 : 5;
    };
    auto j = shifting(rig.job(1, 400, 120));
    j.stop = {"ab"};
    const auto by_string = rig.submit(std::move(j));
    j = shifting(rig.job(2, 400, 120));
    j.stop_token_ids = {60};
    j.min_tokens = 140;
    const auto by_id = rig.submit(std::move(j));
    rig.run();
    CHECK(by_string->end->reason == finish_reason::stop);
    CHECK(by_string->tokens.size() == 79);
    CHECK(by_string->end->shifts == 1);
    CHECK(by_id->end->reason == finish_reason::stop);
    CHECK(by_id->tokens.size() == 150);
    CHECK(by_id->end->output_tokens == 151);
  }
}

TEST_CASE("shift: a constraint, with forced tokens, goes on across it") {
  // 130 letters that are forced, more than a shift frees, then free ones
  const std::string forced(130, 'c');
  const std::string regex = "[ab]{70}" + forced + "[ab]{200}" + forced;
  for (const auto how : both_loops) {
    for (const bool helped : {false, true}) {
      for (const auto force : {grammar::forcing::canonical, grammar::forcing::off}) {
        CAPTURE(how == loop_kind::plain, helped, force == grammar::forcing::off);
        engine_rig rig(with_context(200), letters(61), 4096, how,
                       helped ? std::make_shared<lazy_helpers>() : nullptr);
        rig.toy->contexts_shift = rig.toy->some_rows_unwanted = true;
        std::vector<std::shared_ptr<recording_sink>> sinks;
        for (std::uint64_t n = 0; n < 4; ++n) {
          auto j = shifting(rig.job(n, 1000, 20 + 40 * n), 10);
          j.constraint = fresh_constraint(regex, views_of(letters(61)));
          j.force = force;
          sinks.push_back(rig.submit(std::move(j)));
        }
        rig.run();
        for (const auto& sink : sinks) {
          CHECK(sink->end->reason == finish_reason::stop);
          CHECK(sink->end->shifts > 2);
          const std::string text = letters(61)->decode(sink->ids(), {});
          REQUIRE(text.size() == 530);
          for (std::size_t i = 0; i < text.size(); ++i)
            REQUIRE((text[i] == 'c') == ((i >= 70 && i < 200) || i >= 400));
        }
      }
    }
  }
}

TEST_CASE("shift: with logprobs each token has those of the logits behind what the context has") {
  for (const auto how : both_loops) {
    auto rig = shifting_rig(200, how);
    auto j = shifting(rig.job(4, 300, 120), 7);
    j.top_logprobs = 2;
    const auto sink = rig.submit(j);
    rig.run();
    check(*sink, defined(j, 200));
    REQUIRE(sink->logprobs.size() == 300);
  }
}

TEST_CASE("shift: a job goes on behind spoken tokens that its context has no room for") {
  for (const auto how : both_loops) {
    for (const std::size_t spoken : {1u, 79u, 80u, 81u, 180u, 181u, 399u}) {
      CAPTURE(how == loop_kind::plain, spoken);
      auto rig = shifting_rig(200, how);
      auto j = shifting(rig.job(4, 400, 120));
      j.sampling.temperature = 0.9f;
      j.sampling.repetition_penalty = 1.2f;
      const auto whole = defined(j, 200);
      const auto at = whole.tokens.begin() + static_cast<std::ptrdiff_t>(spoken);
      j.spoken.assign(whole.tokens.begin(), at);
      const auto sink = rig.submit(std::move(j));
      rig.run();
      REQUIRE(sink->end);
      CHECK(sink->ids() == std::vector<token_id>(at, whole.tokens.end()));
      CHECK(sink->end->output_tokens == 400);
      CHECK(sink->end->shifts == whole.shifts);
    }
  }
}

TEST_CASE("shift: a job goes on behind a fault of its device, wherever it was") {
  for (const auto how : both_loops) {
    for (const int steps : {1, 70, 82, 85, 150, 183, 300}) {
      CAPTURE(how == loop_kind::plain, steps);
      auto c = with_context(200);
      c.keep_jobs = true;
      engine_rig failed(c, how), next(c, how);
      for (engine_rig* const rig : {&failed, &next})
        rig->toy->contexts_shift = rig->toy->some_rows_unwanted = true;
      const auto j = shifting(failed.job(4, 400, 120), 9);
      const auto sink = failed.submit(j);
      for (int i = 0; i < steps; ++i) failed.step();
      failed.engine->fail(make_error(errc::internal, "the device is on fire"));
      auto jobs = failed.engine->evacuate();
      next.clock.set(failed.clock.now());
      next.engine->adopt(jobs);
      next.run();
      check(*sink, defined(j, 200));
    }
  }
}

TEST_CASE("shift: a simulated model writes the same answer as with room for all of it") {
  const auto spec = parse_sim_spec("rate=1000");
  REQUIRE(spec.has_value());
  for (const std::uint64_t n : {1, 2, 3}) {
    engine_rig roomy(*spec), tight(*spec, with_context(256));
    const auto all = roomy.solo(roomy.job(n, 900, 100));
    const auto sink = tight.submit(shifting(tight.job(n, 900, 100), 3));
    tight.run();
    CHECK(sink->ids() == all);
    CHECK(sink->end->shifts > 4);
  }
}

TEST_CASE("shift: an answer goes back over it from a banned string, as with room for all of it") {
  // The context is full behind 156 tokens: each string ends behind that, and begins before it or there.
  const auto spec = parse_sim_spec("rate=1000");
  REQUIRE(spec.has_value());
  const auto pieces = letters(sim_vocab_size);
  std::size_t over = 0;
  for (std::uint64_t n = 1; n < 5; ++n) {
    engine_rig first(*spec);
    const auto ids = first.solo(first.job(n, 200, 100));
    for (const std::size_t begin : {150u, 153u, 155u, 156u}) {
      for (const std::size_t count : {2u, 3u, 8u}) {
        CAPTURE(n, begin, count);
        std::string text;
        for (std::size_t i = begin; i < begin + count; ++i) text += pieces->token_bytes(ids[i]);
        const auto banned = [&](job j) {
          j.banned = {text};
          j.stop = {"no text of the answer"};
          return j;
        };
        engine_rig roomy(*spec), tight(*spec, with_context(256));
        const auto all = roomy.submit(banned(roomy.job(n, 900, 100)));
        roomy.run();
        const auto sink = tight.submit(shifting(banned(tight.job(n, 900, 100)), 3));
        tight.run();
        CHECK(sink->ids() == all->ids());
        CHECK(sink->end->reason == all->end->reason);
        CHECK(sink->end->shifts == 6);
        CHECK(tight.engine->counts().went_back == roomy.engine->counts().went_back);
        CHECK(roomy.engine->counts().went_back > 0);
        over += tight.engine->counts().shifts > 6;
      }
    }
  }
  CHECK(over > 0);  // some shifts were taken back, and made again
}

TEST_CASE("shift: over real layers the answer goes on as that of a fresh job behind what stays") {
  const temporary_dir dir;
  write_toy_directory(dir.path());
  for (const char* const backend : {"reference", "cpu"}) {
    CAPTURE(backend);
    auto loaded = load_model(dir.path().string(), make_backend(backend, 1).value());
    INFO((loaded ? std::string() : loaded.error().message));
    REQUIRE(loaded.has_value());
    engine_rig rig(std::move(loaded->weights), *load_tokenizer(dir.path().string()), with_context(160));
    const auto greedy = [&](std::vector<token_id> prompt, std::uint32_t most) {
      auto j = rig.job(1, most);
      j.prompt = std::move(prompt);
      j.sampling.temperature = 0;
      j.ignore_eos = true;
      return j;
    };
    const auto first = rig.job(1, 1, 130).prompt;
    std::vector<token_id> context(first.begin(), first.end()), wanted;
    while (wanted.size() < 260) {
      const auto room = static_cast<std::uint32_t>(std::min(160 - context.size(), 260 - wanted.size()));
      const auto more = rig.solo(greedy(context, room));
      REQUIRE(more.size() == room);
      wanted.insert(wanted.end(), more.begin(), more.end());
      context.insert(context.end(), more.begin(), more.end());
      if (context.size() == 160) context.erase(context.begin() + 4, context.begin() + 4 + 78);
    }
    const auto sink = rig.submit(shifting(greedy({first.begin(), first.end()}, 260), 4));
    rig.run();
    CHECK(sink->ids() == wanted);
    CHECK(sink->end->shifts == 3);
  }
}

}  // namespace weir::tests::engine_shift_test
