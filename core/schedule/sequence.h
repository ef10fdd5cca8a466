// sequence.h — a job inside the engine: what was asked, how far it is, and what its sink has been given.
//
// Life: made when the job is submitted, enter()ed when it is admitted, accept()s one token a step, close()d
// with a reason, settle()d once the sink has everything.
//
// Thread safety: the owner's thread. accept() and offer() do not allocate.
//
// Invariants:
//   1. delivered <= decided <= output.size() <= max_output. Tokens up to `decided` will be delivered whatever
//   comes;
//      those after it may still belong to a stop string.
//   2. computed <= expected(); a closed sequence has no pages.
//   3. The first `named` pages of the table are in the prefix tree, and named * page_tokens <= computed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/cache/page_table.h"
#include "core/job.h"
#include "core/model/model.h"
#include "core/sample/pipeline.h"
#include "core/stop/repeats.h"
#include "core/stop/stop_matcher.h"
#include "core/stop/token_table.h"

namespace weir::core {

struct alignas(128) sequence {
  // `longest`: prompt and output together. REQUIRES: the prompt is shorter than that.
  sequence(job j, const model_info& m, std::uint32_t longest);

  // --- what every step looks at: three cache lines, in front. What a step seldom needs is kept off them:
  // between steps the
  //     caches forget, and every line costs a way to memory ---
  std::uint32_t computed =
      0;  // rows whose keys and values are in the pages, or will be before anything else is computed
  std::int32_t draw_at = -1;   // where its token is among the draws under way; -1: none is
  std::uint32_t named = 0;     // pages at the beginning that the prefix tree knows
  std::uint32_t max_output;    // what was asked, or what the context leaves; >= 1
  std::uint32_t decided = 0, delivered = 0;
  std::uint32_t sampled = 0;  // output and the ending stop id
  bool preempted = false;     // it was in the batch, and waits to go on
  bool held = false;          // this step: somebody else computes the page that it needs next
  bool ended = false;         // closed: `how` says how
 private:
  bool watched_;                    // for stop strings or loops
  std::uint64_t ending_bits_ =
      0;  // a bit for each of `endings`, by the last six of its own: most tokens have none of them
 public:
  page_table pages;
  std::vector<token> output;  // the truth; the ending stop id is not in it
 private:
  token_sink* sink_;                // asked.sink
  time_point last_at_{};            // when a token was sampled last, if any was
  duration max_gap_{};              // longest time between two
  std::uint32_t prompt_tokens_, min_tokens_;  // as asked
 public:
  alignas(64) std::optional<sampler> chooser;  // from enter() on

  // --- asked, and constant ---
  job asked;
  std::vector<token_id> endings;  // stop ids: the model's, unless ignored, and the job's

  // --- the scheduler's ---
  std::uint64_t arrival = 0;  // order of submission, of all jobs
  std::uint64_t turn = 0;     // where it stands in the waiting line; see there
  std::uint32_t passed = 0;   // smaller jobs that entered while it found no room
  std::uint32_t preemptions = 0;
  std::uint64_t ordinal = 0;            // order of admission
  page_name last_name;                  // of the last page that is named
  std::uint64_t prompt_turn = 0;        // prompt rows that the scheduler had chosen when it entered
  time_point
      computed_at{};  // where the model is paced: when rows were last computed; before that, when admitted
  std::optional<time_point> scheduled;  // when it first entered a batch

  // --- what it says ---
  stop_matcher stops;
  std::optional<repeats> loops;  // where it asked
  std::uint32_t cached = 0;      // tokens of the prompt that it never had to compute
  ending how;                    // what its sink is told at the end

  std::uint32_t prompt_tokens() const noexcept { return prompt_tokens_; }
  std::uint32_t length() const noexcept {
    return prompt_tokens() + static_cast<std::uint32_t>(output.size());
  }
  bool awaits() const noexcept { return draw_at >= 0; }
  // The same with the token under way, unless that is the last that it may have: nothing will be computed
  // from it.
  std::uint32_t expected() const noexcept {
    return length() + (awaits() && output.size() + 1 < max_output ? 1 : 0);
  }
  std::uint32_t pending() const noexcept { return expected() - computed; }  // rows to compute
  bool decoding() const noexcept { return (awaits() || !output.empty()) && pending() <= 1; }
  token_id token_at(std::uint32_t position) const {
    return position < prompt_tokens() ? asked.prompt[position] : output[position - prompt_tokens()].id;
  }
  // name_pages() would find one that has become full.
  bool fills_page() const noexcept { return (named + 1) * page_tokens <= std::min(computed, length()); }
  bool tail_waits() const noexcept { return delivered < decided; }

  // Has the lines brought that a step looks at, and waits for nothing; then those that they lead to.
  void fetch() const noexcept {
    for (int line = 0; line < 3; ++line)
      __builtin_prefetch(reinterpret_cast<const std::byte*>(this) + line * 64, 1);
  }
  void fetch_ends() const noexcept {
    __builtin_prefetch(output.data() + output.size(), 1);
    __builtin_prefetch(pages.all().data());
  }

  // Makes the state that only a running sequence has.
  void enter(std::uint64_t admission, time_point now, std::uint32_t vocab_size);

  // Its rows before `rows` are in its pages, computed by others.
  void found(std::uint32_t rows) noexcept;

  // Its pages go back; what it said stays.
  void give_back(page_pool& pool);

  // The same for the sake of others: it will go on.
  void preempt(page_pool& pool);

  // A sampled token. False where it was the last one, and how.reason says why: close() with that. REQUIRES:
  // entered, not ended.
  bool accept(token t, const token_table& text);

  // No more tokens: withheld ones are decided, the pages go back. REQUIRES: not ended.
  void close(finish_reason why, page_pool& pool, std::optional<error> fault = {});

  // Offers the sink what it has not taken yet.
  void offer() {
    if (tail_waits()) write_tail();
  }

  // The closed sequence's last words: true once everything was taken and the sink knows the ending.
  bool settle();

  // The same at once: what the sink has no room for now is dropped.
  void settle_now();

 private:
  std::optional<std::uint64_t> judge(token_id id, const token_table& text);
  void decide(std::uint64_t bytes, const token_table& text);
  void cut(std::uint64_t bytes, const token_table& text);
  bool watch(token_id id, bool may_stop, const token_table& text);
  bool last(finish_reason why) noexcept {
    how.reason = why;
    return false;
  }
  void write_tail();
  bool is_ending(token_id id) const noexcept;

  std::uint32_t furthest_ = 0;  // rows that it had when it was preempted, at most
  std::uint64_t text_bytes_ = 0,
                decided_bytes_ = 0;  // of output, and of its decided part; counted with stops only
  bool matched_ = false;             // by a stop string: what is not decided is not shown
};

}  // namespace weir::core
