// sequence.h — one job inside the engine: what was asked, what was computed and sampled, and what was
// delivered.
//
// Life of a sequence, by its phase: submit() constructs it (waiting). enter() admits it to the batch
// (running). A step may leave it out (held), or request a draw for it, whose token accept() takes. preempt()
// takes its pages (preempted), and it waits for enter() again. pause() takes it out of the batch or the
// waiting line (paused). line_up() ends the pause (returning), and resume() lets it go back. close() ends it
// with a reason (ended). settle() tells its sink the ending once the sink has taken every token.
//
// Going back: a token may complete one of job::banned. The sequence then takes its last tokens back, as if
// they had never been: sampler, watch and logprobs go back with it, and rows and pages that hold them are
// given up. None of these tokens was decided, since each may have been part of the banned string. The first
// of them is refused at its place from then on. The next draw computes the last row that stays once more.
//
// Thread safety: the owner's thread only. accept() and offer() do not allocate, except for logprobs where
// more tokens wait for the sink than enter() reserved room for.
//
// Invariants:
//   1. delivered() <= decided() <= output().size() <= max_output(). A token is decided when no stop string
//      can withhold it any more; only settle_now() may drop a decided token.
//   2. computed() <= expected(). Only a sequence in the batch, a paused or a returning one has pages. One in
//      the batch has none between a shift() of its context, or a go_back() over one, and the next plan.
//   3. The first named() pages of the table are in the prefix tree, and named() * page_tokens <= computed().
//   4. Only a sequence in the batch, a paused or a returning one awaits draws.
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
#include "core/sample/sequence_logprobs.h"
#include "core/schedule/awaited_draws.h"
#include "core/schedule/context_shift.h"
#include "core/stop/output_watch.h"
#include "core/stop/token_table.h"

namespace weir::core {

// Where a sequence is in its life.
enum class sequence_phase : std::uint8_t {
  waiting,    // in the waiting line, and never in the batch so far
  running,    // in the batch, with pages
  held,       // in the batch, but left out of the step: another sequence computes the page that it needs next
  paused,     // out of the batch and of the waiting line; it may keep its pages
  returning,  // its pause is over, and it waits for resume(); it may keep its pages
  preempted,  // was in the batch and lost its pages to other sequences; in the waiting line again
  ended,      // close() was called: it has no pages, and its sink may still have tokens to take
};

// The mask of the next draw of a sequence.
enum class mask_state : std::uint8_t {
  none,     // the job has no constraint
  on_time,  // it was ready for the last draw, or there was none yet
  late      // the last draw was left out, because the mask was late: the next step computes the last row
            // again, for another draw
};

// The members of a sequence that every step reads. They fill two cache lines, and rarely used members stay
// off these lines: after the wait for a step the lines are no longer cached, and each costs one access to
// memory.
struct alignas(128) sequence_step {
  page_table pages;

 protected:
  std::uint32_t computed_ = 0;
  std::uint32_t named_ = 0;
  std::uint32_t max_output_ = 1;
  std::uint32_t decided_ = 0, delivered_ = 0;
  std::uint32_t sampled_ = 0;
  std::uint32_t prompt_tokens_ = 0, min_tokens_ = 0;  // as asked
  std::uint32_t left_ = 0;                            // tokens that left the context, so far
  sequence_phase phase_ = sequence_phase::waiting;
  mask_state mask_state_ = mask_state::none;
  std::int8_t top_logprobs_ = -1;  // job::top_logprobs; negative: the job asked for none
  bool watched_ : 1 = false;       // the job has stop strings, banned ones or max_repeats
  bool draws_again_ : 1 = false;   // went back; the last row is computed again, for another draw
  awaited_draws awaited_;
  // token_set::filter() of `endings_`: a token whose bit is clear is no ending.
  std::uint64_t ending_bits_ = 0;
  std::vector<token> output_;
  token_sink* sink_ = nullptr;  // asked.sink
  time_point last_at_ = time_point::min();  // when the last token was sampled; min(): none was, here
  duration max_gap_{};          // longest time between two consecutive tokens
};
static_assert(sizeof(sequence_step) == 128, "a step reads one more line of every sequence");

class sequence : public sequence_step {
  // Sampling state; set by the first enter(). A plain draw reads its first line, which fetch() prefetches.
  alignas(64) std::optional<sampler> chooser_;

 public:
  // `longest`: most tokens of prompt and output together. REQUIRES: the prompt has fewer than `longest`
  // tokens.
  sequence(job j, const model_info& m, std::uint32_t longest);

