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

struct sequence {
  // `longest`: prompt and output together. REQUIRES: the prompt is shorter than that.
  sequence(job j, const model_info& m, std::uint32_t longest);

  // --- asked, and constant ---
  job asked;
  std::uint32_t max_output;       // what was asked, or what the context leaves; >= 1
  std::vector<token_id> endings;  // stop ids: the model's, unless ignored, and the job's

  // --- the scheduler's ---
  std::uint64_t arrival = 0;  // order of submission, of all jobs
  std::uint64_t turn = 0;     // where it stands in the waiting line; see there
  std::uint32_t passed = 0;   // smaller jobs that entered while it found no room
  bool preempted = false;     // it was in the batch, and waits to go on
  std::uint32_t preemptions = 0;
  std::uint64_t ordinal = 0;  // order of admission
  page_table pages;
  std::uint32_t computed = 0;           // rows whose keys and values are in the pages, or will be before anything else is computed
  std::int32_t draw_at = -1;            // where its token is among the draws under way; -1: none is
  std::uint32_t named = 0;              // pages at the beginning that the prefix tree knows, and
  page_name last_name;                  // the name of the last of them
  std::uint64_t prompt_turn = 0;        // prompt rows that the scheduler had chosen when it entered
  bool held = false;                    // this step: somebody else computes the page that it needs next
  time_point computed_at{};             // when the last of them were; before that, when admitted
  std::optional<time_point> scheduled;  // when it first entered a batch

  // --- what it says ---
  std::optional<sampler> chooser;  // from enter() on
  stop_matcher stops;
  std::optional<repeats> loops;    // where it asked
  std::vector<token> output;  // the truth; the ending stop id is not in it
  std::uint32_t sampled = 0;  // output and the ending stop id
  std::uint32_t cached = 0;   // tokens of the prompt that it never had to compute
  std::uint32_t decided = 0, delivered = 0;
  std::optional<ending> ended;

  std::uint32_t prompt_tokens() const noexcept { return static_cast<std::uint32_t>(asked.prompt.size()); }
  std::uint32_t length() const noexcept {
    return prompt_tokens() + static_cast<std::uint32_t>(output.size());
  }
  bool awaits() const noexcept { return draw_at >= 0; }
  // The same with the token under way, unless that is the last that it may have: nothing will be computed from it.
  std::uint32_t expected() const noexcept { return length() + (awaits() && output.size() + 1 < max_output ? 1 : 0); }
  std::uint32_t pending() const noexcept { return expected() - computed; }  // rows to compute
  bool decoding() const noexcept { return (awaits() || !output.empty()) && pending() <= 1; }
  token_id token_at(std::uint32_t position) const {
    return position < prompt_tokens() ? asked.prompt[position] : output[position - prompt_tokens()].id;
  }
  bool tail_waits() const noexcept { return delivered < decided; }

  // Makes the state that only a running sequence has.
  void enter(std::uint64_t admission, time_point now, std::uint32_t vocab_size);

  // Its rows before `rows` are in its pages, computed by others.
  void found(std::uint32_t rows) noexcept;

  // Its pages go back; what it said stays.
  void give_back(page_pool& pool);

  // The same for the sake of others: it will go on.
  void preempt(page_pool& pool);

  // A sampled token. Returns why it was the last one, if it was. REQUIRES: entered, not ended.
  std::optional<finish_reason> accept(token t, const token_table& text);

  // No more tokens: withheld ones are decided, the pages go back. REQUIRES: not ended.
  void close(finish_reason why, page_pool& pool, std::optional<error> fault = {});

  // Offers the sink what it has not taken yet; returns how many tokens it took.
  std::size_t offer();

  // The closed sequence's last words: true once everything was taken and the sink knows the ending.
  bool settle();

  // The same at once: what the sink has no room for now is dropped.
  void settle_now();

 private:
  std::optional<std::uint64_t> judge(token_id id, const token_table& text);
  void decide(std::uint64_t bytes, const token_table& text);
  void cut(std::uint64_t bytes, const token_table& text);
  void note_time(time_point at);

  std::uint32_t furthest_ = 0;  // rows that it had when it was preempted, at most
  std::uint64_t text_bytes_ = 0,
                decided_bytes_ = 0;  // of output, and of its decided part; counted with stops only
  bool matched_ = false;             // by a stop string: what is not decided is not shown
  ending times_;                     // the fields of the ending that grow on the way
};

}  // namespace weir::core
