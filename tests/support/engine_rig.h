// engine_rig.h — an engine over a toy model or a sim, a clock that the test moves, and jobs by number.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "core/engine.h"
#include "core/grammar/masks/job_mask.h"
#include "core/model/sim.h"
#include "tests/support/late_model.h"
#include "tests/support/manual_clock.h"
#include "tests/support/recording_sink.h"
#include "tests/support/toy_model.h"
#include "tests/support/toy_tokenizer.h"

namespace weir::tests {

// A prompt of tokens below `vocab`: fewer than `shared` tokens of the text with number `source`, and a random
// tail of 1 to `tail` tokens.
inline std::vector<core::token_id> shared_prompt(std::mt19937& random, std::uint64_t source, unsigned shared,
                                                 unsigned tail, std::uint32_t vocab) {
  std::vector<core::token_id> out;
  for (std::size_t i = 0, n = random() % shared; i < n; ++i)
    out.push_back(static_cast<core::token_id>((source * 101 + i * i + 3 * i) % vocab));
  for (std::size_t i = 0, n = 1 + random() % tail; i < n; ++i)
    out.push_back(static_cast<core::token_id>(random() % vocab));
  return out;
}

inline core::engine_config small_config() {
  core::engine_config c;
  c.max_batch = 32;
  c.kv_pages = 256;
  c.prefill_rows = 64;
  return c;
}

enum class loop_kind { plain, overlapped };

struct engine_rig {
  manual_clock clock;
  toy_model* toy = nullptr;
  late_model* late = nullptr;                            // around `toy` where steps overlap; else null
  std::shared_ptr<core::grammar::mask_helpers> helpers;  // of the engine; null: none
  std::unique_ptr<core::engine> engine;

  explicit engine_rig(core::engine_config c = small_config(),
                      std::shared_ptr<const core::tokenizer> t = letters(61), std::uint32_t context = 4096,
                      loop_kind how = loop_kind::plain, std::shared_ptr<core::grammar::mask_helpers> h = {})
      : helpers(std::move(h)) {
    auto m = std::make_unique<toy_model>(t->vocab_size(), context);
    toy = m.get();
    if (helpers) toy->some_rows_unwanted = true;
    if (how == loop_kind::plain) {
      build(std::move(m), std::move(t), c);
    } else {
      toy->some_rows_unwanted = true;
      auto around = std::make_unique<late_model>(std::move(m));
      late = around.get();
      build(std::move(around), std::move(t), c);
    }
  }
  engine_rig(core::engine_config c, loop_kind how) : engine_rig(c, letters(61), 4096, how) {}
  explicit engine_rig(const core::sim_spec& spec, core::engine_config c = small_config()) {
    build(core::make_sim_model(spec), letters(core::sim_vocab_size), c);
  }
  engine_rig(std::unique_ptr<core::model> m, std::shared_ptr<const core::tokenizer> t,
             core::engine_config c) {
    build(std::move(m), std::move(t), c);
  }

  // With the pages that the model has already allocated.
  struct as_it_is {};
  engine_rig(std::unique_ptr<core::model> m, const std::shared_ptr<const core::tokenizer>& t,
             core::engine_config c, as_it_is) {
    finish(std::move(m), t, c);
  }

  // Makes one step, which takes a microsecond, and then checks the engine's invariants.
  core::step_report step() {
    const auto report = engine->step();
    clock.advance(std::chrono::microseconds(1));
    INFO(engine->check_integrity());
    REQUIRE(engine->check_integrity().empty());
    if (engine->idle()) REQUIRE(engine->check_idle().empty());
    return report;
  }

  // Steps until the engine is idle, and moves the clock to the times for which the engine waits.
  void run(int most = 100000) {
    while (!engine->idle()) {
      REQUIRE(most-- > 0);
      const auto report = step();
      if (report.wait_until > clock.now()) clock.set(report.wait_until);
    }
    REQUIRE(engine->counts().pages_used == 0);
  }

  static core::job_id id(std::uint64_t n) { return {7, n}; }

  // Job `n`: its prompt, seed and id follow from the number; change what the test is about, then submit.
  core::job job(std::uint64_t n, std::uint32_t max_tokens = 16, std::size_t prompt = 5) const {
    core::job j;
    j.id = id(n);
    std::vector<core::token_id> text;
    for (std::size_t i = 0; i < prompt; ++i)
      text.push_back(static_cast<core::token_id>((n * 7 + i * 3) % 60));
    j.prompt = std::move(text);
    j.max_tokens = max_tokens;
    j.sampling.seed = n;
    j.created = clock.now();
    return j;
  }

  std::shared_ptr<recording_sink> submit(core::job j) {
    auto sink = std::make_shared<recording_sink>();
    j.sink = sink;
    engine->submit(std::move(j));
    return sink;
  }

  // The tokens of the job when it runs alone. The engine must be idle before, and is idle afterwards.
  std::vector<core::token_id> solo(core::job j) {
    REQUIRE(engine->idle());
    auto sink = submit(std::move(j));
    run();
    return sink->ids();
  }

 private:
  void build(std::unique_ptr<core::model> m, const std::shared_ptr<const core::tokenizer>& t,
             core::engine_config c) {
    REQUIRE(m->allocate_pages(c.kv_pages).has_value());
    finish(std::move(m), t, c);
  }

  void finish(std::unique_ptr<core::model> m, const std::shared_ptr<const core::tokenizer>& t,
              core::engine_config c) {
    if (c.host_pages > 0) REQUIRE(m->allocate_host_pages(c.host_pages).has_value());
    engine = std::make_unique<core::engine>(std::move(m), core::token_table(*t), c, clock, helpers);
  }
};

}  // namespace weir::tests