  // The job, constant after construction.
  job asked;

  // --- Where it waits and what it was given: written by the waiting line and the scheduler ---
  std::uint64_t arrival = 0;      // number of the submission among all jobs of the engine
  std::uint64_t ticket = 0;       // scheduling order among waiting jobs, lowest first; see waiting_line.h
  std::uint32_t passed = 0;       // admissions of jobs behind this one while it found no room
  std::uint64_t rows_before = 0;  // prompt rows that the scheduler chose before its latest admission
  // When its last rows were computed; before the first rows, when it was admitted. Kept up to date for paced
  // models only.
  time_point computed_at{};
  std::optional<time_point> scheduled;  // when it was first part of a batch
  bool continued = false;               // it came from an engine whose device failed: engine::adopt()

  sequence_phase phase() const noexcept { return phase_; }
  // Number of its latest admission among all admissions of the engine, and how often it was preempted.
  std::uint64_t ordinal() const noexcept { return ordinal_; }
  std::uint32_t preemptions() const noexcept { return preemptions_; }
  // Out of the batch and of the waiting line for a pause, whether the pause is over or not. It may still
  // await a draw.
  bool rests() const noexcept {
    return phase_ == sequence_phase::paused || phase_ == sequence_phase::returning;
  }
  // When its pause ends by itself. Set while it is paused.
  const std::optional<time_point>& paused_until() const noexcept { return paused_until_; }

  // --- Its tokens ---

  // Every token that was kept, in order. The stop id that ended the sequence is not in it.
  std::span<const token> output() const noexcept { return output_; }
  // Most output tokens: the job's max_tokens, or what the context leaves if that is less; >= 1. A shift of
  // the context raises it.
  std::uint32_t max_output() const noexcept { return max_output_; }
  // The context is full, the job's max_tokens are not reached, and the context can shift.
  bool is_full() const noexcept {
    return output_.size() == max_output_ && shift_ > 0 && max_output_ < asked.max_tokens;
  }
  // Tokens sampled, job::spoken included: the output, and the stop id that ended the sequence, if one did.
  std::uint32_t sampled() const noexcept { return sampled_; }
  // Leading tokens of the output that no stop string can withhold any more, and those that the sink has
  // taken.
  std::uint32_t decided() const noexcept { return decided_; }
  std::uint32_t delivered() const noexcept { return delivered_; }
  // Whether its stop ids cannot come yet, because of min_tokens.
  bool forbids_endings() const noexcept { return output_.size() < min_tokens_ && !endings_.empty(); }
  // What the sink is told at the end. Its times and counts are set by close().
  const ending& how() const noexcept { return how_; }

  // --- Its rows and pages ---

  // Rows (one per token) whose keys and values are in `pages`. The rows of a forward that has begun count,
  // since the device completes them before anything that begins later.
  std::uint32_t computed() const noexcept { return computed_; }
  // Pages at the beginning of `pages` that are in the prefix tree, and the name of the last of them: that of
  // the root, which the salt and the model's type of pages give, while there is none.
  std::uint32_t named() const noexcept { return named_; }
  page_name last_name() const noexcept { return last_name_; }
  // Prompt tokens found in the prefix cache that it never had to compute.
  std::uint32_t cached() const noexcept { return cached_; }
  void set_computed(std::uint32_t rows) noexcept { computed_ = rows; }
  // The first page without a name has got this one.
  void push_name(page_name name) noexcept {
    last_name_ = name;
    ++named_;
  }
  // Takes back what found() counted since cached() was `cached`.
  void uncount_cached(std::uint32_t cached) noexcept { cached_ = cached; }

  // --- What is drawn ---

  // REQUIRES: enter() was called.
  sampler& chooser() noexcept { return *chooser_; }
  // Whether a constraint says what the sequence may write.
  bool constrained() const noexcept { return mask_state_ != mask_state::none; }
  // The next token of a job with a constraint. REQUIRES: enter() was called; constrained().
  grammar::job_mask& mask() const noexcept { return *mask_; }
  // The same, for helpers. Null before enter(), and without a constraint.
  const std::shared_ptr<grammar::job_mask>& shared_mask() const noexcept { return mask_; }
  // Gives the mask away, and with it the constraint. To be called once the sequence is done.
  std::shared_ptr<grammar::job_mask> take_mask() noexcept {
    asked.constraint.reset();
    return std::move(mask_);
  }
  // The tokens that the next draw may give, as draw::allowed has them; empty: all. REQUIRES: the mask is
  // ready, if there is one.
  std::span<const std::uint32_t> allowed() const noexcept {
    if (constrained()) return mask_->allowed();
    if (!output_.empty() || !asked.healing) return {};
    return asked.healing->allowed;
  }
  // Whether its last row was computed but not drawn from, and is computed again: because its mask is late,
  // or because the sequence went back.
  bool mask_late() const noexcept { return mask_state_ == mask_state::late; }
  bool draws_again() const noexcept { return draws_again_; }
  bool repeats_row() const noexcept { return draws_again_ || mask_late(); }
  // REQUIRES: constrained().
  void set_mask_late(bool late) noexcept { mask_state_ = late ? mask_state::late : mask_state::on_time; }

