// sequence.h — one job inside the engine: what was asked, what was computed and sampled, and what was
// delivered.
//
// Life of a sequence, by its phase: submit() constructs it (waiting). enter() admits it to the batch
// (running). A step may leave it out (held) or request a draw for it (drawing); accept() takes the token that
// was drawn (running again). preempt() takes its pages (preempted), and it waits for enter() again. pause()
// takes it out of the batch or the waiting line, and wake() lets it go back (paused in between). close() ends
// it with a reason (ended). settle() tells its sink the ending once the sink has taken every token.
//
// Thread safety: the owner's thread only. accept() and offer() do not allocate, except for logprobs where
// more tokens wait for the sink than enter() reserved room for.
//
// Invariants:
//   1. delivered <= decided <= output.size() <= max_output. A token is decided when no stop string can
//      withhold it any more; only settle_now() may drop a decided token.
//   2. computed <= expected(). Only a sequence in the batch, or a paused one, has pages.
//   3. The first `named` pages of the table are in the prefix tree, and named * page_tokens <= computed.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/cache/page_table.h"
#include "core/grammar/masks/job_mask.h"
#include "core/job.h"
#include "core/model/model.h"
#include "core/sample/pipeline.h"
#include "core/stop/repeats.h"
#include "core/stop/stop_matcher.h"
#include "core/stop/token_table.h"

namespace weir::core {

// Where a sequence is in its life.
enum class sequence_phase : std::uint8_t {
  waiting,    // in the waiting line, and never in the batch so far
  running,    // in the batch, with pages
  held,       // in the batch, but left out of the step: another sequence computes the page that it needs next
  drawing,    // in the batch, and awaits the token of a requested draw
  paused,     // out of the batch and of the waiting line until wake(); it may keep its pages
  preempted,  // was in the batch and lost its pages to other sequences; in the waiting line again
  ended,      // close() was called: it has no pages, and its sink may still have tokens to take
};

// Whether a constraint says what a sequence may write.
enum class fit_state : std::uint8_t {
  free,     // there is no constraint
  fitted,   // the constraint says it: sequence::fit
  sits_out  // fitted, and the last draw was left out because its mask was late: the next step computes the
            // last row again, for another draw
};

// The members of a sequence that every step reads. They fill two cache lines, and rarely used members stay
// off these lines: after the wait for a step the lines are no longer cached, and each costs one access to
// memory.
struct alignas(128) sequence_step {
  // Rows (one per token) whose keys and values are in `pages`. The rows of a forward that has begun count,
  // since the device completes them before anything that begins later.
  std::uint32_t computed = 0;
  // Number of the draw whose token it awaits, in the step in flight. Only in phase `drawing`.
  std::uint32_t draw_number = 0;
  // Pages at the beginning of `pages` that are in the prefix tree.
  std::uint32_t named = 0;
  // Most output tokens: the job's max_tokens, or what the context leaves if that is less; >= 1.
  std::uint32_t max_output = 1;
  // Leading tokens of `output` that no stop string can withhold any more, and those that the sink has taken.
  std::uint32_t decided = 0, delivered = 0;
  // Tokens sampled: `output`, and the stop id that ended the sequence, if one did.
  std::uint32_t sampled = 0;
  sequence_phase phase = sequence_phase::waiting;

 protected:
  bool watched_ = false;           // the job has stop strings or max_repeats
  std::int8_t top_logprobs_ = -1;  // job::top_logprobs; negative: the job asked for none
  fit_state fit_ = fit_state::free;
  // Filter in front of `endings`: bit id % 64 is set for each of them. A token whose bit is clear is no
  // ending.
  std::uint64_t ending_bits_ = 0;

 public:
  page_table pages;
  // Every token that was kept, in order. The stop id that ended the sequence is not in it.
  std::vector<token> output;

 protected:
  token_sink* sink_ = nullptr;                        // asked.sink
  time_point last_at_{};                              // when the last token was sampled
  duration max_gap_{};                                // longest time between two consecutive tokens
  std::uint32_t prompt_tokens_ = 0, min_tokens_ = 0;  // as asked
};
static_assert(sizeof(sequence_step) == 128, "a step reads one more line of every sequence");

struct sequence : sequence_step {
  // `longest`: most tokens of prompt and output together. REQUIRES: the prompt has fewer than `longest`
  // tokens.
  sequence(job j, const model_info& m, std::uint32_t longest);

  // Sampling state; set by the first enter(). A plain draw reads its first line.
  alignas(64) std::optional<sampler> chooser;

