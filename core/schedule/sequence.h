// sequence.h — one job inside the engine: what was asked, what was computed and sampled, and what was
// delivered.
//
// Life of a sequence: it is constructed by submit(), enter()ed when it is admitted, accept()s one sampled
// token per step, is close()d with a reason, and is settle()d once its sink has taken every token and the
// ending.
//
// Thread safety: the owner's thread only. accept() and offer() do not allocate.
//
// Invariants:
//   1. delivered <= decided <= output.size() <= max_output. A token is decided when no stop string can
//      withhold it any more; only settle_now() may drop a decided token.
//   2. computed <= expected(). A closed sequence has no pages.
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
  // `longest`: most tokens of prompt and output together. REQUIRES: the prompt has fewer than `longest`
  // tokens.
  sequence(job j, const model_info& m, std::uint32_t longest);

  // --- Hot members, which every step reads. They fill the first three cache lines, and rarely used members
  // stay off those lines: after the wait for a step the lines are no longer cached, and each costs one access
  // to memory. ---

  // Rows (one per token) whose keys and values are in `pages`. The rows of a forward that has begun count,
  // since the device completes them before anything that begins later.
  std::uint32_t computed = 0;
  // Index, in the engine's draws, of the draw whose token this sequence awaits; -1: it awaits none.
  std::int32_t draw_at = -1;
  // Pages at the beginning of `pages` that are in the prefix tree.
  std::uint32_t named = 0;
  // Most output tokens: the job's max_tokens, or what the context leaves if that is less; >= 1.
  std::uint32_t max_output;
  // Leading tokens of `output` that no stop string can withhold any more, and those that the sink has taken.
  std::uint32_t decided = 0, delivered = 0;
  // Tokens sampled: `output`, and the stop id that ended the sequence, if one did.
  std::uint32_t sampled = 0;
  // The sequence was in the batch, lost its pages to others and waits to be admitted again.
  bool preempted = false;
  // In this step another sequence computes the page that this one needs next, so this one is not scheduled.
  bool held = false;
  // close() was called; `how` has the reason.
  bool ended = false;

 private:
  bool watched_;  // the job has stop strings or max_repeats
  // Filter in front of `endings`: bit id % 64 is set for each of them. A token whose bit is clear is no
  // ending.
  std::uint64_t ending_bits_ = 0;

 public:
  page_table pages;
  // Every token that was kept, in order. The stop id that ended the sequence is not in it.
  std::vector<token> output;

 private:
  token_sink* sink_;                          // asked.sink
  time_point last_at_{};                      // when the last token was sampled
  duration max_gap_{};                        // longest time between two consecutive tokens
  std::uint32_t prompt_tokens_, min_tokens_;  // as asked

 public:
  alignas(64) std::optional<sampler> chooser;  // sampling state; set by the first enter()

  // --- The job, constant after construction ---
  job asked;
  std::vector<token_id> endings;  // stop ids: the job's own and, unless ignore_eos, the model's

  // --- Scheduling ---
  std::uint64_t arrival = 0;      // number of the submission among all jobs of the engine
  std::uint64_t turn = 0;         // scheduling order among waiting jobs, lowest first; see waiting_line.h
  std::uint32_t passed = 0;       // admissions of jobs behind this one while it found no room
  std::uint32_t preemptions = 0;  // times it was preempted
  std::uint64_t ordinal = 0;      // number of its latest admission among all admissions of the engine
  page_name last_name;            // name of the last named page; the salt's root name while there is none
  std::uint64_t prompt_turn = 0;  // scheduler::prompt_rows() at its latest admission; orders prompts there
  // When its last rows were computed; before the first rows, when it was admitted. Kept up to date for paced
  // models only.
  time_point computed_at{};
  std::optional<time_point> scheduled;  // when it was first part of a batch

  // --- Output ---
  stop_matcher stops;            // the job's stop strings; set by the first enter()
  std::optional<repeats> loops;  // loop detector; set by the first enter() if the job has max_repeats
  std::uint32_t cached = 0;      // prompt tokens found in the prefix cache that it never had to compute
  ending how;                    // what the sink is told at the end

  std::uint32_t prompt_tokens() const noexcept { return prompt_tokens_; }
  // Tokens of prompt and output that the host knows.
  std::uint32_t length() const noexcept {
    return prompt_tokens() + static_cast<std::uint32_t>(output.size());
  }
  // A draw for this sequence has been requested and its token is not known yet.
  bool awaits() const noexcept { return draw_at >= 0; }
  // Rows that the sequence needs computed: length(), and one for the token that it awaits. An awaited token
  // that reaches max_output needs no row, because nothing is sampled after it.
  std::uint32_t expected() const noexcept {
    return length() + (awaits() && output.size() + 1 < max_output ? 1 : 0);
  }
  // Rows that are still to be computed.
  std::uint32_t pending() const noexcept { return expected() - computed; }
  // The first token was drawn or requested, and at most one row is pending. Every other sequence has a
  // prompt, or rows lost by preemption, to compute.
  bool decoding() const noexcept { return (awaits() || !output.empty()) && pending() <= 1; }
  // REQUIRES: position < length().
  token_id token_at(std::uint32_t position) const {
    return position < prompt_tokens() ? asked.prompt[position] : output[position - prompt_tokens()].id;
  }
  // The first page without a name is full and all its tokens are known: name_pages() would name it.
  bool fills_page() const noexcept { return (named + 1) * page_tokens <= std::min(computed, length()); }
  // The sink has not taken every decided token.
  bool tail_waits() const noexcept { return delivered < decided; }

  // Prefetches the three cache lines of the hot members.
  void fetch() const noexcept {
    for (int line = 0; line < 3; ++line)
      __builtin_prefetch(reinterpret_cast<const std::byte*>(this) + line * 64, 1);
  }
  // Prefetches the end of `output` and the page table. Reads the hot members, so fetch() should come first.
  void fetch_ends() const noexcept {
    __builtin_prefetch(output.data() + output.size(), 1);
    __builtin_prefetch(pages.all().data());
  }

  // Admission into the batch; `admission` becomes the ordinal. The first call builds the sampler, the stop
  // matcher and the loop detector and reserves memory for the longest output; later calls keep them.
  void enter(std::uint64_t admission, time_point now, std::uint32_t vocab_size);

  // Sets computed to `rows`: the prefix cache gave the keys and values of all rows before it.
  void found(std::uint32_t rows) noexcept;

  // Releases all pages and forgets the awaited draw. Output and delivery state stay.
  void give_back(page_pool& pool);

  // Releases all pages for the sake of other sequences. The sequence stays alive and may be enter()ed again.
  void preempt(page_pool& pool);

  // Adds a sampled token. Returns false if it ended the sequence: how.reason is set, and the caller must
  // close() with that reason. REQUIRES: entered, not ended.
  bool accept(token t, const token_table& text);

  // Ends the sequence and releases its pages. Withheld tokens become decided, unless a stop string matched:
  // then they are never shown. REQUIRES: not ended.
  void close(finish_reason why, page_pool& pool, std::optional<error> fault = {});

  // Offers the sink the decided tokens that it has not taken yet; it may take only some of them.
  void offer() {
    if (tail_waits()) write_tail();
  }

  // Offers the remaining tokens and, once the sink has all of them, tells it the ending. Returns false if the
  // sink had no room: call again later. Not to be called again after true. REQUIRES: ended.
  bool settle();

  // Tells the sink the ending now; tokens that it has no room for are dropped. REQUIRES: ended.
  void settle_now();

 private:
  // Feeds a token to the stop strings. If it completes one: the offset in the output's bytes where that
  // begins.
  std::optional<std::uint64_t> judge(token_id id, const token_table& text);
  // Decides the tokens that end within the first `bytes` of the output's bytes.
  void decide(std::uint64_t bytes, const token_table& text);
  // Stop string at offset `bytes`: decides the tokens that begin before it and sets how.shown_bytes if it
  // begins inside a token.
  void cut(std::uint64_t bytes, const token_table& text);
  // Stop strings, then loops, for the token just added. Returns false if one of them ended the sequence.
  bool watch(token_id id, bool may_stop, const token_table& text);
  // Sets how.reason; false, for accept() to return.
  bool last(finish_reason why) noexcept {
    how.reason = why;
    return false;
  }
  void write_tail();
  bool is_ending(token_id id) const noexcept;

  // Most rows that were computed when it was preempted. Finding those again does not count as cached.
  std::uint32_t furthest_ = 0;
  // Bytes of `output` and of its decided part; counted only if the job has stop strings.
  std::uint64_t text_bytes_ = 0, decided_bytes_ = 0;
  bool matched_ = false;  // a stop string matched: tokens that are not decided are not shown
};

}  // namespace weir::core