  std::uint32_t prompt_tokens() const noexcept { return prompt_tokens_; }
  // Rows of the prompt that give the logprobs of the prompt's tokens: all rows but the last one, each for the
  // token behind it; 0 if the job asked for none. `scored_rows` of them are done.
  std::uint32_t rows_to_score() const noexcept { return asked.prompt_logprobs ? prompt_tokens_ - 1 : 0; }
  std::uint32_t scored_rows() const noexcept { return scored_.count(); }
  // Adds the logprobs of the next scored token. REQUIRES: scores().
  void add_scored(const kernels::scored_token& t) { scored_.add(t); }
  bool scores() const noexcept { return scored_rows() < rows_to_score(); }
  // One more than the rows that may be taken from the prefix cache: rows that are still to be scored may not.
  std::uint32_t reusable() const noexcept { return scores() ? scored_rows() + 1 : length(); }
  // Tokens of prompt and output that the host knows, without those that left the context.
  std::uint32_t length() const noexcept {
    return prompt_tokens() + static_cast<std::uint32_t>(output_.size()) - left_;
  }
  // Position of the next token among all of prompt and output, wherever its row is.
  std::uint32_t next_position() const noexcept { return length() + left_; }
  // Rows at the beginning that have tokens of the prompt.
  std::uint32_t prompt_rows() const noexcept {
    if (left_ == 0) return prompt_tokens_;
    return std::max(asked.kept, prompt_tokens_ - std::min(left_, prompt_tokens_));
  }
  // How many of the likeliest tokens each draw gives logprobs of; negative: the job asked for no logprobs.
  std::int32_t top_logprobs() const noexcept { return top_logprobs_; }
  // Whether a token was sampled here: more tokens than those of job::spoken are known.
  bool samples() const noexcept { return last_at_ != time_point::min(); }
  // When the last token was sampled. REQUIRES: samples().
  time_point last_at() const noexcept { return last_at_; }
  // A draw for this sequence has been requested and its token is not known yet.
  bool awaits() const noexcept { return awaited_.any(); }
  bool ended() const noexcept { return phase_ == sequence_phase::ended; }
  // It is in the batch, and not in the waiting line or ended.
  bool in_batch() const noexcept {
    return phase_ == sequence_phase::running || phase_ == sequence_phase::held;
  }
  // Rows that the sequence needs computed: length(), and one for each token that it awaits. An awaited token
  // that reaches max_output() needs no row, because nothing is sampled after it.
  std::uint32_t expected() const noexcept {
    const std::uint32_t left = max_output_ - 1 - static_cast<std::uint32_t>(output_.size());
    return length() + std::min(awaited_.count(), left);
  }
  // Rows that are still to be computed.
  std::uint32_t pending() const noexcept { return expected() - computed_; }
  // The first token was drawn or requested, or would have been but for its mask, and at most one row is
  // pending. Every other sequence has a prompt, or rows lost by preemption, to compute.
  bool decoding() const noexcept { return (awaits() || !output_.empty() || repeats_row()) && pending() <= 1; }
  // The row that the next step computes first.
  std::uint32_t next_row() const noexcept { return computed_ - (repeats_row() ? 1 : 0); }
  // REQUIRES: position < length().
  token_id token_at(std::uint32_t position) const {
    if (left_ > 0 && position >= asked.kept) position += left_;
    return position < prompt_tokens() ? asked.prompt[position] : output_[position - prompt_tokens()].id;
  }
  // What stands in batch::tokens at `position`: the token, or an awaited draw. REQUIRES: position <
  // expected().
  token_id row_token(std::uint32_t position) const {
    return position < length() ? token_at(position) : awaited_.stand_in(position - length());
  }
  // The first page without a name is full and all its tokens are known: name_pages() would name it.
  bool fills_page() const noexcept { return (named_ + 1) * page_tokens <= std::min(computed_, length()); }
  // The sink has not taken every decided token.
  bool tail_waits() const noexcept { return delivered_ < decided_; }