  // --- The job, constant after construction ---
  job asked;
  std::vector<token_id> endings;  // stop ids: the job's own and, unless ignore_eos, the model's

  // --- Scheduling ---
  std::uint64_t arrival = 0;      // number of the submission among all jobs of the engine
  std::uint64_t ticket = 0;       // scheduling order among waiting jobs, lowest first; see waiting_line.h
  std::uint32_t passed = 0;       // admissions of jobs behind this one while it found no room
  std::uint32_t preemptions = 0;  // times it was preempted
  // When its pause ends by itself. Set while it is paused; a paused sequence may still await a draw.
  std::optional<time_point> paused_until;
  std::uint64_t ordinal = 0;      // number of its latest admission among all admissions of the engine
  page_name root;                 // root name of the salt and the model's type of pages
  page_name last_name;            // name of the last named page; `root` while there is none
  std::uint64_t rows_before = 0;  // prompt rows that the scheduler chose before its latest admission
  // When its last rows were computed; before the first rows, when it was admitted. Kept up to date for paced
  // models only.
  time_point computed_at{};
  std::optional<time_point> scheduled;  // when it was first part of a batch

  // --- Output ---
  std::shared_ptr<grammar::job_mask> fit;  // the next token of a job with a constraint; set by enter()
  stop_matcher stops;            // the job's stop strings; set by the first enter()
  std::optional<repeats> loops;  // loop detector; set by the first enter() if the job has max_repeats
  std::uint32_t cached = 0;      // prompt tokens found in the prefix cache that it never had to compute
  ending how;                    // what the sink is told at the end
  // Logprobs of the prompt's scored tokens; null: the job asked for none. Set by the first enter().
  std::shared_ptr<std::vector<kernels::scored_token>> prompt_logprobs;

  std::uint32_t prompt_tokens() const noexcept { return prompt_tokens_; }
  // Rows of the prompt that give the logprobs of the prompt's tokens: all rows but the last one, each for the
  // token behind it; 0 if the job asked for none. `scored_rows` of them are done.
  std::uint32_t rows_to_score() const noexcept { return asked.prompt_logprobs ? prompt_tokens_ - 1 : 0; }
  std::uint32_t scored_rows() const noexcept {
    return prompt_logprobs ? static_cast<std::uint32_t>(prompt_logprobs->size()) : 0;
  }
  bool scores() const noexcept { return scored_rows() < rows_to_score(); }
  // One more than the rows that may be taken from the prefix cache: rows that are still to be scored may not.
  std::uint32_t reusable() const noexcept { return scores() ? scored_rows() + 1 : length(); }
  // Whether a constraint says what the sequence may write.
  bool fitted() const noexcept { return fit_ != fit_state::free; }
  // Whether its last row was computed but not drawn from, and is computed again.
  bool sits_out() const noexcept { return fit_ == fit_state::sits_out; }
  // REQUIRES: fitted().
  void sit_out(bool on) noexcept { fit_ = on ? fit_state::sits_out : fit_state::fitted; }
  // Tokens of prompt and output that the host knows.
  std::uint32_t length() const noexcept {
    return prompt_tokens() + static_cast<std::uint32_t>(output.size());
  }
  // How many of the likeliest tokens each draw gives logprobs of; negative: the job asked for no logprobs.
  std::int32_t top_logprobs() const noexcept { return top_logprobs_; }
  // When the last token was sampled. REQUIRES: sampled > 0.
  time_point last_at() const noexcept { return last_at_; }
  // A draw for this sequence has been requested and its token is not known yet.
  bool awaits() const noexcept { return phase == sequence_phase::drawing; }
  bool ended() const noexcept { return phase == sequence_phase::ended; }
  // It is in the batch, and not in the waiting line or ended.
  bool in_batch() const noexcept {
    using enum sequence_phase;
    return phase == running || phase == held || phase == drawing;
  }
  // Rows that the sequence needs computed: length(), and one for the token that it awaits. An awaited token
  // that reaches max_output needs no row, because nothing is sampled after it.
  std::uint32_t expected() const noexcept {
    return length() + (awaits() && output.size() + 1 < max_output ? 1 : 0);
  }
  // Rows that are still to be computed.
  std::uint32_t pending() const noexcept { return expected() - computed; }
  // The first token was drawn or requested, or would have been but for its mask, and at most one row is
  // pending. Every other sequence has a prompt, or rows lost by preemption, to compute.
  bool decoding() const noexcept { return (awaits() || !output.empty() || sits_out()) && pending() <= 1; }
  // The row that the next step computes first.
  std::uint32_t next_row() const noexcept { return computed - (sits_out() ? 1 : 0); }
  // REQUIRES: position < length().
  token_id token_at(std::uint32_t position) const {
    return position < prompt_tokens() ? asked.prompt[position] : output[position - prompt_tokens()].id;
  }
  // The first page without a name is full and all its tokens are known: name_pages() would name it.
  bool fills_page() const noexcept { return (named + 1) * page_tokens <= std::min(computed, length()); }
  // The sink has not taken every decided token.
  bool tail_waits() const noexcept { return delivered < decided; }

