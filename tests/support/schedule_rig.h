// schedule_rig.h — sequences by number, and a scheduler over a page pool, without an engine and without a
// device.
//
// The test takes the part of the engine's loop: compute() counts the rows of a plan as computed and gives
// every sequence whose logits were asked for a token.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "core/schedule/scheduler.h"
#include "tests/support/recording_sink.h"
#include "tests/support/toy_model.h"
#include "tests/support/toy_tokenizer.h"

namespace weir::tests {

// Job `n` with a prompt of its own; the prompts of different numbers differ in their first token.
inline core::job numbered_job(std::uint64_t n, std::uint32_t prompt, std::uint32_t max_tokens = 16) {
  core::job j;
  j.id = {7, n};
  std::vector<core::token_id> text;
  for (std::uint32_t i = 0; i < prompt; ++i)
    text.push_back(static_cast<core::token_id>((n + i * (n + 1)) % 60));
  j.prompt = std::move(text);
  j.max_tokens = max_tokens;
  j.sink = std::make_shared<recording_sink>();
  return j;
}

struct schedule_rig {
  toy_model model;
  core::page_pool pool;
  core::scheduler plan;
  core::token_table text{*letters(61)};
  core::time_point now{};

  explicit schedule_rig(std::uint32_t pages = 64, std::uint32_t max_batch = 8, std::uint32_t rows = 64)
      : pool(pages), plan(max_batch, {.rows = rows}, pool, model) {}
  ~schedule_rig() {
    for (const auto& s : plan.running()) s->give_back(pool);
    for (const auto& s : plan.resting()) s->give_back(pool);
  }

  std::unique_ptr<core::sequence> make(core::job j) const {
    return std::make_unique<core::sequence>(std::move(j), model.info(), model.info().context);
  }
  // Adds a job to the waiting line. The sequence lives until the test takes it out or ends.
  core::sequence& add(core::job j) {
    auto s = make(std::move(j));
    core::sequence& added = *s;
    plan.add(std::move(s));
    return added;
  }

  // Counts the latest plan, `work`, as computed. Gives a token to each sequence whose logits the plan asked
  // for, and returns these sequences.
  std::vector<core::sequence*> compute(const core::batch& work) {
    plan.computed(now);
    std::vector<core::sequence*> drew;
    for (std::size_t i = 0; i < work.slices.size(); ++i) {
      if (work.slices[i].logits_row < 0) continue;
      core::sequence& s = *plan.sequences()[i];
      const core::token drawn{static_cast<core::token_id>(1 + s.sampled() % 50), now};
      if (s.accept(drawn, text) == core::sequence::accepted::last) s.close(s.how().reason, pool);
      drew.push_back(&s);
    }
    return drew;
  }
  std::vector<core::sequence*> step() { return compute(plan.plan(now)); }

  // Rows of the latest plan for this sequence; 0 where it is not in the batch.
  std::uint32_t rows_of(const core::batch& work, const core::sequence& s) const {
    for (std::size_t i = 0; i < work.slices.size(); ++i)
      if (plan.sequences()[i] == &s) return work.slices[i].rows;
    return 0;
  }
  bool running(const core::sequence& s) const {
    return std::ranges::any_of(plan.running(), [&](const auto& r) { return r.get() == &s; });
  }
};

}  // namespace weir::tests