  // Prefetches sequence_step and the first line of the sampler.
  void fetch() const noexcept {
    for (std::size_t line = 0; line < 3; ++line)
      __builtin_prefetch(reinterpret_cast<const std::byte*>(this) + line * 64, 1);
  }
  // Prefetches the end of the output and the page table. Reads sequence_step, so fetch() should come first.
  void fetch_ends() const noexcept {
    __builtin_prefetch(output_.data() + output_.size(), 1);
    __builtin_prefetch(pages.all().data());
  }

  // Takes job::spoken as its first output, which its sink has: the sequence then waits as one that was
  // preempted. Returns what is wrong with the list, if anything; the sequence is then of no use. To be called
  // once, before all else. REQUIRES: job::spoken is not empty.
  std::optional<error> replay(const token_table& text, std::uint32_t vocab_size);

  // Admission into the batch; `admission` becomes the ordinal. The first call builds the sampler, the stop
  // matcher and the loop detector and reserves memory for the longest output; later calls keep them.
  // REQUIRES: it waits, or was preempted.
  void enter(std::uint64_t admission, time_point now, std::uint32_t vocab_size);

  // Leaves the sequence out of the step that is planned, or takes it back in. REQUIRES: in_batch().
  void hold(bool on) noexcept {
    assert(in_batch());
    phase_ = on ? sequence_phase::held : sequence_phase::running;
  }

  // Draw `number` of the step in flight is requested for it. REQUIRES: running; it awaits none.
  void await_draw(std::uint32_t number) noexcept {
    assert(phase_ == sequence_phase::running);
    awaited_.request(number);
    draws_again_ = false;
  }
  // The next awaited token has come: returns the number of its draw. REQUIRES: awaits().
  std::uint32_t take_draw() noexcept { return awaited_.take(); }

  // Stops it until resume(): it keeps its pages. An awaited token may still be accepted. A second call
  // changes the time, or begins a new pause. REQUIRES: not ended.
  void pause(time_point until) noexcept {
    assert(!ended());
    paused_until_ = until;
    phase_ = sequence_phase::paused;
  }
  // Its pause is over: it waits for resume(). REQUIRES: not ended.
  void line_up() noexcept {
    assert(!ended());
    paused_until_.reset();
    phase_ = sequence_phase::returning;
  }
  // With pages it is in the batch again, else it waits for enter(). REQUIRES: rests().
  void resume() noexcept;

  // Sets computed to `rows`: the prefix cache gave the keys and values of all rows before it.
  void found(std::uint32_t rows) noexcept;

  // Releases all pages. The phase, output and delivery state stay.
  void give_back(page_pool& pool);

  // Releases all pages for the sake of other sequences, and forgets the awaited draw: its token is drawn
  // again later. The sequence may be enter()ed again; one that rests goes on resting. REQUIRES: in_batch() or
  // rests().
  void preempt(page_pool& pool);

  // Its engine's device has failed: releases all pages, and forgets the awaited draw and what may have come
  // from the failed device. It waits as one that was preempted; one that rests goes on resting. No effect on
  // one that waits. REQUIRES: not ended.
  void strand(page_pool& pool);

  // What a token did. last: it ended the sequence; how().reason is set, and the caller must close() with that
  // reason or another. banned: it completed a banned string; the caller must go_back(), or call
  // end_before_banned() and close().
  enum class accepted : std::uint8_t { goes_on, last, banned };

  // Adds a sampled token, and its logprobs if the job asked for them. REQUIRES: running, or rests();
  // `logprobs` is not null if the job asked.
  accepted accept(token t, const token_table& text, const kernels::draw_logprobs* logprobs = nullptr);

  // The place of the output to go back to, behind a token that was banned: the first that is part of the
  // banned string, and neither decided nor forced by the constraint. nullopt: there is none, or it was tried
  // often enough.
  std::optional<std::uint32_t> place_to_try_again(const token_table& text) const;
  // Takes all tokens from `place` of the output on back, and refuses the first of them there. The caller
  // takes the mask back. REQUIRES: a token was banned; `place` is what place_to_try_again() said.
  void go_back(std::uint32_t place, const token_table& text, page_pool& pool);
  // The output ends before the banned string.
  void end_before_banned(const token_table& text);
  static constexpr std::uint32_t most_attempts = 64;      // tokens that may be refused at one place
  static constexpr std::uint32_t most_going_back = 4096;  // times that a sequence may go back