  // Prefetches sequence_step and the first line of the sampler.
  void fetch() const noexcept {
    for (std::size_t line = 0; line < 3; ++line)
      __builtin_prefetch(reinterpret_cast<const std::byte*>(this) + line * 64, 1);
  }
  // Prefetches the end of `output` and the page table. Reads sequence_step, so fetch() should come first.
  void fetch_ends() const noexcept {
    __builtin_prefetch(output.data() + output.size(), 1);
    __builtin_prefetch(pages.all().data());
  }

  // Admission into the batch; `admission` becomes the ordinal. The first call builds the sampler, the stop
  // matcher and the loop detector and reserves memory for the longest output; later calls keep them.
  // REQUIRES: it waits, or was preempted.
  void enter(std::uint64_t admission, time_point now, std::uint32_t vocab_size);

  // Leaves the sequence out of the step that is planned, or takes it back in. REQUIRES: running or held.
  void hold(bool on) noexcept {
    assert(phase == sequence_phase::running || phase == sequence_phase::held);
    phase = on ? sequence_phase::held : sequence_phase::running;
  }

  // Draw `number` of the step in flight is requested for it. REQUIRES: running.
  void await_draw(std::uint32_t number) noexcept {
    assert(phase == sequence_phase::running);
    draw_number = number;
    phase = sequence_phase::drawing;
  }
  // The awaited token has come: returns the number of its draw. REQUIRES: awaits().
  std::uint32_t take_draw() noexcept {
    assert(awaits());
    phase = sequence_phase::running;
    return draw_number;
  }

  // Stops it until wake(): it keeps its pages. An awaited token may still be accepted; rest() must follow.
  // REQUIRES: not ended.
  void pause(time_point until) noexcept {
    paused_until = until;
    rest();
  }
  // Sets the phase of a paused sequence that awaits no draw. REQUIRES: not ended.
  void rest() noexcept {
    assert(!ended());
    if (!awaits()) phase = sequence_phase::paused;
  }
  // Ends its pause. With pages it is in the batch again, else it waits for enter(). REQUIRES: paused_until.
  void wake() noexcept;

  // Sets computed to `rows`: the prefix cache gave the keys and values of all rows before it.
  void found(std::uint32_t rows) noexcept;

  // Releases all pages. The phase, output and delivery state stay.
  void give_back(page_pool& pool);

  // Releases all pages for the sake of other sequences, and forgets the awaited draw: its token is drawn
  // again later. The sequence may be enter()ed again; a paused one stays paused. REQUIRES: in the batch, or
  // paused.
  void preempt(page_pool& pool);

  // Adds a sampled token, and its logprobs if the job asked for them. Returns false if it ended the sequence:
  // how.reason is set, and the caller must close() with that reason. REQUIRES: running; `logprobs` is not
  // null if the job asked.
  bool accept(token t, const token_table& text, const kernels::draw_logprobs* logprobs = nullptr);

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
  // Feeds a token to the stop strings. Returns the offset, in the output's bytes, of the stop string that the
  // token completes; nullopt: it completes none.
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

  // Most rows that were computed at a preemption. Of the rows found later, only those beyond count as cached.
  std::uint32_t furthest_ = 0;
  // Bytes of `output` and of its decided part; counted only if the job has stop strings.
  std::uint64_t text_bytes_ = 0, decided_bytes_ = 0;
  // Logprobs of the tokens of `output` after the delivered ones; empty if the job asked for none.
  std::vector<kernels::draw_logprobs> logprobs_;
  bool matched_ = false;  // a stop string matched: tokens that are not decided are not shown
};

// To be called by a pass over `all` at index `i`: prefetches the sequences that the pass reaches soon. After
// the wait for a step the first pass finds few of their lines in the caches.
inline void fetch_ahead(std::span<const std::unique_ptr<sequence>> all, std::size_t i) {
  constexpr std::size_t lines = 16, ends = 8;  // sequences ahead
  if (i + lines < all.size()) all[i + lines]->fetch();
  if (i + ends < all.size()) all[i + ends]->fetch_ends();
}

}  // namespace weir::core