  // The context is full: its older tokens leave, but for those that job::kept keeps. Releases all pages,
  // since the rows of what stays are computed anew. REQUIRES: is_full(), running or rests(); it awaits no
  // draw.
  void shift(page_pool& pool);

  // Ends the sequence and releases its pages. Withheld tokens become decided, unless a stop string matched:
  // then they are never shown. REQUIRES: not ended.
  void close(finish_reason why, page_pool& pool, std::optional<error> fault = {});

  // The same for a sequence without pages. REQUIRES: not ended.
  void end(finish_reason why, std::optional<error> fault = {});

  // Takes back the output that a context of `longest` tokens has no room for. False: what the sequence has is
  // too long already. REQUIRES: not ended.
  bool fit(std::uint32_t longest) noexcept {
    if (length() >= longest) return false;
    if (!shifts_.empty() && prompt_tokens_ + shifts_.back().at - left_ + shifts_.back().tokens > longest)
      return false;  // it may go back to what it had before
    max_output_ = std::min(max_output_, longest - prompt_tokens_ + left_);
    if (asked.shifts) shift_ = tokens_that_leave(longest, asked.kept);
    return true;
  }

  // Gives an ended sequence another ending. REQUIRES: ended.
  void change_ending(finish_reason why, std::optional<error> fault) {
    assert(ended());
    how_.reason = why;
    how_.fault = std::move(fault);
  }
  // Its pages were free at `at`, after a cancel or a deadline.
  void note_release(time_point at) noexcept { how_.released = at; }

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
  // Most output tokens, whatever leaves the context.
  std::uint32_t most_output() const noexcept { return shift_ > 0 ? asked.max_tokens : max_output_; }
  // Counts the tokens that leave. REQUIRES: is_full().
  void let_leave();
  // Where the output went back to `place`, and tokens left the context behind that place: they are there
  // again, and all rows are computed anew.
  void come_back(std::uint32_t place, page_pool& pool);
  // Builds the sampler, the mask, the stop matcher and the loop detector, and reserves memory.
  void prepare(std::uint32_t vocab_size);
  // Bytes of the first token that are no text of the answer.
  std::uint32_t healed_bytes() const noexcept {
    return asked.healing ? static_cast<std::uint32_t>(asked.healing->bytes.size()) : 0;
  }
  // Adds spoken token `i`. Returns why it cannot have been delivered, if so.
  std::optional<error> repeat(std::size_t i, const token_table& text, std::uint32_t vocab_size);
  // Strings, then loops, for the token just added.
  accepted watch(const token_table& text);
  // Sets how().reason; for accept() to return.
  accepted last(finish_reason why) noexcept {
    how_.reason = why;
    return accepted::last;
  }
  // Gives up the rows and pages that hold more than the tokens which are left.
  void keep_rows(page_pool& pool);
  void write_tail();
  // Releases all pages and forgets the awaited draw, to be computed again elsewhere or later.
  void lose_rows(page_pool& pool);
  bool is_ending(token_id id) const noexcept {
    return (ending_bits_ & token_set::bit_of(id)) != 0 && endings_.contains(id);
  }

  token_set endings_;                        // stop ids: the job's own and, unless ignore_eos, the model's
  std::shared_ptr<grammar::job_mask> mask_;  // set by the first enter() of a job with a constraint
  std::optional<output_watch> watch_;        // set by the first enter(), if watched_
  untaken_logprobs logprobs_;
  prompt_logprobs scored_;
  ending how_;

  const page_name root_;  // root name of the salt and the model's type of pages
  page_name last_name_;
  std::uint64_t ordinal_ = 0;
  std::uint32_t preemptions_ = 0, cached_ = 0;
  std::uint32_t went_back_ = 0;  // times
  std::uint32_t shift_ = 0;      // tokens that leave a full context; 0: it cannot shift
  struct done_shift {
    std::uint32_t at, tokens;  // tokens of the output when it was, and tokens that left
  };
  std::vector<done_shift> shifts_;
  std::optional<time_point> paused_until_;
  // Most rows that were computed at a preemption. Of the rows found later, only those beyond count as cached.
  std::uint32_t furthest_ = 0;
};

// To be called by a pass over `all` at index `i`: prefetches the sequences that the pass reaches soon. After
// the wait for a step the first pass finds few of their lines in the caches.
inline void fetch_ahead(std::span<const std::unique_ptr<sequence>> all, std::size_t i) {
  constexpr std::size_t lines = 16, ends = 8;  // sequences ahead
  if (i + lines < all.size()) all[i + lines]->fetch();
  if (i + ends < all.size()) all[i + ends]->fetch_ends();
}

}  // namespace weir::core
